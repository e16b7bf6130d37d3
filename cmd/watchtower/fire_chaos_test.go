//go:build chaos

package main_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tempo-watchtower/watchtower/cmd/devnet/wallet"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/infra/chain/chaintest"
	"github.com/tempo-watchtower/watchtower/proof/rig"
)

// newSimulated is a world whose chain has all rules of the real one. anvil lacks expiring
// nonces, and access keys that must be registered on the chain.
func newSimulated(t *testing.T, store func(t *testing.T, dir string) []string) (*world, *chaintest.Chain, []*chaintest.Node) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	w := &world{ctx: ctx, dir: t.TempDir(), confirmations: 2}
	simulated := chaintest.New(chaintest.Options{Chain: rig.TempoChain, Decode: decodeTempo})
	t.Cleanup(simulated.Close)
	var nodes []*chaintest.Node
	var urls []string
	for _, name := range []string{"a", "b"} {
		node := simulated.Node(name)
		served := httptest.NewServer(node)
		t.Cleanup(served.Close)
		nodes, urls = append(nodes, node), append(urls, served.URL)
	}
	w.store, w.chains = store(t, w.dir), fmt.Sprintf("%d=%s", rig.TempoChain, strings.Join(urls, ","))
	var mining sync.WaitGroup
	mining.Go(func() { simulated.Run(ctx, 500*time.Millisecond) })
	t.Cleanup(func() { cancel(); mining.Wait() })
	return w, simulated, nodes
}

func set(nodes []*chaintest.Node, f chaintest.Faults) {
	for _, n := range nodes {
		n.Set(f)
	}
}

// once checks that the chain executed each payment in executed once, and no payment in not.
func once(t *testing.T, c *chaintest.Chain, executed, not []rig.Payment) {
	t.Helper()
	times := c.Executed()
	for _, p := range executed {
		if times[p.Hash] != 1 {
			t.Errorf("%s is executed %d times", p.Hash, times[p.Hash])
		}
	}
	for _, p := range not {
		if times[p.Hash] != 0 {
			t.Errorf("%s is executed, after its window", p.Hash)
		}
	}
}

// Transactions with expiring nonces live half a minute. The nodes are down for a part of that,
// and the service is killed meanwhile. Deliverable transactions are delivered, the others are
// reported expired, and none is sent outside its window.
func TestExpiringNoncesInAnOutage(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, store func(t *testing.T, dir string) []string) {
		w, simulated, nodes := newSimulated(t, store)
		s := w.service(t)
		check(t, s.Start(w.ctx))
		set(nodes, chaintest.Faults{Down: true})
		const gone = 15 // seconds after which some are too late
		now := uint64(time.Now().Unix())
		pay := func(n int, before uint64) rig.Payment {
			return rig.Pay(wallet.Dev(n%wallet.Devs), wallet.Tempo{
				NonceKey: chain.ExpiringKey, Window: chain.Window{Before: before},
				Calls: []chain.Call{wallet.Transfer(wallet.PathUSD, chain.Address{1}, uint64(n+1))},
			})
		}
		var late, lost []rig.Payment
		for n := range 15 {
			late, lost = append(late, pay(n, now+29)), append(lost, pay(n+100, now+gone))
		}
		if acked := load(w.ctx, s, append(late, lost...), 8); len(acked) != len(late)+len(lost) {
			t.Fatalf("%d acknowledged", len(acked))
		}
		w.wait(5 * time.Second)
		s.Kill()
		check(t, s.Start(w.ctx))
		w.wait(time.Until(time.Unix(int64(now)+gone+1, 0)))
		set(nodes, chaintest.Faults{})
		back := time.Now()
		w.delivered(t, s.URL, late, rig.Sealed)
		t.Logf("%d executed %v after the nodes were back", len(late), time.Since(back).Round(time.Millisecond))
		for _, p := range lost {
			_, err := rig.Await(w.ctx, s.URL, p.Hash, func(t rig.Transaction) bool { return t.Finalized && t.Status == "expired" })
			check(t, err)
		}
		once(t, simulated, late, lost)
		for _, d := range simulated.Received() {
			for _, p := range lost {
				if d.Hash == p.Hash && d.At.Unix() >= int64(now)+gone {
					t.Errorf("%s was sent after its window", p.Hash)
				}
			}
		}
		check(t, s.Stop(w.ctx))
	})
}

// delegate signs for an account as its access key: 0x03, the account, and the key's signature.
type delegate struct {
	account chain.Address
	wallet.Key
}

func (d delegate) Sign(digest chain.Hash) []byte {
	return append(append([]byte{0x03}, d.account[:]...), d.Key.Sign(digest)...)
}

// Owners use access keys before they are registered on the chain. Meanwhile nodes lose requests
// and replies, and the service is killed repeatedly. No transaction is called invalid, and all
// are delivered once the keys are registered.
func TestAccessKeysUnderFire(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, store func(t *testing.T, dir string) []string) {
		w, simulated, nodes := newSimulated(t, store)
		var mu sync.Mutex
		known := false
		account := wallet.Dev(1).Address()
		fire := chaintest.Faults{Lose: 0.05, Cut: 0.1, CutAll: 0.05, Fail: 0.05, Refuse: func(signed chain.Signed) *chaintest.Refusal {
			mu.Lock()
			defer mu.Unlock()
			if signed.AccessKey == nil || known {
				return nil
			}
			return &chaintest.Refusal{Code: -32000, Message: "keychain validation failed: access key does not exist"}
		}}
		set(nodes, fire)
		key := delegate{account, wallet.Dev(7)}
		var payments []rig.Payment
		for n := range 60 {
			nonceKey := subscriptionKey(77, n/6)
			payments = append(payments, rig.Pay(key, wallet.Tempo{
				NonceKey: nonceKey, Nonce: uint64(n % 6), Calls: []chain.Call{wallet.Transfer(wallet.PathUSD, chain.Address{1}, 1)},
			}))
		}
		dice := rand.New(rand.NewPCG(3, 3))
		s := w.service(t)
		check(t, s.Start(w.ctx))
		acked := map[chain.Hash]bool{}
		for some := range chunks(payments, 20) {
			for hash := range load(w.ctx, s, some, 4) {
				acked[hash] = true
			}
			w.wait(time.Duration(500+dice.IntN(1500)) * time.Millisecond)
			s.Kill()
			check(t, s.Start(w.ctx))
		}
		w.wait(3 * time.Second)
		for _, p := range payments {
			got, err := rig.Get(w.ctx, s.URL, p.Hash)
			if err != nil || got.Status == "invalid" || got.Finalized {
				t.Errorf("before its key is known: %+v, %v", got, err)
			}
		}
		simulated.SetGrant(chain.AccessKey{Account: account, Key: wallet.Dev(7).Address()}, chain.Grant{Known: true, Kind: chain.Secp256k1, Expires: uint64(time.Now().Unix()) + 3600})
		mu.Lock()
		known = true
		mu.Unlock()
		granted := time.Now()
		s.Kill() // once more, while it learns of the key
		check(t, s.Start(w.ctx))
		set(nodes, chaintest.Faults{})
		w.delivered(t, s.URL, payments, rig.Sealed)
		t.Logf("%d acknowledged, all sealed %v after the chain had learnt of the key", len(acked), time.Since(granted).Round(time.Millisecond))
		once(t, simulated, payments, nil)
		check(t, s.Stop(w.ctx))
	})
}
