package postgres_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
	"github.com/tempo-watchtower/watchtower/domain/payload"
	"github.com/tempo-watchtower/watchtower/eventlog"
	"github.com/tempo-watchtower/watchtower/infra/postgres"
)

// sample is an event of typical size.
func sample(stream eventlog.Stream, n int) eventlog.Event {
	return eventlog.Event{
		ID: eventlog.DeriveID(stream, eventlog.ID{15: 1}, n), Name: "tx.broadcast.v1",
		Data: fmt.Appendf(nil, `{"attempt":%d,"filler":%q}`, n, make([]byte, 70)),
		Meta: eventlog.Meta{Correlation: eventlog.ID{1}, Causation: eventlog.ID{2}, Actor: "broadcaster"},
	}
}

// streamOf returns a name like a transaction's stream.
func streamOf(n int64) eventlog.Stream {
	var h chain.Hash
	binary.BigEndian.PutUint64(h[:], uint64(n)*0x9e3779b97f4a7c15)
	return eventlog.Stream("tx-42431-" + h.String())
}

// appendFrom appends b.N events, each to its own stream, from a number of callers spread over
// the logs. It reports the rate and the callers' waiting times.
func appendFrom(b *testing.B, callers int, logs ...*postgres.Log) {
	ctx := context.Background()
	for i, l := range logs { // connect
		if _, err := l.Append(ctx, eventlog.Stream(fmt.Sprint("first-", i)), 0, sample("first", 0)); err != nil {
			b.Fatal(err)
		}
	}
	var next atomic.Int64
	took := make([][]time.Duration, callers)
	b.ResetTimer()
	var all sync.WaitGroup
	for c := range callers {
		all.Go(func() {
			for {
				n := next.Add(1)
				if n > int64(b.N) {
					return
				}
				start := time.Now()
				if _, err := logs[c%len(logs)].Append(ctx, streamOf(n), 0, sample(streamOf(n), 0)); err != nil {
					b.Error(err)
					return
				}
				took[c] = append(took[c], time.Since(start))
			}
		})
	}
	all.Wait()
	b.StopTimer()
	report(b, slices.Concat(took...))
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "appends/s")
}

func report(b *testing.B, took []time.Duration) {
	slices.Sort(took)
	at := func(p float64) float64 { return float64(took[int(p*float64(len(took)-1))].Microseconds()) / 1000 }
	b.ReportMetric(at(0.5), "p50-ms")
	b.ReportMetric(at(0.99), "p99-ms")
}

func BenchmarkAppend(b *testing.B) {
	for _, callers := range []int{1, 64, 256} {
		b.Run(fmt.Sprintf("callers=%d", callers), func(b *testing.B) {
			appendFrom(b, callers, open(b, postgres.Options{}).db.Log)
		})
	}
	for _, processes := range []int{2, 4} {
		b.Run(fmt.Sprintf("callers=256/processes=%d", processes), func(b *testing.B) {
			first := open(b, postgres.Options{})
			logs := []*postgres.Log{first.db.Log}
			for range processes - 1 {
				logs = append(logs, first.again().db.Log)
			}
			appendFrom(b, 256, logs...)
		})
	}
}

// BenchmarkSubscribe measures the time from the call of Append until a subscriber has the
// event, next to 64 callers that append as fast as they can.
func BenchmarkSubscribe(b *testing.B) {
	for _, subscribers := range []int{1, 8} {
		b.Run(fmt.Sprintf("subscribers=%d", subscribers), func(b *testing.B) {
			l := open(b, postgres.Options{}).db.Log
			ctx := context.Background()
			start := time.Now()
			lags := make([][]time.Duration, subscribers)
			var all, reading sync.WaitGroup
			for s := range subscribers {
				reading.Go(func() {
					for batch, err := range l.Subscribe(ctx, 0, eventlog.Filter{}, 1000) {
						if err != nil {
							b.Error(err)
							return
						}
						for _, r := range batch.Events {
							sent, _ := strconv.ParseInt(string(r.Data), 10, 64)
							lags[s] = append(lags[s], time.Since(start)-time.Duration(sent))
						}
						if len(lags[s]) >= b.N {
							return
						}
					}
				})
			}
			b.ResetTimer()
			var next atomic.Int64
			for range 64 {
				all.Go(func() {
					for n := next.Add(1); n <= int64(b.N); n = next.Add(1) {
						e := sample("x", int(n))
						e.Data = strconv.AppendInt(nil, int64(time.Since(start)), 10)
						if _, err := l.Append(ctx, streamOf(n), 0, e); err != nil {
							b.Error(err)
						}
					}
				})
			}
			all.Wait()
			b.StopTimer()
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "appends/s")
			reading.Wait()
			report(b, slices.Concat(lags...))
		})
	}
}

func BenchmarkAppendHundred(b *testing.B) {
	l := open(b, postgres.Options{}).db.Log
	for i := range b.N {
		stream := streamOf(int64(i))
		var events []eventlog.Event
		for n := range eventlog.MaxAppend {
			events = append(events, sample(stream, n))
		}
		if _, err := l.Append(context.Background(), stream, 0, events...); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.N*eventlog.MaxAppend)/b.Elapsed().Seconds(), "events/s")
}

