package scheduler_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tempo-watchtower/watchtower/commands/delivery/scheduler"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
	"github.com/tempo-watchtower/watchtower/eventlog"
	"github.com/tempo-watchtower/watchtower/infra/embedded"
)

// attempts records the holder and time of each attempt.
type attempts struct {
	mu   sync.Mutex
	made []attempt
}

type attempt struct {
	holder string
	work   tx.Work
	at     time.Time
}

func (a *attempts) add(holder string, w tx.Work) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.made = append(a.made, attempt{holder, w, time.Now()})
}

func (a *attempts) all() []attempt {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.made[:len(a.made):len(a.made)]
}

// worker is a worker whose attempts are quick and due again in an hour.
func worker(q scheduler.Queue, holder string, a *attempts) *scheduler.Worker {
	return &scheduler.Worker{
		Chain: id, Queue: q, Holder: holder, Lease: 3 * time.Second, Poll: time.Second, Slots: 8,
		Log: slog.New(slog.DiscardHandler),
		Attempt: func(_ context.Context, w tx.Work) tx.Done {
			a.add(holder, w)
			return tx.Done{Chain: w.Chain, Hash: w.Hash, Attempts: w.Attempts + 1, SentAt: time.Now(), NextAt: time.Now().Add(time.Hour)}
		},
	}
}

// fill opens rows 0 to n-1, each in a sequence of its own.
func fill(t *testing.T, work *embedded.Work, n int, due func(i int) time.Time) {
	t.Helper()
	at, err := work.Checkpoint(t.Context(), scheduler.Reader)
	check(t, err)
	changes := make([]tx.Change, n)
	for i := range changes {
		a := accepted(uint64(i))
		changes[i] = tx.Change{Chain: id, Hash: a.Hash, Open: &tx.Work{
			Chain: id, Hash: a.Hash, Sender: chain.Address{1: byte(i), 2: byte(i >> 8)}, Phase: tx.Open, NextAt: due(i),
		}}
	}
	check(t, work.Apply(t.Context(), scheduler.Reader, at, at+eventlog.Position(n), changes))
}

func now(int) time.Time { return time.Now() }

// run starts workers and returns a function that stops them and waits for their end.
func run(t *testing.T, workers ...*scheduler.Worker) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	for _, w := range workers {
		running.Go(func() { w.Run(ctx) })
	}
	return func() {
		cancel()
		running.Wait()
	}
}

func TestEachDueRowIsAttemptedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const rows = 500
		db, made := open(t), &attempts{}
		fill(t, db.Work(), rows, now)
		var workers []*scheduler.Worker
		for i := range 4 {
			w := worker(db.Work(), fmt.Sprint("worker ", i), made)
			quick := w.Attempt
			w.Attempt = func(ctx context.Context, work tx.Work) tx.Done {
				<-time.After(time.Duration(work.Hash[0]) * time.Millisecond)
				return quick(ctx, work)
			}
			workers = append(workers, w)
		}
		stop := run(t, workers...)
		<-time.After(time.Minute)
		stop()
		times, holders := map[chain.Hash]int{}, map[string]int{}
		for _, a := range made.all() {
			times[a.work.Hash]++
			holders[a.holder]++
		}
		if len(made.all()) != rows || len(times) != rows {
			t.Errorf("%d attempts at %d of %d rows", len(made.all()), len(times), rows)
		}
		if len(holders) != len(workers) {
			t.Errorf("the work was not shared: %v", holders)
		}
	})
}

