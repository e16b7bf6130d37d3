package tail_test

import (
	"context"
	"crypto/rand"
	"errors"
	"iter"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/tempo-watchtower/watchtower/commands"
	"github.com/tempo-watchtower/watchtower/commands/tail"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
	"github.com/tempo-watchtower/watchtower/eventlog"
	"github.com/tempo-watchtower/watchtower/eventlog/handler"
	"github.com/tempo-watchtower/watchtower/eventlog/port"
	"github.com/tempo-watchtower/watchtower/infra/embedded"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	id      = chain.ID(42431)
	patient = 30 * time.Second // for results that are due at once
)

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func open(t *testing.T) *embedded.DB {
	t.Helper()
	db, err := embedded.Open("", embedded.Options{})
	check(t, err)
	t.Cleanup(func() { check(t, db.Close()) })
	return db
}

// run follows a log until the test ends.
func run(t *testing.T, store port.Store) *tail.Tail {
	t.Helper()
	followed := tail.New(store, tx.Codec(), slog.New(slog.DiscardHandler))
	start(t, followed)
	return followed
}

func start(t *testing.T, followed *tail.Tail) {
	t.Helper()
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		followed.Run(ctx)
	}()
	t.Cleanup(func() {
		stop()
		<-ended
	})
}

func hashOf(n int) chain.Hash { return chain.Hash{0: 1, 30: byte(n >> 8), 31: byte(n)} }

// handle handles a command. Other goroutines may call it too.
func handle(ctx context.Context, store port.Store, n int, c tx.Command) error {
	origin, err := handler.Begin(rand.Reader, eventlog.Meta{Actor: "test"})
	if err != nil {
		return err
	}
	_, err = commands.Transactions{Store: store, Codec: tx.Codec(), Random: rand.Reader}.Handle(ctx, tx.Stream(id, hashOf(n)), c, origin)
	return err
}

func accept(n int) tx.Command {
	return tx.Accept{Accepted: tx.Accepted{Chain: id, Hash: hashOf(n), At: time.Unix(1_800_000_000, 0)}}
}

func canceled(s tx.State) bool { return s.Canceled }

// answer is the result of Await.
type answer struct {
	state tx.State
	err   error
}

func await(ctx context.Context, followed *tail.Tail, n int, done func(tx.State) bool) <-chan answer {
	answers := make(chan answer, 1)
	go func() {
		s, err := followed.Await(ctx, id, hashOf(n), done)
		answers <- answer{s, err}
	}()
	return answers
}

func TestAwait(t *testing.T) {
	db := open(t)
	followed := run(t, db.Log())
	ctx, cancel := context.WithTimeout(t.Context(), patient)
	defer cancel()
	accepted := func(s tx.State) bool { return s.Status != tx.StatusAbsent }

	// Await waits for a missing transaction.
	waits := await(ctx, followed, 1, accepted)
	check(t, handle(ctx, db.Log(), 1, accept(1)))
	if a := <-waits; a.err != nil || a.state.Status != tx.StatusQueued {
		t.Errorf("%v, %v", a.state.Status, a.err)
	}
	// An existing state is returned at once.
	if s, err := followed.Await(ctx, id, hashOf(1), accepted); err != nil || s.Accepted.Hash != hashOf(1) {
		t.Errorf("%v, %v", s, err)
	}
	// Other transactions' events end no wait.
	waits = await(ctx, followed, 1, canceled)
	check(t, handle(ctx, db.Log(), 2, accept(2)))
	check(t, handle(ctx, db.Log(), 2, tx.Cancel{Reason: "test", At: time.Unix(1_800_000_001, 0)}))
	check(t, handle(ctx, db.Log(), 1, tx.Cancel{Reason: "test", At: time.Unix(1_800_000_001, 0)}))
	if a := <-waits; a.err != nil || !a.state.Canceled {
		t.Errorf("%v, %v", a.state.Status, a.err)
	}
}

// When the time is over, the last state comes with the context's error.
func TestAwaitEnds(t *testing.T) {
	db := open(t)
	followed := run(t, db.Log())
	check(t, handle(t.Context(), db.Log(), 1, accept(1)))
	ctx, cancel := context.WithCancel(t.Context())
	s, err := followed.Await(ctx, id, hashOf(1), func(tx.State) bool {
		cancel()
		return false
	})
	if !errors.Is(err, context.Canceled) || s.Status != tx.StatusQueued {
		t.Errorf("%q, %v", s.Status, err)
	}
}

func TestLeave(t *testing.T) {
	db := open(t)
	followed := run(t, db.Log())
	check(t, handle(t.Context(), db.Log(), 1, accept(1)))
	asked := make(chan struct{}, 1)
	waits := await(t.Context(), followed, 1, func(s tx.State) bool {
		asked <- struct{}{}
		return s.Canceled
	})
	<-asked
	followed.Leave()
	followed.Leave()
	if a := <-waits; !errors.Is(a.err, tail.ErrLeaving) || a.state.Status != tx.StatusQueued {
		t.Errorf("%q, %v", a.state.Status, a.err)
	}
}

