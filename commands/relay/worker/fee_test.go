package worker

import (
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/relay/intent"
	"github.com/tempo-watchtower/watchtower/infra/chain/tempo"
	"github.com/tempo-watchtower/watchtower/infra/keys"
)

func asking(most, tip uint64) chain.Fee {
	return chain.Fee{MaxFee: chain.PriceOf(most), MaxPriorityFee: chain.PriceOf(tip)}
}

// An intent may not pay the price of gas. It waits without a nonce and delays no other;
// when gas is cheaper, it is executed.
func TestTooDear(t *testing.T) {
	w := newWorld(t)
	a := w.worker()
	poor := func(r *intent.Request) { r.Gas.MaxFee = intent.NewAmount(800) }
	ids := w.ask(w.request(1, poor), w.request(2), w.request(3))
	w.until(a, "those that may are done", w.ended(intent.StatusCompleted, ids[1:]...))
	if s := w.intent(ids[0]); s.Status() != intent.StatusWaiting || s.Assignment != 0 {
		t.Errorf("%s, assigned %d times", s.Status(), s.Assignment)
	}
	w.fee = asking(500, 100)
	w.until(a, "so is the other one", w.ended(intent.StatusCompleted, ids...))
	w.judge()
}

// Intents behind it in its ordering group wait with it, and stay behind it.
func TestTooDearInARow(t *testing.T) {
	w := newWorld(t)
	a := w.worker()
	row := func(r *intent.Request) { r.Order = "row" }
	ids := w.ask(
		w.request(1, row, func(r *intent.Request) { r.Gas.MaxFee = intent.NewAmount(800) }),
		w.request(2, row), w.request(3, row), w.request(4),
	)
	w.until(a, "what is in no row is done", w.ended(intent.StatusCompleted, ids[3]))
	for _, id := range ids[:3] {
		if s := w.intent(id); s.Status() != intent.StatusWaiting {
			t.Errorf("%s is %s", id, s.Status())
		}
	}
	w.fee = asking(500, 100)
	w.until(a, "so are the others", w.ended(intent.StatusCompleted, ids...))
	w.judge()
	if first, last := w.intent(ids[0]).Attempts[0], w.intent(ids[2]).Attempts[0]; first.At.After(last.At) {
		t.Errorf("the first was signed %s, the last %s", first.At, last.At)
	}
}

// Gas becomes more expensive after an intent has got a nonce and before it is signed: the
// intent returns the nonce.
func TestBecomesTooDear(t *testing.T) {
	w := newWorld(t)
	a := w.worker()
	ids := w.ask(w.request(1, func(r *intent.Request) { r.Gas.MaxFee = intent.NewAmount(1200) }), w.request(2))
	for _, step := range []func() error{
		func() error { return a.poll(t.Context()) }, func() error { return a.look(t.Context()) },
		func() error { a.claim = true; return a.take(t.Context()) },
	} {
		must(t, step())
	}
	w.fee = asking(2000, 100)
	w.until(a, "who may pay it is done", func() bool { return w.intent(ids[1]).Status() == intent.StatusCompleted })
	if s := w.intent(ids[0]); s.Status() != intent.StatusWaiting || s.Assignment != 1 || len(s.Attempts) > 0 {
		t.Errorf("%s, assigned %d times, %d attempts", s.Status(), s.Assignment, len(s.Attempts))
	}
	w.fee = asking(1000, 100)
	w.until(a, "so is the other one", w.ended(intent.StatusCompleted, ids...))
	w.judge()
}

// An offer that pools never accept at the intent's ceiling is not tried.
func TestTooPoorForAnyPool(t *testing.T) {
	w := newWorld(t)
	w.policy.MinTip = chain.PriceOf(50)
	a := w.worker()
	ids := w.ask(w.request(1, func(r *intent.Request) { r.Gas.MaxPriorityFee = intent.NewAmount(49) }), w.request(2))
	w.until(a, "the other is done", w.ended(intent.StatusCompleted, ids[1]))
	if s := w.intent(ids[0]); s.Status() != intent.StatusFailed || s.End.Reason != intent.Refused || s.Assignment != 0 {
		t.Errorf("%s, %+v", s.Status(), s.End)
	}
	w.judge()
}

