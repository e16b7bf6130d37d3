package embedded_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
	"github.com/tempo-watchtower/watchtower/domain/payload"
	"github.com/tempo-watchtower/watchtower/eventlog"
	"github.com/tempo-watchtower/watchtower/infra/embedded"
)

func openBench(b *testing.B) *embedded.DB {
	b.Helper()
	db, err := embedded.Open(b.TempDir(), embedded.Options{})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { db.Close() }) //nolint:errcheck // the bench is over
	return db
}

// The workload of the measurements by which this engine was chosen: events of 325 bytes,
// streams with names of 75 characters.
var benchData = []byte(`{"x":"` + strings.Repeat("d", 325-8) + `"}`)

func benchStream(n uint64) eventlog.Stream {
	return eventlog.Stream("tx-42431-" + benchHash(n).String())
}

// preload fills a log with a million events in 100,000 streams, and returns the
// number of the next stream.
func preload(b *testing.B, db *embedded.DB) uint64 {
	b.Helper()
	const streams, each, callers = 100_000, 10, 64
	start := time.Now()
	var next atomic.Uint64
	var all sync.WaitGroup
	for range callers {
		all.Go(func() {
			for i := next.Add(1); i <= streams; i = next.Add(1) {
				if _, err := db.Log().Append(b.Context(), benchStream(i), 0, benchEvents(each, i)...); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	all.Wait()
	b.Logf("loaded %.0f events/s", streams*each/time.Since(start).Seconds())
	return streams + 1
}

func benchEvents(n int, seed uint64) []eventlog.Event {
	events := make([]eventlog.Event, n)
	for i := range events {
		events[i] = eventlog.Event{Name: "tx.accepted.v1", Data: benchData, Meta: eventlog.Meta{Actor: "api", Correlation: eventlog.ID{1}}}
		binary.BigEndian.PutUint64(events[i].ID[:], seed)
		events[i].ID[15] = byte(i)
	}
	return events
}

// latencies collects durations and reports them with a rate.
type latencies struct {
	mu   sync.Mutex
	all  []time.Duration
	from time.Time
}

func (l *latencies) add(d time.Duration) {
	l.mu.Lock()
	l.all = append(l.all, d)
	l.mu.Unlock()
}

func (l *latencies) report(b *testing.B, each int, unit string) {
	took := time.Since(l.from)
	slices.Sort(l.all)
	n := len(l.all)
	b.ReportMetric(float64(n*each)/took.Seconds(), unit+"/s")
	b.ReportMetric(float64(l.all[n/2].Microseconds())/1000, "p50-ms")
	b.ReportMetric(float64(l.all[n*99/100].Microseconds())/1000, "p99-ms")
	b.ReportMetric(0, "ns/op")
}

// measure runs f from many concurrent callers.
func measure(b *testing.B, callers, each int, unit string, f func(i uint64) error) {
	b.Helper()
	b.ResetTimer()
	l := &latencies{from: time.Now()}
	var next atomic.Uint64
	var all sync.WaitGroup
	for range callers {
		all.Go(func() {
			for i := next.Add(1); i <= uint64(b.N); i = next.Add(1) {
				start := time.Now()
				if err := f(i); err != nil {
					b.Error(err)
					return
				}
				l.add(time.Since(start))
			}
		})
	}
	all.Wait()
	b.StopTimer()
	l.report(b, each, unit)
}

func BenchmarkAppend(b *testing.B) {
	db := openBench(b)
	var next atomic.Uint64
	next.Store(preload(b, db))
	for _, c := range []struct{ callers, events int }{{1, 1}, {1, 10}, {1, 100}, {256, 1}} {
		b.Run(fmt.Sprintf("callers=%d/events=%d", c.callers, c.events), func(b *testing.B) {
			measure(b, c.callers, c.events, "events", func(uint64) error {
				i := next.Add(1)
				_, err := db.Log().Append(b.Context(), benchStream(i), 0, benchEvents(c.events, i)...)
				return err
			})
		})
	}
}

// BenchmarkAccept measures the store's part of accepting transactions: their payloads in one
// call, then an event for each, concurrently.
func BenchmarkAccept(b *testing.B) {
	for _, c := range []struct{ callers, batch int }{{1, 1}, {256, 1}, {4, 100}} {
		b.Run(fmt.Sprintf("callers=%d/batch=%d", c.callers, c.batch), func(b *testing.B) {
			db := openBench(b)
			first := preload(b, db)
			measure(b, c.callers, c.batch, "accepts", func(i uint64) error {
				return accept(b.Context(), db, first+i*uint64(c.batch), c.batch)
			})
		})
	}
}

func accept(ctx context.Context, db *embedded.DB, first uint64, n int) error {
	rows := make([]payload.Sealed, n)
	for i := range rows {
		at := first + uint64(i)
		rows[i] = payload.Sealed{
			Ref:     payload.Ref{Chain: 1, Hash: benchHash(at)},
			Wrapped: binary.BigEndian.AppendUint64(make([]byte, 52), at), Bytes: benchData[:250],
		}
	}
	if err := db.Payloads().Put(ctx, rows); err != nil {
		return err
	}
	errs := make([]error, n)
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() {
			at := first + uint64(i)
			_, errs[i] = db.Log().Append(ctx, benchStream(at), 0, benchEvents(1, at)...)
		})
	}
	all.Wait()
	return errors.Join(errs...)
}

func benchHash(i uint64) (h chain.Hash) {
	binary.BigEndian.PutUint64(h[:], i*0x9e3779b97f4a7c15)
	binary.BigEndian.PutUint64(h[8:], i)
	return h
}

func BenchmarkErase(b *testing.B) {
	for _, c := range []struct{ callers, hashes int }{{1, 1}, {64, 1}, {1, 500}} {
		b.Run(fmt.Sprintf("callers=%d/hashes=%d", c.callers, c.hashes), func(b *testing.B) {
			db := openBench(b)
			n := uint64(c.hashes)
			for i := uint64(1); i <= uint64(b.N); i++ {
				var rows []payload.Sealed
				for k := range n {
					rows = append(rows, payload.Sealed{Ref: payload.Ref{Chain: 1, Hash: benchHash(i*n + k)}, Wrapped: make([]byte, 60), Bytes: benchData[:250]})
				}
				if err := db.Payloads().Put(b.Context(), rows); err != nil {
					b.Fatal(err)
				}
			}
			measure(b, c.callers, c.hashes, "erased", func(i uint64) error {
				var hashes []chain.Hash
				for k := range n {
					hashes = append(hashes, benchHash(i*n+k))
				}
				return db.Payloads().Erase(b.Context(), 1, hashes)
			})
		})
	}
}

// BenchmarkRead reads a log of a million events from its start.
func BenchmarkRead(b *testing.B) {
	db := openBench(b)
	const events = 1_000_000
	preload(b, db)
	for name, f := range map[string]eventlog.Filter{"all": {}, "none pass": {Names: []string{"lane."}}} {
		b.Run(name, func(b *testing.B) {
			for range b.N {
				for batch, err := range db.Log().ReadAll(b.Context(), 0, f, 1000) {
					if err != nil || len(batch.Events) > 1000 {
						b.Fatal(err)
					}
				}
			}
			b.ReportMetric(float64(events*b.N)/b.Elapsed().Seconds(), "events/s")
		})
	}
	b.Run("stream of 10", func(b *testing.B) {
		measure(b, 1, 1, "streams", func(i uint64) error {
			for _, err := range db.Log().ReadStream(b.Context(), benchStream(1+i*7919%100_000), 0) {
				if err != nil {
					return err
				}
			}
			return nil
		})
	})
}

// BenchmarkQueue works on a queue of a million rows scheduled for later, including 100 senders
// with 100 open rows each.
func BenchmarkQueue(b *testing.B) {
	const scheduled, senders, each = 1_000_000, 100, 100
	db := openBench(b)
	q := db.Work()
	at := eventlog.Position(0)
	apply := func(changes []tx.Change) {
		if err := q.Apply(b.Context(), "bench", at, at+1, changes); err != nil {
			b.Fatal(err)
		}
		at++
	}
	now := time.Now()
	row := func(n uint64, sender, nonce uint64, next time.Time) tx.Change {
		w := tx.Work{
			Chain: 1, Hash: benchHash(n), Nonce: nonce, EligibleAt: uint64(next.Unix()), ExpiresAt: uint64(next.Unix()) + 86400,
			Phase: tx.Open, NextAt: next,
		}
		binary.BigEndian.PutUint64(w.Sender[:], sender)
		return tx.Change{Chain: 1, Hash: w.Hash, Open: &w}
	}
	start := time.Now()
	var changes []tx.Change
	for n := range uint64(scheduled) {
		changes = append(changes, row(n, 1_000+n, 0, now.Add(time.Hour+time.Duration(rand.IntN(1e9))*time.Microsecond)))
		if len(changes) == 1000 {
			apply(changes)
			changes = changes[:0]
		}
	}
	b.Logf("opened %.0f rows/s", scheduled/time.Since(start).Seconds())
	for n := range uint64(senders * each) {
		changes = append(changes, row(scheduled+n, n%senders, n/senders, now.Add(-time.Minute)))
	}
	apply(changes)

	b.Run("lease and done", func(b *testing.B) {
		measure(b, 4, 1, "rounds", func(i uint64) error {
			holder := fmt.Sprint("holder-", i)
			work, _, err := q.Lease(b.Context(), 1, holder, time.Minute, 32, 32)
			if err != nil {
				return err
			}
			var done []tx.Done
			for _, w := range work {
				done = append(done, tx.Done{Chain: 1, Hash: w.Hash, Attempts: w.Attempts + 1, NextAt: time.Now().Add(50 * time.Millisecond), SentAt: now, Note: "taken by 2"})
			}
			return q.Done(b.Context(), holder, done)
		})
	})
	b.Run("lease of nothing due", func(b *testing.B) {
		measure(b, 1, 1, "rounds", func(i uint64) error {
			_, _, err := q.Lease(b.Context(), 2, "holder", time.Minute, 32, 32)
			return err
		})
	})
	b.Run("find 1000 foreign hashes", func(b *testing.B) {
		hashes := make([]chain.Hash, 1000)
		for i := range hashes {
			hashes[i] = benchHash(1<<50 + uint64(i))
		}
		measure(b, 1, 1, "rounds", func(uint64) error {
			_, err := q.Find(b.Context(), 1, hashes)
			return err
		})
	})
	b.Run("announce", func(b *testing.B) {
		n := uint64(0)
		measure(b, 1, 100, "changes", func(uint64) error {
			var changes []tx.Change
			for range 100 {
				changes = append(changes, tx.Change{Chain: 1, Hash: benchHash(n % scheduled), Announce: &tx.Verdict{Status: tx.StatusExecuted, Block: chain.Block{Number: n, Hash: benchHash(n)}}})
				n++
			}
			apply(changes)
			return nil
		})
	})
}
