package worker

import (
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	"math/big"
	"time"

	"github.com/tempo-watchtower/watchtower/commands/relay/guard"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/relay/budget"
	"github.com/tempo-watchtower/watchtower/domain/relay/intent"
	"github.com/tempo-watchtower/watchtower/domain/relay/lane"
	"github.com/tempo-watchtower/watchtower/domain/relay/safeguard"
	"github.com/tempo-watchtower/watchtower/domain/relay/signer"
	"github.com/tempo-watchtower/watchtower/eventlog"
	"github.com/tempo-watchtower/watchtower/eventlog/port"
)

// now returns the world's time: the real time if it has no clock of its own.
func (w *world) now() time.Time {
	if at := w.clock.now(); !at.IsZero() {
		return at
	}
	return time.Now()
}

// guard returns a guard on this view of the log.
func (w *world) guard(log port.Store) *guard.Guard {
	return guard.New(guard.Config{
		Safeguards: guard.Safeguards{Store: log, Codec: safeguard.Codec(), Random: rand.Reader},
		Signers:    guard.Signers{Store: log, Codec: signer.Codec(), Random: rand.Reader},
		Budgets:    guard.Budgets{Store: log, Codec: budget.Codec(), Random: rand.Reader},
		Settings:   guard.DefaultSettings(), Now: w.now, Log: slog.New(slog.DiscardHandler),
	})
}

// operator returns the guard of another replica, on which operators act.
func (w *world) operator() *guard.Guard { return w.guard(w.db.Log()) }

// permit registers the signer, and sets limits higher than any test needs.
func (w *world) permit() {
	w.t.Helper()
	must(w.t, w.operator().Register(w.t.Context(), moderato, w.signer.Address(), []string{"hot"}))
	w.limit(budget.Account{Kind: budget.OnChain}, plenty, plenty)
}

// plenty is more than any test spends.
const plenty = 1 << 62

func (w *world) limit(a budget.Account, fee, value uint64) {
	w.t.Helper()
	f, v := chain.NewAmount(fee), chain.NewAmount(value)
	_, err := w.operator().Limit(w.t.Context(), moderato, budget.SetLimit{
		Account: a, Limit: budget.Limit{Fee: &f, Value: &v}, Actor: "ada", Reason: "as agreed", At: w.now(),
	}, eventlog.Meta{Actor: "ada"})
	must(w.t, err)
}

func (w *world) budget() budget.State {
	w.t.Helper()
	s, err := w.operator().Budget(w.t.Context(), moderato)
	must(w.t, err)
	return s
}

func (w *world) flip(c safeguard.Command) {
	w.t.Helper()
	_, err := w.operator().Switch(w.t.Context(), c, eventlog.Meta{Actor: "ada"})
	must(w.t, err)
}

func (w *world) halt(s safeguard.Scope) {
	w.t.Helper()
	w.flip(safeguard.Throw{Scope: s, Actor: "ada", Reason: "fire", At: w.now()})
}

func (w *world) resume(s safeguard.Scope) {
	w.t.Helper()
	w.flip(safeguard.Resume{Scope: s, Actor: "ada", Reason: "it is out", At: w.now()})
}

// order handles an operator's command about the signer.
func (w *world) order(c signer.Command) {
	w.t.Helper()
	_, err := w.operator().Order(w.t.Context(), moderato, w.signer.Address(), c, eventlog.Meta{Actor: "ada"})
	must(w.t, err)
}

func (w *world) key() signer.State {
	w.t.Helper()
	s, err := w.operator().Signer(w.t.Context(), moderato, w.signer.Address())
	must(w.t, err)
	return s
}

// keeper is a guard that sometimes fails to answer.
type keeper struct {
	*guard.Guard
	w *world
}

func (k keeper) Room(ctx context.Context, id chain.Sequence, load signer.Load) (int, error) {
	if k.w.may != nil {
		return 0, nil
	}
	return k.Guard.Room(ctx, id, load)
}

func (k keeper) Allow(ctx context.Context, id chain.Sequence, token lane.Token, requests []*intent.Request, charges []budget.Charge) ([]error, error) {
	if k.w.may != nil {
		return nil, k.w.may
	}
	return k.Guard.Allow(ctx, id, token, requests, charges)
}

