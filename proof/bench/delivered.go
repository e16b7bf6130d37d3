package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/tempo-watchtower/watchtower/proof/rig"
)

// The best peers on such a machine with blocks of one second: thirdweb engine, 83 to 113
// transactions mined a second at 9 to 22 ms of processor time each; firefly-transaction-manager
// with evmconnect, 2.2 calls each.
const (
	peerMined   = 113
	peerMillis  = 9
	peerCalls   = 2.2
	peersMined  = "best peer (engine)"
	peersMillis = "best peer (engine)"
	peersCalls  = "best peer (FFTM)"
)

// delivered measures the delivery of payments, as fast as possible and at a steady rate.
func (b *bench) delivered(ctx context.Context, engine string, l loads) (err error) {
	s, err := b.serve(ctx, engine)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.end(ctx)) }()
	for _, load := range [][]rig.Payment{l.burst, l.inOrder, l.steady} {
		if err := s.node.expect(load); err != nil {
			return err
		}
	}
	if b.wants(sectionDeliver) {
		if err := b.burst(ctx, s, "each on its own nonce key", "burst", l.burst, goal{AtLeast: 300}); err != nil {
			return err
		}
		what := fmt.Sprintf("%d senders, in order", b.scale.senders)
		if err := b.burst(ctx, s, what, "order", l.inOrder, goal{AtLeast: 300}); err != nil {
			return err
		}
	}
	if b.wants(sectionSteady) {
		return b.steady(ctx, s, l.steady)
	}
	return nil
}

// burst posts payments as fast as possible, right after a block, and waits until all are mined,
// and then until all are final. The rate counts mined payments; processor time and calls are
// counted to the end.
func (b *bench) burst(ctx context.Context, s *served, what, name string, payments []rig.Payment, aim goal) error {
	all := requests(payments, batchSize)
	if err := s.node.block(ctx); err != nil {
		return err
	}
	calls := s.node.called()
	began := time.Now()
	var last time.Time
	_, used, err := s.phase(ctx, "deliver-"+name, func(ctx context.Context) error {
		if _, err := postAll(ctx, s.URL, all, batchesOut); err != nil {
			return err
		}
		at, block, err := s.node.mined(ctx, payments)
		last = at
		if err != nil {
			return err
		}
		return s.until(ctx, func(h health) bool { return h.final(block) })
	})
	if err != nil {
		return err
	}
	counted := s.node.calls(calls)
	n := float64(len(payments))
	of := func(what2, unit string) figure {
		return figure{Section: sectionDeliver, Store: s.place.engine, What: what + what2, Unit: unit}
	}
	rate := of(", mined", "tx/s")
	rate.Yardstick, rate.Against, rate.Goal = peersMined, peerMined, aim
	b.sheet.note(rate, n/last.Sub(began).Seconds())
	millis := of(", CPU of service and Postgres", "ms/tx")
	millis.Yardstick, millis.Against, millis.Goal = peersMillis, peerMillis, goal{AtMost: 5}
	b.sheet.note(millis, milliseconds(used.service+used.server)/n)
	b.cpu(of, used, n)
	b.calls(of, counted, n)
	return s.settled(ctx, payments)
}

// calls records the number of calls to the node per transaction.
func (b *bench) calls(of func(what, unit string) figure, counted map[string]int, n float64) {
	total := 0
	for _, count := range counted {
		total += count
	}
	all := of(", calls of the node", "calls/tx")
	all.Yardstick, all.Against, all.Goal = peersCalls, peerCalls, goal{AtMost: 1.2}
	b.sheet.note(all, float64(total)/n)
	for _, method := range slices.Sorted(maps.Keys(counted)) {
		b.sheet.note(of(", of these "+method, "calls/tx"), float64(counted[method])/n)
	}
}

// journey is the progress of one payment from its sender's view.
type journey struct {
	payment rig.Payment
	posted  time.Time
	mined   time.Duration // time from the post
	told    time.Duration // time from the post until the service reported "executed"
}

