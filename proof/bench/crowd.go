package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/tempo-watchtower/watchtower/cmd/devnet/wallet"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/infra/postgres"
	"github.com/tempo-watchtower/watchtower/proof/rig"
)

// crowds measures the cost of many scheduled transactions. Each size gets its own service, which
// is idle for a while, has a few transactions become eligible, and then very many in one second.
// A cost that does not grow with the size is flat.
func (b *bench) crowds(ctx context.Context, engine string, _ loads) error {
	for _, size := range b.scale.crowds {
		b.tell("%s, %d scheduled", engine, size)
		if err := b.crowd(ctx, engine, size); err != nil {
			return fmt.Errorf("%d scheduled: %w", size, err)
		}
	}
	return nil
}

func (b *bench) crowd(ctx context.Context, engine string, size int) (err error) {
	s, err := b.serve(ctx, engine)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.end(ctx)) }()
	of := func(what, unit string) figure {
		return figure{Section: sectionCrowd, Store: engine, What: fmt.Sprintf("%d scheduled: %s", size, what), Unit: unit}
	}
	before, err := s.place.bytes(ctx)
	if err != nil {
		return err
	}
	for _, step := range []func(context.Context, *served, func(what, unit string) figure, int) error{
		b.gather, b.tidy, b.idle, b.scan, b.few, b.herd,
	} {
		if err := step(ctx, s, of, size); err != nil {
			return err
		}
	}
	after, err := s.place.bytes(ctx)
	if err != nil {
		return err
	}
	b.sheet.note(of("kept on disk for each, with the delivered", "KiB/tx"), float64(after-before)/1024/float64(size+b.scale.herd))
	return nil
}

// chunk is the number of transactions signed before they are posted; posted ones need no memory.
const chunk = 20_000

// gather submits scheduled transactions, spread over a day as in practice.
func (b *bench) gather(ctx context.Context, s *served, of func(what, unit string) figure, size int) error {
	after := uint64(time.Now().Add(later).Unix())
	const day = 24 * 60 * 60
	for done := 0; done < size; done += chunk {
		some := sign(min(chunk, size-done), func(i int) (int, wallet.Tempo) {
			t := payment(seriesLater, done+i)
			t.Window.After = after + uint64((done+i)*7919%day)
			return done + i, t
		})
		if _, err := postAll(ctx, s.URL, requests(some, batchSize), batchesOut); err != nil {
			return err
		}
	}
	if err := s.until(ctx, health.caughtUp); err != nil {
		return err
	}
	b.sheet.note(of("memory of the service", "MiB"), resident(s.Pid()))
	return nil
}

// tidy runs the maintenance that Postgres would start itself within minutes of many inserts. It
// is a cost of accepting the rows. Otherwise it would count for the next measurement, growing
// with the size.
func (b *bench) tidy(ctx context.Context, s *served, of func(what, unit string) figure, _ int) error {
	if s.place.engine != postgresEngine {
		return nil
	}
	conn, err := pgx.Connect(ctx, s.place.url)
	if err != nil {
		return err
	}
	defer conn.Close(ctx) //nolint:errcheck // the answer is what counts
	began := time.Now()
	if _, err := conn.Exec(ctx, "VACUUM (ANALYZE)"); err != nil {
		return err
	}
	b.sheet.note(of("tidied by Postgres, once", "s"), time.Since(began).Seconds())
	return nil
}

