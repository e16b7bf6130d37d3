package delivery

import (
	"context"

	"github.com/tempo-watchtower/watchtower/api/rest"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
	"github.com/tempo-watchtower/watchtower/eventlog"
	"github.com/tempo-watchtower/watchtower/eventlog/states"
)

// follow answers GET /v1/events: it streams events as they are recorded, for as long as the
// client listens.
func (a *api) follow(r rest.Request) error {
	wanted, span, include, err := readFollow(r)
	if err != nil {
		return err
	}
	v := a.viewer(r)
	s := rest.Stream{
		Span: span, Tail: a.Tail, Head: a.Submit.Transactions.Store.Head, Stored: wanted.stored(),
		Show: func(ctx context.Context, e eventlog.Recorded) (any, error) {
			v.alone = !a.Access.Current().Closed() // keys may be created while the stream is open
			told, passes, err := a.passes(ctx, wanted, v, e)
			if err != nil || !passes {
				return nil, err
			}
			shown := followedOf(told)
			if include && shown.TxHash != nil {
				state, err := a.states.After(ctx, e)
				if err != nil {
					return nil, err
				}
				now := state.Shown()
				shown.Transaction = &now
			}
			return shown, nil
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
	// Transaction is the state of the event's transaction right after the event, if the client asks
	// for it.
	Transaction *tx.Shown `json:"transaction,omitempty"`
}

// statesMost bounds the memory for the states of transactions that are followed.
const statesMost = 32 << 20

func (a *api) newStates() *states.States[tx.State] {
	return &states.States[tx.State]{
		Store: a.Submit.Transactions.Store, Most: statesMost, Size: tx.State.Size, Ask: rest.LookUp,
		Fold: func(s tx.State, r eventlog.Recorded) (tx.State, error) {
			e, err := a.Submit.Transactions.Codec.Decode(r.Name, r.Data)
			if err != nil {
				return s, err
			}
			return s.Evolve(e), nil
		},
	}
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

// readFollow reads the parameters of GET /v1/events. include: events carry their transaction's state.
func readFollow(r rest.Request) (f eventFilter, s rest.Span, include bool, err error) {
	q, err := readParameters(r, "chainId", "sender", "groupId", "hash", "name", "stream", "after", "until", "include")
	if err != nil {
		return f, s, false, err
	}
	if include = q.values.Has("include"); include && q.one("include") != "transaction" {
		return f, s, false, rest.ErrInvalidFilter.Because("include must be transaction, not %s", rest.Quote(q.one("include")))
	}
	if f, err = q.eventFilter(); err != nil {
		return f, s, false, err
	}
	s, err = r.Span(q.values)
	return f, s, include, err
}
