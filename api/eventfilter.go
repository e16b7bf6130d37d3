package api

import (
	"context"
	"strings"
	"sync"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/event"
	"github.com/tempo-watchtower/watchtower/domain/group"
	"github.com/tempo-watchtower/watchtower/domain/tx"
)

// eventFilter says which events a client wants: those that fit all that is set.
type eventFilter struct {
	chain  chain.ID
	sender *chain.Address
	group  *chain.GroupID
	hash   *chain.Hash
	names  []string // prefixes
	stream string   // prefix
	// sees, when set, says whose transactions and groups the client may see.
	sees func(chain.Address) bool
}

// shownStreams begin the names of the streams that clients may follow. What else
// the log holds is the service's own.
var shownStreams = []string{tx.StreamPrefix, group.StreamPrefix}

const namesMax = 16 // prefixes of names in one filter

func (p parameters) eventFilter() (f eventFilter, err error) {
	same, err := p.filters() // chainId, sender and groupId
	if err != nil {
		return f, err
	}
	f.chain, f.sender, f.group, f.stream = same.Chain, same.Sender, same.Group, p.one("stream")
	if p.values.Has("hash") {
		hash, err := chain.ParseHash(p.one("hash"))
		if err != nil {
			return f, ErrInvalidFilter.Because("hash: %v", err)
		}
		f.hash = &hash
	}
	if p.values.Has("name") {
		if f.names = strings.Split(p.one("name"), ","); len(f.names) > namesMax {
			return f, ErrInvalidFilter.Because("name lists %d beginnings, more than %d", len(f.names), namesMax)
		}
	}
	return f, nil
}

// stored is what the store can spare us of a filter: it takes streams or names. What
// leaves the fewest events is chosen: one transaction, or streams that the client names;
// else names; else kinds of streams or chains.
func (f eventFilter) stored() event.Filter {
	prefixes := f.streams()
	narrow := f.hash != nil && f.chain != 0 || len(prefixes) == 1 && prefixes[0] == f.stream
	if f.names == nil || narrow {
		return event.Filter{Streams: prefixes}
	}
	return event.Filter{Names: f.names}
}

// streams are how the names of streams begin that a filter lets through; none means
// that it need not be looked at.
func (f eventFilter) streams() (prefixes []string) {
	if f.hash != nil && f.chain != 0 {
		return []string{string(tx.Stream(f.chain, *f.hash))}
	}
	for _, kind := range shownStreams {
		if f.chain != 0 {
			kind += f.chain.String() + "-"
		}
		switch {
		case strings.HasPrefix(f.stream, kind): // the client's is the narrower
			return []string{f.stream}
		case strings.HasPrefix(kind, f.stream) && (f.chain != 0 || f.stream != ""):
			prefixes = append(prefixes, kind)
		}
	}
	return prefixes
}

// subject is whom a stream is about.
type subject struct {
	chain  chain.ID
	hash   *chain.Hash // of a transaction
	sender *chain.Address
	group  *chain.GroupID
}

// subjectOf reads a subject off a stream's name, which for a transaction does not
// tell sender and group.
func subjectOf(s event.Stream) (subject, bool) {
	if id, hash, err := tx.ParseStream(s); err == nil {
		return subject{chain: id, hash: &hash}, true
	}
	if id, err := group.ParseStream(s); err == nil {
		return subject{chain: id.Chain, sender: &id.Sender, group: &id.Group}, true
	}
	return subject{}, false
}

// passes reports whether an event is one that the client wants. What the name of
// its stream does not tell is looked up.
func (a *api) passes(ctx context.Context, f eventFilter, e event.Recorded) (bool, error) {
	visible := event.Filter{Streams: shownStreams}
	if !visible.Passes(e.Stream, e.Name) || !strings.HasPrefix(string(e.Stream), f.stream) {
		return false, nil
	}
	if f.names != nil && !(event.Filter{Names: f.names}).Passes("", e.Name) {
		return false, nil
	}
	s, ok := subjectOf(e.Stream)
	if !ok || f.chain != 0 && f.chain != s.chain || f.hash != nil && (s.hash == nil || *s.hash != *f.hash) {
		return false, nil
	}
	if f.sender == nil && f.group == nil && f.sees == nil {
		return true, nil
	}
	if s.hash != nil {
		var err error
		if s, err = a.complete(ctx, e, s); err != nil {
			return false, err
		}
	}
	if f.sees != nil && (s.sender == nil || !f.sees(*s.sender)) {
		return false, nil
	}
	return (f.sender == nil || s.sender != nil && *s.sender == *f.sender) &&
		(f.group == nil || s.group != nil && *s.group == *f.group), nil
}

// accountsMax bounds how many transactions' accounts are remembered.
const accountsMax = 1 << 14

// accounts remembers sender and group of transactions. They are in the first event
// of each one's stream and never change, so that the log is enough to know them:
// no read model, which may be behind, is asked.
type accounts struct {
	mu    sync.Mutex
	known map[event.Stream]subject
}

// complete adds sender and group to the subject of a transaction's event.
func (a *api) complete(ctx context.Context, e event.Recorded, s subject) (subject, error) {
	if e.Version != 1 {
		if found, ok := a.accounts.recall(e.Stream); ok {
			return found, nil
		}
		for first, err := range a.stream(ctx, e.Stream, 0) {
			if err != nil {
				return s, err
			}
			e = first
			break
		}
	}
	decoded, err := a.Submit.Transactions.Codec.Decode(e.Name, e.Data)
	if err != nil {
		return s, err
	}
	if accepted, ok := decoded.(tx.Accepted); ok {
		s.sender, s.group = &accepted.Sender, accepted.Group
	}
	a.accounts.remember(e.Stream, s)
	return s, nil
}

func (k *accounts) recall(stream event.Stream) (subject, bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	s, ok := k.known[stream]
	return s, ok
}

// remember forgets all others when there is no room: they are soon known again.
func (k *accounts) remember(stream event.Stream, s subject) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.known == nil || len(k.known) >= accountsMax {
		k.known = map[event.Stream]subject{}
	}
	k.known[stream] = s
}