// steady posts payments at a steady rate. It measures the time of each until its block is made,
// and until the service reports it.
func (b *bench) steady(ctx context.Context, s *served, payments []rig.Payment) error {
	if err := b.rest(ctx, s); err != nil {
		return err
	}
	if err := s.node.block(ctx); err != nil {
		return err
	}
	calls := s.node.called()
	var journeys []*journey
	_, used, err := s.phase(ctx, "steady", func(ctx context.Context) (err error) {
		if journeys, err = s.trickle(ctx, payments, b.scale.rate); err != nil {
			return err
		}
		_, block, err := s.node.mined(ctx, payments)
		if err != nil {
			return err
		}
		return s.until(ctx, func(h health) bool { return h.final(block) })
	})
	if err != nil {
		return err
	}
	counted := s.node.calls(calls)
	var mined, told []time.Duration
	for _, j := range journeys {
		mined, told = append(mined, j.mined), append(told, j.told)
	}
	what := fmt.Sprintf("%d/s", b.scale.rate)
	of := func(what2, unit string) figure {
		return figure{Section: sectionSteady, Store: s.place.engine, What: what + what2, Unit: unit}
	}
	f := of(", posted to mined", "")
	f.Goal = goal{AtMost: 1200}
	b.sheet.durations(f, mined)
	f = of(", posted to executed as told", "")
	f.Goal = goal{AtMost: 1500}
	b.sheet.durations(f, told)
	n := float64(len(payments))
	b.cpu(of, used, n)
	b.calls(of, counted, n)
	return s.settled(ctx, payments)
}

// restBlocks is the number of blocks for which an idle service is measured.
const restBlocks = 5

// rest measures the cost of an idle service: following the chain and staying ready.
func (b *bench) rest(ctx context.Context, s *served) error {
	took, used, err := s.phase(ctx, "rest", func(ctx context.Context) error {
		for range restBlocks {
			if err := s.node.block(ctx); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	f := figure{Section: sectionSteady, Store: s.place.engine, What: "at rest, CPU of service and Postgres", Unit: "ms/s"}
	b.sheet.note(f, milliseconds(used.service+used.server)/took.Seconds())
	return nil
}

// trickle posts payments at a rate. It polls each from the time of its block until the service
// reports it executed.
func (s *served) trickle(ctx context.Context, payments []rig.Payment, rate int) ([]*journey, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	posted := make(chan *journey, len(payments))
	var feeder sync.WaitGroup
	defer feeder.Wait()
	defer cancel(nil)
	feeder.Go(func() {
		defer close(posted)
		if err := s.feed(ctx, payments, rate, posted); err != nil {
			cancel(err)
		}
	})
	var all, open []*journey
	feeding := true
	for feeding || len(open) > 0 {
		select {
		case j, ok := <-posted:
			if feeding = ok; ok {
				all, open = append(all, j), append(open, j)
				continue
			}
			posted = nil
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-time.After(lookEvery):
		}
		var err error
		if open, err = s.ask(ctx, open); err != nil {
			cancel(err)
			return nil, err
		}
	}
	return all, context.Cause(ctx)
}

// lookEvery is the polling interval for the service's report.
const lookEvery = 5 * time.Millisecond

// feed posts payments at even intervals over one connection.
func (s *served) feed(ctx context.Context, payments []rig.Payment, rate int, posted chan<- *journey) error {
	l, err := dial(ctx, s.URL)
	if err != nil {
		return err
	}
	defer l.conn.Close() //nolint:errcheck // nothing is under way
	defer context.AfterFunc(ctx, l.hurry)()
	tick := time.NewTicker(time.Second / time.Duration(rate))
	defer tick.Stop()
	for i := range payments {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return ctx.Err()
		}
		j := &journey{payment: payments[i], posted: time.Now()}
		if err := l.post(request(payments[i : i+1])); err != nil {
			return err
		}
		posted <- j
	}
	return nil
}

// ask polls the journeys whose blocks are made, and returns the unfinished ones.
func (s *served) ask(ctx context.Context, open []*journey) (left []*journey, err error) {
	for _, j := range open {
		at, ok := s.node.minedAt(j.payment.Hash)
		if ok {
			j.mined = at.Sub(j.posted)
			t, err := rig.Get(ctx, s.URL, j.payment.Hash)
			if err != nil {
				return nil, err
			}
			if rig.Executed(t) {
				j.told = time.Since(j.posted)
				continue
			}
		}
		left = append(left, j)
	}
	return left, nil
}
