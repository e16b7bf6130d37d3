package main_test

import (
	"fmt"
	"math/big"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/tempo-watchtower/watchtower/cmd/devnet/wallet"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/relay/intent"
	"github.com/tempo-watchtower/watchtower/domain/relay/lane"
	"github.com/tempo-watchtower/watchtower/domain/relay/signer"
	"github.com/tempo-watchtower/watchtower/proof/rig"
)

// The faults of a running relay, except two: crashes are in TestKilledAtEveryPoint, and a holder
// cut off from its log, or with a lost lease, is in TestTakenOverBehindItsBack.

// call calls a method of the node directly.
func (w *world) call(t *testing.T, method string, params ...any) {
	t.Helper()
	check(t, rig.Call(w.ctx, w.node.URL(), nil, method, params...))
}

// still stops block production except on request; goes resumes it.
func (w *world) still(t *testing.T) { t.Helper(); w.call(t, "evm_setIntervalMining", 0) }
func (w *world) goes(t *testing.T)  { t.Helper(); w.call(t, "evm_setIntervalMining", 1) }

// several are payments of a signer, with a gas limit, so that no node has to estimate it.
func (w *world) several(signer, n int, what string) (requests []intent.Request) {
	for i := range n {
		requests = append(requests, w.one(signer, fmt.Sprintf("%s-%d", what, i)))
	}
	return requests
}

// attempts lists a signer's attempts in the log, in log order.
func (w *world) attempts(t *testing.T, n int) (made []lane.Attempted) {
	t.Helper()
	for _, r := range w.events(t) {
		if s, err := lane.ParseStream(r.Stream); err == nil && s.Sender == wallet.Dev(n).Address() {
			e, err := lane.Codec().Decode(r.Name, r.Data)
			check(t, err)
			if a, ok := e.(lane.Attempted); ok {
				made = append(made, a)
			}
		}
	}
	return made
}

// A signer has no funds. Expected: a node's refusal teaches how much is too little, and below
// that the signer accepts no more. Intents wait without harm. With enough funds it goes on
// automatically, without a bump, and each payment is made once.
func TestFundsRunOut(t *testing.T) {
	t.Parallel()
	w := newWorld(t, kinds()[1], inFiles, "--lane-stall=1h")
	w.call(t, "anvil_setBalance", wallet.Dev(0).Address().String(), "0x5")
	s := w.relayer(t)
	check(t, s.Start(w.ctx))
	c := w.client(t, s)
	first, later := w.payments(3), w.several(0, 3, "later")
	w.create(t, []client{c}, first...)
	w.becomes(t, "the signer is low", func() bool {
		var shown signerShown
		status, err := w.operator(s).do(http.MethodGet, "/admin"+w.key(0), nil, &shown)
		return err == nil && status == http.StatusOK && shown.Status == signer.StatusLow
	})
	w.create(t, []client{c}, later...)
	other := w.one(1, "of-another")
	w.create(t, []client{c}, other)
	w.becomes(t, "another signer serves", func() bool { return w.status(t, c, other) == intent.StatusCompleted })
	for _, r := range later {
		if got := w.status(t, c, r); got != intent.StatusWaiting {
			t.Errorf("%s is %s", r.Key, got)
		}
	}
	w.call(t, "anvil_setBalance", wallet.Dev(0).Address().String(), "0x56bc75e2d63100000")
	w.done(t, s)
	check(t, s.Stop(w.ctx))
	w.judge(t)
	if n := len(w.attempts(t, 0)); n != 6 {
		t.Errorf("%d were signed for 6", n)
	}
}

