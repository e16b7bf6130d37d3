package access

import (
	"errors"
	"testing"
	"time"
)

// TestEndSession ends a session once, and forgets it when it would have been over.
func TestEndSession(t *testing.T) {
	c := sound()
	events, err := State{}.Decide(c)
	if err != nil {
		t.Fatal(err)
	}
	s := State{}.Evolve(events[0])
	end := EndSession{ID: SessionID{1}, Key: c.ID, Until: now.Add(time.Hour), At: now}
	events, err = s.Decide(end)
	if err != nil || len(events) != 1 {
		t.Fatalf("%d events, %v", len(events), err)
	}
	s = s.Evolve(events[0])
	if _, ended := s.Ended[end.ID]; !ended {
		t.Error("it is not ended")
	}
	if again, err := s.Decide(end); err != nil || len(again) != 0 {
		t.Errorf("ended twice: %d events, %v", len(again), err)
	}
	late := EndSession{ID: SessionID{2}, Key: c.ID, Until: now.Add(3 * time.Hour), At: now.Add(2 * time.Hour)}
	events, err = s.Decide(late)
	if err != nil || len(events) != 1 {
		t.Fatalf("%d events, %v", len(events), err)
	}
	if s = s.Evolve(events[0]); len(s.Ended) != 1 {
		t.Errorf("%d ended sessions are remembered", len(s.Ended))
	}
	if _, err := s.Decide(EndSession{ID: SessionID{3}, Key: KeyID{9}, Until: now.Add(time.Hour), At: now}); !errors.Is(err, ErrUnknownKey) {
		t.Errorf("of an unknown key: %v", err)
	}
	over := EndSession{ID: SessionID{4}, Key: c.ID, Until: now, At: now}
	if events, err := s.Decide(over); err != nil || len(events) != 0 {
		t.Errorf("a session that is over: %d events, %v", len(events), err)
	}
}
