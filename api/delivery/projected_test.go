package delivery

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/tempo-watchtower/watchtower/commands/delivery/scheduler"
	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
	"github.com/tempo-watchtower/watchtower/eventlog"
	"github.com/tempo-watchtower/watchtower/eventlog/projector"
	"github.com/tempo-watchtower/watchtower/projections/delivery/owners"
	"github.com/tempo-watchtower/watchtower/projections/delivery/transactions"
)

// catchUp feeds the log into the read model and the due queue, up to its head.
func (s *stack) catchUp() {
	s.t.Helper()
	head, err := s.db.Log().Head(s.t.Context())
	if err != nil || head == 0 {
		s.t.Fatalf("head of the log: %d, %v", head, err)
	}
	ctx, cancel := context.WithTimeout(s.t.Context(), 30*time.Second)
	defer cancel()
	var reading sync.WaitGroup
	read := func(run func(ctx context.Context, at func(eventlog.Position)) error) {
		ctx, stop := context.WithCancel(ctx)
		reading.Go(func() {
			defer stop()
			err := run(ctx, func(at eventlog.Position) {
				if at >= head {
					stop()
				}
			})
			if !errors.Is(err, context.Canceled) {
				s.t.Errorf("reader ended: %v", err)
			}
		})
	}
	codec := tx.Codec()
	read(func(ctx context.Context, at func(eventlog.Position)) error {
		return (&projector.Projector{
			Name: owners.Name, DB: s.db.View(), Log: s.db.Log(), Filter: owners.Filter(), Fold: owners.Projection{Codec: codec}.Fold,
			Moved: func(p eventlog.Position, _ bool) { at(p) },
		}).Run(ctx)
	})
	read(func(ctx context.Context, at func(eventlog.Position)) error {
		return (&projector.Projector{
			Name: transactions.Name, DB: s.db.View(), Log: s.db.Log(), Filter: transactions.Filter(),
			Fold:  transactions.Projection{Codec: codec}.Fold,
			Moved: func(p eventlog.Position, _ bool) { at(p) },
		}).Run(ctx)
	})
	read(func(ctx context.Context, at func(eventlog.Position)) error {
		return (&scheduler.Feeder{
			Store: s.db.Log(), Queue: s.db.Work(), Checkpoints: s.db.Work(), Codec: codec,
			Schedule: tx.DefaultSchedule(), Fed: at, Log: s.config.Log,
		}).Run(ctx)
	})
	reading.Wait()
}
