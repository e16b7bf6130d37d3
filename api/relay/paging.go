package relay

import (
	"encoding/binary"
	"net/url"
	"strconv"

	"github.com/tempo-watchtower/watchtower/api/rest"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/notice"
)

// webhooksList identifies the list of all webhooks. Cursors are bound to it.
const webhooksList = "webhooks"

// deadList identifies the list of a webhook's dead letters. Cursors are bound to it.
func deadList(id notice.EndpointID) string { return "dead letters of " + id.String() }

// halves returns an id of 16 bytes as two numbers, for a cursor.
func halves(id []byte) []uint64 {
	return []uint64{binary.BigEndian.Uint64(id), binary.BigEndian.Uint64(id[8:])}
}

// joined is the inverse of halves.
func joined(halves []uint64) (id [16]byte) {
	binary.BigEndian.PutUint64(id[:], halves[0])
	binary.BigEndian.PutUint64(id[8:], halves[1])
	return id
}

// afterWebhook reads the webhook after which a list begins; the zero id for the whole list.
func afterWebhook(r rest.Request, q url.Values) (after notice.EndpointID, err error) {
	switch {
	case q.Has("cursor") && q.Has("after"):
		return after, rest.BadParameter("cursor", "after and cursor exclude each other")
	case q.Has("cursor"):
		place, err := r.ReadPlace(q.Get("cursor"), webhooksList, 2)
		if err != nil {
			return after, err
		}
		return joined(place), nil
	case q.Has("after"):
		if after, err = notice.ParseEndpointID(q.Get("after")); err != nil {
			return after, rest.BadParameter("after", "after: %v", err)
		}
	}
	return after, nil
}

// afterNotice reads the webhook delivery after which a list of a webhook's dead letters begins.
func afterNotice(r rest.Request, q url.Values, of notice.EndpointID) (after notice.Key, err error) {
	switch {
	case q.Has("intent") != q.Has("sequence"):
		return after, rest.BadParameter("sequence", "intent and sequence must be given together to name a webhook delivery")
	case q.Has("intent") && q.Has("cursor"):
		return after, rest.BadParameter("cursor", "intent and cursor exclude each other")
	case q.Has("cursor"):
		place, err := r.ReadPlace(q.Get("cursor"), deadList(of), 3)
		if err != nil {
			return after, err
		}
		return notice.Key{Intent: joined(place), Seq: place[2]}, nil
	case !q.Has("intent"):
		return after, nil
	}
	if after.Intent, err = chain.ParseIntentID(q.Get("intent")); err != nil {
		return after, rest.BadParameter("intent", "intent: %v", err)
	}
	if after.Seq, err = strconv.ParseUint(q.Get("sequence"), 10, 63); err != nil {
		return after, rest.BadParameter("sequence", "sequence must be the sequence of an event")
	}
	return after, nil
}
