package guard_test

import (
	"crypto/rand"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/tempo-watchtower/watchtower/commands/relay/guard"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/relay/budget"
	"github.com/tempo-watchtower/watchtower/domain/relay/intent"
	"github.com/tempo-watchtower/watchtower/domain/relay/lane"
	"github.com/tempo-watchtower/watchtower/domain/relay/safeguard"
	"github.com/tempo-watchtower/watchtower/domain/relay/signer"
	"github.com/tempo-watchtower/watchtower/eventlog"
	"github.com/tempo-watchtower/watchtower/infra/embedded"
	"github.com/tempo-watchtower/watchtower/proof/promises/safeguards"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const here = chain.ID(42431)

var (
	alice, bob = chain.Address{0xa1}, chain.Address{0xb0}
	target     = chain.Address{0xee}
	meta       = eventlog.Meta{Actor: "ada"}
)

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// world is a log, and a clock that is moved.
type world struct {
	t  testing.TB
	db *embedded.DB

	mu sync.Mutex
	at time.Time
}

func newWorld(t testing.TB) *world {
	w := &world{t: t, at: time.Unix(1_800_000_000, 0).UTC()}
	var err error
	w.db, err = embedded.Open("", embedded.Options{Now: w.now})
	must(t, err)
	t.Cleanup(func() { must(t, w.db.Close()) })
	return w
}

func (w *world) now() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.at
}

func (w *world) pass(d time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.at = w.at.Add(d)
}

// replica returns the guard of another process.
func (w *world) replica(change ...func(*guard.Config)) *guard.Guard {
	settings := guard.DefaultSettings()
	settings.Every = 0 // each head is read
	c := guard.Config{
		Safeguards: guard.Safeguards{Store: w.db.Log(), Codec: safeguard.Codec(), Random: rand.Reader},
		Signers:    guard.Signers{Store: w.db.Log(), Codec: signer.Codec(), Random: rand.Reader},
		Budgets:    guard.Budgets{Store: w.db.Log(), Codec: budget.Codec(), Random: rand.Reader},
		Members:    func(string) []chain.Address { return []chain.Address{alice, bob} },
		Settings:   settings, Now: w.now, Log: slog.New(slog.DiscardHandler),
	}
	for _, do := range change {
		do(&c)
	}
	return guard.New(c)
}

func (w *world) register(g *guard.Guard, all ...chain.Address) {
	w.t.Helper()
	for _, a := range all {
		must(w.t, g.Register(w.t.Context(), here, a, []string{"hot"}))
	}
}

func (w *world) limit(g *guard.Guard, a budget.Account, fee uint64) {
	w.t.Helper()
	n := chain.NewAmount(fee)
	_, err := g.Limit(w.t.Context(), here, budget.SetLimit{Account: a, Limit: budget.Limit{Fee: &n}, Actor: "ada", Reason: "as agreed", At: w.now()}, meta)
	must(w.t, err)
}

func (w *world) flip(g *guard.Guard, c safeguard.Command) {
	w.t.Helper()
	_, err := g.Switch(w.t.Context(), c, meta)
	must(w.t, err)
}

func (w *world) judge() {
	w.t.Helper()
	j := safeguards.New(safeguards.Settings{Grace: time.Second})
	for batch, err := range w.db.Log().ReadAll(w.t.Context(), 0, eventlog.Filter{}, 1000) {
		must(w.t, err)
		for _, r := range batch.Events {
			for _, v := range j.Event(r) {
				w.t.Error(v)
			}
		}
	}
}

func laneOf(a chain.Address) chain.Sequence { return chain.Sequence{Chain: here, Sender: a} }

func request(n int) intent.Request {
	to := target
	return intent.Request{Client: "ann", Key: fmt.Sprint("key-", n), From: intent.From{Pool: "hot"}, Chain: here, Calls: []intent.Call{{To: &to}}}
}

func charge(r intent.Request, fee uint64) budget.Charge {
	return budget.Charge{Purpose: budget.Purpose{Intent: r.ID()}, Client: r.Client, Sum: budget.Sum{Fee: chain.NewAmount(fee)}}
}

// allow asks for one request.
func (w *world) allow(g *guard.Guard, a chain.Address, token lane.Token, r intent.Request, fee uint64) error {
	w.t.Helper()
	answers, err := g.Allow(w.t.Context(), laneOf(a), token, []*intent.Request{&r}, []budget.Charge{charge(r, fee)})
	if err != nil {
		return err
	}
	return answers[0]
}
