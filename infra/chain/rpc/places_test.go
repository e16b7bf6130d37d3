package rpc

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
	"github.com/tempo-watchtower/watchtower/infra/chain/chaintest"
)

// fill takes as many places as w may have, and returns a function that frees them.
func fill(t *testing.T, p *places, of waiter) (leave func()) {
	t.Helper()
	var held []*waiter
	for now := passed(); ; {
		w := of
		if !p.take(t.Context(), &w, now) {
			return func() {
				for _, w := range held {
					p.leave(w)
				}
			}
		}
		held = append(held, &w)
	}
}

// passed is a deadline that is over.
func passed() <-chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}

func of(use purpose, client string) *waiter { return &waiter{use: use, client: client, n: 1} }

func ours() *waiter { return &waiter{use: read, n: 1} }

// Broadcasts have their own places, and our own reads have places that clients' calls cannot
// take, however many calls hold the others and for how long.
func TestPlacesOfTheirOwn(t *testing.T) {
	for _, n := range []int{2, 3, 6, 8, 64, 4096} {
		p := placesOf(n)
		for use := onBehalf; use >= broadcast; use-- {
			if n >= 6 || use == broadcast || use == onBehalf {
				fill(t, p, waiter{use: use, client: "mallory"})
				if p.held[use] == 0 {
					t.Errorf("of %d places none is left for purpose %d: %v", n, use, p.held)
				}
			}
		}
		if p.underWay() != n {
			t.Errorf("of %d places %d are held", n, p.underWay())
		}
	}
	// A purpose alone may hold all of its places. A single place goes to the first call.
	for use, want := range map[purpose]int{broadcast: 64, read: 52, trying: 42, repeat: 38, onBehalf: 32} {
		p := placesOf(64)
		if fill(t, p, *of(use, "alice")); p.underWay() != want {
			t.Errorf("purpose %d holds %d places, want %d", use, p.underWay(), want)
		}
		one := placesOf(1)
		if fill(t, one, *of(use, "alice")); one.underWay() != 1 {
			t.Errorf("purpose %d holds %d of one place", use, one.underWay())
		}
	}
}

// One client has all places while no other wants any. A second client's call goes before all of
// the first's waiting calls. Each free place goes to a later client until all hold as many.
func TestClientsTakeTurnsForPlaces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := placesOfClients(32)
		ctx, cancel := context.WithCancel(t.Context())
		got := make(chan *waiter, 1000)
		ask := func(client string, n int) {
			for range n {
				go func() {
					if w := of(onBehalf, client); p.take(ctx, w, nil) {
						got <- w
					}
				}()
			}
			synctest.Wait()
		}
		var mallory []*waiter
		ask("mallory", 500)
		for len(got) > 0 {
			mallory = append(mallory, <-got)
		}
		if len(mallory) != 32 {
			t.Fatalf("a client alone has %d places, want 32", len(mallory))
		}
		for _, client := range []string{"bob", "carol"} {
			if ask(client, 20); len(got) != 1 || (<-got).client != client {
				t.Fatalf("%s has no place while another has all: %v", client, p.clients)
			}
		}
		for _, w := range mallory[:24] {
			p.leave(w)
			synctest.Wait()
		}
		if p.clients[onBehalf]["bob"] < 10 || p.clients[onBehalf]["carol"] < 10 || p.clients[onBehalf]["mallory"] < 10 || p.underWay() > 36 {
			t.Errorf("places: %v", p.clients)
		}
		cancel()
		synctest.Wait()
		if len(p.line) != 0 {
			t.Errorf("%d wait that gave up", len(p.line))
		}
	})
}

