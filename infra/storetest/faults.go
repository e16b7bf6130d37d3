package storetest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tempo-watchtower/watchtower/eventlog"
)

// closing closes the store under load. Every append returns. Appends reported as stored are
// stored afterwards, and appends reported as failed are not.
func closing(t *testing.T, o Opened[Log]) {
	ctx, s := soon(t), o.Port
	sub := subscribe(t, s, 0, eventlog.Filter{}, 10)
	sub.next(t)

	const writers = 32
	var wrote atomic.Int64
	enough := make(chan struct{})
	kept := make([]map[eventlog.Stream]bool, writers) // whether the append was reported as stored
	var all sync.WaitGroup
	for w := range writers {
		kept[w] = map[eventlog.Stream]bool{}
		all.Go(func() {
			for i := 0; ; i++ {
				name := eventlog.Stream(fmt.Sprintf("s-%d-%d", w, i))
				_, err := s.Append(ctx, name, 0, facts(2)...)
				switch {
				case err == nil:
					kept[w][name] = true
					if wrote.Add(1) == 5*writers {
						close(enough)
					}
					continue
				case errors.Is(err, eventlog.ErrClosed) && !errors.Is(err, eventlog.ErrUnknown):
					kept[w][name] = false
				default:
					t.Error("an append beside Close answered", err)
				}
				return
			}
		})
	}
	<-enough
	check(t, o.Close())
	all.Wait()
	check(t, ctx.Err())
	if err := sub.end(t); !errors.Is(err, eventlog.ErrClosed) {
		t.Error("the subscription ended with", err)
	}
	if _, err := s.Append(ctx, "late", 0, facts(1)...); !errors.Is(err, eventlog.ErrClosed) {
		t.Error("an append after Close answered", err)
	}
	for _, err := range s.ReadAll(ctx, 0, eventlog.Filter{}, 1) {
		if !errors.Is(err, eventlog.ErrClosed) {
			t.Error("a read after Close answered", err)
		}
		break
	}
	check(t, o.Close())

	s = o.Reopen()
	for w := range kept {
		for name, stands := range kept[w] {
			if got := len(stream(t, s, name, 0)); (got == 2) != stands {
				t.Fatalf("%s: the append said %v, %d events stand", name, stands, got)
			}
		}
	}
}

// cutShort ends appends' contexts at every stage. The result is a success, a plain failure
// (nothing written), or ErrUnknown. Repeating the append has one effect in total.
func cutShort(t *testing.T, o Opened[Log]) {
	ctx, s := soon(t), o.Port
	const rounds, beside = 150, 4
	stands := func(name eventlog.Stream) (n int) {
		for _, err := range s.ReadStream(ctx, name, 0) {
			if err != nil {
				t.Error(err)
			}
			n++
		}
		return n
	}
	var all sync.WaitGroup
	for b := range beside {
		all.Go(func() {
			for i := range rounds {
				name := eventlog.Stream(fmt.Sprintf("s-%d-%d", b, i))
				events := facts(2)
				short, cancel := context.WithTimeout(ctx, time.Duration(i)*20*time.Microsecond)
				first, err := s.Append(short, name, 0, events...)
				cancel()
				stood := stands(name)
				switch {
				case err == nil && stood != 2:
					t.Errorf("%s: success, and %d events stand", name, stood)
				case err != nil && !errors.Is(err, eventlog.ErrUnknown) && stood != 0:
					t.Errorf("%s: %v, and %d events stand", name, err, stood)
				}
				again, err2 := s.Append(ctx, name, 0, events...)
				if err2 != nil || again.Version != 2 || err == nil && again.Position != first.Position {
					t.Errorf("%s: %+v %v, and again: %+v %v", name, first, err, again, err2)
				}
				if n := stands(name); n != 2 {
					t.Errorf("%s: %d events stand after the second try", name, n)
				}
			}
		})
	}
	all.Wait()
	dead, cancel := context.WithCancel(ctx)
	cancel()
	if _, err := s.Append(dead, "dead", 0, facts(1)...); !errors.Is(err, context.Canceled) || errors.Is(err, eventlog.ErrUnknown) {
		t.Error("an append whose context had ended answered", err)
	}
}

func reopened(t *testing.T, o Opened[Log]) {
	ctx, s := soon(t), o.Port
	events := facts(3)
	first, err := s.Append(ctx, "one", 0, events...)
	check(t, err)
	for i := range 20 {
		_, err := s.Append(ctx, eventlog.Stream(fmt.Sprint("s-", i)), 0, facts(1)...)
		check(t, err)
	}
	before, end := everything(t, s, eventlog.Filter{}, 100)

	s = o.Reopen()
	after, next := everything(t, s, eventlog.Filter{}, 100)
	if diff := cmp.Diff(before, after); diff != "" || next != end {
		t.Fatalf("reopened, the log ends at %d, not %d: %s", next, end, diff)
	}
	again, err := s.Append(ctx, "one", 0, events...)
	check(t, err)
	if !again.Repeated || again.Position != first.Position {
		t.Fatalf("the first append again: %+v, was %+v", again, first)
	}
	_, err = s.Append(ctx, "one", 2, facts(1)...)
	wantConflict(t, err, eventlog.ConflictError{Stream: "one", Expected: 2, Actual: 3})
	more, err := s.Append(ctx, "one", 3, facts(1)...)
	check(t, err)
	if more.Version != 4 || more.Position <= end {
		t.Fatalf("the next append: %+v, the log ended at %d", more, end)
	}
}
