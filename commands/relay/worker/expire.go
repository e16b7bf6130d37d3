package worker

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/relay/intent"
)

// A deadline has passed once the timestamp of the chain's newest block reaches it. The
// blocks that delivery remembers do not show which block is newest: while no watcher runs
// they grow old without any sign of it.

// currentFor is how long the newest block counts as known after nodes reported it, or after
// delivery remembered a newer one.
const currentFor = 5 * time.Second

// isCurrent reports whether the chain's current time is known.
func (a *actor) isCurrent() bool {
	age := a.Now().Sub(a.heard)
	return !a.heard.IsZero() && age >= 0 && age < currentFor
}

// hear updates the newest block from the blocks that delivery remembers. While a watcher
// catches up, its blocks are below the block that nodes reported, and do not show the
// current time. Once the remembered blocks contain the reported block, they are on the
// chain's branch, and not on one left while no watcher ran.
func (a *actor) hear() {
	a.met = a.met || slices.ContainsFunc(a.blocks, func(b chain.Block) bool { return b.Hash == a.witness.Block.Hash })
	if tip := a.tip(); a.isCurrent() && tip.Number > a.newest.Number {
		a.newest, a.heard = tip, a.polled
	}
}

// tip returns the last block that delivery remembered when read; zero if it remembers none.
func (a *actor) tip() (b chain.Block) {
	if n := len(a.blocks); n > 0 {
		b = a.blocks[n-1]
	}
	return b
}

// time returns the chain's last known time in Unix seconds; 0 if unknown.
func (a *actor) time() uint64 {
	if tip := a.tip(); tip.Number > a.newest.Number {
		return tip.Time
	}
	return a.newest.Time
}

// timely makes sure that the chain's time is known, and asks nodes if it is not. After a
// failure it does not ask again in the same turn.
func (a *actor) timely(ask func() error) error {
	switch {
	case a.isCurrent():
		return nil
	case a.silent != nil:
		return a.silent
	}
	return ask()
}

// askOnce returns a function that asks nodes for the chain's time on its first call only. A
// step over many nonces uses that one answer, because nodes may take longer than currentFor
// to answer.
func (a *actor) askOnce(ctx context.Context) func() error {
	return sync.OnceValue(func() error {
		_, err := a.wants(ctx)
		return err
	})
}

// isLate reports whether the deadline of an intent has passed. It is called before an
// attempt is signed or first handed over. An error means that the time is unknown. A no-op
// has no deadline.
func (a *actor) isLate(s standing, noop bool, ask func() error) (bool, error) {
	deadline := s.job.intent.State.Requested.Request.Deadline
	if noop || deadline == 0 {
		return false, nil
	}
	if err := a.timely(ask); err != nil {
		return false, fmt.Errorf("nonce %d has a deadline: %w", s.Nonce, err)
	}
	return a.time() >= deadline, nil
}

// expire ends intents whose deadline the chain's time has reached.
func (a *actor) expire(ctx context.Context) error {
	now := a.time()
	var late []*job
	for _, s := range a.slots() {
		it := s.job.intent.State
		deadline := it.Requested.Request.Deadline
		if !s.stale && a.placed(s) && deadline != 0 && now >= deadline && it.End == nil && it.Receipt == nil && it.Stop.Reason == "" {
			late = append(late, s.job)
		}
	}
	return each(a, late, func(j *job) error {
		return a.tellIntent(ctx, j, intent.Expire{Now: now, At: a.Now()})
	})
}
