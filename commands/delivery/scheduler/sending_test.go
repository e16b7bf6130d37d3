package scheduler_test

import (
	"slices"
	"testing"
	"time"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
	"github.com/tempo-watchtower/watchtower/infra/chain/chaintest"
)

// With ten thousand transactions behind a missing nonce, the node sees only the attempts at
// the head, and no more calls than with a hundred.
func TestTenThousandBehindABlockedNonce(t *testing.T) {
	onBoth(t, func(t *testing.T, s stored) {
		d := deliver(t, s, chaintest.Rules{}, nil)
		head := transfer(0xa1, 5, 0)
		d.node.Set(chaintest.Faults{Refuse: func(s chain.Signed) *chaintest.Refusal {
			if s.Nonce == 0 && s.Sender == head.Sender {
				return &chaintest.Refusal{Code: -32000, Message: "max fee per gas less than block base fee"}
			}
			return nil
		}})
		d.start()
		first := d.accept(head)[0]
		const window, followers = 16, 15 + 18*555 // a little over ten thousand
		var hashes []chain.Hash
		submit := func(from, to uint64) {
			var some []chain.Signed
			for n := from; n < to; n++ {
				some = append(some, transfer(0xa1, 5, n))
			}
			hashes = append(hashes, d.accept(some...)...)
			d.row(hashes[len(hashes)-1])
		}
		submit(1, window) // these are sent once, as pools accept gaps
		for n := uint64(window); n <= followers; n += 555 {
			submit(n, n+555)
		}
		d.blocks(20)
		from, before := d.chain.Head().Number, d.calls()
		sentBefore := d.sent()
		d.blocks(250) // four minutes of a chain's seconds
		calls, blocks := d.calls()-before, d.chain.Head().Number-from
		sent := d.sent()
		if n := sent[first] - sentBefore[first]; n < 10 || n > 150 {
			t.Errorf("the head was sent %d times in %d blocks", n, blocks)
		}
		others := 0
		for i, hash := range hashes {
			if i >= window-1 && sent[hash] > 0 {
				t.Errorf("the transaction with nonce %d was sent", i+1)
			}
			others += sent[hash] - sentBefore[hash]
		}
		t.Logf("%d blocks: %d calls, head sent %d times, followers %d times; %v", blocks, calls, sent[first]-sentBefore[first], others, d.node.Calls())
		if others > 0 {
			t.Errorf("the followers were sent %d times more", others)
		}
		if most := 5 * int(blocks); calls > most {
			t.Errorf("%d calls in %d blocks, want at most %d", calls, blocks, most)
		}
		// All rows show the nonce that they wait for, and since when.
		for _, i := range []int{3, window - 2, window - 1, followers - 1} {
			w := d.row(hashes[i])
			if w.WaitNonce != 1 || w.WaitSince.IsZero() || w.Parked != (i >= window-1) {
				t.Errorf("nonce %d waits for %d since %s, parked %v", i+1, w.WaitNonce, w.WaitSince, w.Parked)
			}
		}
	})
}

// The queue learns a node's refusal of an account from one of its transactions, for all of
// them, once per block. Other accounts do not wait.
func TestAccountWithoutFunds(t *testing.T) {
	onBoth(t, func(t *testing.T, s stored) {
		d := deliver(t, s, chaintest.Rules{}, nil)
		d.chain.SetBroke(chain.Address{0xb0}, true)
		d.start()
		const broke = 500
		var poor []chain.Signed
		for i := range uint64(broke) {
			poor = append(poor, transfer(0xb0, i+1, 0))
		}
		hashes := d.accept(poor...)
		d.until("the account is on hold", func() bool { return !d.row(hashes[broke-1]).HeldSince.IsZero() })
		total := func() (n int) {
			sent := d.sent()
			for _, hash := range hashes {
				n += sent[hash]
			}
			return n
		}
		before, calls, from := total(), d.calls(), d.chain.Head().Number
		var late []time.Duration
		for i := range uint64(40) {
			began := time.Now()
			other := d.accept(transfer(0xc0, i+1, 0))[0]
			d.until("another is sent", func() bool { return d.sent()[other] > 0 })
			late = append(late, time.Since(began))
			d.blocks(3)
		}
		slices.Sort(late)
		middle, worst := late[len(late)/2], late[len(late)-1]
		probes, blocks := total()-before, int(d.chain.Head().Number-from)
		t.Logf("%d blocks: %d probes after %d sends, %d calls; others are sent within %s, %s at worst", blocks, probes, before, d.calls()-calls, middle, worst)
		if before > 200 {
			t.Errorf("%d sends until the account was on hold", before)
		}
		if probes > blocks+10 || probes < 5 {
			t.Errorf("%d probes in %d blocks", probes, blocks)
		}
		if middle > 100*time.Millisecond || worst > time.Second { // the machine has other work, too
			t.Errorf("another account's first attempt took %s, at worst %s", middle, worst)
		}
		d.chain.SetBroke(chain.Address{0xb0}, false)
		d.until("all are executed", func() bool { return len(d.chain.Executed()) == broke+40 })
		for _, hash := range []chain.Hash{hashes[0], hashes[broke-1]} {
			d.until("it is known", func() bool { return d.state(hash).Status == tx.StatusExecuted })
		}
	})
}

// One node accepts a transaction and its reply is lost; then every node refuses it for
// good. It is sent no more, but its result on the chain is recorded.
func TestInvalidAndExecuted(t *testing.T) {
	onBoth(t, func(t *testing.T, s stored) {
		d := deliver(t, s, chaintest.Rules{}, nil)
		d.every = 200 * time.Millisecond
		d.chain.Stall(true)
		d.node.Set(chaintest.Faults{Cut: 1})
		d.start()
		hash := d.accept(transfer(0xa1, 1, 0))[0]
		d.until("the pool has it", func() bool { return len(d.chain.Pooled()) == 1 })
		d.node.Set(chaintest.Faults{Refuse: func(chain.Signed) *chaintest.Refusal {
			return &chaintest.Refusal{Code: -32000, Message: "intrinsic gas too low"}
		}})
		d.until("it is invalid", func() bool { return d.state(hash).Status == tx.StatusInvalid })
		if s := d.state(hash); !s.Handed || s.Settled() {
			t.Errorf("handed %v, settled %v; want true, false", s.Handed, s.Settled())
		}
		d.until("it is watched", func() bool { return d.row(hash).Phase == tx.Watched })
		sent := d.sent()[hash]
		d.chain.Stall(false)
		d.until("it is executed", func() bool { return d.state(hash).Status == tx.StatusExecuted })
		if again := d.sent()[hash]; again != sent {
			t.Errorf("sent %d times more after it was invalid", again-sent)
		}
	})
}
