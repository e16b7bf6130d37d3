package memory

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"time"

	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
	"github.com/tempo-watchtower/watchtower/eventlog"
)

// lease is a right with an expiry; without a holder it was released.
type lease struct {
	holder string
	until  time.Time
}

// Acquire takes or renews a lease.
func (s *Store) Acquire(ctx context.Context, name, holder string, ttl time.Duration) (held bool, err error) {
	err = s.enter(ctx, func() {
		l, now := s.leases[name], micro(s.now())
		if held = l.holder == "" || l.holder == holder || !l.until.After(now); held {
			s.leases[name] = lease{holder, micro(now.Add(ttl))}
		}
	})
	return held, err
}

// ForgetLeases deletes the leases with a name prefix, like a store that keeps them in memory and
// loses it.
func (s *Store) ForgetLeases(prefix string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	maps.DeleteFunc(s.leases, func(name string, _ lease) bool { return strings.HasPrefix(name, prefix) })
}

// Release releases a lease.
func (s *Store) Release(ctx context.Context, name, holder string) error {
	return s.enter(ctx, func() {
		if l := s.leases[name]; l.holder == holder {
			l.holder = ""
			s.leases[name] = l
		}
	})
}

// Checkpoint is a reader's position.
func (s *Store) Checkpoint(ctx context.Context, reader string) (at eventlog.Position, err error) {
	err = s.enter(ctx, func() { at = s.checkpoints[reader] })
	return at, err
}

// MoveCheckpoint moves a checkpoint that equals from, or returns eventlog.ErrMoved.
func (s *Store) MoveCheckpoint(ctx context.Context, reader string, from, to eventlog.Position) error {
	return s.Apply(ctx, reader, from, to, nil)
}

// Apply applies changes to the queue and moves the reader's checkpoint, atomically.
func (s *Store) Apply(ctx context.Context, reader string, from, to eventlog.Position, changes []tx.Change) error {
	return s.applied(ctx, reader, from, to, func() { s.change(changes) })
}

// applied makes a change and moves the reader's checkpoint, if the checkpoint is from.
func (s *Store) applied(ctx context.Context, reader string, from, to eventlog.Position, change func()) error {
	var moved error
	err := s.enter(ctx, func() {
		if at := s.checkpoints[reader]; at != from {
			moved = fmt.Errorf("%w: %s is at %d, not %d", eventlog.ErrMoved, reader, at, from)
			return
		}
		change()
		s.checkpoints[reader] = to
	})
	if err == nil {
		err = moved
	}
	return err
}
