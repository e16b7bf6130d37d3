// Package notifier tells clients' endpoints what became of their intents: it takes
// notices off the queue when they are due, and has each of them sent.
package notifier

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/tempo-watchtower/watchtower/domain/notice"
)

// Queue is the queue of notices. Which may be sent when is its business, by
// notice.Policy: it gives out one at a time of each intent at an endpoint, and of each
// endpoint and each client no more than its share.
type Queue interface {
	Lease(ctx context.Context, c notice.Claim) (due []notice.Sending, until time.Duration, err error)
	Done(ctx context.Context, holder string, reports []notice.Report) (disabled []notice.Endpoint, err error)
}

// Worker sends notices. Every replica runs one.
type Worker struct {
	Queue  Queue
	Holder string // this process
	// Send makes one attempt. It must end within Lease: after that another worker may
	// make one too.
	Send func(ctx context.Context, n notice.Sending) notice.Outcome
	// Disabled is told of each endpoint that this worker's attempts have disabled. The
	// news may be lost with the process; the queue lists all endpoints as they stand.
	Disabled func(e notice.Endpoint)
	Lease    time.Duration // how long a leased notice is ours
	Poll     time.Duration // look at the queue at least so often
	Slots    int           // attempts at once
	// Crash is called at named points; nil does nothing.
	Crash func(point string)
	Log   *slog.Logger

	busy   map[string]int // attempts under way, by client
	served string         // the client of the last notice that was leased

	wake chan struct{}
	once sync.Once
}

// Wake makes the worker look at the queue now. It never blocks.
func (w *Worker) Wake() {
	w.init()
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

func (w *Worker) init() { w.once.Do(func() { w.wake = make(chan struct{}, 1) }) }

// Names that Crash is called with.
const (
	crashEnqueued = "notices.enqueued" // the queue has news, and nobody was woken for them
	crashWished   = "notices.wished"   // a wish is carried out
	crashSent     = "notices.sent"     // an endpoint may have it, the queue does not know
)

// CrashPoints lists them.
func CrashPoints() []string { return []string{crashEnqueued, crashWished, crashSent} }

// minRest keeps a queue that answers "due now" with nothing from being hammered.
const minRest = time.Millisecond

// Run works until ctx ends, and returns when the attempts under way have ended and the
// queue has been told of them, so that no lease is left behind.
func (w *Worker) Run(ctx context.Context) {
	w.init()
	ended := make(chan attempted, w.Slots)
	w.busy = map[string]int{}
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
		until := w.Poll // with no slot free, the next attempt to end is waited for
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

// attempted is what came of an attempt.
type attempted struct {
	notice.Report
	client string
	cut    bool // short, by the lease: it says nothing of the endpoint
}

// attempt lets a graceful stop wait for an attempt; its deadline is the lease, which may
// have begun as soon as it was asked for. Where the queue took long to answer, little of it
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
	// Not cut short by a stop: what is leased by a call nobody waits for would lie
	// idle until its lease lapses.
	call, cancel := context.WithTimeout(context.WithoutCancel(ctx), w.Lease)
	defer cancel()
	due, until, err := w.Queue.Lease(call, notice.Claim{
		Holder: w.Holder, TTL: w.Lease, Limit: limit, Turn: w.served, Slots: w.Slots, Busy: w.busy,
	})
	if err != nil {
		w.Log.Warn("queue of notices not reached", "err", err)
		return nil, w.Poll
	}
	return due, until
}

// report tells the queue of an attempt, and of those that have ended meanwhile. It says
// how many those were. Of those that were cut short the leases lapse.
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
		w.Log.Warn("the queue of notices answers too slowly to send", "notices", len(all)-len(batch))
	}
	if len(batch) == 0 {
		return len(all)
	}
	call, cancel := context.WithTimeout(context.WithoutCancel(ctx), w.Lease)
	defer cancel()
	disabled, err := w.Queue.Done(call, w.Holder, batch)
	if err != nil {
		// The leases lapse and the notices are sent again, under the same ids.
		w.Log.Warn("queue not told of notices", "notices", len(batch), "err", err)
	}
	for _, e := range disabled {
		w.Log.Warn("endpoint disabled", "endpoint", e.ID, "reason", e.Disabled, "failures", e.Failures)
		w.Disabled(e)
	}
	return len(all)
}