// A client's slow calls delay no other client's call, no broadcast and none of our reads.
func TestSlowCallsKeepNobodyElseWaiting(t *testing.T) {
	g := &gateway{node: newChain(t, chaintest.Rules{}).Node("a")}
	p := open(t, func(c *Config) { c.CallTimeout = time.Minute }, serve(t, g))
	asked, over := make(chan struct{}, 100), make(chan struct{})
	g.misbehave("eth_call", func(http.ResponseWriter, *http.Request, []byte) {
		asked <- struct{}{}
		<-over
	})
	ctx, cancel := context.WithCancel(t.Context())
	for range 100 {
		p.running.Go(func() { _, _ = p.Ask(ctx, "mallory", "eth_call", nil, 1<<10, nil) })
	}
	defer close(over) // before the server closes
	defer cancel()
	for range proxied {
		<-asked
	}
	soon, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	if _, err := p.Ask(soon, "bob", "eth_blockNumber", nil, 1<<10, nil); err != nil {
		t.Errorf("another client: %v", err)
	}
	fill(t, p.endpoints[0].meter.places, waiter{use: trying}) // the same number of estimates, equally slow
	if _, err := p.Reader().Head(soon); err != nil {
		t.Errorf("our own: %v", err)
	}
	fill(t, p.endpoints[0].meter.places, waiter{use: read})
	raw, hash := plain(alice, key5, 0)
	if got := p.Send(soon, raw, hash, 0, tx.Sending{}); !slices.ContainsFunc(got, func(a tx.Answer) bool { return a.Class == tx.Taken }) {
		t.Errorf("broadcast: %+v", got)
	}
}

// Another client's call goes after one call of a client that has many waiting for an endpoint's
// rate.
func TestClientsTakeTurnsInLine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMeter("a", Budget{Rate: 5, Burst: 2}, time.Now())
		if _, err := m.take(time.Now(), &waiter{use: broadcast, n: 2}, 0); err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		for range proxied {
			go func() {
				for ctx.Err() == nil {
					if leave, err := m.enter(ctx, time.Now, *of(onBehalf, "mallory"), time.Minute); err == nil {
						leave()
					}
				}
			}()
		}
		synctest.Wait()
		for range 20 {
			asked := time.Now()
			leave, err := m.enter(t.Context(), time.Now, *of(onBehalf, "bob"), time.Second)
			if took := time.Since(asked); err != nil || took > 600*time.Millisecond {
				t.Fatalf("after %s: %v", took, err)
			}
			leave()
			time.Sleep(300 * time.Millisecond)
		}
	})
}

// No client gets more of a day's passed-on calls than it leaves for others, so some are left
// for each further client. Our own calls have a reserved share.
func TestNoClientSpendsTheDay(t *testing.T) {
	now := time.Unix(dayOf(time.Unix(1_800_000_000, 0))*86400, 0)
	m := newMeter("a", Budget{Daily: 1000}, now)
	spend := func(use purpose, client string, n int) (made int, last error) {
		for range n {
			if _, err := m.take(now, of(use, client), 0); err == nil {
				made++
			} else {
				last = err
			}
		}
		return made, last
	}
	for i, want := range []int{250, 125, 62, 31, 16} {
		got, err := spend(onBehalf, fmt.Sprint("client", i), 2000)
		if got != want {
			t.Errorf("client %d has had %d calls, want %d", i, got, want)
		}
		if spent := (*Spent)(nil); !errors.As(err, &spent) || spent.Withheld() != "endpoints.daily: a client gets no more calls than it leaves for other clients" {
			t.Errorf("refused: %v", err)
		}
	}
	undone := of(onBehalf, "undone")
	if _, err := m.take(now, undone, 0); err != nil {
		t.Error(err)
	}
	if m.giveBack(*undone); m.passed["undone"] != 0 || m.spent != 484 {
		t.Errorf("given back: %v, %d", m.passed, m.spent)
	}
	// Without names all clients are one, which may use the clients' half.
	if got, err := spend(onBehalf, "", 2000); got != 16 || err == nil {
		t.Errorf("without a name: %d, %v", got, err)
	}
	if got, _ := spend(read, "", 2000); got != 300 {
		t.Errorf("%d reads, want 300", got)
	}
	if got, _ := spend(broadcast, "", 2000); got != 200 {
		t.Errorf("%d broadcasts, want 200", got)
	}
	now = now.Add(24 * time.Hour)
	if got, _ := spend(onBehalf, "client0", 2000); got != 250 {
		t.Errorf("the next day: %d calls, want 250", got)
	}
}
