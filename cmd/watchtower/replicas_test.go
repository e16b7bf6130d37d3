package main_test

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/tempo-watchtower/watchtower/cmd/devnet/wallet"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/infra/testenv"
	"github.com/tempo-watchtower/watchtower/proof/rig"
)

// shared is a store that several replicas can use.
func shared(t *testing.T, dir string) []string {
	if os.Getenv(engineVar) == "eventstoredb" {
		return eventStore(t, dir)
	}
	return []string{"--store", testenv.Postgres(t), "--vault-key-file", filepath.Join(dir, "vault.key")}
}

// pair starts two replicas, of which the first owns everything.
func (w *world) pair(t *testing.T) (owner, other *rig.Service) {
	t.Helper()
	owner, other = w.service(t), w.service(t)
	w.startPair(t, owner, other)
	return owner, other
}

// startPair starts two replicas. The second starts when the first has delivered a payment and so
// owns everything.
func (w *world) startPair(t *testing.T, owner, other *rig.Service) {
	t.Helper()
	check(t, owner.Start(w.ctx))
	warm, _ := rig.Payments(9999, 20)
	w.submit(t, owner, warm, 4)
	w.delivered(t, owner.URL, warm, rig.Executed)
	check(t, other.Start(w.ctx))
}

// late is the longest time of a payment from its recorded acceptance to a node's first recorded
// answer.
func (w *world) late(t *testing.T, url string, payments []rig.Payment) time.Duration {
	t.Helper()
	longest := time.Duration(0)
	for _, p := range payments {
		events, err := rig.Events(w.ctx, url, p.Hash)
		check(t, err)
		if len(events) < 2 {
			t.Fatalf("%s has %d events", p.Hash, len(events))
		}
		longest = max(longest, events[1].At.Sub(events[0].At))
	}
	return longest
}

// Replicas are replaced one after the other while clients post to all of them. Nothing is lost,
// and no first attempt waits longer than a lease.
func TestRollingRestart(t *testing.T) {
	w := newWorld(t, shared, "--block-time", "1")
	replicas := make([]*rig.Service, 3)
	for i := range replicas {
		replicas[i] = w.service(t)
		check(t, replicas[i].Start(w.ctx))
	}
	// The addresses change with each start; clients learn the new ones.
	var mu sync.Mutex
	urls := func() []string {
		mu.Lock()
		defer mu.Unlock()
		var all []string
		for _, r := range replicas {
			all = append(all, r.URL)
		}
		return all
	}
	payments, to := rig.Payments(9200, 900)
	var restarting sync.WaitGroup
	restarting.Go(func() {
		for _, r := range replicas {
			w.wait(time.Second)
			if err := r.Stop(w.ctx); err != nil {
				t.Error(err)
			}
			next := *r
			if err := next.Start(w.ctx); err != nil {
				t.Error(err)
				return
			}
			mu.Lock()
			*r = next
			mu.Unlock()
		}
	})
	for some := range chunks(payments, 30) {
		w.insist(t, some, 6, urls()...)
	}
	restarting.Wait()
	w.delivered(t, urls()[0], payments, rig.Executed)
	late := w.late(t, urls()[0], payments)
	rig.Within(t, late, 5*time.Second, "the last first answer came")
	w.paidOnce(t, to, len(payments))
	for _, r := range replicas {
		check(t, r.Stop(w.ctx))
	}
}

func chunks[T any](all []T, n int) func(yield func([]T) bool) {
	return func(yield func([]T) bool) {
		for from := 0; from < len(all); from += n {
			if !yield(all[from:min(from+n, len(all))]) {
				return
			}
		}
	}
}

