package delivery

import (
	"context"
	"strings"

	"github.com/tempo-watchtower/watchtower/api/rest"
	"github.com/tempo-watchtower/watchtower/domain/access"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/delivery/group"
	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
	"github.com/tempo-watchtower/watchtower/eventlog"
	"github.com/tempo-watchtower/watchtower/projections/delivery/owners"
)

// eventFilter selects the events that match all fields that are set.
type eventFilter struct {
	chain  chain.ID
	sender *chain.Address
	group  *chain.GroupID
	hash   *chain.Hash
	names  []string // prefixes of event names
	stream string   // prefix of the stream's name
}

// shownStreams are the name prefixes of the streams that clients may follow. All other streams
// are internal.
var shownStreams = []string{tx.StreamPrefix, group.StreamPrefix}

const namesMax = 16 // most name prefixes in one filter

func (p parameters) eventFilter() (f eventFilter, err error) {
	same, err := p.filters() // chainId, sender and groupId
	if err != nil {
		return f, err
	}
	f.chain, f.sender, f.group, f.stream = same.Chain, same.Sender, same.Group, p.one("stream")
	if p.values.Has("hash") {
		hash, err := chain.ParseHash(p.one("hash"))
		if err != nil {
			return f, rest.BadParameter("hash", "hash: %v", err)
		}
		f.hash = &hash
	}
	if p.values.Has("name") {
		if f.names = strings.Split(p.one("name"), ","); len(f.names) > namesMax {
			return f, rest.BadParameter("name", "name lists %d prefixes, more than %d", len(f.names), namesMax)
		}
	}
	return f, nil
}

// stored returns the part of the filter that the store can apply. The store takes either
// streams or names, so stored chooses the more selective one: one transaction or a stream
// prefix set by the client, else names, else kinds of streams or chains.
func (f eventFilter) stored() eventlog.Filter {
	prefixes := f.streams()
	narrow := f.hash != nil && f.chain != 0 || len(prefixes) == 1 && prefixes[0] == f.stream
	if f.names == nil || narrow {
		return eventlog.Filter{Streams: prefixes}
	}
	return eventlog.Filter{Names: f.names}
}

// streams returns the name prefixes of the streams that the filter lets through; none means all
// streams.
func (f eventFilter) streams() (prefixes []string) {
	if f.hash != nil && f.chain != 0 {
		return []string{string(tx.Stream(f.chain, *f.hash))}
	}
	for _, kind := range shownStreams {
		if f.chain != 0 {
			kind += f.chain.String() + "-"
		}
		switch {
		case strings.HasPrefix(f.stream, kind): // the client's prefix is narrower
			return []string{f.stream}
		case strings.HasPrefix(kind, f.stream) && (f.chain != 0 || f.stream != ""):
			prefixes = append(prefixes, kind)
		}
	}
	return prefixes
}

// transaction returns the one transaction that the filter names, if it names one. The chain is
// 0 if the transaction may be on any chain.
func (f eventFilter) transaction() (id chain.ID, hash chain.Hash, ok bool) {
	if f.hash != nil {
		return f.chain, *f.hash, true
	}
	id, hash, err := tx.ParseStream(eventlog.Stream(f.stream))
	return id, hash, err == nil
}

// narrows reports whether the filter's stream prefix goes beyond a stream's kind and chain.
func (f eventFilter) narrows() bool {
	for _, kind := range shownStreams {
		if after, is := strings.CutPrefix(f.stream, kind); is {
			_, subject, _ := strings.Cut(after, "-")
			return subject != ""
		}
	}
	return false
}

// subject is the transaction or group that a stream is about.
type subject struct {
	chain  chain.ID
	hash   *chain.Hash // set for a transaction
	sender *chain.Address
	group  *chain.GroupID
}

// subjectOf parses a stream's name. The name of a transaction's stream has no sender or group.
func subjectOf(s eventlog.Stream) (subject, bool) {
	if id, hash, err := tx.ParseStream(s); err == nil {
		return subject{chain: id, hash: &hash}, true
	}
	if id, err := group.ParseStream(s); err == nil {
		return subject{chain: id.Chain, sender: &id.Sender, group: &id.Group}, true
	}
	return subject{}, false
}

// passes reports whether the client wants an event and may see it, and returns the event as
// shown to the client. It looks up facts that the stream's name does not have.
func (a *api) passes(ctx context.Context, f eventFilter, v viewer, e eventlog.Recorded) (eventlog.Recorded, bool, error) {
	visible := eventlog.Filter{Streams: shownStreams}
	if !visible.Passes(e.Stream, e.Name) || !strings.HasPrefix(string(e.Stream), f.stream) {
		return e, false, nil
	}
	if f.names != nil && !(eventlog.Filter{Names: f.names}).Passes("", e.Name) {
		return e, false, nil
	}
	s, ok := subjectOf(e.Stream)
	if !ok || f.chain != 0 && f.chain != s.chain || f.hash != nil && (s.hash == nil || *s.hash != *f.hash) {
		return e, false, nil
	}
	everything := v.audits() && len(v.bound()) == 0
	if everything && f.sender == nil && f.group == nil {
		return e, true, nil
	}
	// The ownership as of this event, so reading the log again shows the same events.
	whose, reads, err := a.readsEvent(ctx, v, &s, e)
	if err != nil || !reads {
		return e, false, err
	}
	if f.sender != nil && (s.sender == nil || *s.sender != *f.sender) || f.group != nil && (s.group == nil || *s.group != *f.group) {
		return e, false, nil
	}
	return a.told(v, whose, e)
}

