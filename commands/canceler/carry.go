package canceler

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/tempo-watchtower/watchtower/commands"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/event"
	"github.com/tempo-watchtower/watchtower/domain/group"
	"github.com/tempo-watchtower/watchtower/domain/tx"
)

// reason is what a member's event says.
const reason = "its group was canceled"

const (
	commandsMax = 64  // commands under way at once
	eraseMax    = 500 // payloads erased in one go
)

// Member is what became of one member.
type Member struct {
	group.Member
	State tx.State
}

// canceled are the members that the last cancel found, in the order of joining.
func canceled(s group.State) []group.Member { return s.List()[:s.Canceled] }

// carry cancels members, erases their bytes, and records that. What it has done
// before it finds done. One that has ended stays as it is.
func (c *Canceler) carry(ctx context.Context, id group.ID, found []group.Member, meta event.Meta) ([]Member, error) {
	members := make([]Member, len(found))
	at := c.Now()
	err := each(len(found), func(i int) (err error) {
		members[i].Member = found[i]
		members[i].State, err = c.command(ctx, id.Chain, found[i].Hash, tx.Cancel{Reason: reason, At: at}, meta)
		c.crash("cancel.member")
		return err
	})
	if err != nil {
		return nil, err
	}
	var unerased []int
	for i, m := range members {
		if m.State.Canceled && !m.State.Erased && !m.State.Violated {
			unerased = append(unerased, i)
		}
	}
	for some := range slices.Chunk(unerased, eraseMax) {
		hashes := make([]chain.Hash, len(some))
		for i, n := range some {
			hashes[i] = members[n].Hash
		}
		if err := c.Payloads.Erase(ctx, id.Chain, hashes); err != nil {
			return nil, fmt.Errorf("erase %d payloads: %w", len(hashes), err)
		}
		c.crash("cancel.erased")
		err := each(len(some), func(i int) (err error) {
			m := &members[some[i]]
			m.State, err = c.command(ctx, id.Chain, m.Hash, tx.Erase{At: at}, meta)
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	return members, nil
}

// command carries one command out. A refusal leaves the state as it is, which then
// says why.
func (c *Canceler) command(ctx context.Context, id chain.ID, hash chain.Hash, command tx.Command, meta event.Meta) (tx.State, error) {
	origin, err := commands.Begin(c.Random, meta)
	if err != nil {
		return tx.State{}, err
	}
	r, err := c.Transactions.Handle(ctx, tx.Stream(id, hash), command, origin)
	if commands.IsRefusal(err) {
		return r.State, nil
	}
	return r.State, err
}

// each runs f for each of n, some at a time, so that their appends share commits.
func each(n int, f func(i int) error) error {
	var working sync.WaitGroup
	slots := make(chan struct{}, commandsMax)
	errs := make([]error, n)
	for i := range n {
		slots <- struct{}{}
		working.Go(func() {
			defer func() { <-slots }()
			errs[i] = f(i)
		})
	}
	working.Wait()
	return errors.Join(errs...)
}
