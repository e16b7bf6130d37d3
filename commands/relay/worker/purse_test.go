package worker

import (
	"testing"
	"time"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/relay/intent"
	"github.com/tempo-watchtower/watchtower/domain/relay/signer"
)

func most16(r *intent.Request) { r.Gas.Limit = 1 << 24 }

func moving(value uint64) func(*intent.Request) {
	return func(r *intent.Request) { r.Calls[0].Value = chain.NewAmount(value) }
}

// Ann has four intents in flight whose gas limits cost nearly the whole balance, and
// requests another with each block, which includes one. Bob's intent moves a value that
// costs more than one of hers. It gets a nonce as soon as two of hers have made room.
func TestReservesLeaveRoom(t *testing.T) {
	w := newWorld(t)
	a := w.worker()
	for n := range 4 {
		w.ask(w.request(100+n, by("ann"), most16))
	}
	one := func(s chain.Signed) fate {
		if s.Nonce == w.chain.Nonce(w.lane) {
			return mined
		}
		return ignored
	}
	began := w.clock.now()
	var his []chain.IntentID
	for n := 0; len(his) == 0 || w.intent(his[0]).Place == nil; n++ {
		if n == 30 {
			t.Fatal("bob's has no nonce")
		}
		w.ask(w.request(200+n, by("ann"), most16))
		if w.has(a, 70_000_000_000); n == 5 {
			his = w.ask(w.request(1, by("bob"), moving(20_000_000_000)))
			began = w.clock.now()
		}
		w.goOnAs(a, 1, one)
	}
	if took := w.clock.now().Sub(began); took > 2*w.settings.Claim {
		t.Errorf("bob's has a nonce after %s", took)
	}
}

// Ordinary intents count too. Apart from each client's first, no more are in flight than
// the signer can pay for.
func TestOrdinaryIntentsCount(t *testing.T) {
	w := newWorld(t)
	a := w.worker()
	w.hold = true
	w.has(a, 1_000_000_000)
	usual := func(r *intent.Request) { r.Gas.Limit = 500_000 }
	var ids []chain.IntentID
	for n := range 60 {
		ids = append(ids, w.ask(w.request(n, by("ann"), usual))...)
	}
	ids = append(ids, w.ask(w.request(1000, by("bob"), usual))...)
	must(t, w.turns(a, 3))
	if n := len(w.attempted()); n != 2 || len(w.intent(ids[60]).Attempts) == 0 {
		t.Errorf("%d are signed for, want ann's first and bob's", n)
	}
	if s := w.key().Status(); s != signer.StatusServing {
		t.Errorf("the signer is %s", s)
	}
	w.hold = false
	for range 70 {
		must(t, w.turns(a, 1))
		w.block()
	}
	for _, id := range ids {
		w.is(id, intent.StatusCompleted)
	}
	w.judge()
}

// The lanes of a signer share its balance.
func TestLanesShareABalance(t *testing.T) {
	w := newWorld(t)
	_, l := w.live(0, false)
	a, err := w.opened(l)
	must(t, err)
	other := *l
	other.ID.Key = chain.NonceKey{31: 6}
	b, err := w.opened(&other)
	must(t, err)
	w.hold = true
	w.has(a, 1_000_000_000)
	hers := w.ask(w.request(1, by("ann"), moving(600_000_000)))
	_ = w.turns(a, 1)
	his := w.ask(w.request(2, by("bob"), moving(600_000_000)), w.request(3, by("bob")))
	_ = w.turns(b, 1)
	for id, want := range map[chain.IntentID]bool{hers[0]: true, his[0]: false, his[1]: true} {
		if s := w.intent(id); len(s.Attempts) > 0 != want {
			t.Errorf("intent of %s has %d attempts", s.Requested.Request.Client, len(s.Attempts))
		}
	}
	l.Purses.drop(a.ID) // this process no longer works on the lane
	w.clock.pass(2 * w.settings.Claim)
	_ = w.turns(b, 2)
	if s := w.intent(his[0]); len(s.Attempts) == 0 {
		t.Error("bob's still waits for funds")
	}
}

