package worker

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/relay/intent"
	"github.com/tempo-watchtower/watchtower/eventlog"
)

// slowQueue is a queue whose calls last until the test ends them.
type slowQueue struct {
	Queue
	begun []string                 // calls, in the order in which they reached the queue
	ends  map[string]chan struct{} // of calls under way
}

func (q *slowQueue) call(name string) {
	q.begun, q.ends[name] = append(q.begun, name), make(chan struct{})
	<-q.ends[name]
}

func (q *slowQueue) Claim(_ context.Context, c intent.Claim) ([]intent.Claimed, error) {
	q.call(c.Holder)
	return nil, nil
}

func (q *slowQueue) Apply(context.Context, string, eventlog.Position, eventlog.Position, []intent.Change) error {
	q.call("apply")
	return nil
}

func (q *slowQueue) Return(_ context.Context, holder string, _ []chain.IntentID) error {
	q.call("return " + holder)
	return nil
}

// end ends a call, and waits until the next ones have reached the queue.
func (q *slowQueue) end(t *testing.T, name string) {
	t.Helper()
	end := q.ends[name]
	if end == nil {
		t.Fatalf("%s has not reached the queue: %q", name, q.begun)
	}
	delete(q.ends, name)
	close(end)
	synctest.Wait()
}

// inLine runs a test with a queue and a line before it, on one processor at a time, and ends the calls
// that are under way at the end.
func inLine(t *testing.T, test func(t *testing.T, q *slowQueue, l *Line)) {
	synctest.Test(t, func(t *testing.T) {
		q := &slowQueue{ends: map[string]chan struct{}{}}
		l := InLine(q)
		test(t, q, l)
		for len(q.ends) > 0 {
			for name := range q.ends {
				q.end(t, name)
				break
			}
		}
		if l.running != 0 || l.asked != 0 || !l.asking.Empty() {
			t.Errorf("%d calls are under way at the end, %d of OnlyAsked lanes; none waits: %t", l.running, l.asked, l.asking.Empty())
		}
	})
}

// asks claims for OnlyAsked lanes of a client; each call waits before the next.
func (l *Line) asks(client string, n int) {
	for i := range n {
		go func() {
			_, _ = l.Claim(context.Background(), intent.Claim{Holder: fmt.Sprint(client, i), Client: client, OnlyAsked: true})
		}()
		synctest.Wait()
	}
}

// shares claims for lanes that all clients share.
func (l *Line) shares(n int) {
	for i := range n {
		go func() {
			_, _ = l.Claim(context.Background(), intent.Claim{Holder: fmt.Sprint("shared", i)})
		}()
		synctest.Wait()
	}
}

// Ann has hundreds of lanes of nonce keys of her own, and all of them claim at once. One claim of them
// is under way at a time. The feeder and a lane that all clients share go on beside it and before the
// next one.
func TestLanesOfOneClientWaitInLine(t *testing.T) {
	inLine(t, func(t *testing.T, q *slowQueue, l *Line) {
		l.asks("ann", 300)
		if diff := cmp.Diff([]string{"ann0"}, q.begun); diff != "" {
			t.Fatal("reached the queue:", diff)
		}
		l.shares(2)
		go func() { _ = l.Apply(context.Background(), Reader, 0, 1, nil) }()
		synctest.Wait()
		go func() { _ = l.Return(context.Background(), "ann", nil) }()
		synctest.Wait()
		q.end(t, "ann0")
		q.end(t, "shared0")
		if diff := cmp.Diff([]string{"ann0", "shared0", "apply", "return ann"}, q.begun); diff != "" {
			t.Error("reached the queue:", diff)
		}
		q.end(t, "apply")
		if got := q.begun[len(q.begun)-1]; got != "ann1" { // the fourth turn
			t.Errorf("%s goes next", got)
		}
		q.end(t, "return ann")
		if got := q.begun[len(q.begun)-1]; got != "shared1" {
			t.Errorf("%s goes next", got)
		}
	})
}

// Bob asks for one lane after ann has asked for many: his has the next turn.
func TestClientsOfLanesTakeTurns(t *testing.T) {
	inLine(t, func(t *testing.T, q *slowQueue, l *Line) {
		l.asks("ann", 20)
		l.asks("bob", 2)
		for _, name := range []string{"ann0", "bob0", "ann1", "bob1", "ann2"} {
			q.end(t, name)
		}
	})
}

// Lanes that all clients share claim without end. The lanes that a client asked for have every fourth
// turn.
func TestAskedLanesHaveTurns(t *testing.T) {
	inLine(t, func(t *testing.T, q *slowQueue, l *Line) {
		l.shares(40)
		l.asks("ann", 20)
		for range 30 {
			q.end(t, slices.MinFunc(slices.Collect(func(yield func(string) bool) {
				for name := range q.ends {
					if !yield(name) {
						return
					}
				}
			}), func(a, b string) int { return slices.Index(q.begun, a) - slices.Index(q.begun, b) }))
		}
		asked := 0
		for _, name := range q.begun {
			if name[:3] == "ann" {
				asked++
			}
		}
		if asked < 7 || asked > 8 {
			t.Errorf("of %d turns they had %d", len(q.begun), asked)
		}
	})
}

// A call that is given up while it waits takes no turn.
func TestGivenUpInLine(t *testing.T) {
	inLine(t, func(t *testing.T, q *slowQueue, l *Line) {
		l.shares(2)
		ctx, giveUp := context.WithCancel(context.Background())
		errs := make(chan error, 2)
		for _, c := range []intent.Claim{{Holder: "shared"}, {Holder: "asked", OnlyAsked: true, Client: "ann"}} {
			go func() {
				_, err := l.Claim(ctx, c)
				errs <- err
			}()
			synctest.Wait()
		}
		giveUp()
		for range 2 {
			if err := <-errs; !errors.Is(err, context.Canceled) {
				t.Errorf("it returns %v", err)
			}
		}
		synctest.Wait()
		l.asks("ann", 1)
		q.end(t, "shared0")
		if diff := cmp.Diff([]string{"shared0", "shared1", "ann0"}, q.begun); diff != "" {
			t.Error("reached the queue:", diff)
		}
	})
}
