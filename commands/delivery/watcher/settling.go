package watcher

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/tempo-watchtower/watchtower/commands"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
	"github.com/tempo-watchtower/watchtower/domain/fair"
)

const (
	settledMax   = 256                    // rows of one client that one settler settles
	settlersMax  = 16                     // settlers at once
	settlerSlots = 16                     // rows that one settler settles at once
	noncesMax    = 16                     // sequences per question for nonces
	settleWait   = 250 * time.Millisecond // how long a step waits for settlers
	settleMost   = 30 * time.Second       // how long a settler runs
)

// absence is a verdict that rests on the absence of a receipt.
type absence struct {
	row     tx.Work
	at      chain.Block // the block up to which there must be no receipt
	verdict tx.Command
	// mayBeFree means that the nonce may not be used. If it is free at the tip, no block holds the
	// transaction, and no receipt is looked for.
	mayBeFree bool
	sure      func() error // called before the verdict is recorded; may be nil
}

// task is the kind of verdicts that a settler records.
type task string

const (
	expiry  task = "expiry"
	rivalry task = "rivals"
	sealing task = "sealing"
)

// settler settles one client's rows. Each client has at most one of each kind.
type settler struct {
	client string
	task   task
}

// settlers settle rows, in the names of the rows' clients. A settler goes on beside the next steps
// if it takes long, and the next steps do not wait for a client whose last settler took long: a client
// with many rows, or whose calls to nodes wait, delays no other client's rows and no other part of a
// step.
type settlers struct {
	running sync.WaitGroup
	mu      sync.Mutex
	now     map[settler]bool // those that run
	failed  map[settler]bool // those whose last run failed: an error is logged when it begins
	slow    map[settler]bool // those whose last run took longer than settleWait
	last    map[task]string  // the client whose settler began last
}

// begin reports whether a settler may run now.
func (s *settlers) begin(one settler) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.now[one] || len(s.now) >= settlersMax {
		return false
	}
	if s.now == nil {
		s.now, s.failed, s.slow, s.last = map[settler]bool{}, map[settler]bool{}, map[settler]bool{}, map[task]string{}
	}
	s.now[one], s.last[one.task] = true, one.client
	return true
}

// isSlow reports whether a step does not wait for a settler.
func (s *settlers) isSlow(one settler) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.slow[one]
}

// end frees the place of a settler that ran for took, and reports whether its error is new.
func (s *settlers) end(one settler, took time.Duration, err error) (news bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.now, one)
	if delete(s.slow, one); took > settleWait {
		s.slow[one] = true
	}
	news = err != nil && !s.failed[one]
	if delete(s.failed, one); err != nil {
		s.failed[one] = true
	}
	return news
}

// turn is the client whose settler began last.
func (s *settlers) turn(t task) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.last[t]
}

// settleAll records verdicts, unless there are receipts. left are the rows that are not settled
// yet. Clients take turns, and the errors of one are logged: they concern no other client.
func (r *run) settleAll(ctx context.Context, t task, tip chain.Block, all []absence) (left []tx.Work) {
	byClient := map[string][]absence{}
	for _, a := range all {
		byClient[a.row.Client] = append(byClient[a.row.Client], a)
	}
	type result struct {
		client string
		left   []tx.Work
	}
	results, waiting := make(chan result, len(byClient)), map[string]bool{}
	for _, client := range fair.InTurn(r.settlers.turn(t), slices.Collect(maps.Keys(byClient))) {
		one, some := settler{client, t}, byClient[client]
		if !r.settlers.begin(one) {
			left = append(left, rowsOf(some)...)
			continue
		}
		left = append(left, rowsOf(some[min(len(some), settledMax):])...)
		some = some[:min(len(some), settledMax)]
		if r.settlers.isSlow(one) {
			left = append(left, rowsOf(some)...)
		} else {
			waiting[client] = true
		}
		began := r.Now()
		r.settlers.running.Go(func() {
			open, err := some, errors.New("did not end")
			defer func() {
				if r.settlers.end(one, r.Now().Sub(began), err) && ctx.Err() == nil {
					first, _, _ := strings.Cut(err.Error(), "\n")
					r.Log.Warn("transactions are not settled yet", "chain", r.Chain, "client", client, "task", t, "rows", len(open), "err", first)
				}
				results <- result{client, rowsOf(open)}
			}()
			open, err = r.settle(ctx, tip, client, some)
		})
	}
	late := time.NewTimer(settleWait)
	defer late.Stop()
	for len(waiting) > 0 {
		select {
		case one := <-results:
			if waiting[one.client] {
				left = append(left, one.left...)
			}
			delete(waiting, one.client)
		case <-late.C:
			for client := range waiting {
				left = append(left, rowsOf(byClient[client][:min(len(byClient[client]), settledMax)])...)
			}
			return left
		}
	}
	return left
}

