package api

import (
	"context"
	"fmt"
	"net/http"
	"strconv"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
	"github.com/tempo-watchtower/watchtower/eventlog"
)

// name sets how closely the filter names transactions, unless the viewer reads all of them.
func (a *api) name(s *Stream, f eventFilter, v viewer) {
	if v.audits() && len(v.bound()) == 0 {
		return
	}
	id, hash, whole := f.transaction()
	switch {
	case whole:
		s.Names = NamesOne
		s.Reaches = func(ctx context.Context) (bool, error) { return a.reads(ctx, v, id, hash) }
	case f.narrows():
		s.Names = NamesFew
	}
}

// reads reports whether a viewer may read a transaction as of now. The chain is 0 if the
// transaction may be on any chain.
func (a *api) reads(ctx context.Context, v viewer, id chain.ID, hash chain.Hash) (bool, error) {
	chains := []chain.ID{id}
	if id == 0 {
		var err error
		if chains, err = a.chainsOf(ctx, hash); err != nil {
			return false, err
		}
	}
	reads := false
	for _, id := range chains { // all chains, so that the time taken reveals nothing
		o, err := a.ownership(ctx, tx.Stream(id, hash), 0)
		if err != nil {
			return false, err
		}
		reads = reads || v.reads(o)
	}
	return reads, nil
}

// followed is an event in the answer to GET /v1/events.
type followed struct {
	recordedEvent
	Stream  eventlog.Stream `json:"stream"`
	ChainID chain.ID        `json:"chainId"`
	TxHash  *chain.Hash     `json:"txHash,omitempty"`  // for an event of a transaction
	Sender  *chain.Address  `json:"sender,omitempty"`  // for an event of a group
	GroupID *chain.GroupID  `json:"groupId,omitempty"` // for an event of a group
}

func followedOf(e eventlog.Recorded) followed {
	shown := followed{recordedEvent: recordedOf(e), Stream: e.Stream}
	if s, ok := subjectOf(e.Stream); ok {
		shown.ChainID, shown.TxHash = s.chain, s.hash
		if s.hash == nil {
			shown.Sender, shown.GroupID = s.sender, s.group
		}
	}
	return shown
}

// readFollow reads the parameters of GET /v1/events.
func readFollow(r *http.Request) (f eventFilter, s Span, err error) {
	q, err := readParameters(r, "chainId", "sender", "groupId", "hash", "name", "stream", "after", "until")
	if err != nil {
		return f, s, err
	}
	if f, err = q.eventFilter(); err != nil {
		return f, s, err
	}
	s, err = q.span(r)
	return f, s, err
}

// span reads where a stream begins and ends. A client that was disconnected repeats its first
// request and adds the Last-Event-ID header.
func (q parameters) span(r *http.Request) (s Span, err error) {
	if s.UntilHead = q.one("until") == "head"; !s.UntilHead && q.values.Has("until") {
		if s.Until, err = readPosition("until", q.one("until")); err != nil {
			return s, err
		}
	}
	switch last := r.Header.Values("Last-Event-ID"); {
	case len(last) > 0:
		s.After, err = readPosition("Last-Event-ID", last[0])
	case q.values.Has("after"):
		s.After, err = readPosition("after", q.one("after"))
	}
	return s, err
}

func readPosition(what, text string) (*eventlog.Position, error) {
	n, err := strconv.ParseUint(text, 10, 63)
	if err != nil {
		return nil, ErrInvalidFilter.Because("%s must be a position, not %s", what, quote(text))
	}
	at := eventlog.Position(n)
	return &at, nil
}

// positionText is a position in the form in which clients return it.
func positionText(p eventlog.Position) string { return fmt.Sprint(uint64(p)) }