func BenchmarkReadAll(b *testing.B) {
	ctx := context.Background()
	l := open(b, postgres.Options{}).db.Log
	const streams, each = 4000, 25
	var all sync.WaitGroup
	for c := range 100 {
		all.Go(func() {
			for n := c; n < streams; n += 100 {
				stream := streamOf(int64(n))
				var events []eventlog.Event
				for i := range each {
					events = append(events, sample(stream, i))
				}
				if _, err := l.Append(ctx, stream, 0, events...); err != nil {
					b.Error(err)
				}
			}
		})
	}
	all.Wait()
	for name, f := range map[string]eventlog.Filter{
		"all": {}, "streams": {Streams: []string{"tx-42431-0x0"}}, "names": {Names: []string{"lane."}},
	} {
		b.Run(name, func(b *testing.B) {
			for range b.N {
				for batch, err := range l.ReadAll(ctx, 0, f, 1000) {
					if err != nil || batch.Next == 0 {
						b.Fatal(err)
					}
				}
			}
			b.ReportMetric(float64(b.N*streams*each)/b.Elapsed().Seconds(), "events/s")
		})
	}
	b.Run("stream", func(b *testing.B) {
		for i := range b.N {
			for _, err := range l.ReadStream(ctx, streamOf(int64(i%streams)), 0) {
				if err != nil {
					b.Fatal(err)
				}
			}
		}
	})
}

// BenchmarkPut stores payloads one by one from 256 callers, and in hundreds from four.
func BenchmarkPut(b *testing.B) {
	for _, c := range []struct{ callers, rows int }{{256, 1}, {4, 100}} {
		b.Run(fmt.Sprintf("rows=%d", c.rows), func(b *testing.B) {
			s := open(b, postgres.Options{}).db.Payloads
			var next atomic.Int64
			var all sync.WaitGroup
			b.ResetTimer()
			for range c.callers {
				all.Go(func() {
					for n := next.Add(1); n <= int64(b.N); n = next.Add(1) {
						rows := make([]payload.Sealed, c.rows)
						for i := range rows {
							rows[i] = payload.Sealed{Ref: payload.Ref{Chain: 1}, Wrapped: make([]byte, 60), Bytes: make([]byte, 250)}
							binary.BigEndian.PutUint64(rows[i].Hash[:], uint64(n*1000+int64(i))*0x9e3779b97f4a7c15)
						}
						if err := s.Put(context.Background(), rows); err != nil {
							b.Error(err)
							return
						}
					}
				})
			}
			all.Wait()
			b.ReportMetric(float64(b.N*c.rows)/b.Elapsed().Seconds(), "payloads/s")
		})
	}
}

// scheduled fills a queue with rows that are not due for long.
func scheduled(b *testing.B, w *postgres.Work, rows int) {
	ctx := context.Background()
	start := time.Now()
	for at := 0; at < rows; at += 1000 {
		var changes []tx.Change
		for n := at; n < at+1000; n++ {
			changes = append(changes, opening(n, time.Now().Add(time.Hour+time.Duration(n)*time.Millisecond)))
		}
		if err := w.Apply(ctx, "bench", eventlog.Position(at), eventlog.Position(at+1000), changes); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(rows)/time.Since(start).Seconds(), "applied/s")
}

func opening(n int, next time.Time) tx.Change {
	var h chain.Hash
	var a chain.Address
	binary.BigEndian.PutUint64(h[:], uint64(n)*0x9e3779b97f4a7c15)
	binary.BigEndian.PutUint64(a[:], uint64(n/3)*0x9e3779b97f4a7c15)
	w := tx.Work{Chain: 1, Hash: h, Sender: a, Nonce: uint64(n), EligibleAt: uint64(next.Unix()), Phase: tx.Open, NextAt: next}
	return tx.Change{Chain: 1, Hash: h, Open: &w}
}

// BenchmarkApply inserts open rows, a thousand at a time.
func BenchmarkApply(b *testing.B) {
	scheduled(b, open(b, postgres.Options{Window: 16}).db.Work, 1000*b.N)
}

// BenchmarkLease leases due rows in tens, next to a million rows that are not due, and reports
// them done.
func BenchmarkLease(b *testing.B) {
	ctx := context.Background()
	w := open(b, postgres.Options{Window: 16}).db.Work
	const rows, due, take = 1_000_000, 20_000, 10
	scheduled(b, w, rows)
	for at := 0; at < due; at += 1000 {
		var changes []tx.Change
		for n := rows + at; n < rows+at+1000; n++ {
			changes = append(changes, opening(n, time.Now().Add(-time.Minute)))
		}
		if err := w.Apply(ctx, "due", eventlog.Position(at), eventlog.Position(at+1000), changes); err != nil {
			b.Fatal(err)
		}
	}
	run := func(name string, step func(i int) time.Duration) {
		b.Run(name, func(b *testing.B) {
			var took []time.Duration
			for i := range b.N {
				took = append(took, step(i))
			}
			report(b, took)
		})
	}
	run("due", func(i int) time.Duration {
		start := time.Now()
		work, _, err := w.Lease(ctx, 1, "bench", time.Minute, take, take)
		took := time.Since(start)
		if err != nil || len(work) != take {
			b.Fatal(len(work), err)
		}
		var done []tx.Done
		for _, row := range work {
			done = append(done, tx.Done{Chain: 1, Hash: row.Hash, Attempts: row.Attempts + 1, NextAt: time.Now(), SentAt: time.Now()})
		}
		if err := w.Done(ctx, "bench", done); err != nil {
			b.Fatal(err)
		}
		return took
	})
	all, _, err := w.Lease(ctx, 1, "bench", time.Hour, 2*due, 2*due)
	if err != nil || len(all) != due {
		b.Fatal(len(all), err)
	}
	run("nothing due", func(i int) time.Duration {
		start := time.Now()
		if work, _, err := w.Lease(ctx, 1, "bench", time.Minute, take, take); err != nil || len(work) != 0 {
			b.Fatal(len(work), err)
		}
		return time.Since(start)
	})
}
