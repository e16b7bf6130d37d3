package eventlog_test

import (
	"errors"
	"testing"

	"github.com/tempo-watchtower/watchtower/eventlog"
)

// The part before a stuck event ends at an event's position.
func TestBefore(t *testing.T) {
	batch := eventlog.Batch{Next: 900, Live: true}
	for _, at := range []eventlog.Position{100, 250, 700} { // positions with gaps
		batch.Events = append(batch.Events, eventlog.Recorded{Position: at})
	}
	for at, want := range map[eventlog.Position]eventlog.Position{100: 0, 250: 100, 700: 250, 300: 0} {
		head, ok := batch.Before(&eventlog.Stuck{At: at, Err: errors.New("who wrote this?")})
		if head.Next != want || ok != (want > 0) || head.Live {
			t.Errorf("before %d: up to %d, %v", at, head.Next, ok)
		}
		if n := len(head.Events); ok && head.Events[n-1].Position != want {
			t.Errorf("before %d: %d events", at, n)
		}
	}
	if _, ok := batch.Before(errors.New("about no event")); ok {
		t.Error("there is something before no event")
	}
}
