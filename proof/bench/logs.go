package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
	"github.com/tempo-watchtower/watchtower/eventlog"
	"github.com/tempo-watchtower/watchtower/eventlog/port"
	"github.com/tempo-watchtower/watchtower/eventlog/projector"
	"github.com/tempo-watchtower/watchtower/projections"
	"github.com/tempo-watchtower/watchtower/projections/delivery/transactions"
)

// alone are the rates of the bare engines: similar statements and events of 325 bytes without
// our code, measured on a quiet machine of this kind (2 processors, a fast virtual disk).
var alone = map[string]struct{ one, many, replay, rows float64 }{ //nolint:gochecknoglobals // a table
	embeddedEngine: {one: 4150, many: 27_600, replay: 337_000, rows: 81_000},
	postgresEngine: {one: 1490, many: 24_200, replay: 179_000, rows: 114_000},
}

const (
	bareEngine = "bare engine"
	readMax    = 1000 // events per batch, as projectors read
	replayMax  = 2000 // as a rebuild reads
)

// logs measures a store without a service: appending, replaying and folding.
func (b *bench) logs(ctx context.Context, engine string, _ loads) (err error) {
	p, err := b.fresh(ctx, engine)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.remove(ctx)) }()
	store, err := p.open(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.close()) }()
	var events int
	err = b.profiled(engine, "append", func() (err error) {
		events, err = b.appendAll(ctx, engine, store.log)
		return err
	})
	if err != nil {
		return err
	}
	if b.wants(sectionLog) {
		err := b.profiled(engine, "replay", func() error { return b.replay(ctx, engine, store.log, events) })
		if err != nil {
			return err
		}
	}
	if b.wants(sectionRebuild) {
		return b.rebuild(ctx, engine, store.log, events)
	}
	return nil
}

// appendAll fills a log, first from one caller and then from many.
func (b *bench) appendAll(ctx context.Context, engine string, log port.Store) (events int, err error) {
	steps, bytes, err := write(b.scale.alone/stages + b.scale.lives)
	if err != nil {
		return 0, err
	}
	var one, many []time.Duration
	var oneTook, manyTook time.Duration
	for _, all := range steps {
		first := all[:min(max(b.scale.alone-len(one), 0), len(all))]
		took, d, err := appendFrom(ctx, log, 1, first)
		if err != nil {
			return 0, err
		}
		one, oneTook = append(one, took...), oneTook+d
		if took, d, err = appendFrom(ctx, log, callers, all[len(first):]); err != nil {
			return 0, err
		}
		many, manyTook = append(many, took...), manyTook+d
	}
	if b.wants(sectionLog) {
		f := figure{Section: sectionLog, Store: engine, Unit: "events/s", Yardstick: bareEngine}
		f.What, f.Against = "append, one caller", alone[engine].one
		b.sheet.note(f, float64(len(one))/oneTook.Seconds())
		b.sheet.durations(figure{Section: sectionLog, Store: engine, What: "append, one caller"}, one)
		f.What, f.Against = fmt.Sprintf("append, %d callers", callers), alone[engine].many
		b.sheet.note(f, float64(len(many))/manyTook.Seconds())
		b.sheet.durations(figure{Section: sectionLog, Store: engine, What: f.What}, many)
		b.sheet.note(figure{Section: sectionLog, What: "event, mean", Unit: "bytes"}, bytes)
	}
	return len(one) + len(many), nil
}

// appendFrom appends events, one per append, from several callers at once. It returns the time
// of each append, and of all together.
func appendFrom(ctx context.Context, log port.Store, callers int, all []written) ([]time.Duration, time.Duration, error) {
	took := make([]time.Duration, len(all))
	errs := make([]error, callers)
	var next atomic.Int64
	var appending sync.WaitGroup
	began := time.Now()
	for c := range callers {
		appending.Go(func() {
			for {
				i := int(next.Add(1)) - 1
				if i >= len(all) {
					return
				}
				w, at := all[i], time.Now()
				if _, errs[c] = log.Append(ctx, w.stream, w.expected, w.event); errs[c] != nil {
					return
				}
				took[i] = time.Since(at)
			}
		})
	}
	appending.Wait()
	return took, time.Since(began), errors.Join(errs...)
}