func rowsOf(some []absence) (rows []tx.Work) {
	for _, a := range some {
		rows = append(rows, a.row)
	}
	return rows
}

// settle records the verdicts on one client's rows. The nonces are read before the receipts: had
// a transaction been mined between the two, its receipt would be there.
func (r *run) settle(ctx context.Context, tip chain.Block, client string, some []absence) (open []absence, err error) {
	node := Lookup(r.Node)
	if r.For != nil {
		node = r.For(client)
	}
	reads, cancel := context.WithTimeout(ctx, settleMost)
	defer cancel()
	nonces, err := freeNonces(reads, node, tip, some)
	failed := make([]bool, len(some))
	err = errors.Join(err, commands.Each(len(some), settlerSlots, func(i int) error {
		a := some[i]
		if a.mayBeFree {
			next, known := nonces[a.row.Named()]
			if failed[i] = !known; !known {
				return nil // freeNonces has returned the error
			}
			a.mayBeFree = next <= a.row.Nonce
		}
		err := r.settleOne(ctx, reads, node, a)
		failed[i] = err != nil
		return err
	}))
	for i, a := range some {
		if failed[i] {
			open = append(open, a)
		}
	}
	return open, err
}

// freeNonces returns the next nonces of the rows that may not have used theirs. Sequences that could
// not be read are absent.
func freeNonces(ctx context.Context, node Lookup, tip chain.Block, some []absence) (map[chain.Sequence]uint64, error) {
	var sequences []chain.Sequence
	known := map[chain.Sequence]bool{}
	for _, a := range some {
		if s := a.row.Named(); a.mayBeFree && !known[s] {
			known[s], sequences = true, append(sequences, s)
		}
	}
	chunks := slices.Collect(slices.Chunk(sequences, noncesMax))
	found := make([][]uint64, len(chunks))
	err := commands.Each(len(chunks), settlerSlots, func(i int) (err error) {
		if found[i], err = node.SureNonces(ctx, tip, chunks[i]); err != nil {
			return fmt.Errorf("nonces: %w", err)
		}
		return nil
	})
	nonces := make(map[chain.Sequence]uint64, len(sequences))
	for i, chunk := range chunks {
		for j, next := range found[i] {
			nonces[chunk[j]] = next
		}
	}
	return nonces, err
}

// settleOne records a verdict, unless there is a receipt. mayBeFree now means that the nonce is free.
func (r *run) settleOne(ctx, reads context.Context, node Lookup, a absence) error {
	if !a.mayBeFree {
		receipt, err := r.receiptOf(reads, node, a.row.Hash, a.at)
		switch {
		case err != nil:
			return fmt.Errorf("receipt of %s: %w", a.row.Hash, err)
		case receipt != nil:
			return r.command(ctx, a.row.Hash, tx.SeeReceipt{Receipt: *receipt, At: r.Now()})
		}
	}
	if a.sure != nil {
		if err := a.sure(); err != nil {
			return err
		}
	}
	return r.command(ctx, a.row.Hash, a.verdict)
}

// once returns a function that calls ask once and returns that result to all callers. It waits in no
// mutex, which would stop the clock of simulated worlds.
func once(ask func() error) func() error {
	first, done := make(chan struct{}, 1), make(chan struct{})
	err := errors.New("the question did not end")
	return func() error {
		select {
		case first <- struct{}{}:
			defer close(done)
			err = ask()
			return err
		case <-done:
			return err
		}
	}
}