// A graceful stop waits for the attempts in progress and leaves no lease: another holder
// can lease the rows at once.
func TestGracefulStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db, made := open(t), &attempts{}
		fill(t, db.Work(), 20, now)
		w := worker(db.Work(), "stopping", made)
		w.Attempt = func(ctx context.Context, work tx.Work) tx.Done {
			made.add("stopping", work)
			<-time.After(time.Second)
			if ctx.Err() != nil {
				t.Error("an attempt was cut short by a stop")
			}
			return tx.Done{Chain: id, Hash: work.Hash, Attempts: 1, NextAt: time.Now()}
		}
		stop := run(t, w)
		<-time.After(500 * time.Millisecond)
		began := time.Now()
		stop()
		if took := time.Since(began); took != 500*time.Millisecond {
			t.Errorf("stopped after %v, the attempts had 500 ms to go", took)
		}
		if n := len(made.all()); n != w.Slots {
			t.Errorf("%d attempts, %d slots: some began after the stop", n, w.Slots)
		}
		left, _, err := db.Work().Lease(t.Context(), id, "other", time.Second, 100, 100)
		if err != nil || len(left) != 20 {
			t.Errorf("another holder was given %d of 20 rows, %v", len(left), err)
		}
	})
}

// No attempt begins after a stop, also if it comes while slots are being gathered.
func TestNothingBeginsAfterAStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db, made := open(t), &attempts{}
		fill(t, db.Work(), 20, now)
		w := worker(db.Work(), "stopping", made)
		quick := w.Attempt
		var begun atomic.Int64
		w.Attempt = func(ctx context.Context, work tx.Work) tx.Done {
			<-time.After(time.Duration(begun.Add(1)) * 100 * time.Millisecond)
			return quick(ctx, work)
		}
		stop := run(t, w)
		<-time.After(101 * time.Millisecond) // the first has ended a millisecond ago
		stop()
		if n := begun.Load(); n != int64(w.Slots) {
			t.Errorf("%d attempts begun for %d slots, the last after the stop", n, w.Slots)
		}
	})
}

// A worker that dies during an attempt leaves its lease, which lapses.
func TestAnotherTakesOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db, made := open(t), &attempts{}
		fill(t, db.Work(), 5, now)
		died := time.Now()
		leased, _, err := db.Work().Lease(t.Context(), id, "dead", 3*time.Second, 5, 5)
		if err != nil || len(leased) != 5 {
			t.Fatal(len(leased), err)
		}
		w := worker(db.Work(), "alive", made)
		stop := run(t, w)
		<-time.After(10 * time.Second)
		stop()
		if len(made.all()) != 5 {
			t.Fatalf("%d attempts", len(made.all()))
		}
		for _, a := range made.all() {
			if waited := a.at.Sub(died); waited < 3*time.Second || waited > 3*time.Second+w.Poll {
				t.Errorf("taken over after %v", waited)
			}
		}
	})
}

// slow is a queue that answers slowly.
type slow struct {
	scheduler.Queue
	by time.Duration
}

func (s slow) Lease(ctx context.Context, id chain.ID, holder string, ttl time.Duration, limit, repeats int) ([]tx.Work, time.Duration, error) {
	work, until, err := s.Queue.Lease(ctx, id, holder, ttl, limit, repeats)
	<-time.After(s.by)
	return work, until, err
}

// An attempt ends while the row is still leased, however slowly the queue answered.
func TestAttemptEndsWithinItsLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db, made := open(t), &attempts{}
		fill(t, db.Work(), 1, now)
		leased := time.Now()
		w := worker(slow{db.Work(), 2 * time.Second}, "a", made)
		w.Attempt = func(ctx context.Context, work tx.Work) tx.Done {
			made.add("a", work)
			<-ctx.Done()
			if late := time.Since(leased); late >= w.Lease {
				t.Errorf("an attempt ran until %v after it was leased for %v", late, w.Lease)
			}
			return tx.Done{Chain: id, Hash: work.Hash, NextAt: time.Now().Add(time.Hour)}
		}
		stop := run(t, w)
		<-time.After(2500 * time.Millisecond)
		stop()
		if len(made.all()) != 1 {
			t.Errorf("%d attempts", len(made.all()))
		}
	})
}

