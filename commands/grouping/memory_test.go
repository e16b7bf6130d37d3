package grouping_test

import (
	"context"
	"errors"
	"iter"
	"sync"
	"testing"

	"github.com/tempo-watchtower/watchtower/commands"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/event"
	"github.com/tempo-watchtower/watchtower/domain/group"
)

// folded counts how often each stream is read from its beginning.
type folded struct {
	commands.Store
	mu    sync.Mutex
	reads map[event.Stream]int
}

func (f *folded) ReadStream(ctx context.Context, s event.Stream, after event.Version) iter.Seq2[event.Recorded, error] {
	if after == 0 {
		f.mu.Lock()
		f.reads[s]++
		f.mu.Unlock()
	}
	return f.Store.ReadStream(ctx, s, after)
}

// A group above the bound of the grouper's memory is read once at most while transactions join it
// in batch after batch, and so is a small group that others join beside it.
func TestLargeGroupStaysRemembered(t *testing.T) {
	const most, large, rounds = 14, 40, 10
	w := newWorld(t)
	for range large {
		w.accept()
	}
	counted := &folded{Store: w.db.Log(), reads: map[event.Stream]int{}}
	w.groups.Store = counted
	g := w.grouper()
	g.MemberMax = most
	ctx, stop := context.WithCancel(t.Context())
	moved := make(chan event.Position)
	g.Moved = func(at event.Position) {
		select {
		case moved <- at:
		case <-ctx.Done():
		}
	}
	var running sync.WaitGroup
	running.Go(func() {
		defer close(moved)
		if err := g.Run(ctx); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	})
	defer running.Wait()
	defer stop()
	joined := func() { // waits until what was accepted has joined
		head, err := w.db.Log().Head(t.Context())
		check(t, err)
		for at := range moved {
			if at >= head {
				return
			}
		}
	}
	joined()
	numbered := func(n int) chain.NonceKey {
		return chain.NonceKey{0x4e, 0x4b, 0x47, 0x31, 1, 2, 30: byte(n + 1)}
	}
	for n := range rounds {
		w.accept()
		w.accept(withKey(numbered(0)))
		w.accept(withKey(numbered(n + 1)))
		joined()
	}
	for key, want := range map[chain.NonceKey]int{explicit: large + rounds, numbered(0): rounds} {
		stream := group.ID{Chain: id, Sender: alice, Group: key.Group()}.Stream()
		counted.mu.Lock()
		reads := counted.reads[stream]
		counted.mu.Unlock()
		if reads > 1 {
			t.Errorf("the group of %d was read %d times in %d batches", want, reads, rounds)
		}
		if n := len(w.members(key)); n != want {
			t.Errorf("%d members, want %d", n, want)
		}
	}
}
