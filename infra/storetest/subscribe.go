package storetest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/tempo-watchtower/watchtower/eventlog"
)

// subscription runs a subscription concurrently with the test.
type subscription struct {
	batches chan eventlog.Batch
	ended   chan error // its last error, once
	stop    context.CancelFunc
}

func subscribe(t *testing.T, s Log, after eventlog.Position, f eventlog.Filter, max int) *subscription {
	ctx, stop := context.WithCancel(context.Background())
	sub := &subscription{batches: make(chan eventlog.Batch), ended: make(chan error, 1), stop: stop}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for b, err := range s.Subscribe(ctx, after, f, max) {
			if err != nil {
				sub.ended <- err
				return
			}
			select {
			case sub.batches <- b:
			case <-ctx.Done():
			}
		}
		sub.ended <- errors.New("a subscription ended without an error")
	}()
	t.Cleanup(func() { stop(); <-done })
	return sub
}

// next returns the next batch.
func (sub *subscription) next(t *testing.T) eventlog.Batch {
	t.Helper()
	select {
	case b := <-sub.batches:
		return b
	case err := <-sub.ended:
		t.Fatal("the subscription ended:", err)
	case <-time.After(patience):
		t.Fatal("the subscription sent nothing for too long")
	}
	panic("unreachable")
}

// until reads batches until one reaches a position, and checks them.
func (sub *subscription) until(t *testing.T, after, to eventlog.Position, f eventlog.Filter, max int) (events []eventlog.Recorded) {
	t.Helper()
	for at := after; at < to; {
		b := sub.next(t)
		checkBatch(t, b, at, f, max)
		at = b.Next
		events = append(events, b.Events...)
	}
	return events
}

// end waits for the error that ends the subscription.
func (sub *subscription) end(t *testing.T) error {
	t.Helper()
	for {
		select {
		case <-sub.batches:
		case err := <-sub.ended:
			return err
		case <-time.After(patience):
			t.Fatal("the subscription did not end")
		}
	}
}

func catchUp(t *testing.T, o Opened[Log]) {
	ctx, s := soon(t), o.Port
	for i := range 25 {
		_, err := s.Append(ctx, eventlog.Stream(fmt.Sprint("old-", i)), 0, facts(2)...)
		check(t, err)
	}
	sub := subscribe(t, s, 0, eventlog.Filter{}, 7)
	at, err := s.Head(ctx)
	check(t, err)
	events := sub.until(t, 0, at, eventlog.Filter{}, 7)
	if len(events) != 50 {
		t.Fatalf("history has %d events, not 50", len(events))
	}
	for i := range 5 {
		a, err := s.Append(ctx, eventlog.Stream(fmt.Sprint("new-", i)), 0, facts(3)...)
		check(t, err)
		live := sub.until(t, at, a.Position, eventlog.Filter{}, 7)
		events, at = append(events, live...), a.Position
	}
	all, _ := everything(t, s, eventlog.Filter{}, 100)
	if diff := differ(all, events); diff != "" {
		t.Error("the subscription saw something else than stands:", diff)
	}
}

// besideWriters tests the order. Readers that start before, during and after the writes must
// each see every later position once, in any order of commits.
func besideWriters(t *testing.T, o Opened[Log]) {
	ctx, s := soon(t), o.Port
	const writers, appends, streams, readers = 16, 60, 40, 6
	half := make(chan struct{})
	var once sync.Once
	var writing, reading sync.WaitGroup
	for w := range writers {
		writing.Go(func() {
			at := map[eventlog.Stream]eventlog.Version{}
			draw := rand.New(rand.NewPCG(1, uint64(w)))
			for i := 0; i < appends; {
				name := eventlog.Stream(fmt.Sprint("s-", draw.IntN(streams)))
				a, err := s.Append(ctx, name, at[name], facts(1+draw.IntN(4))...)
				var conflict *eventlog.ConflictError
				switch {
				case err == nil:
					at[name] = a.Version
					i++
				case errors.As(err, &conflict):
					at[name] = conflict.Actual
				default:
					t.Error(err)
					return
				}
				if i == appends/2 {
					once.Do(func() { close(half) })
				}
			}
		})
	}
	seen := make([][]eventlog.Recorded, readers)
	starts := make([]eventlog.Position, readers)
	finish := make(chan eventlog.Position)
	defer func() { // also when a check above has failed: nobody logs to a test that is over
		close(finish)
		writing.Wait()
		reading.Wait()
	}()
	for r := range readers {
		if r == readers/2 {
			<-half
		}
		if r%2 == 1 {
			at, err := s.Head(ctx)
			check(t, err)
			starts[r] = at
		}
		sub := subscribe(t, s, starts[r], eventlog.Filter{}, 1+r*10)
		reading.Go(func() { seen[r] = follow(t, sub, starts[r], finish) })
	}
	writing.Wait()
	at, err := s.Head(ctx)
	check(t, err)
	for range readers {
		finish <- at
	}
	reading.Wait()

	all, _ := everything(t, s, eventlog.Filter{}, 1000)
	inOrder(t, all)
	for r, got := range seen {
		var want []eventlog.Recorded
		for _, e := range all {
			if e.Position > starts[r] {
				want = append(want, e)
			}
		}
		if diff := differ(want, got); diff != "" {
			t.Errorf("reader %d after %d saw something else than stands (%d of %d): %.2000s", r, starts[r], len(got), len(want), diff)
		}
	}
}