// Rows are attempted when they are due, not at the next poll of the queue.
func TestLateness(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const rows = 3000
		db, made := open(t), &attempts{}
		begin := time.Now()
		fill(t, db.Work(), rows, func(i int) time.Time {
			return begin.Add(time.Second + time.Duration(i*7919%rows)*time.Millisecond)
		})
		w := worker(db.Work(), "a", made)
		w.Poll = time.Minute
		stop := run(t, w)
		<-time.After(10 * time.Second)
		stop()
		worst := time.Duration(0)
		for _, a := range made.all() {
			late := a.at.Sub(a.work.NextAt)
			if worst = max(worst, late); late < 0 {
				t.Errorf("attempted %v early", -late)
			}
		}
		if len(made.all()) != rows || worst > 10*time.Millisecond {
			t.Errorf("%d of %d attempted, the latest by %v", len(made.all()), rows, worst)
		}
	})
}

func TestWake(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db, made := open(t), &attempts{}
		w := worker(db.Work(), "a", made)
		w.Poll = time.Hour
		w.Wake() // before it runs: remembered, and harmless
		stop := run(t, w)
		<-time.After(time.Second)
		synctest.Wait()
		fill(t, db.Work(), 1, now)
		for range 3 {
			w.Wake()
		}
		<-time.After(time.Second)
		stop()
		if len(made.all()) != 1 || !made.all()[0].at.Equal(made.all()[0].work.NextAt) {
			t.Errorf("attempts %+v, want one at the moment of waking", made.all())
		}
	})
}

// faulty is a queue that cannot be reached while noLease or noDone is set.
type faulty struct {
	scheduler.Queue
	mu         sync.Mutex
	noLease    bool
	noDone     bool
	leaseCalls int
}

func (f *faulty) set(noLease, noDone bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.noLease, f.noDone = noLease, noDone
}

var errAway = errors.New("away")

func (f *faulty) Lease(ctx context.Context, id chain.ID, holder string, ttl time.Duration, limit, repeats int) ([]tx.Work, time.Duration, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.leaseCalls++
	if f.noLease {
		return nil, 0, errAway
	}
	return f.Queue.Lease(ctx, id, holder, ttl, limit, repeats)
}

func (f *faulty) Done(ctx context.Context, holder string, done []tx.Done) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.noDone {
		return errAway
	}
	return f.Queue.Done(ctx, holder, done)
}

// While the queue is away the worker retries at its own pace. When it is back, attempts
// that could not be reported are repeated after their lease.
func TestQueueAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db, made := open(t), &attempts{}
		q := &faulty{Queue: db.Work(), noLease: true, noDone: true}
		fill(t, db.Work(), 5, now)
		stop := run(t, worker(q, "a", made))
		<-time.After(10 * time.Second)
		if q.mu.Lock(); q.leaseCalls > 12 || len(made.all()) != 0 {
			t.Errorf("%d calls in ten seconds with a pause of one; %d attempts", q.leaseCalls, len(made.all()))
		}
		q.mu.Unlock()
		q.set(false, true)
		<-time.After(2 * time.Second)
		if len(made.all()) != 5 {
			t.Errorf("%d attempts of 5 rows", len(made.all()))
		}
		q.set(false, false)
		<-time.After(10 * time.Second)
		stop()
		if len(made.all()) != 10 {
			t.Errorf("%d attempts: each unreported one once more makes 10", len(made.all()))
		}
	})
}

// Concurrent attempts are bounded by the slots, also when the queue is full.
func TestSlots(t *testing.T) {
	for _, slots := range []int{1, 2, 3, 8} {
		synctest.Test(t, func(t *testing.T) {
			db, made := open(t), &attempts{}
			fill(t, db.Work(), 40, now)
			w := worker(db.Work(), "a", made)
			w.Slots = slots
			quick := w.Attempt
			var mu sync.Mutex
			running, most := 0, 0
			w.Attempt = func(ctx context.Context, work tx.Work) tx.Done {
				mu.Lock()
				running++
				most = max(most, running)
				mu.Unlock()
				<-time.After(10 * time.Millisecond)
				mu.Lock()
				running--
				mu.Unlock()
				return quick(ctx, work)
			}
			stop := run(t, w)
			<-time.After(time.Minute)
			stop()
			if most != slots || len(made.all()) != 40 {
				t.Errorf("%d slots: %d at once, %d attempts", slots, most, len(made.all()))
			}
		})
	}
}
