package grouping_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/tempo-watchtower/watchtower/commands/delivery/grouping"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/infra/chain/rpc"
)

// asks records the questions about access keys: for each client, the keys of each.
type asks struct {
	mu sync.Mutex
	of map[string][][]chain.AccessKey
}

// keychain returns a client's keychain that records its questions, and answers unless refuse
// returns an error.
func (a *asks) keychain(w *world, client string, refuse func() error) grouping.Keychain {
	return recorded{w.reader, func(keys []chain.AccessKey) error {
		a.mu.Lock()
		defer a.mu.Unlock()
		if a.of == nil {
			a.of = map[string][][]chain.AccessKey{}
		}
		a.of[client] = append(a.of[client], keys)
		return refuse()
	}}
}

type recorded struct {
	*rpc.Reader
	ask func(keys []chain.AccessKey) error
}

func (r recorded) Grants(ctx context.Context, at chain.Block, keys []chain.AccessKey) ([]chain.Grant, error) {
	if err := r.ask(keys); err != nil {
		return nil, err
	}
	return r.Reader.Grants(ctx, at, keys)
}

func never() error { return nil }

// A client's access keys are asked about at a bounded pace, the longest waiting first, and in
// questions of its own. Clients with few claims do not wait for them.
func TestClaimsArePaced(t *testing.T) {
	const rounds = 3
	w := newWorld(t)
	var forged []chain.Hash
	for i := range rounds * grouping.KeysMax {
		forged = append(forged, w.acceptFrom("mallory", by(chain.Address{0x66, byte(i)}, chain.P256)))
	}
	ours := w.acceptFrom("alice", by(chain.Address{0xcc}, chain.P256))
	w.grant(chain.Address{0xcc}, forEver)
	v, a := w.verifier(new(time.Duration)), &asks{}
	v.Keychain = func(client string) grouping.Keychain { return a.keychain(w, client, never) }
	step := v.Steps()
	for round := range rounds {
		check(t, step(t.Context()))
		if w.state(ours).GroupPending() {
			t.Error("another client's claim waits")
		}
		for i, hash := range forged {
			if answered := w.state(hash).Doubt != ""; answered != (i < (round+1)*grouping.KeysMax) {
				t.Fatalf("after step %d: claim %d is answered: %v", round+1, i, answered)
			}
		}
	}
	if len(a.of["mallory"]) != rounds || len(a.of["alice"]) != 1 || len(a.of["alice"][0]) != 1 {
		t.Errorf("questions %v", a.of)
	}
	for _, keys := range a.of["mallory"] {
		if len(keys) != grouping.KeysMax {
			t.Errorf("%d keys in one question", len(keys))
		}
	}
}

// However many new claims a client makes, its older claims are asked about again when they are due.
func TestNewClaimsKeepNoOldOnesWaiting(t *testing.T) {
	w := newWorld(t)
	granted := chain.Address{0xcc}
	ours := w.acceptFrom("alice", by(granted, chain.P256))
	var since time.Duration
	step := w.verifier(&since).Steps()
	check(t, step(t.Context()))
	w.grant(granted, forEver)
	for i := range 2 * grouping.KeysMax {
		w.acceptFrom("alice", by(chain.Address{0xcd, byte(i)}, chain.P256))
	}
	since += poll
	check(t, step(t.Context()))
	if w.state(ours).GroupPending() {
		t.Error("not asked about again when its pause was over")
	}
}

// A client whose questions fail is asked about with growing pauses. Its claims stay due, and are
// answered soon after nodes answer again. Other clients' claims are answered meanwhile.
func TestFailedQuestionsRest(t *testing.T) {
	w := newWorld(t)
	forged := w.acceptFrom("mallory", by(mallory, chain.P256))
	var since time.Duration
	var refused error = &rpc.Spent{Endpoint: "a", Reason: "a test"}
	v, a := w.verifier(&since), &asks{}
	v.Keychain = func(client string) grouping.Keychain {
		return a.keychain(w, client, func() error {
			if client == "mallory" {
				return refused
			}
			return nil
		})
	}
	step := v.Steps()
	for i := range 10 {
		ours := w.acceptFrom("alice", by(chain.Address{0xcc, byte(i)}, chain.P256))
		for range 30 { // five minutes in all
			_ = step(t.Context()) // reports the refused question
			since += poll
		}
		if w.state(ours).Doubt == "" {
			t.Fatal("another client's claim waits")
		}
	}
	if n := len(a.of["mallory"]); n < 5 || n > 12 {
		t.Errorf("asked %d times in five minutes", n)
	}
	refused = nil
	for range 60 {
		since += poll
		check(t, step(t.Context()))
	}
	if w.state(forged).Doubt == "" {
		t.Error("not answered a minute after nodes answer again")
	}
}

// A client whose node does not answer keeps no other client's claims waiting, old or new.
func TestUnansweredQuestionsHoldNobody(t *testing.T) {
	w := newWorld(t)
	ctx, stop := context.WithTimeout(t.Context(), 10*time.Second)
	defer stop()
	hangs := make(chan struct{}, 1)
	v := w.verifier(new(time.Duration))
	v.Poll = 10 * time.Millisecond
	v.Keychain = func(client string) grouping.Keychain {
		if client == "mallory" {
			return hanging{w.reader, hangs}
		}
		return w.keychain(client)
	}
	w.acceptFrom("mallory", by(mallory, chain.P256))
	w.grant(alice, forEver)
	ended := make(chan error, 1)
	go func() { ended <- v.Run(ctx) }()
	<-hangs
	later := w.acceptFrom("bob", by(alice, chain.P256))
	for batch, err := range w.db.Log().Subscribe(ctx, 0, w.confirmed(), 1) {
		if err != nil || len(batch.Events) > 0 {
			break
		}
	}
	if w.state(later).GroupPending() {
		t.Error("another client's claim waits")
	}
	stop()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("ended with %v", err)
	}
}

// hanging is a node that does not answer until the caller gives up.
type hanging struct {
	*rpc.Reader
	asked chan<- struct{}
}

func (h hanging) Head(ctx context.Context) (chain.Block, error) {
	h.asked <- struct{}{}
	<-ctx.Done()
	return chain.Block{}, ctx.Err()
}
