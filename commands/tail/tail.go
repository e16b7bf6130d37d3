// Package tail is a process's single live view of the end of the log. However many callers
// wait for events, the log is followed once.
//
// A [Tail] wakes callers that wait for one transaction ([Tail.Await]) and callers that read
// everything ([Tail.Read]). It reads only the log, so on several replicas each sees every
// replica's appends. Without listeners it reads nothing: an idle replica costs the store
// nothing.
package tail

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
	"github.com/tempo-watchtower/watchtower/eventlog"
	"github.com/tempo-watchtower/watchtower/eventlog/port"
)

const (
	readMax = 500              // events in one read of the log
	pause   = time.Second      // between two attempts to follow a log that cannot be read
	lingers = 10 * time.Second // how long the log is followed after the last listener has left
)

// The errors of a wait, other than its context's.
const (
	// ErrLeaving: the process is about to stop. Another one can be asked.
	ErrLeaving = eventlog.Refusal("leaving")
	// ErrTooManyWaiters: see [WaitersMax].
	ErrTooManyWaiters = eventlog.Refusal("too-many-waiters")
)

// Tail follows the log while [Tail.Run] runs.
type Tail struct {
	store port.Store
	codec eventlog.Codec[tx.Event]
	log   *slog.Logger

	leaving chan struct{}
	once    sync.Once

	mu      sync.Mutex
	waiting map[eventlog.Stream]*watch
	waiters int // in waiting
	recent  recent
	grown   chan struct{} // closed when recent grows

	listeners int
	awake     bool          // there is a listener, or was until a while ago
	roused    chan struct{} // signaled when awake becomes true
	rest      *time.Timer   // runs while awake without listeners
	stop      func()        // ends the present follow
}

// New makes a tail of a log. Nothing runs yet.
func New(store port.Store, codec eventlog.Codec[tx.Event], log *slog.Logger) *Tail {
	return &Tail{
		store: store, codec: codec, log: log, leaving: make(chan struct{}),
		waiting: map[eventlog.Stream]*watch{}, grown: make(chan struct{}),
		roused: make(chan struct{}, 1), stop: func() {},
	}
}

// Run follows the log for its listeners, until ctx ends or the log is closed. Errors delay
// the waiters; no event is skipped.
func (t *Tail) Run(ctx context.Context) {
	for t.awaken(ctx) {
		err := t.follow(ctx)
		switch {
		case ctx.Err() != nil || errors.Is(err, eventlog.ErrClosed):
			return
		case err == nil: // it was sent to sleep
			continue
		}
		t.log.Warn("the log's tail is interrupted", "err", err)
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
	}
}

// follow resumes where an earlier follow ended, or else begins at the log's head, read
// after the first listener has come. It returns nil when it was sent to sleep.
func (t *Tail) follow(ctx context.Context) error {
	awake, stop := context.WithCancel(ctx)
	defer stop()
	if err := t.tellAll(awake, stop); awake.Err() == nil {
		return err
	}
	return ctx.Err()
}

func (t *Tail) tellAll(ctx context.Context, stop func()) error {
	from, begun := t.set(stop)
	if !begun {
		head, err := t.store.Head(ctx)
		if err != nil {
			return err
		}
		from = head
		t.begin(head)
	}
	for batch, err := range t.store.Subscribe(ctx, from, eventlog.Filter{}, readMax) {
		if err != nil {
			return err
		}
		t.tell(batch)
	}
	return ctx.Err()
}

// set registers the function that ends the new follow, and returns its start.
func (t *Tail) set(stop func()) (eventlog.Position, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.stop = stop; !t.awake {
		stop() // it went to sleep just now
	}
	return t.recent.upto, t.recent.begun
}

// begin starts from a position. Waiters that have read the log before that may have missed
// events up to it, and read again.
func (t *Tail) begin(at eventlog.Position) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.awake {
		return
	}
	t.recent = recent{begun: true, from: at, upto: at}
	for _, w := range t.waiting {
		w.since = w.begun + 1
		w.wakeAll()
	}
	t.strike()
}

// tell wakes the waiters that a batch concerns.
func (t *Tail) tell(batch eventlog.Batch) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.recent.begun {
		return // it went to sleep: the next follow begins anew
	}
	t.recent.add(batch)
	for _, e := range batch.Events {
		if w := t.waiting[e.Stream]; w != nil {
			w.told, w.after = max(w.told, e.Version), w.begun+1
			w.wakeAll()
		}
	}
	t.strike()
}

func (t *Tail) strike() {
	close(t.grown)
	t.grown = make(chan struct{})
}

// wakeAll makes the waiters look again; a waiter with a pending wake-up needs no second one.
func (w *watch) wakeAll() {
	for waiter := range w.waiters {
		select {
		case waiter <- struct{}{}:
		default:
		}
	}
}

// Leave ends every wait, now and from now on: the process is about to stop.
func (t *Tail) Leave() { t.once.Do(func() { close(t.leaving) }) }

// Leaving is closed by [Tail.Leave].
func (t *Tail) Leaving() <-chan struct{} { return t.leaving }

// join has a waiter woken by a stream's next events, until it parts. It returns the number of the
// stream's next read.
func (t *Tail) join(stream eventlog.Stream, waiter chan struct{}) (first uint64, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.waiters >= WaitersMax {
		return 0, ErrTooManyWaiters
	}
	w := t.waiting[stream]
	if w == nil {
		w = &watch{waiters: map[chan struct{}]struct{}{}}
		t.waiting[stream] = w
	}
	w.waiters[waiter] = struct{}{}
	t.waiters++
	t.listen()
	return w.begun + 1, nil
}

func (t *Tail) part(stream eventlog.Stream, waiter chan struct{}) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.waiters--
	t.unlisten()
	w := t.waiting[stream]
	delete(w.waiters, waiter)
	if len(w.waiters) == 0 {
		delete(t.waiting, stream)
	}
}
