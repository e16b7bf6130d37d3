package canceler

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/tempo-watchtower/watchtower/commands"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/event"
	"github.com/tempo-watchtower/watchtower/domain/group"
	"github.com/tempo-watchtower/watchtower/domain/tx"
)

// reason is recorded in a member's event.
const reason = "its group was canceled"

const (
	commandsMax = 64  // concurrent commands
	eraseMax    = 500 // payloads erased per call
)

// Member is a member with its state after the cancel.
type Member struct {
	group.Member
	State tx.State
}

// canceled returns the members that the last cancel found, in the order of joining.
func canceled(s group.State) []group.Member { return s.List()[:s.Canceled] }

// carry cancels members, erases their bytes, and records that. It does not load members
// that the read model shows as done, so a repeated request only reads their rows. A member
// that has ended stays as it is.
func (c *Canceler) carry(ctx context.Context, id group.ID, found []group.Member, meta event.Meta) ([]Member, error) {
	at := c.Now()
	done, err := c.done(ctx, id.Chain, found)
	if err != nil {
		return nil, err
	}
	results := make([]commands.Result[tx.State], len(found))
	err = commands.Each(len(found), commandsMax, func(i int) (err error) {
		if state, ok := done[found[i].Hash]; ok {
			results[i].State = state
			return nil
		}
		stream := tx.Stream(id.Chain, found[i].Hash)
		if results[i], err = c.Transactions.Load(ctx, stream); err == nil {
			results[i], err = c.command(ctx, stream, results[i], tx.Cancel{Reason: reason, At: at}, meta)
		}
		c.crash("cancel.member")
		return err
	})
	if err != nil {
		return nil, err
	}
	if err := c.erase(ctx, id.Chain, found, results, meta); err != nil {
		return nil, err
	}
	members := make([]Member, len(found))
	for i, r := range results {
		members[i] = Member{found[i], r.State}
	}
	return members, nil
}

// done returns the members that are finished according to the read model: cancels, erasures
// and final verdicts never change. The read model may be behind, so members that it shows
// as open are left out.
func (c *Canceler) done(ctx context.Context, on chain.ID, found []group.Member) (map[chain.Hash]tx.State, error) {
	if c.Rows == nil || len(found) == 0 {
		return nil, nil
	}
	hashes := make([]chain.Hash, len(found))
	for i, m := range found {
		hashes[i] = m.Hash
	}
	rows, err := c.Rows(ctx, on, hashes)
	if err != nil {
		return nil, fmt.Errorf("read the members' rows: %w", err)
	}
	maps.DeleteFunc(rows, func(_ chain.Hash, s tx.State) bool { return !s.Settled() && !(s.Canceled && s.Erased) })
	return rows, nil
}

// erase erases the bytes of canceled members from every medium, then records that.
func (c *Canceler) erase(ctx context.Context, on chain.ID, found []group.Member, results []commands.Result[tx.State], meta event.Meta) error {
	wish := tx.Erase{At: c.Now()}
	var kept []int
	for i, r := range results {
		if facts, err := r.State.Decide(wish); r.State.Canceled && err == nil && len(facts) > 0 {
			kept = append(kept, i)
		}
	}
	for some := range slices.Chunk(kept, eraseMax) {
		hashes := make([]chain.Hash, len(some))
		for i, n := range some {
			hashes[i] = found[n].Hash
		}
		if err := c.Payloads.Erase(ctx, on, hashes); err != nil {
			return fmt.Errorf("erase %d payloads: %w", len(hashes), err)
		}
		c.crash("cancel.erased")
		err := commands.Each(len(some), commandsMax, func(i int) (err error) {
			n := some[i]
			results[n], err = c.command(ctx, tx.Stream(on, found[n].Hash), results[n], wish, meta)
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// command handles one command. A refusal leaves the state unchanged, and the state shows
// the reason.
func (c *Canceler) command(ctx context.Context, stream event.Stream, r commands.Result[tx.State], command tx.Command, meta event.Meta) (commands.Result[tx.State], error) {
	origin, err := commands.Begin(c.Random, meta)
	if err != nil {
		return r, err
	}
	r, err = c.Transactions.HandleFrom(ctx, stream, r, command, origin)
	if commands.IsRefusal(err) {
		return r, nil
	}
	return r, err
}
