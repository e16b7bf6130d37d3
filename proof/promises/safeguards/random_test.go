package safeguards_test

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/relay/budget"
	"github.com/tempo-watchtower/watchtower/domain/relay/lane"
	"github.com/tempo-watchtower/watchtower/domain/relay/safeguard"
	"github.com/tempo-watchtower/watchtower/domain/relay/signer"
	"github.com/tempo-watchtower/watchtower/eventlog"
	"github.com/tempo-watchtower/watchtower/proof/promises"
	"github.com/tempo-watchtower/watchtower/proof/promises/safeguards"
)

// world is a lane with its signer, budget and switches, each decided by its own package, and a
// driver that asks them before each signature. careless is the name of the check that the driver
// omits.
type world struct {
	*script
	careless string
	choose   func(below int) int

	signer signer.State
	halts  safeguard.State
	budget budget.State
	lane   lane.State
	asked  int
	report byte
	facts  map[string]int
}

// decider is an aggregate's state.
type decider[S, C, E any] interface {
	Decide(C) ([]E, error)
	Evolve(E) S
}

// do decides a command and records its events. It reports whether the command was accepted.
func do[S decider[S, C, E], C, E any](w *world, s *S, on eventlog.Stream, codec eventlog.Codec[E], c C) bool {
	facts, err := (*s).Decide(c)
	for _, e := range facts {
		*s = (*s).Evolve(e)
		name, _, _ := codec.Encode(e)
		w.facts[name]++
	}
	log(w.script, on, codec, facts...)
	return err == nil
}

func (w *world) ofSigner(c signer.Command) bool {
	return do(w, &w.signer, signer.Stream(here, alice), signer.Codec(), c)
}

func (w *world) ofHalts(c safeguard.Command) bool {
	return do(w, &w.halts, safeguard.Stream, safeguard.Codec(), c)
}

func (w *world) ofBudget(c budget.Command) bool {
	return do(w, &w.budget, budget.Stream(here), budget.Codec(), c)
}

func (w *world) ofLane(c lane.Command) bool {
	return do(w, &w.lane, lane.Stream(chain.Sequence{Chain: here, Sender: alice}), lane.Codec(), c)
}

func (w *world) begin() {
	w.ofSigner(signer.Register{Actor: "ada", At: w.at})
	w.ofLane(lane.Open{Holder: "one", Token: 1, At: w.at})
	block := chain.Block{Number: 1, Hash: hash("block")}
	w.ofLane(lane.Advance{Token: 1, Witness: lane.Witness{Nonce: 0, Block: block, Endpoints: []string{"one"}, Needed: 1, Asked: 1}, At: w.at})
}

func (w *world) step() {
	w.at = w.at.Add(time.Millisecond)
	switch w.choose(16) {
	case 0:
		w.operator()
	case 1:
		w.news()
	case 2:
		scope := []safeguard.Scope{{Kind: safeguard.Deployment}, {Kind: safeguard.OnChain, Chain: here}, {Kind: safeguard.OfClient, Client: "client1"}}[w.choose(3)]
		if w.choose(3) == 0 {
			w.ofHalts(safeguard.Throw{Scope: scope, Actor: "ada", Reason: "fire", At: w.at})
		} else {
			w.ofHalts(safeguard.Resume{Scope: scope, Actor: "ada", Reason: "put out", At: w.at})
		}
	case 3:
		accounts := []budget.Account{{Kind: budget.OnChain}, {Kind: budget.EachClient}, {Kind: budget.EachSigner}, {Kind: budget.OfClient, Client: "client1"}, {Kind: budget.EachSubject}}
		fee := []*chain.Amount{nil, amount(3000), amount(9000), amount(30_000)}[w.choose(4)]
		w.ofBudget(budget.SetLimit{Account: accounts[w.choose(5)], Limit: budget.Limit{Fee: fee}, Actor: "ada", Reason: "as agreed", At: w.at})
	case 4:
		w.at = w.at.Add(time.Duration(w.choose(12)) * time.Hour)
	case 5, 6, 7, 8:
		w.take()
	case 9, 10, 11, 12:
		w.sign()
	case 13:
		w.fill()
	default:
		w.land()
	}
}

func amount(n uint64) *chain.Amount { a := chain.NewAmount(n); return &a }

