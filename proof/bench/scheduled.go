package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/tempo-watchtower/watchtower/cmd/devnet/wallet"
	"github.com/tempo-watchtower/watchtower/domain/chain"
)

// scheduled measures a service that accepts many transactions for later, of which some become
// eligible.
func (b *bench) scheduled(ctx context.Context, engine string, l loads) (err error) {
	s, err := b.serve(ctx, engine)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.end(ctx)) }()
	if err := b.accept(ctx, s, "one by one", l.singles, 1, callers); err != nil {
		return err
	}
	if err := b.accept(ctx, s, fmt.Sprintf("batches of %d", batchSize), l.batches, batchSize, batchesOut); err != nil {
		return err
	}
	began := time.Now()
	if err := s.until(ctx, health.caughtUp); err != nil {
		return err
	}
	if b.wants(sectionAccept) {
		b.sheet.note(figure{
			Section: sectionAccept, Store: engine, What: "queue and read model behind, after the last", Unit: "s",
		}, time.Since(began).Seconds())
	}
	if sent := len(s.node.Received()); sent > 0 {
		return fmt.Errorf("%d transactions were sent that are not eligible", sent)
	}
	if b.wants(sectionEligible) {
		return b.eligible(ctx, s)
	}
	return nil
}

// accept posts requests and measures the rate of acknowledgements. Each acknowledged transaction
// is durable.
func (b *bench) accept(ctx context.Context, s *served, how string, requests [][]byte, each, clients int) error {
	var took []time.Duration
	wall, used, err := s.phase(ctx, "accept-"+map[bool]string{true: "single", false: "batch"}[each == 1], func(ctx context.Context) (err error) {
		took, err = postAll(ctx, s.URL, requests, clients)
		return err
	})
	if err != nil || !b.wants(sectionAccept) {
		return err
	}
	n := float64(each * len(requests))
	name, limit := b.decodeLimit()
	aim := goal{AtLeast: 10_000}
	if each == 1 {
		aim.AtLeast = 2000
	}
	of := func(what, unit string) figure {
		return figure{Section: sectionAccept, Store: s.place.engine, What: how + what, Unit: unit}
	}
	rate := of(fmt.Sprintf(", %d clients", clients), "tx/s")
	rate.Yardstick, rate.Against, rate.Goal = name, limit, aim
	b.sheet.note(rate, n/wall.Seconds())
	b.sheet.durations(of(", request", "ms"), took)
	b.cpu(of, used, n)
	return nil
}

// cpu records the processor time per transaction of each party.
func (b *bench) cpu(of func(what, unit string) figure, used spent, n float64) {
	for _, party := range []struct {
		name string
		used time.Duration
	}{{"service", used.service}, {"Postgres", used.server}, {"generator and chain", used.bench}} {
		if party.used > 0 {
			b.sheet.note(of(", CPU of "+party.name, "µs/tx"), float64(party.used.Microseconds())/n)
		}
	}
	idle, others := used.shares()
	b.sheet.note(of(", processors idle", "%"), 100*idle)
	b.sheet.note(of(", processors busy with others", "%"), 100*others)
}

// margin is the time in seconds from signing to the first eligibility: enough to submit the
// transactions.
const margin = 5

// eligible makes some transactions eligible in each second, and measures the delay until each is
// sent to the node.
func (b *bench) eligible(ctx context.Context, s *served) error {
	late, err := b.dueEachSecond(ctx, s)
	if err != nil {
		return err
	}
	b.sheet.durations(figure{
		Section: sectionEligible, Store: s.place.engine,
		What: fmt.Sprintf("eligibleAt to the node, %d/s beside %d scheduled", b.scale.due, b.scale.scheduled),
		Goal: goal{AtMost: 50},
	}, late)
	return nil
}

func (b *bench) dueEachSecond(ctx context.Context, s *served) (late []time.Duration, err error) {
	first := uint64(time.Now().Unix()) + margin //nolint:gosec // after 1970
	after := func(i int) uint64 { return first + uint64(i/b.scale.due) }
	payments := sign(b.scale.due*b.scale.dueFor, func(i int) (int, wallet.Tempo) {
		t := payment(seriesDue, i)
		t.Window.After = after(i)
		return i, t
	})
	if err := s.node.expect(payments); err != nil {
		return nil, err
	}
	_, _, err = s.phase(ctx, "eligible", func(ctx context.Context) error {
		if _, err := postAll(ctx, s.URL, requests(payments, batchSize), 2); err != nil {
			return err
		}
		_, _, err := s.node.mined(ctx, payments)
		return err
	})
	if err != nil {
		return nil, err
	}
	at := map[chain.Hash]uint64{}
	for i, p := range payments {
		at[p.Hash] = after(i)
	}
	return s.node.lateness(at)
}
