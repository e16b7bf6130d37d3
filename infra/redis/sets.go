package redis

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"sync"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
)

func readyKey(id chain.ID) string { return fmt.Sprintf("watchtower:ready:%s", id) }
func retryKey(id chain.ID) string { return fmt.Sprintf("watchtower:retry:%s", id) }

// score is a time in the sets: Unix seconds with milliseconds, rounded up so that nobody looks
// too early.
func score(at time.Time) float64 { return math.Ceil(float64(at.UnixMicro())/1000) / 1000 }

// Worker looks at a chain's due queue. Its methods must not block.
type Worker interface {
	Wake()
	// Idle reports whether the worker would take work now. A busy worker leaves hints to
	// others.
	Idle() bool
}

// Run writes hints and looks for due ones until ctx ends. It wakes the worker of each chain
// with due hints.
func (h *Hints) Run(ctx context.Context, workers map[chain.ID]Worker) {
	var running sync.WaitGroup
	running.Go(func() { h.write(ctx) })
	running.Go(func() { h.watch(ctx, workers) })
	running.Wait()
}

// watch removes due members from the sets, taking turns with other replicas.
func (h *Hints) watch(ctx context.Context, workers map[chain.ID]Worker) {
	tick := time.NewTicker(look)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if !h.breaker.allows() {
			continue
		}
		var idle []chain.ID
		for id, w := range workers {
			if w.Idle() {
				idle = append(idle, id)
			}
		}
		for _, id := range h.due(ctx, idle) {
			h.woken.Add(1)
			workers[id].Wake()
		}
	}
}

// due removes due members and returns the chains that had some. It does not read members: a
// foreign writer could make them any size.
func (h *Hints) due(ctx context.Context, chains []chain.ID) (due []chain.ID) {
	if len(chains) == 0 {
		return nil
	}
	now := strconv.FormatFloat(float64(h.now().UnixMilli())/1000, 'f', 3, 64)
	counts := make([][2]*goredis.IntCmd, len(chains))
	h.ask(ctx, func(p goredis.Pipeliner) {
		for i, id := range chains {
			counts[i][0] = p.ZRemRangeByScore(ctx, readyKey(id), "-inf", now)
			counts[i][1] = p.ZRemRangeByScore(ctx, retryKey(id), "-inf", now)
		}
	})
	for i, id := range chains {
		if counts[i][0].Val()+counts[i][1].Val() > 0 {
			due = append(due, id)
		}
	}
	return due
}

// write writes buffered hints.
func (h *Hints) write(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-h.bell:
		}
		hints := h.taken()
		for len(hints) > 0 {
			n := min(len(hints), writeMax)
			if !h.breaker.allows() || !h.put(ctx, hints[:n]) {
				h.dropped.Add(uint64(n))
			} else {
				h.written.Add(uint64(n))
			}
			hints = hints[n:]
		}
	}
}

// put writes the last hint of each transaction, and bounds the sets.
func (h *Hints) put(ctx context.Context, hints []hint) bool {
	type name struct {
		chain chain.ID
		hash  chain.Hash
	}
	last := make(map[name]hint, len(hints))
	for _, n := range hints {
		last[name{n.chain, n.hash}] = n
	}
	add, remove := map[string][]goredis.Z{}, map[string][]any{}
	for _, n := range last {
		member := n.hash.String()
		in, out := readyKey(n.chain), retryKey(n.chain)
		if n.retry {
			in, out = out, in
		}
		remove[out] = append(remove[out], member)
		if n.due.IsZero() {
			remove[in] = append(remove[in], member)
		} else {
			add[in] = append(add[in], goredis.Z{Score: score(n.due), Member: member})
		}
	}
	return h.ask(ctx, func(p goredis.Pipeliner) {
		for key, members := range remove {
			p.ZRem(ctx, key, members...)
		}
		for key, members := range add {
			p.ZAdd(ctx, key, members...)
			p.ZRemRangeByRank(ctx, key, keepMax, -1)
		}
	})
}

// ask makes one round trip under a deadline, and reports whether all of it succeeded. It
// deletes a key of ours with a wrong type: its content can be rebuilt.
func (h *Hints) ask(ctx context.Context, fill func(goredis.Pipeliner)) bool {
	own, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	p := h.client.Pipeline()
	fill(p)
	commands, err := p.Exec(own)
	if ctx.Err() != nil {
		return false
	}
	var reply goredis.Error
	if err != nil && !errors.As(err, &reply) {
		h.failed(err)
		return false
	}
	for _, c := range commands {
		switch err := c.Err(); {
		case err == nil:
		case strings.HasPrefix(err.Error(), "WRONGTYPE"):
			h.log.Warn("a Redis key holds something else and is deleted", "key", c.Args()[1])
			h.client.Del(own, fmt.Sprint(c.Args()[1]))
			return false
		default: // out of memory, read-only, no permission
			h.failed(err)
			return false
		}
	}
	if h.breaker.succeed() {
		h.log.Info("redis is back")
	}
	return true
}

func (h *Hints) failed(err error) {
	h.failures.Add(1)
	if h.breaker.fail() {
		h.log.Warn("redis is unavailable: due work is found only by polling", "err", err)
	}
}

// Rebuild fills the sets from the due queue, and then keeps adding soon-due rows until ctx
// ends. One replica runs it at a time. soon returns the rows of a chain that are due soonest.
// After a loss of Redis's data, workers poll until the sets are complete again.
func (h *Hints) Rebuild(ctx context.Context, soon func(ctx context.Context, id chain.ID, limit int) ([]tx.Work, error)) error {
	anew := true
	for {
		if h.breaker.allows() {
			ok, err := h.fill(ctx, soon, anew)
			if err != nil {
				return err
			}
			anew = anew && !ok
		}
		pause := time.NewTimer(refresh)
		select {
		case <-ctx.Done():
			pause.Stop()
			return ctx.Err()
		case <-pause.C:
		}
	}
}

// fill adds the soonest rows of each chain. If anew is set it clears the sets first.
func (h *Hints) fill(ctx context.Context, soon func(context.Context, chain.ID, int) ([]tx.Work, error), anew bool) (ok bool, err error) {
	limit := refreshMax
	if anew {
		limit = rebuildMax
	}
	ok = true
	for _, id := range h.chains {
		rows, err := soon(ctx, id, limit)
		if err != nil {
			return false, fmt.Errorf("read the next due work of chain %s: %w", id, err)
		}
		if anew {
			ok = h.ask(ctx, func(p goredis.Pipeliner) { p.Unlink(ctx, readyKey(id), retryKey(id)) }) && ok
		}
		for len(rows) > 0 && ok {
			n := min(len(rows), writeMax)
			hints := make([]hint, n)
			for i, row := range rows[:n] {
				hints[i] = hint{chain: id, hash: row.Hash, retry: row.Attempts > 0, due: row.NextAt}
			}
			ok = h.put(ctx, hints)
			rows = rows[n:]
		}
	}
	return ok, nil
}