func (w *world) operator() {
	w.ofSigner([]signer.Command{
		signer.Pause{Actor: "ada", Reason: "moving", At: w.at}, signer.Drain{Actor: "ada", Reason: "retiring", At: w.at}, signer.Finish{At: w.at},
		signer.Resume{Actor: "ada", Reason: "done", At: w.at}, signer.Resume{Actor: "ada", Reason: "done", At: w.at}, signer.Resume{Actor: "ada", Reason: "done", At: w.at},
	}[w.choose(6)])
}

func (w *world) news() {
	w.report++
	balance := chain.NewAmount(uint64(w.choose(200)))
	w.ofSigner([]signer.Command{
		signer.SeeBalance{Balance: balance, At: w.at}, signer.SeeBalance{Balance: balance, At: w.at}, signer.SeeBalance{Balance: balance, At: w.at},
		signer.LackFunds{Balance: balance, Needed: chain.NewAmount(100), At: w.at}, signer.Succeed{At: w.at},
		signer.Fail{Report: eventlog.ID{w.report, 1}, Kind: signer.Rejected, Limit: 2, At: w.at},
	}[w.choose(6)])
}

// client returns an intent's client.
func client(intent chain.IntentID) string { return fmt.Sprint("client", intent[15]%2) }

// take gives the lane an intent.
func (w *world) take() {
	load := signer.Load{InFlight: w.lane.InFlight(), Capacity: 6, Barred: w.budget.Exhausted(budget.DayOf(w.at), alice)}
	if w.careless != "takes" && w.signer.Room(load) == 0 || w.asked == 255 {
		return
	}
	w.asked++
	w.asks(client(who(w.asked)), w.asked)
	w.ofLane(lane.Reserve{Token: 1, Intents: []chain.IntentID{who(w.asked)}, Budget: 6, At: w.at})
}

// pick chooses an open nonce.
func (w *world) pick() (lane.Slot, bool) {
	if w.lane.Open() == 0 {
		return lane.Slot{}, false
	}
	n := w.choose(w.lane.Open())
	for slot := range w.lane.Slots() {
		if n == 0 {
			return slot, true
		}
		n--
	}
	panic("not as many as said")
}

// gas is the gas of each transaction.
const gas = 2

// sign makes the next attempt at a nonce: the first, a bump, or a no-op.
func (w *world) sign() {
	slot, any := w.pick()
	if !any || slot.IsFree() || len(slot.Attempts) > 3 {
		return
	}
	made := lane.Signed{Nonce: slot.Nonce, Intent: slot.Intent, Fee: chain.LegacyFee(chain.PriceOf(1000))}
	if n := len(slot.Attempts); n > 0 {
		made.Fee, _ = slot.Attempts[n-1].Fee.Replacement()
		if slot.Attempts[n-1].Intent.IsZero() || w.choose(3) == 0 {
			made.Intent = chain.IntentID{}
		}
	}
	made.Hash = hash(fmt.Sprint(slot.Nonce, "/", len(slot.Attempts)))
	if w.careless != "signs" && !w.signer.Signs() || w.careless != "switch" && w.stopped(made.Intent) || !w.reserve(slot, made) {
		return
	}
	w.ofLane(lane.Attempt{Token: 1, Signed: []lane.Signed{made}, At: w.at})
}

func (w *world) stopped(intent chain.IntentID) bool {
	if intent.IsZero() {
		return w.halts.CheckNoOp(here) != nil
	}
	return w.halts.Check(safeguard.Request{Client: client(intent), Chain: here}) != nil
}

// charged returns the charge for a nonce.
func charged(slot lane.Slot) budget.Charge {
	if slot.Intent.IsZero() {
		return budget.Charge{Purpose: budget.Purpose{Nonce: slot.Nonce}}
	}
	return budget.Charge{Purpose: budget.Purpose{Intent: slot.Intent}, Client: client(slot.Intent), Subject: fmt.Sprint("subject", slot.Intent[15]%3)}
}

func (w *world) reserve(slot lane.Slot, made lane.Signed) bool {
	c := charged(slot)
	c.Fee = chain.AmountOf(made.Fee.MaxFee.Int()).Times(gas)
	day := budget.DayOf(w.at)
	switch w.careless {
	case "reserves":
		return true
	case "bumps": // bumps cost more than the first attempt
		if len(slot.Attempts) > 0 {
			return true
		}
	case "limits": // records the reservation without comparing it with the limit
		if !w.budget.Covers(hers, c) {
			taken := budget.Reserved{Day: max(day, w.budget.Day), Lane: hers, Token: 1, Charges: []budget.Charge{c}, At: w.at}
			w.budget = w.budget.Evolve(taken)
			w.script.budget(taken)
		}
		return true
	}
	w.ofBudget(budget.Reserve{Day: day, Lane: hers, Token: 1, Charges: []budget.Charge{c}, At: w.at})
	return w.budget.Covers(hers, c)
}

