package notifier_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"iter"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tempo-watchtower/watchtower/commands/notifier"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/notice"
	"github.com/tempo-watchtower/watchtower/eventlog"
	"github.com/tempo-watchtower/watchtower/eventlog/port"
	"github.com/tempo-watchtower/watchtower/infra/embedded"
)

// counted counts the calls that change the queue, and the changes of the largest one.
type counted struct {
	*embedded.Notices
	calls, most atomic.Int64
}

func (c *counted) count(wishes []notice.Event, news []notice.News) {
	n := len(wishes) + len(news)
	for _, w := range wishes {
		if again, is := w.(notice.RedeliveryAsked); is {
			n += len(again.Notices)
		}
	}
	c.calls.Add(1)
	c.most.Store(max(c.most.Load(), int64(n)))
}

func (c *counted) Enqueue(ctx context.Context, reader string, from, to eventlog.Position, news []notice.News) error {
	c.count(nil, news)
	return c.Notices.Enqueue(ctx, reader, from, to, news)
}

func (c *counted) CarryOut(ctx context.Context, reader string, from, to eventlog.Position, wishes []notice.Event, news []notice.News) error {
	c.count(wishes, news)
	return c.Notices.CarryOut(ctx, reader, from, to, wishes, news)
}

// record appends requests to an endpoint's stream, which is empty.
func (w *telling) record(requests ...notice.RedeliveryAsked) {
	w.t.Helper()
	of := notice.Stream(requests[0].Endpoint)
	var events []eventlog.Event
	for _, r := range requests {
		name, data, err := notice.Codec().Encode(r)
		check(w.t, err)
		var id eventlog.ID
		_, err = rand.Read(id[:])
		check(w.t, err)
		events = append(events, eventlog.Event{ID: id, Name: name, Data: data, Meta: eventlog.Meta{Actor: "crowd"}})
	}
	at := eventlog.Version(0)
	for some := range slices.Chunk(events, eventlog.MaxAppend) { // an append is bounded
		a, err := w.db.Log().Append(w.ctx, of, at, some...)
		check(w.t, err)
		at = a.Version
	}
}

// A client asks again and again for redeliveries at all its endpoints. Another client's next
// delivery is queued after a few calls of the queue, none of which is large.
func TestCommandsOfOneHoldUpNobody(t *testing.T) {
	const endpoints, each, large = 100, 20, 3
	w := newTelling(t, local(), nil)
	var known []notice.News
	for i := range byte(endpoints) {
		id := notice.EndpointID{1, i}
		known = append(known, notice.News{Key: notice.Key{Endpoint: id}, Client: "crowd", URL: "https://example.org/"})
		all := make([]notice.RedeliveryAsked, each)
		for n := range all {
			all[n] = notice.RedeliveryAsked{Endpoint: id, Notices: []notice.Ref{{Intent: chain.IntentID{byte(n)}, Seq: 1}}, At: w.clock.now()}
		}
		if i < large { // some name as many as one request can
			all[0].Notices = make([]notice.Ref, notice.RedeliverMax)
		}
		w.record(all...)
	}
	check(t, w.rows.Enqueue(w.ctx, "fill", 0, 1, known))
	victim := w.newHook(nil)
	id := w.ask("next", victim.url)
	w.command(id, assignment(1))
	last, err := w.db.Log().Head(w.ctx)
	check(t, err)

	rows := &counted{Notices: w.rows}
	feeder := w.feeder()
	feeder.Rows = rows
	ctx, stop := context.WithCancel(w.ctx)
	defer stop()
	feeder.Moved = func(at eventlog.Position) {
		if at >= last {
			stop()
		}
	}
	if err := feeder.Run(ctx); !errors.Is(err, context.Canceled) || w.ctx.Err() != nil {
		t.Fatal(err)
	}
	if n, err := w.rows.Count(w.ctx, w.endpoint(victim.url), notice.Queued, 10); err != nil || n != 1 {
		t.Errorf("%d notices of the other client are queued, %v", n, err)
	}
	if calls := rows.calls.Load(); calls > 30 {
		t.Errorf("%d calls", calls)
	}
	if most := rows.most.Load(); most > 2*notice.RedeliverMax {
		t.Errorf("%d in one call", most)
	}
}

// readCounter counts the events of streams that are read.
type readCounter struct {
	port.Store
	read int
}

func (r *readCounter) ReadStream(ctx context.Context, stream eventlog.Stream, after eventlog.Version) iter.Seq2[eventlog.Recorded, error] {
	return func(yield func(eventlog.Recorded, error) bool) {
		for e, err := range r.Store.ReadStream(ctx, stream, after) {
			r.read++
			if !yield(e, err) {
				return
			}
		}
	}
}