// replay reads the whole log, first alone, and then with a fold in memory.
func (b *bench) replay(ctx context.Context, engine string, log port.Store, events int) error {
	nothing := func(eventlog.Recorded) error { return nil }
	rate, err := readAll(ctx, log, events, nothing)
	if err != nil {
		return err
	}
	b.sheet.note(figure{
		Section: sectionLog, Store: engine, What: "replay, read", Unit: "events/s",
		Yardstick: bareEngine, Against: alone[engine].replay,
	}, rate)
	codec, states := tx.Codec(), make(map[eventlog.Stream]tx.State, events/stages)
	fold := func(r eventlog.Recorded) error {
		e, err := codec.Decode(r.Name, r.Data)
		if err == nil {
			states[r.Stream] = states[r.Stream].Evolve(e)
		}
		return err
	}
	looped, err := readAll(ctx, log, events, fold)
	if err != nil {
		return err
	}
	b.sheet.note(figure{
		Section: sectionLog, Store: engine, What: "replay, read and folded in a plain loop", Unit: "events/s",
		Yardstick: "read only", Against: rate,
	}, looped)
	clear(states)
	began, got := time.Now(), 0
	err = projections.Replay(ctx, log, 0, 0, transactions.Filter(), replayMax, func(batch eventlog.Batch) error {
		got += len(batch.Events)
		for _, r := range batch.Events {
			if err := fold(r); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	if got != events {
		return fmt.Errorf("%d events were appended, %d are replayed", events, got)
	}
	b.sheet.note(figure{
		Section: sectionLog, Store: engine, What: "replay, read and folded", Unit: "events/s",
		Yardstick: "plain loop", Against: looped, Goal: goal{AtLeast: 150_000},
	}, float64(got)/time.Since(began).Seconds())
	return nil
}

func readAll(ctx context.Context, log port.Store, want int, each func(eventlog.Recorded) error) (perSecond float64, err error) {
	began, got := time.Now(), 0
	for batch, err := range log.ReadAll(ctx, 0, transactions.Filter(), readMax) {
		if err != nil {
			return 0, err
		}
		for _, r := range batch.Events {
			if err := each(r); err != nil {
				return 0, err
			}
		}
		got += len(batch.Events)
	}
	if got != want {
		return 0, fmt.Errorf("%d events were appended, %d are read", want, got)
	}
	return float64(got) / time.Since(began).Seconds(), nil
}

// rebuild builds the read model in its own database: first as a projector from the log's
// beginning, and then as a rebuild beside the result.
func (b *bench) rebuild(ctx context.Context, engine string, log port.Store, events int) (err error) {
	p, err := b.fresh(ctx, engine)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.remove(ctx)) }()
	store, err := p.open(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.close()) }()
	ctx, done := context.WithCancel(ctx)
	defer done()
	projector := projector.Projector{
		Name: transactions.Name, DB: store.view, Log: log,
		Filter: transactions.Filter(), Fold: transactions.Projection{Codec: tx.Codec()}.Fold,
		Moved: func(at eventlog.Position, live bool) {
			if live && at > 0 {
				done()
			}
		},
	}
	began := time.Now()
	err = b.profiled(engine, "project", func() error { return projector.Run(ctx) })
	if !errors.Is(err, context.Canceled) {
		return fmt.Errorf("project: %w", err)
	}
	took := time.Since(began)
	var rows int
	if err := store.view.QueryRowContext(context.WithoutCancel(ctx), `SELECT count(*) FROM transactions`).Scan(&rows); err != nil {
		return err
	}
	if rows != events/stages {
		return fmt.Errorf("the projector made %d rows of %d transactions", rows, events/stages)
	}
	projected := float64(events) / took.Seconds()
	b.sheet.note(figure{
		Section: sectionRebuild, Store: engine, What: "projector, from the log into rows", Unit: "events/s",
		Yardstick: bareEngine, Against: alone[engine].rows,
	}, projected)
	return b.anew(context.WithoutCancel(ctx), engine, p, log, events, projected)
}

// anew rebuilds the read model of a place and verifies it.
func (b *bench) anew(ctx context.Context, engine string, p *place, log port.Store, events int, projected float64) (err error) {
	model := transactions.Model(tx.Codec())
	shadow, err := p.shadow(ctx, model)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, shadow.Close()) }()
	rebuild := projections.Rebuild{Model: model, Log: log, Shadow: shadow}
	var done projections.Progress
	began := time.Now()
	err = b.profiled(engine, "rebuild", func() (err error) {
		done, err = rebuild.Run(ctx)
		return err
	})
	if err != nil {
		return fmt.Errorf("rebuild: %w", err)
	}
	took := time.Since(began)
	if done.Events != uint64(events) { //nolint:gosec // not negative
		return fmt.Errorf("rebuild folded %d events of %d", done.Events, events)
	}
	b.sheet.note(figure{
		Section: sectionRebuild, Store: engine, What: "rebuild, from the log into rows, swapped in", Unit: "events/s",
		Yardstick: "projector", Against: projected, Goal: goal{AtLeast: 60_000},
	}, float64(events)/took.Seconds())
	return nil
}
