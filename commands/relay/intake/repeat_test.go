package intake_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/tempo-watchtower/watchtower/commands/relay/intake"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/relay/intent"
	"github.com/tempo-watchtower/watchtower/eventlog"
	"github.com/tempo-watchtower/watchtower/eventlog/handler"
)

// paid is a request of a wallet, which has no key.
func paid(change ...func(*intent.Request)) intent.Request {
	return asked(append([]func(*intent.Request){func(r *intent.Request) { r.Key, r.Webhooks, r.Deadline = "", nil, 0 }}, change...)...)
}

// clock is a clock that a test sets.
type clock struct{ after atomic.Int64 }

func (c *clock) now() time.Time      { return epoch.Add(time.Duration(c.after.Load())) }
func (c *clock) set(d time.Duration) { c.after.Store(int64(d)) }

// replicas are processes on one store. They share no memory.
func replicas(t *testing.T, n int) (all []*intake.Repeats, c *clock) {
	t.Helper()
	c = new(clock)
	store := newDesk(t).Intents.Store
	for range n {
		d := newDesk(t)
		d.Intents.Store, d.Now = store, c.now
		all = append(all, &intake.Repeats{Desk: d, Window: time.Minute})
	}
	return all, c
}

// sign records a first attempt of an intent, and perhaps its end.
func sign(t *testing.T, p *intake.Repeats, s intent.State, at time.Time) {
	t.Helper()
	id := s.Requested.ID
	for _, c := range []intent.Command{
		intent.Assign{Assignment: 1, Place: intent.Place{Signer: chain.Address{1}, Nonce: uint64(id[0])<<8 | uint64(id[1])}, Token: 1, At: at},
		intent.Attempt{Assignment: 1, Kind: intent.First, Hash: chain.Keccak(id[:]), At: at},
	} {
		o, err := handler.Begin(p.Desk.Intents.Random, eventlog.Meta{Actor: "test"})
		if err == nil {
			_, err = p.Desk.Intents.Handle(t.Context(), intent.Stream(id), c, o)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// made returns the intent that answers a request.
func made(t *testing.T, p *intake.Repeats, r intent.Request) (intent.State, bool) {
	t.Helper()
	a := p.Create(t.Context(), r, eventlog.Meta{})
	if a.Err != nil {
		t.Fatal(a.Err)
	}
	return a.State, a.Known
}

// A request is the same intent within the window, on every replica and after a restart, also with
// other fees. After the window it is another intent.
func TestRepeats(t *testing.T) {
	all, c := replicas(t, 2)
	first, known := made(t, all[0], paid())
	if known {
		t.Error("the first request is known")
	}
	same := func(what string, r intent.Request) {
		t.Helper()
		for i, p := range append(all, &intake.Repeats{Desk: all[0].Desk, Window: time.Minute}) { // the last has just started
			if got, known := made(t, p, r); got.Requested.ID != first.Requested.ID || !known {
				t.Errorf("%s, replica %d: %s is not %s", what, i, got.Requested.ID, first.Requested.ID)
			}
		}
	}
	same("at once", paid())
	same("with other fees", paid(func(r *intent.Request) { r.Gas = intent.Gas{Limit: 90_000, MaxFee: intent.NewAmount(7)} }))
	c.set(time.Hour)
	same("an hour later, without a hash", paid())
	sign(t, all[0], first, c.now())
	c.set(time.Hour + time.Minute - 1)
	same("a minute after the hash", paid())
	c.set(time.Hour + time.Minute)
	second, known := made(t, all[1], paid())
	if known || second.Requested.ID == first.Requested.ID {
		t.Errorf("after the window %s is made again", second.Requested.ID)
	}
	if got, _ := made(t, all[0], paid()); got.Requested.ID != second.Requested.ID {
		t.Errorf("the newest is %s, not %s", second.Requested.ID, got.Requested.ID)
	}
	for name, r := range map[string]intent.Request{
		"another client": paid(func(r *intent.Request) { r.Client = "bank" }),
		"another pool":   paid(func(r *intent.Request) { r.Pool = "cold" }),
		"another value":  paid(func(r *intent.Request) { r.Calls[0].Value = intent.NewAmount(1) }),
		"its own key":    paid(func(r *intent.Request) { r.Key = "order-1" }),
	} {
		if got, known := made(t, all[0], r); known || got.Requested.ID == second.Requested.ID {
			t.Errorf("%s: it is the same intent", name)
		}
	}
}

// A key identifies a request by its effect: other fees make no other request, another payment is refused.
func TestRepeatsUnderAKey(t *testing.T) {
	all, _ := replicas(t, 1)
	request := paid(func(r *intent.Request) { r.Key, r.Gas.MaxFee = "order-1", intent.NewAmount(5) })
	first, _ := made(t, all[0], request)
	dearer := paid(func(r *intent.Request) { r.Key, r.Gas.MaxFee = "order-1", intent.NewAmount(6) })
	if again, known := made(t, all[0], dearer); !known || again.Requested.ID != first.Requested.ID || again.Requested.Request.Gas.MaxFee != intent.NewAmount(5) {
		t.Errorf("with another fee it is %+v", again.Requested)
	}
	other := paid(func(r *intent.Request) { r.Key, r.Calls[0].Value = "order-1", intent.NewAmount(2) })
	if a := all[0].Create(t.Context(), other, eventlog.Meta{}); !errors.Is(a.Err, intent.ErrDiffers) {
		t.Errorf("another payment under the key: %v", a.Err)
	}
}

// Replicas that are asked at once make one intent, also at the moment when the window of the one
// before ends, and although their clocks differ.
func TestRepeatsAtOnce(t *testing.T) {
	all, c := replicas(t, 4)
	for i, p := range all {
		skew := time.Duration(i-2) * 30 * time.Millisecond
		p.Desk.Now = func() time.Time { return c.now().Add(skew) }
	}
	before := map[chain.IntentID]bool{}
	for round := range 20 {
		c.set(time.Duration(round) * 61 * time.Second) // every window is over, on every clock
		ids := make([]chain.IntentID, 40)
		var asking sync.WaitGroup
		for i := range ids {
			asking.Go(func() {
				r := paid(func(r *intent.Request) { r.Gas.Limit = uint64(21_000 + i) })
				if a := all[i%len(all)].Create(t.Context(), r, eventlog.Meta{}); a.Err != nil {
					t.Error(a.Err)
				} else {
					ids[i] = a.State.Requested.ID
				}
			})
		}
		asking.Wait()
		slices.SortFunc(ids, func(a, b chain.IntentID) int { return slices.Compare(a[:], b[:]) })
		if ids = slices.Compact(ids); len(ids) != 1 || before[ids[0]] {
			t.Fatalf("round %d made %s", round, ids)
		}
		before[ids[0]] = true
		got := all[0].Desk.Get(t.Context(), "shop", ids[0])
		sign(t, all[0], got.State, c.now())
	}
}

// The memory of a replica only saves reads: a replica that has just started finds the same intent.
func TestRepeatsNeedNoMemory(t *testing.T) {
	all, c := replicas(t, 1)
	clients := 0 // each history is another client's, in one store
	rapid.Check(t, func(rt *rapid.T) {
		clients++
		request := paid(func(r *intent.Request) { r.Client = fmt.Sprint("client-", clients) })
		var last chain.IntentID
		signed, ends := false, time.Duration(0)
		at := time.Duration(0)
		for range rapid.IntRange(1, 40).Draw(rt, "requests") {
			at += rapid.SampledFrom([]time.Duration{0, time.Second, 59 * time.Second, time.Minute, time.Hour}).Draw(rt, "pause")
			c.set(at)
			p := all[0]
			if rapid.Bool().Draw(rt, "restarted") {
				p = &intake.Repeats{Desk: p.Desk, Window: p.Window}
			}
			got, known := made(t, p, request)
			same := last != chain.IntentID{} && (!signed || at < ends)
			if known != same || same != (got.Requested.ID == last) {
				rt.Fatalf("at %s: known %t, want %t", at, known, same)
			}
			if !same {
				last, signed = got.Requested.ID, false
			}
			if !signed && rapid.Bool().Draw(rt, "signed") {
				sign(t, p, got, c.now())
				signed, ends = true, at+time.Minute
			}
		}
	})
}

// A store that cannot be read makes no intent: the answer is an error, and the request is repeated.
func TestRepeatsWithoutAStore(t *testing.T) {
	all, _ := replicas(t, 1)
	first, _ := made(t, all[0], paid())
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if a := all[0].Create(ctx, paid(), eventlog.Meta{}); a.Err == nil {
		t.Error("it was answered")
	}
	if got, known := made(t, all[0], paid()); !known || got.Requested.ID != first.Requested.ID {
		t.Errorf("afterwards it is %s", got.Requested.ID)
	}
}
