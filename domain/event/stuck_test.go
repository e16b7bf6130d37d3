package event_test

import (
	"errors"
	"testing"

	"github.com/tempo-watchtower/watchtower/domain/event"
)

// The part before a stuck event ends at an event's position.
func TestBefore(t *testing.T) {
	batch := event.Batch{Next: 900, Live: true}
	for _, at := range []event.Position{100, 250, 700} { // positions with gaps
		batch.Events = append(batch.Events, event.Recorded{Position: at})
	}
	for at, want := range map[event.Position]event.Position{100: 0, 250: 100, 700: 250, 300: 0} {
		head, ok := batch.Before(&event.Stuck{At: at, Err: errors.New("who wrote this?")})
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
