package main_test

import (
	"testing"
	"time"

	"github.com/tempo-watchtower/watchtower/cmd/devnet/wallet"
	"github.com/tempo-watchtower/watchtower/commands/delivery/canceler"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/proof/rig"
)

// subscription signs n payments of one group, starting at nonce first. Each transfers one unit,
// and cannot be mined before the chain reaches its nonce.
func subscription(owner wallet.Key, series byte, first, n uint64) (key chain.NonceKey, payments []rig.Payment) {
	key = chain.NonceKey{0x4e, 0x4b, 0x47, 0x31, 0x01, 0x02, 15: series, 19: 1}
	to := chain.Address{0: 0x78, 19: series}
	for nonce := first; nonce < first+n; nonce++ {
		payments = append(payments, rig.Pay(owner, wallet.Tempo{
			NonceKey: key, Nonce: nonce, Calls: []chain.Call{wallet.Transfer(wallet.PathUSD, to, 1)},
		}))
	}
	return key, payments
}

func canceled(t rig.Transaction) bool {
	return t.Status == "canceled_locally" && t.Canceled && t.Erased
}

func raws(payments []rig.Payment) (all [][]byte) {
	for _, p := range payments {
		all = append(all, p.Raw)
	}
	return all
}

// After a cancel no piece of the signed bytes, their sealed form or the keys is in the store's
// files, in a database dump, or in the log. Submitting again does not revive a canceled payment.
// A payment mined anyway is recorded as executed.
func TestCanceledBytesAreGone(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, store func(t *testing.T, dir string) []string) {
		w := newWorld(t, store, "--block-time", "1")
		owner := wallet.Dev(3)
		key, payments := subscription(owner, 1, 1, 20) // nonce 0 is missing
		s := w.service(t)
		s.Args = append(s.Args, "--log-level", "debug")
		check(t, s.Start(w.ctx))
		_, err := rig.Submit(w.ctx, s.URL, rig.TempoChain, raws(payments)...)
		check(t, err)
		_, err = rig.Await(w.ctx, s.URL, payments[0].Hash, func(t rig.Transaction) bool { return t.Attempts > 0 })
		check(t, err)
		check(t, s.Stop(w.ctx))

		secrets := newSecrets(t, w, key, payments)
		if n := secrets.sealed.in(w.data(t)); n == 0 {
			t.Fatal("the search does not even find what is kept")
		}

		check(t, s.Start(w.ctx))
		answer, err := rig.Cancel(w.ctx, s.URL, owner, key)
		check(t, err)
		if answer.Canceled != len(payments) {
			t.Errorf("%d of %d are canceled: %+v", answer.Canceled, len(payments), answer)
		}
		sent := w.proxy.Sent()
		results, err := rig.Submit(w.ctx, s.URL, rig.TempoChain, raws(payments)...)
		check(t, err)
		for _, r := range results {
			if !r.OK || !r.AlreadyKnown || r.Status != "canceled_locally" {
				t.Errorf("submitted again: %+v", r)
			}
		}
		s.Kill() // a graceful stop would clean up

		data := w.data(t)
		data["the log"] = readFile(t, s.Log)
		if n := secrets.raw.in(data) + secrets.sealed.in(data); n > 0 {
			t.Errorf("%d pieces of canceled transactions are left", n)
		}
		w.minedAllTheSame(t, s, owner, key, payments)
		for hash, n := range w.proxy.Sent() {
			if n != sent[hash] {
				t.Errorf("%s was sent %d times after it was canceled", hash, n-sent[hash])
			}
		}
	})
}

// minedAllTheSame has another sender submit the first canceled payments to the node.
func (w *world) minedAllTheSame(t *testing.T, s *rig.Service, owner wallet.Key, key chain.NonceKey, payments []rig.Payment) {
	t.Helper()
	check(t, s.Start(w.ctx))
	missing := rig.Pay(owner, wallet.Tempo{NonceKey: key, Calls: []chain.Call{wallet.Transfer(wallet.PathUSD, chain.Address{1}, 1)}})
	check(t, rig.Call(w.ctx, w.chain.URL(), nil, "anvil_dropAllTransactions")) // its pool may still have them
	for _, raw := range [][]byte{missing.Raw, payments[0].Raw} {
		check(t, rig.Call(w.ctx, w.chain.URL(), nil, "eth_sendRawTransaction", hexOf(raw)))
	}
	got, err := rig.Await(w.ctx, s.URL, payments[0].Hash, rig.Executed)
	check(t, err)
	if !got.Canceled || !got.Erased {
		t.Errorf("mined all the same: %+v", got)
	}
	for _, p := range payments[1:] {
		if got, err := rig.Get(w.ctx, s.URL, p.Hash); err != nil || !canceled(got) {
			t.Errorf("the others: %+v, %v", got, err)
		}
	}
	check(t, s.Stop(w.ctx))
}