// The node is unreachable while intents arrive; then its answers are lost; then it is
// unreachable while it mines. Expected: each time work resumes with the same bytes, and each
// payment is made once.
func TestParted(t *testing.T) {
	t.Parallel()
	w := newWorld(t, kinds()[1], inFiles, "--lane-stall=1h")
	d := w.throughDoor(t)
	s := w.relayer(t)
	check(t, s.Start(w.ctx))
	c := []client{w.client(t, s)}

	d.set(shut)
	w.create(t, c, w.several(0, 4, "shut")...)
	w.becomes(t, "the relayer has tried again and again", func() bool { return d.lost.Load() > 10 })
	d.set(open)
	w.done(t, s)

	d.set(deaf)
	w.create(t, c, w.payments(4)...)
	w.becomes(t, "answers are lost", func() bool { return d.lost.Load() > 10 })
	d.set(open)
	w.done(t, s)

	w.still(t)
	last := w.several(0, 4, "mined")
	w.create(t, c, last...)
	for _, r := range last {
		w.pooled(t, c[0], r, intent.First)
	}
	d.set(shut)
	w.call(t, "anvil_mine", 5)
	w.becomes(t, "nobody can tell", func() bool { return d.lost.Load() > 10 })
	d.set(open)
	w.goes(t)
	w.done(t, s)
	check(t, s.Stop(w.ctx))
	w.judge(t)
	if n := len(w.attempts(t, 0)); n != 12 {
		t.Errorf("%d were signed for 12", n)
	}
}

// No block is produced, and gas then costs more than allowed. Expected: the nonce is signed
// repeatedly, each time for at least a tenth more, up to the ceiling. New intents above the
// ceiling wait without a nonce. When gas is cheap again one of the attempts is mined, and so are
// the waiting intents.
func TestNonceStalls(t *testing.T) {
	t.Parallel()
	const ceiling = 4_000_000_000
	const most = ceiling * 10 / 11 // for intents: leaves room for a no-op to replace it
	w := newWorld(t, kinds()[1], inFiles, "--lane-stall=1s", fmt.Sprint("--fee-ceiling=", ceiling))
	s := w.relayer(t)
	check(t, s.Start(w.ctx))
	c := w.client(t, s)
	w.still(t)
	stalled, dear := w.payments(1)[0], w.one(1, "dear")
	w.create(t, []client{c}, stalled)
	w.becomes(t, "bumped to the ceiling", func() bool {
		made := w.attempts(t, 0)
		return len(made) > 2 && made[len(made)-1].Fee.MaxFee.Int().Uint64()*11/10 > most
	})
	made := w.attempts(t, 0)
	for i, a := range made {
		fee := a.Fee.MaxFee.Int().Uint64()
		if fee > most || i > 0 && (fee < made[i-1].Fee.MaxFee.Int().Uint64()*11/10 || a.Nonce != made[0].Nonce) {
			t.Errorf("attempt %d: %+v", i, a)
		}
	}
	w.call(t, "anvil_setNextBlockBaseFeePerGas", fmt.Sprintf("%#x", 2*ceiling))
	w.call(t, "evm_mine")
	w.create(t, []client{c}, dear)
	w.becomes(t, "it is too dear", func() bool {
		for range s.Logged("lane fails, retrying") {
			return true
		}
		return false
	})
	if got := w.status(t, c, dear); got != intent.StatusWaiting {
		t.Errorf("what is too dear is %s", got)
	}
	w.call(t, "anvil_setNextBlockBaseFeePerGas", "0x3b9aca00")
	w.goes(t)
	w.done(t, s)
	check(t, s.Stop(w.ctx))
	w.judge(t)
}

// Blocks are replaced by blocks without their transactions. Expected: the same bytes are
// delivered again, without a new signature. Clients are notified that the receipt is gone, and
// then of the whole new list of confirmations, with newFork.
func TestReorg(t *testing.T) {
	t.Parallel()
	w := newWorld(t, kinds()[1], inFiles, append(webhookFlags(t), "--lane-confirmations=3", "--lane-stall=1h")...)
	w.flags = append(without(w.flags, "--confirmations="), fmt.Sprintf("--confirmations=%d=8", w.id))
	h, requests := newHook(t), w.several(0, 3, "reorged")
	for i := range requests {
		requests[i].Webhooks = []intent.Webhook{{URL: h.url}}
	}
	w.ask(t, requests...)
	w.call(t, "anvil_mine", 3) // otherwise no blocks are below them
	s := w.relayer(t)
	check(t, s.Start(w.ctx))
	for _, r := range requests {
		w.becomes(t, "three confirmations are told", func() bool {
			before, _ := h.lists(r.ID())
			return len(before) == 3
		})
	}
	w.still(t)
	oldest, _ := h.lists(requests[0].ID())
	for _, r := range requests {
		if before, _ := h.lists(r.ID()); before[0].Number < oldest[0].Number {
			oldest = before
		}
	}
	var head string
	check(t, rig.Call(w.ctx, w.node.URL(), &head, "eth_blockNumber"))
	height, err := strconv.ParseUint(head, 0, 64)
	check(t, err)
	w.call(t, "anvil_reorg", height-oldest[0].Number+1, []any{})
	w.goes(t)
	for _, r := range requests {
		w.becomes(t, "three others are told", func() bool {
			_, since := h.lists(r.ID())
			return len(since) == 3
		})
		before, since := h.lists(r.ID())
		for i, b := range since {
			if slices.Contains(before, b) || i > 0 && b.Parent != since[i-1].Hash {
				t.Errorf("%s: %+v came after %+v", r.Key, since, before)
			}
		}
	}
	w.done(t, s)
	w.told(t, h, func(chain.IntentID) bool { return true })
	check(t, s.Stop(w.ctx))
	w.judge(t)
	if n := len(w.attempts(t, 0)); n != 3 {
		t.Errorf("%d were signed for 3", n)
	}
}

