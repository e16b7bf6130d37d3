package main_test

import (
	"bytes"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tempo-watchtower/watchtower/cmd/devnet/wallet"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/relay/intent"
	"github.com/tempo-watchtower/watchtower/proof/rig"
)

// gasEnough is more than a payment takes, and needs no estimate.
const gasEnough = 1_000_000

// payments are intents for the first signer.
func (w *world) payments(n int) (requests []intent.Request) {
	for i := range n {
		r := w.one(0, fmt.Sprint("payment-", i))
		r.Gas.Limit = gasEnough
		requests = append(requests, r)
	}
	return requests
}

// create submits all intents concurrently, to the relayers in turn.
func (w *world) create(t *testing.T, doors []client, requests ...intent.Request) []shown {
	t.Helper()
	answers := make([]shown, len(requests))
	var asking sync.WaitGroup
	for i, r := range requests {
		w.asked[r.ID()] = r
		asking.Go(func() {
			status, err := doors[i%len(doors)].do(http.MethodPost, "/v1/intents", wish(r), &answers[i])
			if err != nil || status != http.StatusAccepted || answers[i].ID != r.ID() {
				t.Errorf("%s: %d, %+v, %v", r.Key, status, answers[i], err)
			}
		})
	}
	asking.Wait()
	if t.Failed() {
		t.FailNow()
	}
	return answers
}

// Two replicas on one Postgres, with leases of lanes there or in a Redis, get concurrent
// requests: a hundred for the same intent, which is accepted once, and two hundred payments of
// one signer. These get its nonces in log order, and the node refuses none for its nonce.
func TestReplicasAskedAtOnce(t *testing.T) {
	t.Parallel()
	for _, leases := range []string{"store", "redis"} {
		t.Run(leases, func(t *testing.T) {
			t.Parallel()
			flags := []string{"--scheduler-window=100", "--lane-leases=" + leases}
			if leases == "redis" {
				flags = append(flags, "--redis="+newRedis(t).URL())
			}
			askedAtOnce(t, newWorld(t, kinds()[0], inPostgres, flags...))
		})
	}
}

func askedAtOnce(t *testing.T, w *world) {
	t.Helper()
	signer := wallet.Dev(0).Address()
	from := w.wants(t, signer)
	first, second := w.relayer(t), w.relayer(t)
	check(t, first.Start(w.ctx))
	check(t, second.Start(w.ctx))
	doors := []client{w.client(t, first), w.client(t, second)}

	same := w.one(0, "same")
	same.Gas.Limit = gasEnough
	made := 0
	for _, a := range w.create(t, doors, slices.Repeat([]intent.Request{same}, 100)...) {
		if !*a.AlreadyKnown {
			made++
		}
	}
	if made != 1 {
		t.Errorf("it was made %d times", made)
	}
	other := same
	other.Gas.Limit++
	var refused struct{ Code string }
	if status, err := doors[1].do(http.MethodPost, "/v1/intents", wish(other), &refused); status != 422 || refused.Code != "idempotency-conflict" {
		t.Errorf("another intent under its key: %d %s, %v", status, refused.Code, err)
	}
	w.create(t, doors, w.payments(200)...)
	w.done(t, first)
	check(t, first.Stop(w.ctx))
	check(t, second.Stop(w.ctx))
	w.judge(t)
	w.unbroken(t, signer, from)
	for _, r := range w.events(t) {
		if strings.HasPrefix(r.Name, "tx.rejected.") && bytes.Contains(bytes.ToLower(r.Data), []byte("nonce")) {
			t.Errorf("a node has refused a nonce: %s", r.Data)
		}
	}
}

// Intents are canceled before a lane claims them and after nodes have them, and sped up. They
// can be found by their key and hashes.
func TestWishes(t *testing.T) {
	t.Parallel()
	for _, k := range kinds() {
		t.Run(k.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, k, inFiles, "--lane-stall=1h") // only a command causes another signature
			s := w.relayer(t)
			s.Env = keys[:2]
			check(t, s.Start(w.ctx))
			c := w.client(t, s)
			early, late, slow := w.one(2, "early"), w.one(0, "late"), w.one(1, "slow")
			w.withdrawn(t, c, early)
			w.wished(t, c, late, slow)
			w.done(t, s)
			w.named(t, c, slow, true)
			canceled := []chain.IntentID{early.ID()}
			if w.named(t, c, late, false) { // otherwise its first transaction has landed, which is allowed
				w.canceled[late.ID()] = true
				canceled = []chain.IntentID{late.ID(), early.ID()}
			}
			w.becomes(t, "the list of canceled ones", func() bool { return slices.Equal(c.found(t, "status=canceled"), canceled) })
			check(t, s.Stop(w.ctx))
			w.judge(t)
		})
	}
}

