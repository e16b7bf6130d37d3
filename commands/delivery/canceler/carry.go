package canceler

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/tempo-watchtower/watchtower/commands"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/delivery/group"
	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
	"github.com/tempo-watchtower/watchtower/eventlog"
	"github.com/tempo-watchtower/watchtower/eventlog/handler"
)

// reason is recorded in a member's event.
const reason = "its group was canceled"

const (
	commandsMax = 64    // concurrent commands
	chunkMax    = 1_000 // members whose states are in memory at once, of one run
	eraseMax    = 500   // payloads erased per call, at most chunkMax
)

// run is a cancel of some members of one group.
type run struct {
	id    group.ID
	found []group.Member
	meta  eventlog.Meta
	// enter, when set, waits for a place before each chunk is visited. leave gives the place back.
	enter func(ctx context.Context) (leave func(), err error)
	// see is called with each member's index and its state after the cancel, and once more after
	// an erasure: one call at a time, in the order of members within each pass.
	see func(i int, s tx.State)
}

func (r run) place(ctx context.Context) (leave func(), err error) {
	if r.enter == nil {
		return func() {}, nil
	}
	return r.enter(ctx)
}

// canceled returns the members that the last cancel found, in the order of joining.
func canceled(s group.State) []group.Member { return s.List()[:s.Canceled] }

// carry cancels members, erases their bytes, and records that. It does not load members
// that the read model shows as done, so a repeated request only reads their rows. A member
// that has ended stays as it is.
//
// It works in chunks, and forgets the states of a chunk before it reads the next one: a group has
// up to a hundred thousand members. The first pass cancels all members, the second one erases.
// In one pass, the last members would be sent until the bytes of all others are erased and that
// is recorded, which takes as long as the cancels. The second pass loads its members again.
func (c *Canceler) carry(ctx context.Context, r run) error {
	at := c.Now()
	var kept []int // indexes of the canceled members that have bytes
	for from := 0; from < len(r.found); from += chunkMax {
		some, err := c.cancelChunk(ctx, r, from, at)
		if err != nil {
			return err
		}
		kept = append(kept, some...)
	}
	for some := range slices.Chunk(kept, eraseMax) {
		if err := c.eraseChunk(ctx, r, some); err != nil {
			return err
		}
	}
	return nil
}

// cancelChunk cancels the members of a chunk, and returns the indexes of those with bytes to
// erase.
func (c *Canceler) cancelChunk(ctx context.Context, r run, from int, at time.Time) (kept []int, err error) {
	leave, err := r.place(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	some := r.found[from:min(from+chunkMax, len(r.found))]
	done, err := c.done(ctx, r.id.Chain, some)
	if err != nil {
		return nil, err
	}
	states := make([]tx.State, len(some))
	err = commands.Each(len(some), commandsMax, func(i int) error {
		if state, ok := done[some[i].Hash]; ok {
			states[i] = state
			return nil
		}
		stream := tx.Stream(r.id.Chain, some[i].Hash)
		result, err := c.Transactions.Load(ctx, stream)
		if err == nil {
			result, err = c.command(ctx, stream, result, tx.Cancel{Reason: reason, At: at}, r.meta)
		}
		states[i] = result.State
		c.crash("cancel.member")
		return err
	})
	if err != nil {
		return nil, err
	}
	for i, s := range states {
		if hasBytes(s, at) {
			kept = append(kept, from+i)
		}
		r.see(from+i, s)
	}
	return kept, nil
}

// hasBytes reports whether a member is canceled and its bytes are to be erased.
func hasBytes(s tx.State, at time.Time) bool {
	facts, err := s.Decide(tx.Erase{At: at})
	return s.Canceled && err == nil && len(facts) > 0
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

// eraseChunk erases the bytes of canceled members from every medium, then records that.
func (c *Canceler) eraseChunk(ctx context.Context, r run, some []int) error {
	leave, err := r.place(ctx)
	if err != nil {
		return err
	}
	defer leave()
	on, wish := r.id.Chain, tx.Erase{At: c.Now()}
	stream := func(i int) eventlog.Stream { return tx.Stream(on, r.found[some[i]].Hash) }
	results := make([]handler.Result[tx.State], len(some))
	err = commands.Each(len(some), commandsMax, func(i int) (err error) {
		results[i], err = c.Transactions.Load(ctx, stream(i))
		return err
	})
	if err != nil {
		return err
	}
	var hashes []chain.Hash
	for i, n := range some {
		if hasBytes(results[i].State, wish.At) {
			hashes = append(hashes, r.found[n].Hash)
		}
	}
	if len(hashes) > 0 {
		if err := c.Payloads.Erase(ctx, on, hashes); err != nil {
			return fmt.Errorf("erase %d payloads: %w", len(hashes), err)
		}
		c.crash("cancel.erased")
	}
	err = commands.Each(len(some), commandsMax, func(i int) (err error) {
		if hasBytes(results[i].State, wish.At) {
			results[i], err = c.command(ctx, stream(i), results[i], wish, r.meta)
		}
		return err
	})
	if err != nil {
		return err
	}
	for i, n := range some {
		r.see(n, results[i].State)
	}
	return nil
}

// command handles one command. A refusal leaves the state unchanged, and the state shows
// the reason.
func (c *Canceler) command(ctx context.Context, stream eventlog.Stream, r handler.Result[tx.State], command tx.Command, meta eventlog.Meta) (handler.Result[tx.State], error) {
	r, err := c.Transactions.DoFrom(ctx, stream, r, command, meta)
	if commands.IsRefusal(err) {
		return r, nil
	}
	return r, err
}