// The service is killed during a cancel. After its restart all members are canceled and their
// bytes are gone, without another request.
func TestKilledWhileCanceling(t *testing.T) {
	t.Parallel()
	passes := map[string]string{"cancel.recorded": "1", "cancel.member": "7", "cancel.erased": "1"}
	engines(t, func(t *testing.T, store func(t *testing.T, dir string) []string) {
		for i, point := range canceler.CrashPoints() {
			t.Run(point, func(t *testing.T) {
				t.Parallel()
				w := newWorld(t, store, "--block-time", "1")
				owner := wallet.Dev(4)
				key, payments := subscription(owner, byte(2+i), 1, 20)
				s := w.service(t, "WATCHTOWER_CRASH_AT="+point+":"+passes[point])
				check(t, s.Start(w.ctx))
				_, err := rig.Submit(w.ctx, s.URL, rig.TempoChain, raws(payments)...)
				check(t, err)
				if _, err := rig.Cancel(w.ctx, s.URL, owner, key); err == nil {
					t.Fatal("answered, though it should have been killed")
				}
				select {
				case <-s.Ended():
				case <-w.ctx.Done():
					t.Fatalf("the service never came to %s", point)
				}
				s.Env = nil
				check(t, s.Start(w.ctx))
				for _, p := range payments {
					_, err := rig.Await(w.ctx, s.URL, p.Hash, canceled)
					check(t, err)
				}
				answer, err := rig.Cancel(w.ctx, s.URL, owner, key)
				if err != nil || answer.Canceled != len(payments) {
					t.Errorf("asked again: %d, %v", answer.Canceled, err)
				}
				check(t, s.Stop(w.ctx))
				for _, sealed := range w.payloads(t, payments) {
					t.Errorf("the bytes of %s are kept", sealed.Hash)
				}
			})
		}
	})
}

// A cancel at one replica finds the members that another replica acknowledged, no matter which
// replica folded the members. Each round has its own group: a signature over a group's id counts
// once.
func TestCancelOnAnotherReplica(t *testing.T) {
	t.Parallel()
	w := newWorld(t, shared, "--block-time", "1")
	first, second := w.service(t), w.service(t)
	check(t, first.Start(w.ctx))
	check(t, second.Start(w.ctx))
	owner := wallet.Dev(6)
	const rounds, each = 12, 5
	for i := range byte(rounds) {
		key, payments := subscription(owner, 20+i, 1, each)
		_, err := rig.Submit(w.ctx, first.URL, rig.TempoChain, raws(payments)...)
		check(t, err)
		answer, err := rig.Cancel(w.ctx, second.URL, owner, key)
		check(t, err)
		if answer.Canceled != each {
			t.Errorf("%d acknowledged, %d canceled", each, answer.Canceled)
		}
		for _, p := range payments {
			if got, err := rig.Get(w.ctx, first.URL, p.Hash); err != nil || !canceled(got) {
				t.Errorf("the first replica shows %+v, %v", got, err)
			}
		}
	}
	check(t, first.Stop(w.ctx))
	check(t, second.Stop(w.ctx))
}

// DELETE records that the owner has used the nonce elsewhere, if the chain confirms it.
func TestDeleteAsksTheChain(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, store func(t *testing.T, dir string) []string) {
		w := newWorld(t, store, "--block-time", "1")
		s := w.service(t)
		check(t, s.Start(w.ctx))
		owner, key := wallet.Dev(7), chain.NonceKey{31: 77}
		calls := []chain.Call{wallet.Transfer(wallet.PathUSD, chain.Address{2}, 1)}
		later := chain.Window{After: uint64(time.Now().Unix()) + 3600}
		scheduled := rig.Pay(owner, wallet.Tempo{NonceKey: key, Calls: calls, Window: later})
		rival := rig.Pay(owner, wallet.Tempo{NonceKey: key, Calls: calls})
		_, err := rig.Submit(w.ctx, s.URL, rig.TempoChain, scheduled.Raw)
		check(t, err)
		if status, says, err := rig.Delete(w.ctx, s.URL, scheduled.Hash); status != 400 || says != "nonce-still-current" {
			t.Errorf("nonce not used: %d %s, %v", status, says, err)
		}
		check(t, rig.Call(w.ctx, w.chain.URL(), nil, "eth_sendRawTransaction", hexOf(rival.Raw)))
		for {
			status, says, err := rig.Delete(w.ctx, s.URL, scheduled.Hash)
			if status == 200 && says == "stale_by_nonce" {
				break
			}
			if err != nil || status != 400 {
				t.Fatalf("nonce used: %d %s, %v", status, says, err)
			}
			select { // its block is still to come
			case <-w.ctx.Done():
				t.Fatal("never stale")
			case <-time.After(50 * time.Millisecond):
			}
		}
		got, err := rig.Get(w.ctx, s.URL, scheduled.Hash)
		if err != nil || got.Status != "stale_by_nonce" {
			t.Errorf("shown as %+v, %v", got, err)
		}
		check(t, s.Stop(w.ctx))
	})
}