// withdrawn submits an intent whose signer has no key here, and cancels it twice.
func (w *world) withdrawn(t *testing.T, c client, r intent.Request) {
	t.Helper()
	w.create(t, []client{c}, r)
	w.canceled[r.ID()] = true
	for range 2 {
		if got := c.must(t, http.StatusOK, http.MethodPost, at(r)+"/cancel", nil); got.Status != intent.StatusCanceled || len(got.Attempts) > 0 {
			t.Errorf("withdrawn before it was sent: %+v", got)
		}
	}
}

// wished submits two intents while the chain produces no blocks. When the node has them, it
// cancels one and speeds up the other. When the node has the replacements, blocks go on.
func (w *world) wished(t *testing.T, c client, late, slow intent.Request) {
	t.Helper()
	const fee = "200000000000"
	check(t, rig.Call(w.ctx, w.node.URL(), nil, "evm_setIntervalMining", 0))
	w.create(t, []client{c}, late, slow)
	w.pooled(t, c, late, intent.First)
	w.pooled(t, c, slow, intent.First)
	if got := c.must(t, http.StatusAccepted, http.MethodPost, at(late)+"/cancel", map[string]string{"reason": "mistake"}); got.Status != intent.StatusCanceling {
		t.Errorf("withdrawn after it was sent: %+v", got)
	}
	if got := c.must(t, http.StatusAccepted, http.MethodPost, at(slow)+"/speed-up", map[string]string{"feePerGas": fee}); got.LeastFee != fee {
		t.Errorf("sped up: %+v", got)
	}
	w.pooled(t, c, late, intent.First, intent.NoOp)
	w.pooled(t, c, slow, intent.First, intent.Bump)
	check(t, rig.Call(w.ctx, w.node.URL(), nil, "evm_setIntervalMining", 1))
}

// pooled waits until an intent has attempts of these kinds, and the node has the last one.
func (w *world) pooled(t *testing.T, c client, r intent.Request, kinds ...intent.AttemptKind) {
	t.Helper()
	w.becomes(t, fmt.Sprint(r.Key, " has ", kinds), func() bool {
		got := c.must(t, http.StatusOK, http.MethodGet, at(r), nil)
		if len(got.Attempts) < len(kinds) {
			return false
		}
		for i, made := range got.Attempts {
			if len(got.Attempts) > len(kinds) || made.Kind != kinds[i] {
				t.Fatalf("%s has %+v, want %v", r.Key, got.Attempts, kinds)
			}
		}
		var known *struct{ Hash chain.Hash }
		check(t, rig.Call(w.ctx, w.node.URL(), &known, "eth_getTransactionByHash", got.Attempts[len(kinds)-1].TxHash.String()))
		return known != nil
	})
}

// named checks the JSON of an intent that was done by one of two attempts, and that the intent
// is found by its key and by the first hash. It reports whether the second attempt landed.
func (w *world) named(t *testing.T, c client, r intent.Request, wanted bool) (second bool) {
	t.Helper()
	got := c.must(t, http.StatusOK, http.MethodGet, at(r)+"?wait=completed", nil)
	want := intent.StatusCompleted
	if second = *got.Outcome.TxHash == got.Attempts[1].TxHash; second && !wanted {
		want = intent.StatusCanceled
	}
	if got.Status != want || got.Waited.Reached != (want == intent.StatusCompleted) || !second && *got.Outcome.TxHash != got.Attempts[0].TxHash {
		t.Errorf("%s: %+v", r.Key, got)
	}
	if diff := cmp.Diff([]chain.IntentID{r.ID()}, c.found(t, "key="+r.Key+"&signer="+r.Signer.String())); diff != "" {
		t.Errorf("by its key: %s", diff)
	}
	by := "hash=" + got.Attempts[0].TxHash.String()
	w.becomes(t, "found by its hash", func() bool { return slices.Equal(c.found(t, by), []chain.IntentID{r.ID()}) })
	return second
}

func at(r intent.Request) string { return "/v1/intents/" + r.ID().String() }
