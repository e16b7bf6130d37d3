package handler_test

import (
	"fmt"
	"testing"

	"github.com/tempo-watchtower/watchtower/eventlog"
	"github.com/tempo-watchtower/watchtower/eventlog/handler"
	"github.com/tempo-watchtower/watchtower/eventlog/port"
	"github.com/tempo-watchtower/watchtower/infra/embedded/embeddedtest"
)

// checkLinks recomputes the links of a stream.
func checkLinks(t *testing.T, store port.Store, stream eventlog.Stream, unlinked eventlog.Version) {
	t.Helper()
	var last eventlog.Link
	for r, err := range store.ReadStream(t.Context(), stream, 0) {
		if err != nil {
			t.Fatal(err)
		}
		if want := last.Next(stream, r.Version, r.Event); r.Version > unlinked && r.Meta.Link != want {
			t.Errorf("version %d has the link %s, want %s", r.Version, r.Meta.Link, want)
		}
		last = r.Linked()
	}
}

// Every event is linked to the one before it, whether or not the appender has read the
// stream, and also when the answer was lost.
func TestLinks(t *testing.T) {
	t.Run("one after the other", func(t *testing.T) {
		h := hosting(embeddedtest.Open(t).Log())
		r := handler.Result[guests]{}
		for i := range 4 {
			var err error
			if r, err = h.HandleFrom(t.Context(), "party", r, admit{fmt.Sprint(i)}, begin(t)); err != nil {
				t.Fatal(err)
			}
		}
		loaded, err := h.Load(t.Context(), "party")
		if err != nil || loaded.Link != r.Link || r.Link.IsZero() {
			t.Errorf("the link is %s, was to be %s: %v", loaded.Link, r.Link, err)
		}
		checkLinks(t, h.Store, "party", 0)
	})
	t.Run("a link that is not known", func(t *testing.T) {
		h := hosting(embeddedtest.Open(t).Log())
		r := handler.Result[guests]{}
		for i := range 4 {
			var err error
			if r, err = h.HandleFrom(t.Context(), "party", r, admit{fmt.Sprint(i)}, begin(t)); err != nil {
				t.Fatal(err)
			}
			r.Link = eventlog.Link{}
		}
		checkLinks(t, h.Store, "party", 0)
	})
	t.Run("events without links", func(t *testing.T) {
		h := hosting(embeddedtest.Open(t).Log())
		for i := range 2 {
			old := eventlog.Event{ID: eventlog.ID{byte(i + 1)}, Name: "came.v1", Data: fmt.Appendf(nil, `{"Name":"old %d"}`, i)}
			if _, err := h.Store.Append(t.Context(), "party", eventlog.Version(i), old); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := h.Handle(t.Context(), "party", admit{"new"}, begin(t)); err != nil {
			t.Fatal(err)
		}
		checkLinks(t, h.Store, "party", 2)
	})
}

// A process dies after its append, and another process repeats the command and loses its
// first answer. The stored event has another origin than the second append, and the next
// event is linked to the stored event.
func TestLinkAfterLostAnswer(t *testing.T) {
	store := embeddedtest.Open(t).Log()
	o := begin(t)
	if _, err := hosting(store).Handle(t.Context(), "party", admit{"Ada"}, o); err != nil {
		t.Fatal(err)
	}
	again := handler.Origin{ID: o.ID, Meta: eventlog.Meta{Actor: "test", Trace: "another"}}
	h := hosting(&once{Store: store})
	r, err := h.HandleFrom(t.Context(), "party", handler.Result[guests]{}, admit{"Ada"}, again)
	if err != nil || r.Version != 1 {
		t.Fatalf("%+v, %v", r, err)
	}
	if _, err := h.HandleFrom(t.Context(), "party", r, admit{"Bob"}, begin(t)); err != nil {
		t.Fatal(err)
	}
	checkLinks(t, store, "party", 0)
}