// An intent whose price is not known is not overtaken by later intents of its ordering
// group.
func TestPriceUnknownInARow(t *testing.T) {
	w := newWorld(t)
	a := w.worker()
	row := func(r *intent.Request) { r.Order = "row" }
	first, second := w.request(1, row), w.request(2, row)
	w.reverts[first.ID()] = errors.New("the node does not answer")
	ids := w.ask(first, second)
	for range 3 {
		if err := w.turns(a, 1); err != nil && !errors.Is(err, w.reverts[first.ID()]) {
			t.Fatal(err)
		}
		w.block()
	}
	if s := w.intent(ids[1]); s.Status() != intent.StatusWaiting {
		t.Errorf("the second is %s", s.Status())
	}
	delete(w.reverts, first.ID())
	w.clock.pass(w.settings.Claim) // it keeps its claim for that long
	w.until(a, "both are done", w.ended(intent.StatusCompleted, ids...))
	w.judge()
}

// newSponsored returns a world in which a sponsor pays in a token for intents that ask for
// it, a lane with the sponsor's key, and that key.
func newSponsored(t *testing.T) (*world, *Lane, *keys.Signer) {
	t.Helper()
	w := newWorld(t)
	signers, err := keys.Environment([]string{"RELAYER_PRIVATE_KEY_0=59c6995e998f97a5a0044966f0945389dc9e86dae88c7a8412f4603b6b78690d"}, true, slog.New(slog.DiscardHandler))
	must(t, err)
	payer := signers[0].Address()
	w.policy.Sponsor, w.policy.Tokens = &payer, []chain.Address{{0x20, 0xc0}}
	_, l := w.live(0, false)
	l.Payer = signers[0]
	return w, l, signers[0]
}

// A sponsor pays, in the policy's token, for an intent and for the no-op that replaces it:
// the signer may own nothing.
func TestSponsored(t *testing.T) {
	w, l, sponsor := newSponsored(t)
	payer, token := sponsor.Address(), w.policy.Tokens[0]
	a, err := w.opened(l)
	must(t, err)
	sponsored := func(r *intent.Request) { r.Gas.Sponsored = true }
	ids := w.ask(w.request(1, sponsored), w.request(2, sponsored), w.request(3))
	w.hold = true
	must(t, w.turns(a, 2))
	w.wish(ids[1], intent.Cancel{At: w.clock.now()})
	w.feed()
	must(t, w.turns(a, 2))
	for n, want := range []struct {
		attempts  int
		sponsored bool
	}{{1, true}, {2, true}, {1, false}} {
		it := w.intent(ids[n])
		if len(it.Attempts) != want.attempts {
			t.Fatalf("intent %d has %d attempts", n, len(it.Attempts))
		}
		for _, made := range it.Attempts {
			signed, err := tempo.Decode(w.bytesOf(made.Hash))
			must(t, err)
			if signed.FeeToken == nil || *signed.FeeToken != token || (signed.FeePayer != nil) != want.sponsored || want.sponsored && *signed.FeePayer != payer {
				t.Errorf("%s of intent %d: %v pays in %v", made.Kind, n, signed.FeePayer, signed.FeeToken)
			}
		}
	}
	w.hold = false
	w.until(a, "all are done", func() bool { return w.state().Open() == 0 })
	w.judge()
}

// A process without the payer's key gives no nonce to a sponsored intent. The intent waits
// for a process that has the key, and delays no other.
func TestSponsorIsElsewhere(t *testing.T) {
	w := newWorld(t)
	payer := chain.Address{5}
	w.policy.Sponsor = &payer
	a := w.worker()
	ids := w.ask(w.request(1, func(r *intent.Request) { r.Gas.Sponsored = true }), w.request(2))
	for done := w.ended(intent.StatusCompleted, ids[1]); !done(); w.block() {
		if err := w.turns(a, 1); err != nil && !strings.Contains(err.Error(), "the key of the fee payer "+payer.String()) {
			t.Fatal(err)
		}
	}
	if s := w.intent(ids[0]); s.Status() != intent.StatusWaiting || s.Assignment != 0 {
		t.Errorf("%s, %+v", s.Status(), s.Place)
	}
	w.judge()
}

// A fee token that the operator's policy does not allow is refused before the intent has a
// nonce.
func TestPaymentRefused(t *testing.T) {
	w := newWorld(t)
	a := w.worker()
	ids := w.ask(w.request(1, func(r *intent.Request) { r.Gas.FeeToken = &chain.Address{1} }), w.request(2))
	w.until(a, "the other is done", w.ended(intent.StatusCompleted, ids[1]))
	if s := w.intent(ids[0]); s.Status() != intent.StatusFailed || s.End.Reason != intent.Refused || s.Assignment != 0 {
		t.Errorf("%s, %+v", s.Status(), s.End)
	}
	w.judge()
}
