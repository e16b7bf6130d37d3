package guard_test

import (
	"context"
	"crypto/rand"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tempo-watchtower/watchtower/commands/relay/guard"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/relay/lane"
	"github.com/tempo-watchtower/watchtower/domain/relay/signer"
	"github.com/tempo-watchtower/watchtower/eventlog/handler"
)

// money returns accounts' balances when the test asks for them.
type money struct {
	heads chan struct{}
	asked chan struct{}

	mu   sync.Mutex
	have map[chain.Address]uint64
	err  error
}

func (m *money) Heads(context.Context) <-chan struct{} { return m.heads }

func (m *money) Balances(_ context.Context, of []chain.Address) ([]chain.Amount, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	defer func() { m.asked <- struct{}{} }()
	all := make([]chain.Amount, len(of))
	for i, a := range of {
		all[i] = chain.NewAmount(m.have[a])
	}
	return all, m.err
}

// Balances are read once at each block, and stop and start signers.
func TestWatch(t *testing.T) {
	w := newWorld(t)
	g := w.replica()
	w.register(g, alice, bob)
	w.order(g, signer.SetThreshold{Threshold: chain.NewAmount(100), Actor: "ada", Reason: "as it takes", At: w.now()})
	m := &money{heads: make(chan struct{}), asked: make(chan struct{}, 1), have: map[chain.Address]uint64{alice: 1000}}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		g.Watch(t.Context(), here, m, []chain.Address{alice, bob})
	}()
	status := func(balance uint64, err error) signer.Status {
		t.Helper()
		m.mu.Lock()
		m.have[alice], m.err = balance, err
		m.mu.Unlock()
		m.heads <- struct{}{}
		<-m.asked
		m.heads <- struct{}{} // once it is received, the earlier balances are recorded
		<-m.asked
		s, err := g.Signer(t.Context(), here, alice)
		must(t, err)
		return s.Status()
	}
	var got []signer.Status
	got = append(got, status(100, nil), status(99, nil), status(105, nil), status(0, errors.New("no node")), status(110, nil))
	want := []signer.Status{signer.StatusServing, signer.StatusLow, signer.StatusLow, signer.StatusLow, signer.StatusServing}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	close(m.heads)
	<-ended
	events := 0
	for r, err := range w.db.Log().ReadStream(t.Context(), signer.Stream(here, bob), 0) {
		must(t, err)
		t.Log(r.Name)
		events++
	}
	if events != 1 {
		t.Errorf("%d events of a signer that nothing happened to", events)
	}
}

// A draining signer is drained when no nonce of its lanes is open, whichever process works
// on them.
func TestDrains(t *testing.T) {
	w := newWorld(t)
	g := w.replica()
	w.register(g, alice)
	ctx := t.Context()
	m := &money{asked: make(chan struct{}, 100)}
	lanes := handler.Handler[lane.State, lane.Command, lane.Event]{Store: w.db.Log(), Codec: lane.Codec()}
	other := chain.Sequence{Chain: here, Sender: alice, Key: chain.NonceKey{31: 9}}
	do := func(id chain.Sequence, all ...lane.Command) {
		for _, c := range all {
			o, err := handler.Begin(rand.Reader, meta)
			must(t, err)
			_, err = lanes.Handle(ctx, lane.Stream(id), c, o)
			must(t, err)
		}
	}
	learned := lane.Advance{Token: 1, Witness: lane.Witness{Block: chain.Block{Number: 1, Hash: chain.Hash{1}}, Endpoints: []string{"a"}, Needed: 1, Asked: 1}}
	wish := request(1).ID()
	do(laneOf(alice), lane.Open{Holder: "one", Token: 1}, learned)
	do(laneOf(bob), lane.Open{Holder: "one", Token: 1}, learned, lane.Reserve{Token: 1, Intents: []chain.IntentID{wish}, Budget: 9})
	do(other, lane.Open{Holder: "two", Token: 1}, learned, lane.Reserve{Token: 1, Intents: []chain.IntentID{wish}, Budget: 9})
	look := func() signer.Status {
		t.Helper()
		w.pass(10 * time.Second)
		heads := make(chan struct{}, 1)
		heads <- struct{}{}
		close(heads)
		m.heads = heads
		g.Watch(ctx, here, m, []chain.Address{alice})
		s, err := g.Signer(ctx, here, alice)
		must(t, err)
		return s.Status()
	}
	got := []signer.Status{look()}
	w.order(w.replica(), signer.Drain{Actor: "ada", Reason: "to rotate", At: w.now()})
	got = append(got, look())
	do(other, lane.Release{Token: 1, Intents: []chain.IntentID{wish}, Reason: "given up"})
	got = append(got, look()) // the nonce is free, and open
	do(other, lane.Reserve{Token: 1, Intents: []chain.IntentID{wish}, Budget: 9},
		lane.Attempt{Token: 1, Signed: []lane.Signed{{Nonce: 0, Intent: wish, Hash: chain.Hash{7}, Fee: chain.LegacyFee(chain.PriceOf(1))}}},
		lane.Land{Token: 1, Landings: []lane.Landing{{Nonce: 0, Hash: chain.Hash{7}, Block: chain.Block{Number: 2, Hash: chain.Hash{2}}, Status: 1, Final: true}}})
	got = append(got, look())
	want := []signer.Status{signer.StatusServing, signer.StatusDraining, signer.StatusDraining, signer.StatusDrained}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// Failures close to each other count once; a wrong signature always counts.
func TestFailures(t *testing.T) {
	w := newWorld(t)
	g := w.replica(func(c *guard.Config) { c.Settings.Failures = 3 })
	w.register(g, alice)
	fail := func(kind signer.FailureKind) signer.State {
		t.Helper()
		must(t, g.Failed(t.Context(), laneOf(alice), kind, "no answer"))
		s, err := g.Signer(t.Context(), here, alice)
		must(t, err)
		return s
	}
	var got []int
	for _, d := range []time.Duration{0, time.Second, 3 * time.Second, 2 * time.Second} {
		w.pass(d)
		got = append(got, len(fail(signer.NoSignature).Failures))
	}
	if diff := cmp.Diff([]int{1, 1, 1, 2}, got); diff != "" {
		t.Error(diff)
	}
	must(t, g.Succeeded(t.Context(), laneOf(alice)))
	if s := fail(signer.WrongSignature); s.Status() != signer.StatusDisabled || len(s.Failures) != 1 {
		t.Errorf("it is %s after %d failures", s.Status(), len(s.Failures))
	}
	must(t, g.Succeeded(t.Context(), laneOf(alice)))
	must(t, g.Failed(t.Context(), laneOf(bob), signer.WrongSignature, "of nobody")) // bob was never registered
	if s, err := g.Signer(t.Context(), here, alice); err != nil || s.Status() != signer.StatusDisabled {
		t.Errorf("it is %s, %v", s.Status(), err)
	}
}

// An unknown signer cannot be given targets.
func TestServeUnknown(t *testing.T) {
	w := newWorld(t)
	if _, err := w.replica().Serve(t.Context(), here, alice, nil, "ada", "as agreed", meta); !errors.Is(err, signer.ErrUnknown) {
		t.Error(err)
	}
}
