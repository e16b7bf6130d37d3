package storetest

import (
	"errors"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/tempo-watchtower/watchtower/eventlog"
)

// Checkpoints is the contract of readers' positions.
func Checkpoints(t *testing.T, open func(t *testing.T) Opened[CheckpointRows]) {
	t.Run("move", func(t *testing.T) {
		ctx, p := soon(t), open(t).Port
		wantCheckpoint(t, p, "a", 0)
		check(t, p.MoveCheckpoint(ctx, "a", 0, 7))
		check(t, p.MoveCheckpoint(ctx, "a", 7, 7)) // from and to its current position
		check(t, p.MoveCheckpoint(ctx, "a", 7, 1<<62))
		wantCheckpoint(t, p, "a", 1<<62)
		check(t, p.MoveCheckpoint(ctx, "a", 1<<62, 0)) // a reader may start again
		check(t, p.MoveCheckpoint(ctx, "a", 0, 3))
		wantCheckpoint(t, p, "a", 3)
		wantCheckpoint(t, p, "b", 0)
	})
	t.Run("moved by another", func(t *testing.T) {
		ctx, p := soon(t), open(t).Port
		for _, c := range []struct{ at, from eventlog.Position }{{0, 1}, {5, 0}, {5, 4}, {5, 6}} {
			at, err := p.Checkpoint(ctx, "a")
			check(t, err)
			check(t, p.MoveCheckpoint(ctx, "a", at, c.at))
			if err := p.MoveCheckpoint(ctx, "a", c.from, 9); !errors.Is(err, eventlog.ErrMoved) {
				t.Errorf("moving from %d a checkpoint at %d: %v", c.from, c.at, err)
			}
			wantCheckpoint(t, p, "a", c.at)
		}
	})
	t.Run("race", func(t *testing.T) {
		ctx, p := soon(t), open(t).Port
		const readers, rounds = 8, 25
		for at := eventlog.Position(0); at < rounds; at++ {
			var won atomic.Int32
			var all sync.WaitGroup
			for range readers {
				all.Go(func() {
					switch err := p.MoveCheckpoint(ctx, "a", at, at+1); {
					case err == nil:
						won.Add(1)
					case !errors.Is(err, eventlog.ErrMoved):
						t.Error(err)
					}
				})
			}
			all.Wait()
			if n := won.Load(); n != 1 {
				t.Fatalf("%d readers moved the checkpoint from %d", n, at)
			}
		}
		wantCheckpoint(t, p, "a", rounds)
	})
	t.Run("data outlives the process", func(t *testing.T) {
		o := open(t)
		check(t, o.Port.MoveCheckpoint(soon(t), "a", 0, 7))
		wantCheckpoint(t, o.Reopen(), "a", 7)
	})
}

func wantCheckpoint(t *testing.T, p CheckpointRows, reader string, want eventlog.Position) {
	t.Helper()
	at, err := p.Checkpoint(soon(t), reader)
	check(t, err)
	if at != want {
		t.Fatalf("checkpoint of %s is at %d, not %d", reader, at, want)
	}
}