// The oldest intent that waits for funds gets room, until it continues or is no longer
// requested. An intent that costs more than half of the balance gets none.
func TestOldestWait(t *testing.T) {
	var p Purses
	one := p.of(chain.Address{1})
	now := time.Unix(1_800_000_000, 0)
	id := func(n byte) chain.IntentID { return chain.IntentID{n} }
	oldest := func(at time.Time) string {
		client, _ := one.oldest(chain.NewAmount(100), at.Add(-time.Minute))
		return client
	}
	one.waiting("ann", id(1), chain.NewAmount(51), now)
	if got := oldest(now); got != "" {
		t.Errorf("room is left for more than half: %q", got)
	}
	one.waiting("bob", id(2), chain.NewAmount(50), now.Add(time.Second))
	one.waiting("carl", id(3), chain.NewAmount(1), now.Add(2*time.Second))
	one.waiting("bob", id(4), chain.NewAmount(1), now.Add(3*time.Second))
	if got := oldest(now); got != "bob" {
		t.Errorf("room is left for %q", got)
	}
	one.goesOn("bob", id(4)) // another intent of bob's
	if got := oldest(now); got != "bob" {
		t.Errorf("room is left for %q", got)
	}
	one.goesOn("bob", id(2))
	if got := oldest(now); got != "carl" {
		t.Errorf("room is left for %q", got)
	}
	if got := oldest(now.Add(2 * time.Minute)); got != "" {
		t.Errorf("room is left for an intent that was not asked for since: %q", got)
	}
}

// Ann asks for a higher fee than the signer can pay, once a node has her transaction. Gas
// rises. Bob's intents behind hers complete, because hers is replaced at the market's
// price, or by a no-op.
func TestSpeedUpBeyondTheBalance(t *testing.T) {
	for name, rises := range map[string]uint64{"hers is replaced": 1500, "hers gives way": 3850} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			a := w.worker()
			w.hold = true
			w.has(a, 2_000_000_000)
			hers := w.ask(w.request(1, by("ann"), func(r *intent.Request) { r.Gas.Limit = 500_000 }, moving(100_000_000)))
			must(t, w.turns(a, 2))
			w.hand(w.bytesOf(w.accepted()[0].Accepted.Hash))
			w.wish(hers[0], intent.SpeedUp{Fee: intent.NewAmount(100_000_000_000), At: w.now()})
			w.feed()
			must(t, w.turns(a, 3))
			if n := len(w.attempted()); n != 1 {
				t.Errorf("%d are signed for, which nobody can pay", n)
			}
			w.costs(rises)
			his := w.ask(w.request(3, by("bob")), w.request(4, by("bob")))
			began := w.clock.now()
			for i := 0; !w.ended(intent.StatusCompleted, his...)(); i++ {
				if i == 150 {
					t.Fatalf("bob's wait; ann's is %s", w.intent(hers[0]).Status())
				}
				w.goOnAs(a, 1, func(s chain.Signed) fate {
					if s.MaxFee.Uint64()*s.Gas > 2_000_000_000 {
						return unpaid
					}
					return mined
				})
			}
			if took := w.clock.now().Sub(began); took > w.settings.Stall+10*time.Second {
				t.Errorf("bob's waited for %s", took)
			}
			if n := w.ways(hers...); n != map[uint64]int{1500: 0, 3850: 1}[rises] {
				t.Errorf("ann's gave way %d times", n)
			}
			w.judge()
		})
	}
}

// The same holds for a speed-up before an intent has a nonce: it gets none, or gives it
// back.
func TestSpeedUpBeforeTheNonce(t *testing.T) {
	w := newWorld(t)
	a := w.worker()
	w.has(a, 2_000_000_000)
	hers := w.ask(w.request(1, by("ann")), w.request(2, by("ann")))
	w.wish(hers[0], intent.SpeedUp{Fee: intent.NewAmount(100_000_000_000), At: w.now()})
	w.feed()
	w.steps(a, a.poll, a.look, a.refresh, a.account, a.take, a.place)
	w.wish(hers[1], intent.SpeedUp{Fee: intent.NewAmount(100_000_000_000), At: w.now()})
	w.feed()
	his := w.ask(w.request(3, by("bob")))
	for range 8 {
		_ = w.turns(a, 1)
		w.block()
	}
	w.is(his[0], intent.StatusCompleted)
	w.is(hers[0], intent.StatusWaiting)
	w.has(a, plenty)
	w.clock.pass(2 * w.settings.Claim)
	w.until(a, "ann's are done", w.ended(intent.StatusCompleted, hers...))
	w.judge()
}