// Waiting is bounded; a caller without room gets the current state.
func TestTooManyWaiters(t *testing.T) {
	db := open(t)
	followed := run(t, db.Log())
	var looks atomic.Int64
	look := func(s tx.State) bool { looks.Add(1); return canceled(s) }
	check(t, handle(t.Context(), db.Log(), 1, accept(1)))
	ctx, cancel := context.WithCancel(t.Context())
	var waiting sync.WaitGroup
	for range tail.WaitersMax {
		waiting.Go(func() {
			err := error(tail.ErrTooManyWaiters)
			for errors.Is(err, tail.ErrTooManyWaiters) { // the test itself takes a place for a while
				_, err = followed.Await(ctx, id, hashOf(1), look)
			}
			if !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
		})
	}
	until(t, &looks, tail.WaitersMax) // each has joined before it looks
	var s tx.State
	var err error
	for full := false; !full; { // the tail may have read for itself, before the last has joined
		try, end := context.WithTimeout(t.Context(), time.Second)
		s, err = followed.Await(try, id, hashOf(1), canceled)
		end()
		full = !errors.Is(err, context.DeadlineExceeded)
	}
	if !errors.Is(err, tail.ErrTooManyWaiters) || s.Status != tx.StatusQueued {
		t.Errorf("%q, %v", s.Status, err)
	}
	cancel()
	waiting.Wait()
	check(t, handle(t.Context(), db.Log(), 1, tx.Cancel{Reason: "test", At: time.Unix(1_800_000_001, 0)}))
	if s, err := followed.Await(t.Context(), id, hashOf(1), canceled); err != nil || !s.Canceled {
		t.Errorf("room was not given back: %v", err)
	}
}

// until waits until a counter has reached n.
func until(t *testing.T, counter *atomic.Int64, n int64) {
	t.Helper()
	deadline := time.After(patient)
	for counter.Load() < n {
		select {
		case <-deadline:
			t.Fatalf("%d of %d", counter.Load(), n)
		case <-time.After(time.Millisecond):
		}
	}
}

// No wake-up is lost between reading and waiting, in any interleaving of appends and waits.
// Events appended before the tail began are not missed either.
func TestNothingIsMissed(t *testing.T) {
	const transactions, waitersEach = 200, 3
	db := open(t)
	followed := tail.New(db.Log(), tx.Codec(), slog.New(slog.DiscardHandler))
	ctx, cancel := context.WithTimeout(t.Context(), patient)
	defer cancel()
	var working sync.WaitGroup
	for n := range transactions {
		for range waitersEach {
			working.Go(func() {
				if s, err := followed.Await(ctx, id, hashOf(n), canceled); err != nil {
					t.Errorf("transaction %d is %q: %v", n, s.Status, err)
				}
			})
		}
		working.Go(func() {
			err := handle(ctx, db.Log(), n, accept(n))
			if err == nil {
				err = handle(ctx, db.Log(), n, tx.Cancel{Reason: "test", At: time.Unix(1_800_000_001, 0)})
			}
			if err != nil {
				t.Error(err)
			}
		})
		if n == transactions/2 {
			start(t, followed)
		}
	}
	working.Wait()
}

// A log that cannot be read for a while delays waits and ends none.
func TestTrouble(t *testing.T) {
	db := open(t)
	failing := &troubled{Store: db.Log(), fail: make(chan struct{}), failed: make(chan struct{})}
	followed := run(t, failing)
	ctx, cancel := context.WithTimeout(t.Context(), patient)
	defer cancel()
	check(t, handle(ctx, db.Log(), 1, accept(1)))
	waits := await(ctx, followed, 1, canceled)
	close(failing.fail)
	<-failing.failed
	check(t, handle(ctx, db.Log(), 1, tx.Cancel{Reason: "test", At: time.Unix(1_800_000_001, 0)}))
	if a := <-waits; a.err != nil {
		t.Error(a.err)
	}
}

// troubled breaks its first subscription when told to.
type troubled struct {
	port.Store
	fail, failed chan struct{}
	once         sync.Once
}

func (s *troubled) Subscribe(ctx context.Context, after eventlog.Position, f eventlog.Filter, most int) iter.Seq2[eventlog.Batch, error] {
	first := false
	s.once.Do(func() { first = true })
	if !first {
		return s.Store.Subscribe(ctx, after, f, most)
	}
	return func(yield func(eventlog.Batch, error) bool) {
		select {
		case <-s.fail:
		case <-ctx.Done():
		}
		yield(eventlog.Batch{}, errors.New("connection lost"))
		close(s.failed)
	}
}