// readsEvent reports whether the viewer may read an event, and returns the owners of the
// transaction that the event is about as of the event. It adds a transaction's sender and group to
// the subject.
func (a *api) readsEvent(ctx context.Context, v viewer, s *subject, e eventlog.Recorded) (owners.Ownership, bool, error) {
	if s.hash == nil {
		return a.readsGroup(ctx, v, *s, e)
	}
	whose, err := a.ownershipAt(ctx, e)
	if err != nil || !v.reads(whose) {
		return whose, false, err
	}
	s.sender, s.group = &whose.Sender, whose.Group
	return whose, true, nil
}

// readsGroup reports whether the viewer may read an event of a group, and returns the owners of
// the transaction that joined. The viewer may read that its own transaction joined, and that it
// canceled the group itself. A key that is bound to the group's sender reads all.
func (a *api) readsGroup(ctx context.Context, v viewer, s subject, e eventlog.Recorded) (whose owners.Ownership, reads bool, err error) {
	all := v.members() == nil
	if all && (v.audits() || !v.within(*s.sender)) {
		return whose, v.within(*s.sender), nil
	}
	fact, err := a.groups.Decode(e.Name, e.Data)
	if err != nil {
		return whose, false, err
	}
	joined, is := fact.(group.Joined)
	if !is {
		return whose, all || v.did(e.Meta), nil
	}
	stream := tx.Stream(joined.Chain, joined.Hash)
	if whose = a.owned.recall(stream); all && whose.Version > 0 && !whose.Claimed {
		return whose, true, nil // its first submission is known, and no more is needed
	}
	whose, err = a.ownershipBefore(ctx, stream, e.Position)
	return whose, err == nil && (all || v.owns(whose)), err
}

// did reports whether a request of the viewer's client caused an event.
func (v viewer) did(m eventlog.Meta) bool {
	id, keyed := access.ActorKey(m.Actor)
	return keyed && v.key != nil && v.is(id) || m.Actor == rest.KeylessActor && v.key == nil
}

// told returns an event as the viewer may see it: without the names, keys and request ids of
// other clients that own the transaction too. An event that only says that another client
// submitted the transaction is hidden, and the versions of later events do not count it.
func (a *api) told(v viewer, whose owners.Ownership, e eventlog.Recorded) (eventlog.Recorded, bool, error) {
	if v.audits() {
		return e, true, nil
	}
	e.Version -= whose.Others(e.Version, v.is)
	if strings.HasPrefix(string(e.Stream), group.StreamPrefix) && v.members() != nil {
		e.Version = 0 // it counts the members of other clients
	}
	e.Meta = v.meta(whose, e.Meta)
	if !owners.Filter().Passes("", e.Name) {
		return e, true, nil
	}
	codec := a.Submit.Transactions.Codec
	fact, err := codec.Decode(e.Name, e.Data)
	if err != nil {
		return e, false, err
	}
	switch fact := fact.(type) {
	case tx.Resubmitted:
		return e, v.is(access.ClientOf(fact.Client, "")), nil
	case tx.Accepted:
		if fact.Client != "" && !v.is(fact.Client) {
			fact.Client = ""
			e.Name, e.Data, err = codec.Encode(fact)
		}
	default: // the other events name no client
	}
	return e, true, err
}

// meta returns an event's metadata as the viewer may see them: with a request's id and trace only
// if the request was the viewer's, and with a cause only if it is an event of the transaction
// itself. A component that acts for a request passes the request's id and trace on, also if it acts
// on transactions of other clients. The link is left out: it is a hash over everything that is left
// out here, and over the version in the log, so it would confirm guesses.
func (v viewer) meta(whose owners.Ownership, m eventlog.Meta) eventlog.Meta {
	m.Link = eventlog.Link{}
	if v.did(m) {
		return m
	}
	clients := whose.Clients()
	if first := len(clients) > 0 && v.is(clients[0]); !first || !whose.Submitted(m) {
		m.Correlation, m.Trace = eventlog.ID{}, ""
	}
	if !whose.Led(m) {
		m.Causation = eventlog.ID{}
	}
	if _, keyed := access.ActorKey(m.Actor); keyed {
		m.Actor = rest.KeylessActor
	}
	return m
}