// settle records a nonce's cost before the lane drops it.
func (w *world) settle(slot lane.Slot, took chain.Amount) {
	if w.careless != "settles" {
		w.ofBudget(budget.Settle{Day: budget.DayOf(w.at), Lane: hers, Token: 1, Spent: []budget.Spent{{Purpose: charged(slot).Purpose, Sum: budget.Sum{Fee: took}}}, At: w.at})
	}
}

// fill replaces an unsigned intent by a no-op.
func (w *world) fill() {
	holes := w.lane.Holes()
	if len(holes) == 0 {
		return
	}
	slot, _ := w.lane.Slot(holes[0].Nonce)
	if w.ofLane(lane.Fill{Token: 1, Nonces: []uint64{slot.Nonce}, At: w.at}) && !slot.Intent.IsZero() {
		w.settle(slot, chain.Amount{})
	}
}

func (w *world) land() {
	slot, any := w.pick()
	if !any || len(slot.Attempts) == 0 {
		return
	}
	made := slot.Attempts[w.choose(len(slot.Attempts))]
	w.settle(slot, chain.AmountOf(made.Fee.MaxFee.Int()))
	block := chain.Block{Number: slot.Nonce + 1, Hash: hash(fmt.Sprint("block", slot.Nonce))}
	w.ofLane(lane.Land{Token: 1, Landings: []lane.Landing{{Nonce: slot.Nonce, Hash: made.Hash, Block: block, Status: 1, Final: true}}, At: w.at})
}

// length is the number of steps in each history.
const length = 150

// newWorld returns a world with the given careless check and choices.
func newWorld(t *testing.T, careless string, choose func(below int) int, facts map[string]int) *world {
	s := newScript(t)
	s.judge = safeguards.New(safeguards.Settings{Gas: gas})
	return &world{script: s, careless: careless, choose: choose, facts: facts}
}

func (w *world) run() []promises.Violation {
	w.begin()
	for range length {
		if w.step(); len(w.found) > 0 {
			return w.found
		}
	}
	return nil
}

// For any acts of operators and the chain, a driver that asks before each signature breaks no
// promise. The deciding packages and the judge, which share no rule, both confirm it.
func TestWhoAsksBreaksNothing(t *testing.T) {
	facts := map[string]int{}
	rapid.Check(t, func(r *rapid.T) {
		w := newWorld(t, "", func(below int) int { return rapid.IntRange(0, below-1).Draw(r, "choice") }, facts)
		if found := w.run(); len(found) > 0 {
			r.Fatal(found)
		}
	})
	for _, name := range []string{
		"signer.paused.v1", "signer.draining.v1", "signer.drained.v1", "signer.resumed.v1", "signer.balance_low.v1", "signer.balance_restored.v1",
		"signer.disabled.v1", "safeguard.halted.v1", "safeguard.resumed.v1", "budget.limit_set.v1", "budget.reserved.v1", "budget.settled.v1",
		"lane.attempted.v1", "lane.filled.v1", "lane.landed.v1",
	} {
		if facts[name] == 0 {
			t.Errorf("no history had a %s", name)
		}
	}
}

// A driver that omits a check is found, by the promise that the check keeps.
func TestWhoDoesNotAsk(t *testing.T) {
	const histories = 60
	for careless, want := range map[string]promises.Number{
		"takes": promises.P34, "signs": promises.P34, "switch": promises.P32,
		"reserves": promises.P33, "bumps": promises.P33, "limits": promises.P33, "settles": promises.P33,
	} {
		caught := 0
		for seed := range histories {
			choices := rapid.SliceOfN(rapid.IntRange(0, 1<<20), 4*length, 4*length).Example(seed)
			w := newWorld(t, careless, func(below int) int {
				n := choices[0]
				choices = choices[1:]
				return n % below
			}, map[string]int{})
			found := w.run()
			for _, v := range found {
				if v.Promise != want {
					t.Errorf("%s, seed %d: %v, want %s", careless, seed, v, want)
				}
			}
			caught += min(len(found), 1)
		}
		if caught == 0 {
			t.Errorf("nobody was found out who leaves out what %q asks", careless)
		}
		t.Logf("%s: found out in %d of %d histories", careless, caught, histories)
	}
}
