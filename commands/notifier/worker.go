// Package notifier reports the progress of intents to clients' endpoints: it leases webhook
// deliveries from the queue when they are due, and sends them. It imports domain and eventlog, and no
// process manager.
package notifier

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/tempo-watchtower/watchtower/domain/notice"
)

// Queue is the queue of webhook deliveries. It decides by notice.Policy which may be sent
// when: one at a time per intent and endpoint, and a bounded share per endpoint and per
// client.
type Queue interface {
	Lease(ctx context.Context, c notice.Claim) (due []notice.Sending, until time.Duration, err error)
	Done(ctx context.Context, holder string, reports []notice.Report) (disabled []notice.Endpoint, err error)
}

// Worker sends webhook deliveries. Every replica runs one.
type Worker struct {
	Queue  Queue
	Holder string // this process
	// Send makes one attempt: a Caller of infra/webhook. It must end within Lease: after that another worker may make
	// one too.
	Send func(ctx context.Context, n notice.Sending) notice.Outcome
	// Disabled is called for each endpoint that this worker's attempts have disabled, one
	// after the other, and must return when ctx ends. The worker goes on meanwhile. Calls may
	// be lost with the process, or when very many wait; the queue has the state of all
	// endpoints.
	Disabled func(ctx context.Context, e notice.Endpoint)
	Lease    time.Duration // duration of a delivery's lease
	Poll     time.Duration // longest interval between reads of the queue
	Slots    int           // concurrent attempts
	// Crash is called at named points; nil does nothing.
	Crash func(point string)
	Log   *slog.Logger

	busy   map[string]int // attempts in progress, by client
	served string         // client of the last leased delivery

	records *recorder

	wake chan struct{}
	once sync.Once
}

// Wake makes the worker read the queue now. It never blocks.
func (w *Worker) Wake() {
	w.init()
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

func (w *Worker) init() { w.once.Do(func() { w.wake = make(chan struct{}, 1) }) }

// The points at which Crash is called.
const (
	crashEnqueued = "notices.enqueued" // deliveries queued, no worker woken
	crashWished   = "notices.wished"   // a command is executed
	crashSent     = "notices.sent"     // sent, not reported to the queue
)

// CrashPoints lists them.
func CrashPoints() []string { return []string{crashEnqueued, crashWished, crashSent} }

// minRest protects a queue that answers "due now" with no deliveries from a busy loop.
const minRest = time.Millisecond

// Run works until ctx ends, and returns when the attempts in progress have ended and were
// reported to the queue, so that no lease is left behind, and all calls of Disabled have
// returned.
func (w *Worker) Run(ctx context.Context) {
	w.init()
	ended := make(chan attempted, w.Slots)
	w.busy = map[string]int{}
	w.records = newRecorder(ctx, w.Disabled)
	defer w.records.end()
	var attempts sync.WaitGroup
	defer attempts.Wait()
	free := w.Slots
	look := time.NewTimer(0)
	defer look.Stop()
	for ctx.Err() == nil {
		select {
		case r := <-ended:
			free += w.report(ctx, r, ended)
		case <-look.C:
		case <-w.wake:
		case <-ctx.Done():
			continue
		}
		until := w.Poll // without a free slot, wait for the next attempt to end
		if free > 0 {
			asked := time.Now()
			var due []notice.Sending
			due, until = w.lease(ctx, free)
			for _, n := range due {
				w.busy[n.Client]++
				w.served = n.Client
				attempts.Go(func() { ended <- w.attempt(ctx, n, asked) })
			}
			free -= len(due)
		}
		look.Reset(min(max(until, minRest), w.Poll))
	}
	for free < w.Slots {
		free += w.report(ctx, <-ended, ended)
	}
}

// attempted is the result of an attempt.
type attempted struct {
	notice.Report
	client string
	cut    bool // cut short by the lease: proves nothing about the endpoint
}

// attempt makes an attempt, which a graceful stop lets finish. Its deadline is the lease,
// which may have begun when it was requested. If the queue was slow to answer, little of it
// may be left.
func (w *Worker) attempt(ctx context.Context, n notice.Sending, asked time.Time) attempted {
	ctx, cancel := context.WithDeadline(context.WithoutCancel(ctx), asked.Add(w.Lease*9/10))
	defer cancel()
	r := attempted{Report: notice.Report{Key: n.Key, Outcome: w.Send(ctx, n)}, client: n.Client}
	r.cut = ctx.Err() != nil && r.Outcome.Class != notice.Delivered
	if w.Crash != nil {
		w.Crash(crashSent)
	}
	return r
}

func (w *Worker) lease(ctx context.Context, limit int) ([]notice.Sending, time.Duration) {
	// Not cut short by a stop: otherwise deliveries leased by an abandoned call would lie
	// idle until their lease lapses.
	call, cancel := context.WithTimeout(context.WithoutCancel(ctx), w.Lease)
	defer cancel()
	due, until, err := w.Queue.Lease(call, notice.Claim{
		Holder: w.Holder, TTL: w.Lease, Limit: limit, Turn: w.served, Slots: w.Slots, Busy: w.busy,
	})
	if err != nil {
		w.Log.Warn("the queue of webhook deliveries could not be reached", "err", err)
		return nil, w.Poll
	}
	return due, until
}

// report reports an attempt to the queue, with the attempts that have ended meanwhile, and
// returns their number. Attempts that were cut short are not reported: their leases lapse.
func (w *Worker) report(ctx context.Context, first attempted, ended <-chan attempted) int {
	all := []attempted{first}
	for more := true; more; {
		select {
		case r := <-ended:
			all = append(all, r)
		default:
			more = false
		}
	}
	var batch []notice.Report
	for _, r := range all {
		if w.busy[r.client]--; w.busy[r.client] == 0 {
			delete(w.busy, r.client)
		}
		if !r.cut {
			batch = append(batch, r.Report)
		}
	}
	if len(batch) < len(all) {
		w.Log.Warn("the queue of webhook deliveries responds too slowly to send", "notices", len(all)-len(batch))
	}
	if len(batch) == 0 {
		return len(all)
	}
	call, cancel := context.WithTimeout(context.WithoutCancel(ctx), w.Lease)
	defer cancel()
	disabled, err := w.Queue.Done(call, w.Holder, batch)
	if err != nil {
		// The leases lapse and the deliveries are sent again, under the same ids.
		w.Log.Warn("the queue could not be updated with results of webhook deliveries", "notices", len(batch), "err", err)
	}
	for _, e := range disabled {
		w.Log.Warn("endpoint disabled", "endpoint", e.ID, "reason", e.Disabled, "failures", e.Failures)
		if !w.records.add(e) {
			w.Log.Warn("recording that an endpoint was disabled failed: too many wait for the log", "endpoint", e.ID)
		}
	}
	return len(all)
}
