package guard_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tempo-watchtower/watchtower/commands/relay/guard"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/relay/rate"
	"github.com/tempo-watchtower/watchtower/domain/relay/safeguard"
)

// Rates count for all clients together, for each client, and for each subject; refused
// requests cost nothing.
func TestRates(t *testing.T) {
	w := newWorld(t)
	g := w.replica()
	rate := func(kind safeguard.ScopeKind, client string, perSecond, burst int) {
		w.flip(g, safeguard.SetRate{Scope: safeguard.Scope{Kind: kind, Client: client}, Rate: &safeguard.Rate{PerSecond: perSecond, Burst: burst}, Actor: "ada", Reason: "as agreed", At: w.now()})
	}
	rate(safeguard.Deployment, "", 10, 8)
	rate(safeguard.EachClient, "", 1, 5)
	rate(safeguard.OfClient, "bob", 1, 2)
	rate(safeguard.EachSubject, "", 1, 3)
	taken := func(client, subject string) (n int) {
		for range 20 {
			r := request(1)
			r.Client, r.Subject = client, subject
			err := g.Accept(t.Context(), r)
			if err == nil {
				n++
				continue
			}
			var later *guard.Later
			if !errors.Is(err, guard.ErrRate) || !errors.As(err, &later) || later.Wait <= 0 || later.Wait > time.Second || later.Rate.Burst > 8 {
				t.Fatalf("%v, %+v", err, later)
			}
		}
		return n
	}
	got := []int{taken("ann", "x"), taken("ann", ""), taken("bob", ""), taken("cy", "")}
	if diff := cmp.Diff([]int{3, 2, 2, 1}, got); diff != "" {
		t.Error(diff)
	}
	w.pass(2 * time.Second)
	got = []int{taken("ann", "x"), taken("bob", ""), taken("cy", "")}
	if diff := cmp.Diff([]int{2, 2, 4}, got); diff != "" {
		t.Error(diff)
	}
}

// together are the buckets of all replicas, by a clock of their own.
type together struct {
	away error
	left map[chain.Hash]int
}

func (b *together) Take(_ context.Context, of []rate.Bucket) (waits []time.Duration, err error) {
	for i, one := range of {
		if left, known := b.left[one.ID]; known && left == 0 && b.away == nil {
			waits = make([]time.Duration, len(of))
			waits[i] = 7 * time.Second
		}
	}
	for _, one := range of {
		if _, known := b.left[one.ID]; !known {
			b.left[one.ID] = int(one.Window / one.Interval)
		}
		if waits == nil {
			b.left[one.ID]--
		}
	}
	return waits, b.away
}

// Replicas that count together let no more through than one would. A request refused by the
// shared buckets costs a replica nothing. While the buckets are unreachable each counts
// alone.
func TestRatesTogether(t *testing.T) {
	w := newWorld(t)
	shared := &together{left: map[chain.Hash]int{}}
	count := func(c *guard.Config) { c.Buckets = shared }
	one, other := w.replica(count), w.replica(count)
	w.flip(one, safeguard.SetRate{Scope: safeguard.Scope{Kind: safeguard.EachClient}, Rate: &safeguard.Rate{PerSecond: 1, Burst: 5}, Actor: "ada", Reason: "as agreed", At: w.now()})
	taken := func(g *guard.Guard, most int) (n int) {
		for range most {
			err := g.Accept(t.Context(), request(1))
			var later *guard.Later
			switch {
			case err == nil:
				n++
			case !errors.As(err, &later) || !errors.Is(err, guard.ErrRate) || later.Wait <= 0 || shared.away == nil && n < 5 && later.Wait != 7*time.Second:
				t.Fatalf("%v %+v", err, later)
			}
		}
		return n
	}
	if got := []int{taken(one, 3), taken(other, 9)}; got[0] != 3 || got[1] != 2 {
		t.Errorf("%d are let through, not 3 and 2", got)
	}
	shared.away = errors.New("out of reach")
	if got := taken(other, 9); got != 3 {
		t.Errorf("by itself it lets %d more through, not 3", got)
	}
}

// A lowered rate, or a clock that is set back, locks nobody out.
func TestRatesDoNotLockOut(t *testing.T) {
	w := newWorld(t)
	g := w.replica()
	rate := func(burst int) {
		w.flip(g, safeguard.SetRate{Scope: safeguard.Scope{Kind: safeguard.Deployment}, Rate: &safeguard.Rate{PerSecond: 1, Burst: burst}, Actor: "ada", Reason: "as agreed", At: w.now()})
	}
	rate(1000)
	for range 1000 {
		must(t, g.Accept(t.Context(), request(1)))
	}
	for name, change := range map[string]func(){"a lower rate": func() { rate(2) }, "a clock that was set back": func() { w.pass(-time.Hour) }} {
		change()
		if err := g.Accept(t.Context(), request(1)); !errors.Is(err, guard.ErrRate) {
			t.Errorf("%s: %v", name, err)
		}
		w.pass(time.Second)
		if err := g.Accept(t.Context(), request(1)); err != nil {
			t.Errorf("%s, a second later: %v", name, err)
		}
	}
}
