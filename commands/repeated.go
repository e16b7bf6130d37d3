package commands

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"sync"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
	"github.com/tempo-watchtower/watchtower/domain/payload"
)

// readSlots is how many streams one batch reads at once.
const readSlots = 8

// Turns lets a client's submissions of one transaction run one after the other in this process.
// All but the first then find the transaction in the log and write nothing. Concurrent writes of
// one row would each hold a connection of the store while they wait for the commit before them.
type Turns struct {
	mu  sync.Mutex
	now map[turn]chan struct{} // closed when the submission ends
}

// turn names a client's submissions of one transaction.
type turn struct {
	client string
	ref    payload.Ref
}

func compareTurns(a, b turn) int {
	return cmp.Or(cmp.Compare(a.client, b.client), cmp.Compare(a.ref.Chain, b.ref.Chain), bytes.Compare(a.ref.Hash[:], b.ref.Hash[:]))
}

// take waits until no other submission has any of the turns, and takes them. leave gives them
// back. They are taken in a fixed order, so that two batches do not wait for each other.
func (t *Turns) take(ctx context.Context, turns []turn) (leave func(), err error) {
	if t == nil {
		return func() {}, nil
	}
	slices.SortFunc(turns, compareTurns)
	turns = slices.Compact(turns)
	done := make(chan struct{})
	for i, one := range turns {
		if err := t.takeOne(ctx, one, done); err != nil {
			t.leave(turns[:i], done)
			return nil, err
		}
	}
	return func() { t.leave(turns, done) }, nil
}

func (t *Turns) takeOne(ctx context.Context, one turn, done chan struct{}) error {
	for {
		t.mu.Lock()
		other := t.now[one]
		if other == nil {
			if t.now == nil {
				t.now = map[turn]chan struct{}{}
			}
			t.now[one] = done
		}
		t.mu.Unlock()
		if other == nil {
			return nil
		}
		select {
		case <-other:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

func (t *Turns) leave(turns []turn, done chan struct{}) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, one := range turns {
		if t.now[one] == done {
			delete(t.now, one)
		}
	}
	close(done)
}

// takeTurns takes the turns of a batch's transactions that have no answer yet.
func (s *Submit) takeTurns(ctx context.Context, signed []chain.Signed, clients Clients, answers []Submission) (leave func(), err error) {
	var turns []turn
	for i, t := range signed {
		if !answers[i].answered() {
			turns = append(turns, turn{clients(i), payload.Ref{Chain: t.Chain, Hash: t.Hash}})
		}
	}
	return s.Turns.take(ctx, turns)
}

func (a Submission) answered() bool { return a.Err != nil || a.Known }

// firstPlaces returns the first place in a batch of each hash that has no answer yet.
func firstPlaces(signed []chain.Signed, answers []Submission) map[chain.Hash]int {
	first := map[chain.Hash]int{}
	for i, t := range signed {
		if _, twice := first[t.Hash]; !twice && !answers[i].answered() {
			first[t.Hash] = i
		}
	}
	return first
}

// repeated answers transactions that their client has submitted before, from the log, if nothing
// needs to be written for them: the vault has the bytes, or must not have them.
func (s *Submit) repeated(ctx context.Context, signed []chain.Signed, first map[chain.Hash]int, clients Clients, answers []Submission) {
	places := slices.Sorted(maps.Values(first))          // a batch asks in its own order
	_ = Each(len(places), readSlots, func(n int) error { // answers hold the errors
		i := places[n]
		answers[i] = s.repeatedOne(ctx, signed[i], clients(i))
		return nil
	})
}

// repeatedOne returns the zero Submission if the bytes are to be stored.
func (s *Submit) repeatedOne(ctx context.Context, t chain.Signed, client string) Submission {
	stream := tx.Stream(t.Chain, t.Hash)
	version, err := s.Transactions.Store.Version(ctx, stream)
	if err != nil || version == 0 {
		return Submission{Err: err}
	}
	r, err := s.Transactions.Load(ctx, stream)
	if err != nil || !r.State.OwnedBy(client) {
		return Submission{Err: err}
	}
	kept, err := s.Vault.has(ctx, payload.Ref{Chain: t.Chain, Hash: t.Hash})
	if gone := r.State.Erased || r.State.Canceled; err != nil || kept == gone {
		return Submission{Err: err} // the bytes are stored, or erased, again
	}
	return Submission{State: r.State, Known: true}
}

// has reports whether the vault has a payload.
func (v Vault) has(ctx context.Context, ref payload.Ref) (bool, error) {
	_, err := v.Rows.Get(ctx, ref.Chain, ref.Hash)
	if errors.Is(err, payload.ErrGone) {
		return false, nil
	}
	return err == nil, err
}