// A command reads few events, however many commands were recorded before.
func TestCommandsReadFewEvents(t *testing.T) {
	w := newTelling(t, local(), nil)
	id := notice.EndpointID{1}
	check(t, w.rows.Enqueue(w.ctx, "fill", 0, 1, []notice.News{{Key: notice.Key{Endpoint: id}, Client: "crowd", URL: "https://example.org/"}}))
	requests := make([]notice.RedeliveryAsked, 2000)
	for i := range requests {
		requests[i] = notice.RedeliveryAsked{Endpoint: id, At: w.clock.now()}
	}
	w.record(requests...)
	store := &readCounter{Store: w.db.Log()}
	o := w.operator()
	o.Endpoints.Store = store
	o.Endpoints.Snapshots = notifier.Snapshots(w.db.Snapshots(), func(_ eventlog.Stream, err error) { t.Error(err) })
	meta := eventlog.Meta{Actor: "test"}
	check(t, o.Disable(w.ctx, id, meta)) // reads all, and keeps the first snapshot
	for n := range 250 {
		store.read = 0
		check(t, o.Redeliver(w.ctx, id, nil, meta))
		if store.read > 100 {
			t.Fatalf("command %d reads %d events", n, store.read)
		}
	}
	store.read = 0
	before := len(w.recorded(id))
	check(t, o.Disable(w.ctx, id, meta)) // it is disabled already, says the snapshot
	if got := len(w.recorded(id)); got != before || store.read == 0 {
		t.Errorf("%d events, and %d before", got, before)
	}
}

// slow is a Disabled that returns when its context ends.
type slow struct {
	mu    sync.Mutex
	calls []notice.EndpointID
}

func (s *slow) record(ctx context.Context, e notice.Endpoint) {
	s.mu.Lock()
	s.calls = append(s.calls, e.ID)
	s.mu.Unlock()
	<-ctx.Done()
}

// The log does not answer when it is to be recorded that an endpoint was disabled. The worker
// goes on, and a stop does not wait for the log for long.
func TestSlowRecordsHoldUpNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db, err := embedded.Open("", embedded.Options{})
		check(t, err)
		defer func() { check(t, db.Close()) }()
		w := newWorld(t, db)
		var records slow
		worker := w.worker(w.queue)
		worker.Disabled, w.wake = records.record, worker.Wake
		gone := notice.Outcome{Class: notice.Gone, Cause: notice.Status, Status: 410}
		w.set(1, gone)
		w.set(2, gone)
		w.enqueue(key(1, 1, 1), key(2, 1, 1))
		stop := running(t, worker)
		synctest.Wait()
		w.enqueue(key(3, 1, 1))
		synctest.Wait()
		w.want(key(3, 1, 1), notice.Settled)
		records.mu.Lock()
		if n := len(records.calls); n != 1 {
			t.Errorf("%d endpoints are recorded at once", n)
		}
		records.mu.Unlock()
		began := time.Now()
		stop()
		if waited := time.Since(began); waited != 10*time.Second {
			t.Errorf("stopped after %s", waited)
		}
		if len(records.calls) != 2 {
			t.Errorf("recorded: %v", records.calls)
		}
	})
}

// running runs a worker. stop ends it, and waits for its end.
func running(t *testing.T, worker *notifier.Worker) (stop func()) {
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		worker.Run(ctx)
	}()
	return func() { cancel(); <-ended }
}

// More endpoints than there is room for are disabled while the log does not answer.
func TestRecordsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var records slow
		var log bytes.Buffer
		queue := &disabling{many: 1500}
		worker := &notifier.Worker{
			Queue: queue, Holder: "a", Send: func(context.Context, notice.Sending) notice.Outcome { return taken },
			Disabled: records.record, Lease: time.Minute, Poll: time.Minute, Slots: 1, Log: slog.New(slog.NewTextHandler(&log, nil)),
		}
		stop := running(t, worker)
		synctest.Wait()
		stop()
		if lost := bytes.Count(log.Bytes(), []byte("too many wait")); len(records.calls)+lost != 1500 || lost < 400 {
			t.Errorf("%d are recorded, %d are lost", len(records.calls), lost)
		}
	})
}

// disabling is a queue with one delivery, whose report disables very many endpoints.
type disabling struct {
	many   int
	leased bool
}

func (d *disabling) Lease(context.Context, notice.Claim) ([]notice.Sending, time.Duration, error) {
	if d.leased {
		return nil, time.Minute, nil
	}
	d.leased = true
	return []notice.Sending{{Notice: notice.Notice{Key: key(1, 1, 1)}, Client: "crowd"}}, time.Minute, nil
}

func (d *disabling) Done(context.Context, string, []notice.Report) ([]notice.Endpoint, error) {
	all := make([]notice.Endpoint, d.many)
	for i := range all {
		all[i].ID = notice.EndpointID{byte(i), byte(i >> 8)}
	}
	return all, nil
}
