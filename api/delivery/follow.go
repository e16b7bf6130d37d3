package delivery

import (
	"context"

	"github.com/tempo-watchtower/watchtower/api/rest"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
	"github.com/tempo-watchtower/watchtower/eventlog"
)

// follow answers GET /v1/events: it streams events as they are recorded, for as long as the
// client listens.
func (a *api) follow(r rest.Request) error {
	wanted, span, err := readFollow(r)
	if err != nil {
		return err
	}
	v := a.viewer(r)
	s := rest.Stream{
		Span: span, Tail: a.Tail, Head: a.Submit.Transactions.Store.Head, Stored: wanted.stored(),
		Show: func(ctx context.Context, e eventlog.Recorded) (any, error) {
			v.alone = !a.Access.Current().Closed() // keys may be created while the stream is open
			e, passes, err := a.passes(ctx, wanted, v, e)
			if err != nil || !passes {
				return nil, err
			}
			return followedOf(e), nil
		},
	}
	a.name(&s, wanted, v)
	return r.Stream(s)
}

// name sets how closely the filter names transactions, unless the viewer reads all of them.
func (a *api) name(s *rest.Stream, f eventFilter, v viewer) {
	if v.audits() && len(v.bound()) == 0 {
		return
	}
	id, hash, whole := f.transaction()
	switch {
	case whole:
		s.Names = rest.NamesOne
		s.Reaches = func(ctx context.Context) (bool, error) { return a.reads(ctx, v, id, hash) }
	case f.narrows():
		s.Names = rest.NamesFew
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
func readFollow(r rest.Request) (f eventFilter, s rest.Span, err error) {
	q, err := readParameters(r, "chainId", "sender", "groupId", "hash", "name", "stream", "after", "until")
	if err != nil {
		return f, s, err
	}
	if f, err = q.eventFilter(); err != nil {
		return f, s, err
	}
	s, err = r.Span(q.values)
	return f, s, err
}
