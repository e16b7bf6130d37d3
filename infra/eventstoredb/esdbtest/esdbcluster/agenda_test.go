package esdbcluster_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/tempo-watchtower/watchtower/infra/eventstoredb/esdbtest/esdbcluster"
)

// agenda is a clock that moves only in run.
type agenda struct {
	now    time.Time
	count  int
	coming []*coming
}

type coming struct {
	at    time.Time
	order int
	f     func() // nil: cancelled
}

func newAgenda() *agenda { return &agenda{now: time.Unix(1_700_000_000, 0)} }

func (a *agenda) after(d time.Duration, f func()) (cancel func()) {
	a.count++
	c := &coming{at: a.now.Add(d), order: a.count, f: f}
	a.coming = append(a.coming, c)
	return func() { c.f = nil }
}

// run lets a time pass.
func (a *agenda) run(d time.Duration) {
	until := a.now.Add(d)
	for {
		slices.SortFunc(a.coming, func(x, y *coming) int {
			if c := x.at.Compare(y.at); c != 0 {
				return c
			}
			return x.order - y.order
		})
		if len(a.coming) == 0 || a.coming[0].at.After(until) {
			a.now = until
			return
		}
		next := a.coming[0]
		a.coming = a.coming[1:]
		if a.now = next.at; next.f != nil {
			next.f()
		}
	}
}

// begun returns a cluster on an agenda of its own.
func begun(s esdbcluster.Settings, seed uint64) (*esdbcluster.Cluster, *agenda) {
	a := newAgenda()
	s.Now, s.After = func() time.Time { return a.now }, a.after
	s.Rand = rand.New(rand.NewPCG(seed, seed))
	return esdbcluster.New(s), a
}

// at is the expectation of a stream with a number of events.
func at(events int) esdbcluster.Expectation {
	if events == 0 {
		return esdbcluster.Expectation{Kind: esdbcluster.ExpectNoStream}
	}
	return esdbcluster.Expectation{Revision: uint64(events - 1)}
}

// event returns an event with the id n.
func event(n int) []esdbcluster.Proposal {
	return []esdbcluster.Proposal{{ID: [16]byte{byte(n >> 8), byte(n), 1}, Kind: "happened", Content: "application/json", Data: []byte("{}")}}
}

// outcome returns the outcome of an append as text: "pending", the revision, or the error.
func outcome(p *esdbcluster.Pending) string {
	select {
	case <-p.Done():
	default:
		return "pending"
	}
	last, err := p.Outcome()
	if err != nil {
		return err.Error()
	}
	return fmt.Sprint(last.Revision)
}

// wants checks an append's outcome.
func wants(t *testing.T, what string, p *esdbcluster.Pending, want string) {
	t.Helper()
	if got := outcome(p); got != want {
		t.Errorf("%s: %s, want %s", what, got, want)
	}
}

// length returns the number of events of a stream that a node shows, -1 if it refuses.
func length(c *esdbcluster.Cluster, node int, stream string) int {
	v, err := c.View(node, false)
	if err != nil {
		return -1
	}
	return len(v.Stream(stream))
}