// All replicas are killed at once, under load.
func TestAllReplicasKilled(t *testing.T) {
	t.Parallel()
	w := newWorld(t, shared, "--block-time", "1")
	first, second := w.service(t), w.service(t)
	check(t, first.Start(w.ctx))
	check(t, second.Start(w.ctx))
	payments, to := rig.Payments(9300, 400)
	acked := loadAnd(w.ctx, first, payments, 8, 150, func() {
		first.Kill()
		second.Kill()
	})
	if len(acked) == len(payments) {
		t.Fatal("all were acknowledged before the kill")
	}
	restarted := time.Now()
	check(t, second.Start(w.ctx))
	for hash := range acked {
		_, err := rig.Await(w.ctx, second.URL, hash, func(t rig.Transaction) bool {
			return t.Attempts > 0 || rig.Executed(t) // sent before the kill, but not recorded before it
		})
		check(t, err)
	}
	t.Logf("every one of %d acknowledged had been sent %v after the restart began", len(acked), time.Since(restarted).Round(time.Millisecond))
	w.insist(t, payments, 8, second.URL)
	w.delivered(t, second.URL, payments, rig.Sealed)
	w.paidOnce(t, to, len(payments))
	check(t, second.Stop(w.ctx))
}

// A replica that owns everything is frozen for longer than any lease, and wakes up after another
// took over. It neither overwrites the other's work nor blocks it.
func TestFrozenReplica(t *testing.T) {
	t.Parallel()
	w := newWorld(t, shared, "--block-time", "1")
	first, second := w.pair(t)
	payments, to := rig.Payments(9401, 300)
	w.submit(t, first, payments[:100], 8) // its workers are busy with these
	check(t, first.Signal(syscall.SIGSTOP))
	frozen := time.Now()
	w.insist(t, payments[100:200], 8, second.URL)
	w.delivered(t, second.URL, payments[:200], rig.Executed)
	t.Logf("all were executed %v after the freeze began", time.Since(frozen).Round(time.Millisecond))
	w.wait(15*time.Second - time.Since(frozen))
	check(t, first.Signal(syscall.SIGCONT))
	w.insist(t, payments[200:], 8, first.URL, second.URL)
	w.delivered(t, second.URL, payments, rig.Sealed)
	w.delivered(t, first.URL, payments, rig.Sealed)
	w.paidOnce(t, to, len(payments))
	check(t, first.Stop(w.ctx))
	check(t, second.Stop(w.ctx))
}

// An account is without funds, and later has some. Transactions that wait for it are neither
// called invalid nor forgotten.
func TestFundsOutAndBack(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, store func(t *testing.T, dir string) []string) {
		w := newWorld(t, store, "--block-time", "1")
		s := w.service(t)
		check(t, s.Start(w.ctx))
		poor, err := wallet.NewP256(chain.Keccak([]byte(t.Name())))
		check(t, err)
		to := chain.Address{0: 0x77, 19: 9}
		payments := make([]rig.Payment, 5)
		for i := range payments {
			payments[i] = rig.Pay(poor, wallet.Tempo{NonceKey: chain.NonceKey{31: byte(i + 1)}, Calls: []chain.Call{wallet.Transfer(wallet.PathUSD, to, 1)}})
		}
		w.submit(t, s, payments, 2)
		for _, p := range payments {
			_, err := rig.Await(w.ctx, s.URL, p.Hash, func(t rig.Transaction) bool { return t.Status == "retry_scheduled" || t.Note != "" })
			check(t, err)
		}
		w.wait(3 * time.Second)
		for _, p := range payments {
			got, err := rig.Get(w.ctx, s.URL, p.Hash)
			check(t, err)
			if got.Status != "retry_scheduled" && got.Status != "queued" {
				t.Errorf("without funds it is %s (%s)", got.Status, got.LastError)
			}
		}
		gift := rig.Pay(wallet.Dev(0), wallet.Tempo{
			NonceKey: chain.NonceKey{31: 77}, Calls: []chain.Call{wallet.Transfer(wallet.PathUSD, poor.Address(), 100_000_000)},
		})
		w.call(t, "eth_sendRawTransaction", fmt.Sprintf("0x%x", gift.Raw))
		funded := time.Now()
		w.delivered(t, s.URL, payments, rig.Executed)
		t.Logf("executed %v after the funds were sent", time.Since(funded).Round(time.Millisecond))
		w.paidOnce(t, to, len(payments))
		check(t, s.Stop(w.ctx))
	})
}
