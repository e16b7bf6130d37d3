package handler_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"iter"
	mathrand "math/rand/v2"
	"slices"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"github.com/tempo-watchtower/watchtower/eventlog"
	"github.com/tempo-watchtower/watchtower/eventlog/handler"
	"github.com/tempo-watchtower/watchtower/eventlog/port"
	"github.com/tempo-watchtower/watchtower/infra/embedded/embeddedtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// guests is the smallest aggregate: a list of names, each there once.
type guests struct{ names []string }

type came struct{ Name string }
type admit struct{ name string }

const (
	errFull  = eventlog.Refusal("full")
	guestMax = 200
)

func (g guests) Decide(a admit) ([]came, error) {
	switch {
	case slices.Contains(g.names, a.name):
		return nil, nil
	case len(g.names) == guestMax:
		return nil, errFull
	}
	return []came{{a.name}}, nil
}

func (g guests) Evolve(c came) guests { return guests{append(slices.Clip(g.names), c.Name)} }

// lossy wraps a real store and loses answers: one append in three never reaches the store,
// and one in three loses its answer.
type lossy struct {
	port.Store
	mu   sync.Mutex
	dice *mathrand.Rand
}

func (l *lossy) Append(ctx context.Context, s eventlog.Stream, v eventlog.Version, events ...eventlog.Event) (eventlog.Appended, error) {
	l.mu.Lock()
	die := l.dice.IntN(3)
	l.mu.Unlock()
	if die == 0 {
		return eventlog.Appended{}, fmt.Errorf("and not persisted: %w", eventlog.ErrUnknown)
	}
	appended, err := l.Store.Append(ctx, s, v, events...)
	if err == nil && die == 1 {
		return eventlog.Appended{}, fmt.Errorf("but persisted: %w", eventlog.ErrUnknown)
	}
	return appended, err
}

func hosting(store port.Store) handler.Handler[guests, admit, came] {
	return handler.Handler[guests, admit, came]{Store: store, Codec: eventlog.NewCodec(eventlog.As[came, came]("came.v1"))}
}

func begin(t *testing.T) handler.Origin {
	t.Helper()
	o, err := handler.Begin(rand.Reader, eventlog.Meta{Actor: "test"})
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// With lost answers and concurrent commands, each guest arrives once, and a client without
// an answer may retry.
func TestEachWishCountsOnce(t *testing.T) {
	const seed = 7
	h := hosting(&lossy{Store: embeddedtest.Open(t).Log(), dice: mathrand.New(mathrand.NewPCG(seed, seed))})
	var coming sync.WaitGroup
	for g := range 8 {
		coming.Go(func() {
			for i := range 20 {
				wish := admit{fmt.Sprint(g, "-", i)}
				_, err := h.Handle(context.Background(), "party", wish, begin(t))
				for errors.Is(err, eventlog.ErrUnknown) {
					_, err = h.Handle(context.Background(), "party", wish, begin(t))
				}
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	coming.Wait()
	r, err := h.Load(context.Background(), "party")
	if err != nil || len(r.State.names) != 160 || r.Version != 160 {
		t.Errorf("%d guests in %d events, %v; want 160", len(r.State.names), r.Version, err)
	}
	names := slices.Sorted(slices.Values(r.State.names))
	if n := len(slices.Compact(names)); n != 160 {
		t.Errorf("%d different guests, want 160", n)
	}
}

// once is a store that loses the answer to its first append, which was written.
type once struct {
	port.Store
	lost bool
}

func (o *once) Append(ctx context.Context, s eventlog.Stream, v eventlog.Version, events ...eventlog.Event) (eventlog.Appended, error) {
	appended, err := o.Store.Append(ctx, s, v, events...)
	if err == nil && !o.lost {
		o.lost = true
		return eventlog.Appended{}, fmt.Errorf("but persisted: %w", eventlog.ErrUnknown)
	}
	return appended, err
}

// A command whose answer was lost has appended all the same: the result says so, and Told
// is called. A repeated command has appended nothing.
func TestLostAnswerIsNoRepetition(t *testing.T) {
	h := hosting(&once{Store: embeddedtest.Open(t).Log()})
	var told []string
	h.Told = func(f handler.Told[guests, came]) { told = append(told, f.Facts[0].Name) }
	o := begin(t)
	r, err := h.Handle(t.Context(), "party", admit{"Ada"}, o)
	if err != nil || r.Added != 1 || r.Version != 1 || len(told) != 1 {
		t.Errorf("its answer was lost: %+v, %v; told of %v", r, err, told)
	}
	r, err = h.HandleFrom(t.Context(), "party", handler.Result[guests]{}, admit{"Ada"}, o)
	if err != nil || r.Added != 0 || r.Version != 1 || len(told) != 1 {
		t.Errorf("carried out again: %+v, %v; told of %v", r, err, told)
	}
}

func TestRefusalComesBackWithTheState(t *testing.T) {
	h := hosting(embeddedtest.Open(t).Log())
	for i := range guestMax {
		if _, err := h.Handle(context.Background(), "party", admit{fmt.Sprint(i)}, begin(t)); err != nil {
			t.Fatal(err)
		}
	}
	r, err := h.Handle(context.Background(), "party", admit{"one more"}, begin(t))
	if !errors.Is(err, errFull) || len(r.State.names) != guestMax || r.Added != 0 {
		t.Errorf("%d guests, %d added, %v", len(r.State.names), r.Added, err)
	}
	r, err = h.Handle(context.Background(), "party", admit{"0"}, begin(t))
	if err != nil || r.Added != 0 {
		t.Errorf("nothing to add: %d, %v", r.Added, err)
	}
}

// Expecting a version that is out of date costs one more read.
func TestWrongExpectation(t *testing.T) {
	h := hosting(embeddedtest.Open(t).Log())
	for i := range 3 {
		r, err := h.HandleFrom(context.Background(), "party", handler.Result[guests]{}, admit{fmt.Sprint(i)}, begin(t))
		if err != nil || len(r.State.names) != i+1 || r.Added != 1 {
			t.Fatalf("%+v, %v", r, err)
		}
	}
}

// An unknown event stops the fold.
func TestUnknownEventStops(t *testing.T) {
	db := embeddedtest.Open(t)
	_, err := db.Log().Append(context.Background(), "party", 0, eventlog.Event{ID: eventlog.ID{1}, Name: "strange.v9", Data: []byte(`{}`)})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := hosting(db.Log()).Handle(context.Background(), "party", admit{"a"}, begin(t)); err == nil {
		t.Error("decided without knowing what has happened")
	}
}

// away is a store that cannot be reached.
type away struct{ port.Store }

func (away) ReadStream(context.Context, eventlog.Stream, eventlog.Version) iter.Seq2[eventlog.Recorded, error] {
	return func(yield func(eventlog.Recorded, error) bool) { yield(eventlog.Recorded{}, errors.New("away")) }
}

func TestBadLuckIsNoRefusal(t *testing.T) {
	_, err := hosting(away{}).Handle(context.Background(), "party", admit{"a"}, begin(t))
	if err == nil || refused(err) {
		t.Error(err)
	}
}

// refused reports whether an error is a refusal.
func refused(err error) bool {
	var refusal eventlog.Refusal
	return errors.As(err, &refusal)
}