// squared checks that no budget is reserved for ended intents. If all was on one day, it
// also checks that the recorded use equals the cost on the chain.
func (w *world) squared() {
	w.t.Helper()
	s := w.budget()
	if n := len(s.Lanes()); n > 0 && w.state().Open() == 0 {
		w.t.Errorf("something is set aside in %d lanes, and no nonce is open", n)
	}
}

// spent returns the fees of the lane's transactions according to the chain.
func (w *world) spent() chain.Amount {
	w.t.Helper()
	total := new(big.Int)
	for _, hash := range w.attempted() {
		r, in := w.chain.Receipt(hash)
		if !in {
			continue
		}
		price, ok := new(big.Int).SetString(r.EffectiveGasPrice, 10)
		if !ok {
			w.t.Fatalf("a price of %q", r.EffectiveGasPrice)
		}
		total.Add(total, price.Mul(price, new(big.Int).SetUint64(r.GasUsed)))
	}
	a, err := chain.ParseAmount(total.String())
	must(w.t, err)
	return a
}

// isKept reports whether an error is a guard's refusal.
func isKept(err error) bool {
	for _, refusal := range []eventlog.Refusal{
		safeguard.ErrHalted, safeguard.ErrTarget, guard.ErrStopped, budget.ErrSpent, budget.ErrOverLimit, signer.ErrTarget,
	} {
		if errors.Is(err, refusal) {
			return true
		}
	}
	return false
}

var (
	everything = safeguard.Scope{Kind: safeguard.Deployment}
	onChain    = safeguard.Scope{Kind: safeguard.OnChain, Chain: moderato}
)

func ofClient(name string) safeguard.Scope {
	return safeguard.Scope{Kind: safeguard.OfClient, Client: name}
}

// act makes an operator, the chain or a signer do something that the guard reacts to.
func (s *storm) act() {
	s.t.Helper()
	scopes := []safeguard.Scope{everything, onChain, ofClient("ann"), ofClient("bob")}
	scope := scopes[s.chance.IntN(len(scopes))]
	accounts := []budget.Account{{Kind: budget.OnChain}, {Kind: budget.EachClient}, {Kind: budget.EachSigner}, {Kind: budget.EachSubject}, {Kind: budget.OfClient, Client: "ann"}}
	switch s.chance.IntN(12) {
	case 0, 1:
		s.halt(scope)
	case 2, 3:
		s.resume(scope)
	case 4:
		s.targets([]chain.Targets{nil, {{To: &chain.Address{0xee}}}, {{To: &chain.Address{0xaa}}}}[s.chance.IntN(3)])
	case 5, 6:
		fees := []uint64{0, 100_000_000, 300_000_000, plenty}
		s.limit(accounts[s.chance.IntN(len(accounts))], fees[s.chance.IntN(len(fees))], plenty)
	case 7:
		s.order(signer.Pause{Actor: "ada", Reason: "to look", At: s.now()})
	case 8:
		s.order(signer.Drain{Actor: "ada", Reason: "to rotate", At: s.now()})
	case 9:
		s.order(signer.Resume{Actor: "ada", Reason: "it is well", At: s.now()})
	case 10:
		s.order(signer.SetThreshold{Threshold: chain.NewAmount(1000), Actor: "ada", Reason: "as it takes", At: s.now()})
		must(s.t, s.operator().Seen(s.t.Context(), moderato, s.signer.Address(), chain.NewAmount(uint64(s.chance.IntN(2000)))))
	case 11:
		s.clock.pass(time.Duration(s.chance.IntN(30)) * time.Hour)
	}
}

func (w *world) targets(list chain.Targets) {
	w.t.Helper()
	w.flip(safeguard.SetTargets{Scope: onChain, Targets: list, Actor: "ada", Reason: "as agreed", At: w.now()})
}

// allow lifts all restrictions.
func (s *storm) allow() {
	s.t.Helper()
	if !s.acts {
		return
	}
	for _, scope := range []safeguard.Scope{everything, onChain, ofClient("ann"), ofClient("bob")} {
		s.resume(scope)
	}
	s.targets(nil)
	for _, a := range []budget.Account{{Kind: budget.OnChain}, {Kind: budget.EachClient}, {Kind: budget.EachSigner}, {Kind: budget.EachSubject}, {Kind: budget.OfClient, Client: "ann"}} {
		s.limit(a, plenty, plenty)
	}
	s.order(signer.Resume{Actor: "ada", Reason: "it is well", At: s.now()})
	must(s.t, s.operator().Seen(s.t.Context(), moderato, s.signer.Address(), chain.NewAmount(plenty)))
}