// idle measures the cost of waiting.
func (b *bench) idle(ctx context.Context, s *served, of func(what, unit string) figure, size int) error {
	calls := s.node.called()
	took, used, err := s.phase(ctx, fmt.Sprintf("idle-%d", size), func(ctx context.Context) error {
		select {
		case <-time.After(b.scale.idleFor):
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	})
	if err != nil {
		return err
	}
	total := 0
	for _, n := range s.node.calls(calls) {
		total += n
	}
	seconds := took.Seconds()
	b.sheet.note(of("processor time of service and store, idle", "ms/s"), milliseconds(used.service+used.server)/seconds)
	b.sheet.note(of("the same for each, idle", "ms/day"), milliseconds(used.service+used.server)/seconds*24*60*60/float64(size))
	b.sheet.note(of("calls of the node, idle", "1/s"), float64(total)/seconds)
	b.sheet.note(of("memory of the service, idle", "MiB"), resident(s.Pid()))
	return nil
}

// scans is the number of measured polls of the queue.
const scans = 200

// scan measures one poll of the queue by a worker when nothing is due. Other processes cannot
// poll the embedded store.
func (b *bench) scan(ctx context.Context, s *served, of func(what, unit string) figure, _ int) (err error) {
	if s.place.engine != postgresEngine {
		return nil
	}
	db, err := postgres.Open(ctx, s.place.url, postgres.Options{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close(context.WithoutCancel(ctx))) }()
	took := make([]time.Duration, scans)
	for i := range took {
		began := time.Now()
		due, _, err := db.Work.Lease(ctx, rig.TempoChain, "bench", time.Second, batchSize, batchSize)
		if err != nil {
			return err
		}
		if took[i] = time.Since(began); len(due) > 0 {
			return fmt.Errorf("%d are due already", len(due))
		}
	}
	b.sheet.durations(of("a look at the queue", "ms"), took)
	return nil
}

// few makes some transactions eligible each second, as in the section scheduled.
func (b *bench) few(ctx context.Context, s *served, of func(what, unit string) figure, _ int) error {
	late, err := b.dueEachSecond(ctx, s)
	if err != nil {
		return err
	}
	f := of(fmt.Sprintf("eligibleAt to the node, %d/s", b.scale.due), "ms")
	f.Goal = goal{AtMost: 50}
	b.sheet.durations(f, late)
	return nil
}

// acceptRate is the number of transactions per second that any machine is assumed to sign and
// submit before they become eligible.
const acceptRate = 2500

// herd makes very many transactions eligible in the same second.
func (b *bench) herd(ctx context.Context, s *served, of func(what, unit string) figure, size int) error {
	eligible := time.Now().Unix() + margin + int64(b.scale.herd/acceptRate)
	var payments []rig.Payment
	for done := 0; done < b.scale.herd; done += chunk {
		some := sign(min(chunk, b.scale.herd-done), func(i int) (int, wallet.Tempo) {
			t := payment(seriesHerd, done+i)
			t.Window.After = uint64(eligible) //nolint:gosec // after 1970
			return done + i, t
		})
		if err := s.node.expect(some); err != nil {
			return err
		}
		if _, err := postAll(ctx, s.URL, requests(some, batchSize), batchesOut); err != nil {
			return err
		}
		payments = append(payments, some...)
	}
	if left := time.Until(time.Unix(eligible, 0)); left <= 0 {
		return fmt.Errorf("the last of %d were accepted %v after they had become eligible", b.scale.herd, -left)
	}
	if err := s.until(ctx, health.caughtUp); err != nil {
		return err
	}
	select {
	case <-time.After(time.Until(time.Unix(eligible, 0))):
	case <-ctx.Done():
		return ctx.Err()
	}
	var last time.Time
	_, used, err := s.phase(ctx, fmt.Sprintf("herd-%d", size), func(ctx context.Context) error {
		at, block, err := s.node.mined(ctx, payments)
		if last = at; err != nil {
			return err
		}
		return s.until(ctx, func(h health) bool { return h.final(block) })
	})
	if err != nil {
		return err
	}
	wanted := make(map[chain.Hash]uint64, len(payments))
	for _, p := range payments {
		wanted[p.Hash] = uint64(eligible) //nolint:gosec // after 1970
	}
	late, err := s.node.lateness(wanted)
	if err != nil {
		return err
	}
	n := float64(len(payments))
	what := fmt.Sprintf("%d eligible at once", len(payments))
	b.sheet.durations(of(what+", lateness at the node", "ms"), late)
	b.sheet.note(of(what+", lateness of the last", "ms"), milliseconds(percentile(late, 1)))
	b.sheet.note(of(what+", mined", "tx/s"), n/last.Sub(time.Unix(eligible, 0)).Seconds())
	b.sheet.note(of(what+", CPU of service and Postgres", "ms/tx"), milliseconds(used.service+used.server)/n)
	b.sheet.note(of(what+", CPU of Postgres alone", "ms/tx"), milliseconds(used.server)/n)
	b.sheet.note(of(what+", memory of the service", "MiB"), resident(s.Pid()))
	return nil
}

// resident is a process's resident memory in MiB (proc(5), VmRSS); 0 where it is unknown.
func resident(pid int) float64 {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0
	}
	_, rest, _ := strings.Cut(string(text), "VmRSS:")
	number, _, _ := strings.Cut(strings.TrimSpace(rest), " ")
	kib, _ := strconv.ParseFloat(number, 64) //nolint:errcheck // then it is 0
	return kib / 1024
}

// bytes is the size of the place's data on disk.
func (p *place) bytes(ctx context.Context) (n int64, err error) {
	if p.engine == postgresEngine {
		conn, err := pgx.Connect(ctx, p.url)
		if err != nil {
			return 0, err
		}
		defer conn.Close(ctx) //nolint:errcheck // the answer is what counts
		return n, conn.QueryRow(ctx, "SELECT pg_database_size(current_database())").Scan(&n)
	}
	return n, filepath.WalkDir(p.dir, func(_ string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		info, err := entry.Info()
		if errors.Is(err, os.ErrNotExist) {
			return nil // a journal, perhaps, that is gone by now
		}
		if err == nil {
			n += info.Size()
		}
		return err
	})
}
