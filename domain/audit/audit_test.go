package audit

import (
	"flag"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tempo-watchtower/watchtower/eventlog"
	"github.com/tempo-watchtower/watchtower/eventlog/eventtest"
)

var update = flag.Bool("update", false, "write frozen samples that are missing")

var epoch = time.UnixMicro(1_800_000_000_000_001).UTC()

func signer(t testing.TB, n byte) Signer {
	t.Helper()
	s, err := NewSigner(append(make([]byte, 31), n))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestFrozenSamples(t *testing.T) {
	draft := State{}.After()
	draft.Add(eventlog.Recorded{Stream: "s", Version: 1, Position: 7, At: epoch})
	seal := draft.Sealed(signer(t, 1), epoch)
	seal.Since = 1 // so that no field is zero
	eventtest.Frozen(t, Codec(), []Event{signer(t, 1).Sign(seal)}, *update)
}

// history is a log of several streams with seals in between, as a store has it.
type history struct {
	events []eventlog.Recorded
	seals  []Sealed
}

func (h *history) add(t testing.TB, stream eventlog.Stream, name string, data []byte) {
	var version eventlog.Version
	var last eventlog.Link
	position := eventlog.Position(1)
	for _, r := range h.events {
		if position = r.Position + 1; r.Stream == stream {
			version, last = r.Version, r.Linked()
		}
	}
	n := len(h.events)
	r := eventlog.Recorded{
		Event:  eventlog.Event{ID: eventlog.ID{byte(n), byte(n >> 8), 1}, Name: name, Data: data, Meta: eventlog.Meta{Actor: "test"}},
		Stream: stream, Version: version + 1, Position: position + eventlog.Position(n%3), At: epoch.Add(time.Duration(n) * time.Second),
	}
	r.Meta.Link = last.Next(stream, r.Version, r.Event)
	h.events = append(h.events, r)
}

func (h *history) seal(t testing.TB) {
	t.Helper()
	state := State{}
	if n := len(h.seals); n > 0 {
		state = state.Evolve(h.seals[n-1])
	}
	draft := state.After()
	for _, r := range h.events {
		if r.Position > draft.Through() {
			draft.Add(r)
		}
	}
	decided, err := state.Decide(Seal{draft.Sealed(signer(t, 1), epoch)})
	if err != nil {
		t.Fatal(err)
	}
	name, data, err := Codec().Encode(decided[0])
	if err != nil {
		t.Fatal(err)
	}
	h.seals = append(h.seals, decided[0].(Sealed))
	h.add(t, Stream, name, data)
}

func sealed(t testing.TB) *history {
	h := &history{}
	for round := range 3 {
		for i := range 12 {
			h.add(t, eventlog.Stream(fmt.Sprint("s-", i%4)), "test.v1", fmt.Appendf(nil, `{"n":%d}`, 100*round+i))
		}
		h.seal(t)
	}
	h.add(t, "s-1", "test.v1", []byte(`{"n":1}`))
	return h
}

func queue(seals []Sealed) func() (Sealed, bool) {
	return func() (s Sealed, ok bool) {
		if ok = len(seals) > 0; ok {
			s, seals = seals[0], seals[1:]
		}
		return s, ok
	}
}

func check(events []eventlog.Recorded, seals []Sealed, kept ...Sealed) (found []Fault) {
	c := NewCheck(queue(seals), kept...)
	for _, r := range events {
		found = append(found, c.Event(r)...)
	}
	return append(found, c.End()...)
}

func TestWholeHistory(t *testing.T) {
	h := sealed(t)
	if found := check(h.events, h.seals, h.seals...); len(found) > 0 {
		t.Error(found)
	}
	// Events from before links existed are covered by seals too.
	old := &history{}
	for i := range 5 {
		old.add(t, "s", "test.v1", fmt.Appendf(nil, "%d", i))
		old.events[i].Meta.Link = eventlog.Link{}
	}
	old.seal(t)
	if found := check(old.events, old.seals); len(found) > 0 {
		t.Error(found)
	}
	old.events[2].Data = []byte("7")
	if found := check(old.events, old.seals); len(found) != 1 || found[0].Version != 3 {
		t.Error(found)
	}
}

// Every change of a sealed event is found, and the first fault is that event.
func TestOneEvent(t *testing.T) {
	type harm struct {
		name string
		do   func(events []eventlog.Recorded, i int) []eventlog.Recorded
	}
	change := func(f func(r *eventlog.Recorded)) func([]eventlog.Recorded, int) []eventlog.Recorded {
		return func(events []eventlog.Recorded, i int) []eventlog.Recorded { f(&events[i]); return events }
	}
	for _, m := range []harm{
		{"data", change(func(r *eventlog.Recorded) { r.Data = slices.Clone(r.Data); r.Data[1] ^= 1 })},
		{"name", change(func(r *eventlog.Recorded) { r.Name = "best.v1" })},
		{"id", change(func(r *eventlog.Recorded) { r.ID[3] ^= 1 })},
		{"actor", change(func(r *eventlog.Recorded) { r.Meta.Actor = "" })},
		{"correlation", change(func(r *eventlog.Recorded) { r.Meta.Correlation[0] ^= 1 })},
		{"time", change(func(r *eventlog.Recorded) { r.At = r.At.Add(time.Microsecond) })},
		{"link", change(func(r *eventlog.Recorded) { r.Meta.Link[9] ^= 1 })},
		{"no link", change(func(r *eventlog.Recorded) { r.Meta.Link = eventlog.Link{} })},
		{"version", change(func(r *eventlog.Recorded) { r.Version++ })},
		{"stream", change(func(r *eventlog.Recorded) { r.Stream += "x" })},
		{"no stream", change(func(r *eventlog.Recorded) { r.Stream = "" })},
	} {
		h := sealed(t)
		for i := range len(h.events) - 2 { // the events that a seal covers
			events := m.do(slices.Clone(h.events), i)
			found := check(events, h.seals)
			if len(found) == 0 || found[0].Position != h.events[i].Position {
				t.Errorf("%s of event %d at %d: %v", m.name, i, h.events[i].Position, found)
			}
		}
	}
}

// An event that is removed, inserted or moved is found at its place.
func TestOrder(t *testing.T) {
	h := sealed(t)
	for i := range len(h.events) - 2 {
		at := h.events[i].Position
		found := check(slices.Delete(slices.Clone(h.events), i, i+1), h.seals)
		if len(found) == 0 || !slices.ContainsFunc(found, func(f Fault) bool { return strings.Contains(f.What, "1 events are missing") }) {
			t.Errorf("event %d was taken out: %v", i, found)
		}
		// A foreign event with its own link, at an unused position.
		if i > 0 && h.events[i-1].Position+1 < at {
			r := eventlog.Recorded{Event: eventlog.Event{ID: eventlog.ID{9}, Name: "test.v1"}, Stream: "new", Version: 1, Position: at - 1, At: epoch}
			r.Meta.Link = eventlog.Link{}.Next("new", 1, r.Event)
			found = check(slices.Insert(slices.Clone(h.events), i, r), h.seals)
			if len(found) != 1 || found[0].Position != r.Position || !strings.Contains(found[0].What, "inserted") {
				t.Errorf("an event was put in at %d: %v", r.Position, found)
			}
		}
		if i+1 < len(h.events)-2 && h.events[i].Stream != h.events[i+1].Stream {
			events := slices.Clone(h.events)
			events[i], events[i+1] = events[i+1], events[i]
			events[i].Position, events[i+1].Position = events[i+1].Position, events[i].Position
			if found = check(events, h.seals); len(found) == 0 || found[0].Position != at {
				t.Errorf("events %d and %d have changed places: %v", i, i+1, found)
			}
		}
	}
	// Events of several seals are missing.
	if found := check(slices.Delete(slices.Clone(h.events), 5, 32), h.seals); len(found) == 0 || found[0].Position != h.events[4].Position+1 {
		t.Errorf("several seals' events were taken out: %v", found)
	}
	if found := check(h.events[:10], h.seals[:1]); len(found) != 1 || found[0].Position != h.events[9].Position+1 {
		t.Errorf("cut off before a seal's end: %v", found)
	}
}

// Seals stored outside reveal a truncated log, and a log that was rebuilt with its seals.
func TestKeptSeals(t *testing.T) {
	h := sealed(t)
	if found := check(h.events[:20], h.seals[:1], h.seals[2]); len(found) != 1 || !strings.Contains(found[0].What, "cut off") {
		t.Errorf("cut off: %v", found)
	}
	other := &history{}
	for len(other.events) < 40 {
		other.add(t, "s-0", "test.v1", fmt.Appendf(nil, "%d", len(other.events)*7919))
	}
	other.seal(t)
	if found := check(other.events, other.seals, h.seals[0]); len(found) != 1 {
		t.Errorf("another history: %v", found)
	}
}

func TestSignature(t *testing.T) {
	h := sealed(t)
	s := h.seals[1]
	if !s.Genuine() {
		t.Fatal("not genuine")
	}
	for name, change := range map[string]func(*Sealed){
		"since": func(s *Sealed) { s.Since++ }, "through": func(s *Sealed) { s.Through++ }, "count": func(s *Sealed) { s.Count++ },
		"hash": func(s *Sealed) { s.Hash[0]++ }, "marks": func(s *Sealed) { s.Marks = s.Marks[4:] }, "time": func(s *Sealed) { s.At = s.At.Add(time.Microsecond) },
		"key": func(s *Sealed) { s.Key = signer(t, 2).Key() }, "signature": func(s *Sealed) { s.Signature[0]++ },
	} {
		other := s
		if change(&other); other.Genuine() {
			t.Errorf("%s was altered, and the signature fits", name)
		}
		if _, err := (State{h.seals[0]}).Decide(Seal{other}); err == nil {
			t.Errorf("%s was altered, and the seal is taken", name)
		}
	}
	if text := fmt.Sprintf("%v %+v %#v %s", signer(t, 1), signer(t, 1), signer(t, 1), signer(t, 1)); strings.Contains(text, "0 0 0") || strings.Contains(text, "000000") {
		t.Errorf("the secret is shown: %s", text)
	}
	if _, err := NewSigner(nil); err == nil {
		t.Error("a signer of nothing")
	}
}