// follow collects events until the position that finish names, or until finish is closed.
func follow(t *testing.T, sub *subscription, at eventlog.Position, finish <-chan eventlog.Position) (events []eventlog.Recorded) {
	var end eventlog.Position
	for end == 0 || at < end {
		select {
		case b := <-sub.batches:
			if b.Next < at {
				t.Errorf("a batch went back from %d to %d", at, b.Next)
			}
			at = b.Next
			events = append(events, b.Events...)
		case err := <-sub.ended:
			t.Error("the subscription ended:", err)
			drain(finish)
			return events
		case position, open := <-finish:
			if !open {
				return events
			}
			end, finish = position, nil
		case <-time.After(patience):
			t.Errorf("a subscription stopped at %d", at)
			drain(finish)
			return events
		}
	}
	return events
}

// drain receives one value from c in the background, so that its sender does not block.
func drain(c <-chan eventlog.Position) {
	if c != nil {
		go func() { <-c }()
	}
}

func subscribeFiltered(t *testing.T, o Opened[Log]) {
	ctx, s := soon(t), o.Port
	f := eventlog.Filter{Streams: []string{"lane-"}}
	sub := subscribe(t, s, 0, f, 10)
	var last eventlog.Appended
	for i := range 50 {
		var err error
		last, err = s.Append(ctx, eventlog.Stream(fmt.Sprint("tx-", i)), 0, facts(2)...)
		check(t, err)
	}
	if got := sub.until(t, 0, last.Position, f, 10); len(got) != 0 {
		t.Fatal("the filter let through", got)
	}
	hit, err := s.Append(ctx, "lane-1", 0, facts(1)...)
	check(t, err)
	if got := sub.until(t, last.Position, hit.Position, f, 10); len(got) != 1 {
		t.Fatalf("%d events came, not the one matching event", len(got))
	}
}

// wakes makes a subscriber and a writer wait for each other in turn: a subscription that polls
// only once a second would need a second for each turn.
func wakes(t *testing.T, o Opened[Log]) {
	ctx, s := soon(t), o.Port
	sub := subscribe(t, s, 0, eventlog.Filter{}, 10)
	const rounds = 30
	start := time.Now()
	at := eventlog.Position(0)
	for i := range rounds {
		a, err := s.Append(ctx, "one", eventlog.Version(i), facts(1)...)
		check(t, err)
		sub.until(t, at, a.Position, eventlog.Filter{}, 10)
		at = a.Position
	}
	if took := time.Since(start); took > rounds*time.Second/4 {
		t.Errorf("%d appends reached the subscriber in %s", rounds, took)
	}
}

func subscriptionEnds(t *testing.T, o Opened[Log]) {
	s := o.Port
	_, err := s.Append(soon(t), "one", 0, facts(1)...)
	check(t, err)
	for _, reads := range []int{0, 1} { // before waiting at the head, and while
		sub := subscribe(t, s, 0, eventlog.Filter{}, 10)
		for range reads {
			sub.next(t)
		}
		sub.stop()
		if err := sub.end(t); !errors.Is(err, context.Canceled) {
			t.Errorf("stopped after %d batches, it ended with %v", reads, err)
		}
	}
	for _, err := range s.Subscribe(soon(t), 0, eventlog.Filter{}, 10) { // leaving is no error
		check(t, err)
		break
	}
}
