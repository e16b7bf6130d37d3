package memory

import (
	"context"
	"fmt"
	"time"

	"github.com/tempo-watchtower/watchtower/domain/event"
	"github.com/tempo-watchtower/watchtower/domain/tx"
)

// lease is a right that lapses; without a holder it was given up.
type lease struct {
	holder string
	token  uint64
	until  time.Time
}

// Acquire takes or renews a lease. One that has lapsed is taken anew, with a new
// token, even by its last holder.
func (s *Store) Acquire(ctx context.Context, name, holder string, ttl time.Duration) (token uint64, held bool, err error) {
	err = s.enter(ctx, func() {
		l, now := s.leases[name], micro(s.now())
		free := l.holder == "" || !l.until.After(now)
		if !free && l.holder != holder {
			return
		}
		if free {
			l.token++
		}
		l.holder, l.until = holder, micro(now.Add(ttl))
		s.leases[name] = l
		token, held = l.token, true
	})
	return token, held, err
}

// Release gives a lease up. Its token is never given again.
func (s *Store) Release(ctx context.Context, name, holder string) error {
	return s.enter(ctx, func() {
		if l := s.leases[name]; l.holder == holder {
			l.holder = ""
			s.leases[name] = l
		}
	})
}

// Checkpoint is how far a reader has come.
func (s *Store) Checkpoint(ctx context.Context, reader string) (at event.Position, err error) {
	err = s.enter(ctx, func() { at = s.checkpoints[reader] })
	return at, err
}

// MoveCheckpoint moves a checkpoint that stands at from; else event.ErrMoved.
func (s *Store) MoveCheckpoint(ctx context.Context, reader string, from, to event.Position) error {
	return s.Apply(ctx, reader, from, to, nil)
}

// Apply makes changes to the queue and moves the reader's checkpoint, together.
func (s *Store) Apply(ctx context.Context, reader string, from, to event.Position, changes []tx.Change) error {
	var moved error
	err := s.enter(ctx, func() {
		if at := s.checkpoints[reader]; at != from {
			moved = fmt.Errorf("%w: %s is at %d, not %d", event.ErrMoved, reader, at, from)
			return
		}
		for _, c := range changes {
			s.change(c)
		}
		s.checkpoints[reader] = to
	})
	if err == nil {
		err = moved
	}
	return err
}