// The relay loses its data beside the log, and another sender uses its key: before the relay
// starts, so that the chain is ahead, and while it runs, on a signed nonce. Expected: queue and
// rows are rebuilt from the log. The cursor follows the chain forward, with recorded evidence,
// and never goes back. An intent that lost its nonce gets another when the stranger's block is
// final. Each payment is made once.
func TestStateIsLost(t *testing.T) {
	t.Parallel()
	w := newWorld(t, kinds()[1], inFiles, "--lane-stall=1h", "--lane-look=1s")
	s := w.relayer(t)
	check(t, s.Start(w.ctx))
	w.create(t, []client{w.client(t, s)}, w.several(0, 3, "first")...)
	w.done(t, s)
	w.still(t)
	w.create(t, []client{w.client(t, s)}, w.several(0, 3, "open")...)
	w.becomes(t, "they are signed for", func() bool { return len(w.attempts(t, 0)) == 6 })
	s.Kill()
	for _, file := range []string{"read.db", "read.db-wal", "read.db-shm"} {
		if err := os.Remove(filepath.Join(w.dir, "data", file)); err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
	}
	used := w.wants(t, wallet.Dev(0).Address())
	w.strange(t, used) // the lane has signed for this nonce
	w.call(t, "evm_mine")
	check(t, s.Start(w.ctx))
	w.create(t, []client{w.client(t, s)}, w.several(0, 3, "then")...)
	w.goes(t)
	w.done(t, s)
	check(t, s.Stop(w.ctx))

	ahead := w.wants(t, wallet.Dev(0).Address())
	w.strange(t, ahead) // the lane has not reserved this nonce
	w.becomes(t, "it is used", func() bool { return w.wants(t, wallet.Dev(0).Address()) > ahead })
	check(t, s.Start(w.ctx))
	w.create(t, []client{w.client(t, s)}, w.several(0, 3, "last")...)
	w.done(t, s)
	check(t, s.Stop(w.ctx))
	w.judge(t)
	lost, advanced := false, false
	for _, r := range w.events(t) {
		if !strings.HasPrefix(string(r.Stream), lane.StreamPrefix) {
			continue
		}
		e, err := lane.Codec().Decode(r.Name, r.Data)
		check(t, err)
		switch e := e.(type) {
		case lane.Lost:
			lost = lost || e.Nonce == used && e.Witness.Final && e.Witness.Nonce > used
		case lane.Advanced:
			advanced = advanced || e.From == ahead && e.Witness.Nonce == ahead+1
		}
	}
	if !lost || !advanced {
		t.Errorf("that nonce %d is lost is recorded: %t; that the chain is past %d: %t", used, lost, ahead, advanced)
	}
}

// strange makes another sender use a nonce of the first signer.
func (w *world) strange(t *testing.T, nonce uint64) {
	t.Helper()
	price := big.NewInt(100_000_000_000)
	var hash chain.Hash
	check(t, rig.Call(w.ctx, w.node.URL(), &hash, "eth_sendTransaction", map[string]string{
		"from": wallet.Dev(0).Address().String(), "to": wallet.Dev(5).Address().String(), "value": "0x1", "gas": "0x5208",
		"nonce": fmt.Sprintf("%#x", nonce), "maxFeePerGas": fmt.Sprintf("%#x", price), "maxPriorityFeePerGas": fmt.Sprintf("%#x", price),
	}))
	w.strangers[hash] = true
}
