package simulation

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
	"github.com/tempo-watchtower/watchtower/infra/redis"
)

// hints is Redis for one replica. It loses and delays notifications, and invents due work.
type hints struct {
	replica *replica

	mu      sync.Mutex
	workers map[chain.ID]redis.Worker
}

func newHints(r *replica) *hints { return &hints{replica: r} }

func (h *hints) Applied(changes []tx.Change) {
	for _, c := range changes {
		switch {
		case c.Open != nil:
			h.due(c.Chain, c.Hash, c.Open.NextAt)
		case c.Attempt != nil:
			h.due(c.Chain, c.Hash, c.Attempt.NextAt)
		case c.Reopen != nil:
			h.due(c.Chain, c.Hash, c.Reopen.At)
		}
	}
}

func (h *hints) Done(done []tx.Done) {
	for _, d := range done {
		h.due(d.Chain, d.Hash, d.NextAt)
	}
}

// due wakes a worker when a row is due.
func (h *hints) due(id chain.ID, hash chain.Hash, at time.Time) {
	wait := at.Sub(h.replica.now())
	h.replica.tell("hint "+hash.String(), func() { h.replica.world.hint(id, wait) })
}

func (h *hints) Run(ctx context.Context, workers map[chain.ID]redis.Worker) {
	h.mu.Lock()
	h.workers = workers
	h.mu.Unlock()
	<-ctx.Done()
}

// refresh is the interval at which the rows due soon are written again.
const refresh = 15 * time.Second

func (h *hints) Rebuild(ctx context.Context, soon func(ctx context.Context, id chain.ID, limit int) ([]tx.Work, error)) error {
	tick := time.NewTicker(refresh)
	defer tick.Stop()
	for {
		rows, err := soon(ctx, chainID, 100)
		if err != nil {
			return fmt.Errorf("read the next due work: %w", err)
		}
		for _, row := range rows {
			h.due(chainID, row.Hash, row.NextAt)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
	}
}

func (h *hints) Ping(context.Context) error { return nil }
func (h *hints) Stats() redis.Stats         { return redis.Stats{Up: true} }

// hint makes Redis remember due work.
func (w *world) hint(id chain.ID, wait time.Duration) {
	if !w.healed && w.agenda.chance(0.1) || w.healed && w.plan.Crowd.Gone {
		w.faults["redis: hint lost"]++
		return
	}
	if !w.healed && w.agenda.chance(0.1) {
		w.faults["redis: hint late"]++
		wait += w.agenda.between(0, time.Minute)
	}
	if wait > time.Hour {
		return
	}
	era := w.redisEra
	w.agenda.after(wait, "", func() {
		if era == w.redisEra {
			w.ring(id)
		}
	})
}

// ring wakes an idle worker.
func (w *world) ring(id chain.ID) {
	for _, r := range w.seats {
		if r == nil || r.api == nil || r.hints == nil || r.frozen.Load() {
			continue
		}
		r.hints.mu.Lock()
		worker := r.hints.workers[id]
		r.hints.mu.Unlock()
		if worker != nil && worker.Idle() {
			w.agenda.trace.add("ring", r.id)
			worker.Wake()
			return
		}
	}
}
