package handler_test

import (
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tempo-watchtower/watchtower/eventlog"
	"github.com/tempo-watchtower/watchtower/eventlog/handler"
	"github.com/tempo-watchtower/watchtower/infra/embedded/embeddedtest"
)

func asked(names ...string) (all []handler.Asked[admit]) {
	for _, n := range names {
		all = append(all, handler.Asked[admit]{Command: admit{n}, Meta: eventlog.Meta{Actor: n + "'s host"}})
	}
	return all
}

// Commands of several callers are appended together. Each is answered by the state after it, each
// event has its own caller's metadata, and a refused command adds nothing.
func TestEachIsAnswered(t *testing.T) {
	store := &once{Store: embeddedtest.Open(t).Log()}
	h := hosting(store)
	h.Random = rand.Reader
	var many []string
	for i := range guestMax - 1 {
		many = append(many, fmt.Sprint("guest", i))
	}
	var r handler.Result[guests]
	for len(many) > 0 { // as many as fit at a time
		next, answers, err := h.DoEachOnce(t.Context(), "party", r, asked(many...))
		if err != nil || next.Added != len(answers) || next.Added != min(eventlog.MaxAppend, len(many)) {
			t.Fatalf("version %d, %d added, %v", next.Version, next.Added, err)
		}
		r, many = next, many[len(answers):]
	}
	store.lost = false // the answer to the next append is lost too
	r, answers, err := h.DoEachOnce(t.Context(), "party", r, asked("guest7", "Ada", "Bob", "guest8"))
	if err != nil || r.Version != guestMax || r.Added != 1 {
		t.Fatalf("version %d, %d added, %v", r.Version, r.Added, err)
	}
	type seen struct {
		Guests  int
		Refused error
	}
	var got []seen
	for _, a := range answers {
		got = append(got, seen{len(a.State.names), a.Refused})
	}
	want := []seen{{guestMax - 1, nil}, {guestMax, nil}, {guestMax, errFull}, {guestMax, nil}}
	if d := cmp.Diff(want, got, cmp.Comparer(func(a, b error) bool { return errors.Is(a, b) })); d != "" {
		t.Error(d)
	}
	var actors []string
	for e, err := range store.ReadStream(t.Context(), "party", 0) {
		if err != nil {
			t.Fatal(err)
		}
		actors = append(actors, e.Meta.Actor)
	}
	slices.Sort(actors)
	if !slices.Contains(actors, "Ada's host") || len(slices.Compact(actors)) != guestMax {
		t.Errorf("%d actors", len(actors))
	}
	// The link of the last event is right, also after a lost answer.
	if r, err = h.HandleFrom(t.Context(), "party", r, admit{"Ada"}, begin(t)); err != nil || r.Added != 0 {
		t.Error(r.Added, err)
	}
	loaded, err := h.Load(t.Context(), "party")
	if err != nil || !r.Link.IsZero() && r.Link != loaded.Link {
		t.Errorf("link %v, want %v, %v", r.Link, loaded.Link, err)
	}
}

// After a conflict no command has an answer.
func TestEachAfterAConflict(t *testing.T) {
	h := hosting(embeddedtest.Open(t).Log())
	h.Random = rand.Reader
	if _, err := h.Handle(t.Context(), "party", admit{"Ada"}, begin(t)); err != nil {
		t.Fatal(err)
	}
	_, answers, err := h.DoEachOnce(t.Context(), "party", handler.Result[guests]{}, asked("Bob", "Eve"))
	var conflict *eventlog.ConflictError
	if !errors.As(err, &conflict) || answers != nil {
		t.Errorf("%v, %v", answers, err)
	}
}
