package relayer

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/intent"
)

// A deadline is over when the chain's time has reached it: that of its newest block. What
// delivery remembers of blocks does not tell which that is. While nobody watches the chain
// it grows old, and does not look it.

// currentFor is how long it is taken for known which block is the newest, after nodes have
// said so, or delivery has remembered another one since.
const currentFor = 5 * time.Second

// isCurrent reports whether it is known what time it is on the chain.
func (a *actor) isCurrent() bool {
	age := a.Now().Sub(a.heard)
	return !a.heard.IsZero() && age >= 0 && age < currentFor
}

// hear takes note of the blocks that delivery remembers. Those that it takes in one after
// the other, having been away, are below what nodes have said, and do not say what time it is.
// Once they hold what nodes have said they are of the chain's branch, and not of one that it
// left while nobody watched.
func (a *actor) hear() {
	a.met = a.met || slices.ContainsFunc(a.blocks, func(b chain.Block) bool { return b.Hash == a.witness.Block.Hash })
	if tip := a.tip(); a.isCurrent() && tip.Number > a.newest.Number {
		a.newest, a.heard = tip, a.polled
	}
}

// tip is the last block that delivery remembers, as of when it was read; zero if it
// remembers none.
func (a *actor) tip() (b chain.Block) {
	if n := len(a.blocks); n > 0 {
		b = a.blocks[n-1]
	}
	return b
}

// time is the chain's, in Unix seconds, as far as it is known; 0 if nothing is.
func (a *actor) time() uint64 {
	if tip := a.tip(); tip.Number > a.newest.Number {
		return tip.Time
	}
	return a.newest.Time
}

// timely makes sure that the chain's time is known, and asks nodes for it if it has to,
// but once in a turn if they do not say.
func (a *actor) timely(ask func() error) error {
	switch {
	case a.isCurrent():
		return nil
	case a.silent != nil:
		return a.silent
	}
	return ask()
}

// askOnce asks nodes for the chain's time, once however often it is called. Who looks at many
// nonces goes by what they said: they may take longer for it than it is taken for known.
func (a *actor) askOnce(ctx context.Context) func() error {
	return sync.OnceValue(func() error {
		_, err := a.wants(ctx)
		return err
	})
}

// isLate reports whether the deadline of an intent is over, before anything is signed for it,
// or handed over for the first time. An error says that nobody knows. A no-op is of no intent
// any more.
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
