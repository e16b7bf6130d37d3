package relay

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"time"

	"github.com/tempo-watchtower/watchtower/api/rest"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/relay/intent"
	"github.com/tempo-watchtower/watchtower/eventlog"
)

// told is an event of an intent in the form of a webhook delivery, with its position in the
// log.
type told struct {
	Position eventlog.Position `json:"position"`
	Intent   chain.IntentID    `json:"intent"`
	Sequence uint64            `json:"sequence"`
	Type     string            `json:"type"`
	At       time.Time         `json:"at"`
	Data     json.RawMessage   `json:"data"`
}

// follow answers GET /v1/events. It streams the events that webhooks receive, as they happen,
// for all intents that the client may see.
func (d *desk) follow(r rest.Request) error {
	q, err := r.Query("intent", "client", "after", "until")
	if err != nil {
		return err
	}
	s := rest.Stream{Tail: d.Tail, Head: d.Intake.Intents.Store.Head}
	if s.Span, err = r.Span(q); err != nil {
		return err
	}
	client, err := d.seen(r, q)
	if err != nil {
		return err
	}
	if s.Stored, err = wantedStream(q); err != nil {
		return err
	}
	if q.Has("intent") && client != nil {
		s.Names = rest.NamesOne
		s.Reaches = func(ctx context.Context) (bool, error) {
			owner, known, err := d.owner(ctx, eventlog.Stream(s.Stored.Streams[0]))
			return known && owner == *client, err
		}
	}
	wanted := s.Stored
	if !q.Has("intent") {
		wanted = eventlog.Filter{Streams: []string{intent.StreamPrefix}}
	}
	public := eventlog.Filter{Names: intent.NoticeNames()}
	s.Show = func(ctx context.Context, e eventlog.Recorded) (any, error) {
		if !wanted.Passes(e.Stream, "") || !public.Passes("", e.Name) {
			return nil, nil // an intent's request, which may be large, is not decoded
		}
		return d.told(ctx, client, e)
	}
	return r.Stream(s)
}

// wantedStream returns the filter that the store applies: by stream for one intent, otherwise by the
// names of public events, so that the store reads no requests.
func wantedStream(q url.Values) (eventlog.Filter, error) {
	if !q.Has("intent") {
		return eventlog.Filter{Names: intent.NoticeNames()}, nil
	}
	id, err := chain.ParseIntentID(q.Get("intent"))
	if err != nil {
		return eventlog.Filter{}, rest.BadParameter("intent", "intent: %v", err)
	}
	return eventlog.Filter{Streams: []string{string(stream(id))}}, nil
}

// told returns an event as shown to a client; nil if the event is not public or another
// client's. A nil client sees every client's events. The owner is looked up only of public events.
func (d *desk) told(ctx context.Context, client *string, r eventlog.Recorded) (any, error) {
	id, err := intent.ParseStream(r.Stream)
	if err != nil {
		return nil, err
	}
	if client != nil {
		if owner, known := d.owners.Recall(r.Stream); known && owner != *client {
			return nil, nil
		}
	}
	text, failed := d.tellings.of(r.Position, func() (rest.Encoded, error) { return d.tell(id, r) })
	if failed == nil && text == nil {
		return nil, nil
	}
	if client != nil {
		owner, known, err := d.owner(ctx, r.Stream)
		switch {
		case err != nil:
			return nil, err
		case !known:
			return nil, fmt.Errorf("%s has no first event", r.Stream)
		case owner != *client: // also if it cannot be decoded
			return nil, nil
		}
	}
	if failed != nil {
		return nil, failed
	}
	return text, nil
}

// tell decodes an event, and encodes it in the form in which all clients get it; nil if the event
// is not public.
func (d *desk) tell(id chain.IntentID, r eventlog.Recorded) (rest.Encoded, error) {
	e, err := d.Intake.Intents.Codec.Decode(r.Name, r.Data)
	if err != nil {
		return nil, err
	}
	said, is := intent.Tell(id, e)
	if !is {
		return nil, nil
	}
	text, err := json.Marshal(said)
	if err != nil {
		return nil, err
	}
	shown := told{}
	if err := json.Unmarshal(text, &shown); err != nil {
		return nil, err
	}
	shown.Position = r.Position
	return rest.Encode(shown)
}

// owner returns the client that owns the intent of a stream, if the stream exists. The stream's
// first event names the owner, and it never changes.
func (d *desk) owner(ctx context.Context, stream eventlog.Stream) (client string, known bool, err error) {
	if client, known := d.owners.Recall(stream); known {
		return client, true, nil
	}
	if err := rest.LookUp(ctx); err != nil {
		return "", false, err
	}
	// Another stream may have looked it up while this one waited for a place.
	if client, known := d.owners.Recall(stream); known {
		return client, true, nil
	}
	for r, err := range d.Intake.Intents.Store.ReadStream(ctx, stream, 0) {
		if err != nil {
			return "", false, err
		}
		client, err := intent.OwnerOf(r, d.Intake.Intents.Codec)
		if err != nil {
			return "", false, err
		}
		d.owners.Remember(stream, client, nil)
		return client, true, nil
	}
	return "", false, nil
}
