package commands

import (
	"context"
	"errors"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// caller is a caller that waits for a place, or has one.
type caller struct {
	of string
	w  *placeWaiter
}

func (c caller) placed() bool {
	select {
	case <-c.w.moved:
		return true
	default:
		return false
	}
}

// placesModel are places with all their callers, oldest first.
type placesModel struct {
	*Places[string]
	all     int
	callers []caller
}

// of counts a client's callers that have a place, and returns the numbers of the others.
func (m *placesModel) of(client string) (held int, waiting []uint64) {
	for _, c := range m.callers {
		switch {
		case c.of != client:
		case c.placed():
			held++
		default:
			waiting = append(waiting, c.w.number)
		}
	}
	return held, waiting
}

// check compares the places with their callers: no place is free for a caller that waits.
func (m *placesModel) check(t *rapid.T, clients []string) {
	all := 0
	for _, client := range clients {
		held, waiting := m.of(client)
		if all += held; held > m.share {
			t.Fatalf("%s has %d places of %d", client, held, m.share)
		}
		if len(waiting) > 0 && held < m.share && m.free > 0 {
			t.Fatalf("%s waits, and %d places are free", client, m.free)
		}
		if m.line > 0 && len(waiting) > m.line {
			t.Fatalf("%d callers of %s wait, of %d at most", len(waiting), client, m.line)
		}
		if (held+len(waiting) == 0) != (m.clients[client] == nil) {
			t.Fatalf("%s is remembered: %v, with %d places and %d callers that wait", client, m.clients[client] != nil, held, len(waiting))
		}
	}
	if all+m.free != m.all {
		t.Fatalf("%d places are taken and %d free, of %d", all, m.free, m.all)
	}
}

// next is the caller whose turn it is: of the client with the fewest places, and the oldest of
// these; nil if none may have a place.
func (m *placesModel) next(clients []string) (next *placeWaiter) {
	fewest, oldest := m.share, uint64(0)
	for _, client := range clients {
		held, waiting := m.of(client)
		if len(waiting) > 0 && held < m.share && (held < fewest || held == fewest && waiting[0] < oldest) {
			fewest, oldest = held, waiting[0]
		}
	}
	for _, c := range m.callers {
		if c.w.number == oldest {
			next = c.w
		}
	}
	return next
}

// Each free place goes to the waiting client with the fewest places, and no client has more than
// its share. A caller that no longer waits, or leaves, holds nothing.
func TestPlaces(t *testing.T) {
	clients := []string{"a", "b", "c"}
	rapid.Check(t, func(t *rapid.T) {
		all := rapid.IntRange(1, 6).Draw(t, "all")
		m := &placesModel{all: all, Places: NewPlaces[string](all, rapid.IntRange(1, all).Draw(t, "share"), rapid.IntRange(0, 3).Draw(t, "line"))}
		enter := func(t *rapid.T) {
			client := rapid.SampledFrom(clients).Draw(t, "client")
			_, waiting := m.of(client)
			w, err := m.wait(client)
			if full := m.line > 0 && len(waiting) >= m.line; full != errors.Is(err, ErrTooManyWait) {
				t.Fatalf("%d callers of %s wait: %v", len(waiting), client, err)
			}
			if err == nil {
				m.callers = append(m.callers, caller{client, w})
			}
		}
		leave := func(t *rapid.T) {
			if len(m.callers) == 0 {
				return
			}
			at := rapid.IntRange(0, len(m.callers)-1).Draw(t, "caller")
			c := m.callers[at]
			frees := c.placed()
			m.callers = slices.Delete(m.callers, at, at+1)
			var next *placeWaiter
			if frees {
				next = m.next(clients)
			}
			m.abandon(c.of, c.w)
			if next != nil && !(caller{w: next}).placed() {
				t.Fatalf("the place went to another caller than number %d", next.number)
			}
		}
		t.Repeat(map[string]func(*rapid.T){"enter": enter, "leave": leave, "": func(t *rapid.T) { m.check(t, clients) }})
	})
}

// A caller whose context ends gets no place, and takes none from others.
func TestPlacesOfEndedContexts(t *testing.T) {
	p := NewPlaces[string](1, 1, 0)
	leave, err := p.Enter(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	ended, end := context.WithCancel(t.Context())
	end()
	if _, err := p.Enter(ended, "b"); !errors.Is(err, context.Canceled) {
		t.Errorf("with an ended context: %v", err)
	}
	leave()
	leave()
	again, err := p.Enter(t.Context(), "c")
	if err != nil {
		t.Fatal(err)
	}
	again()
	if p.free != 1 || len(p.clients) != 0 {
		t.Errorf("%d places are free, %d clients remembered", p.free, len(p.clients))
	}
}
