package chaintest

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/tempo-watchtower/watchtower/domain/chain"
)

func TestReorg(t *testing.T) {
	c, _ := fresh(t, Rules{Finality: 10})
	mine(t, c)
	var hashes []chain.Hash
	for nonce := range uint64(3) {
		hashes = append(hashes, mustSend(t, c, tx(alice, key5, nonce)))
		mine(t, c)
	}
	old := c.Head()
	if err := c.Reorg(2, false); err != nil {
		t.Fatal(err)
	}
	if head := c.Head(); head.Number != old.Number || head.Hash == old.Hash {
		t.Errorf("head is %+v, was %+v", head, old)
	}
	if !isExecuted(c, hashes[0]) || isExecuted(c, hashes[1]) || isExecuted(c, hashes[2]) || len(c.Pooled()) != 0 {
		t.Error("two blocks deep is not two transactions deep")
	}
	if got := c.Nonce(chain.Sequence{Chain: id, Sender: alice, Key: key5}); got != 1 {
		t.Errorf("next nonce %d", got)
	}
	mustSend(t, c, tx(alice, key5, 1))
	mine(t, c)
	if got := c.History(hashes[1]); len(got) != 2 || got[0].Hash == got[1].Hash {
		t.Errorf("history %+v", got)
	}
	if err := c.Reorg(1, true); err != nil {
		t.Fatal(err)
	}
	if got := c.Pooled(); !slices.Equal(got, hashes[1:2]) {
		t.Errorf("reinjected %v", got)
	}
	mine(t, c)
	if !isExecuted(c, hashes[1]) {
		t.Error("not executed again")
	}
}

func TestReorgWithARival(t *testing.T) {
	c, _ := fresh(t, Rules{Finality: 10})
	ours := tx(alice, key5, 0)
	hash := mustSend(t, c, ours)
	mine(t, c)
	rival := ours
	rival.Gas++
	raw := EncodePlain(rival)
	if err := c.Reorg(1, true, raw); err != nil {
		t.Fatal(err)
	}
	if isExecuted(c, hash) || !isExecuted(c, chain.Keccak(raw)) || len(c.Pooled()) != 0 {
		t.Error("the rival did not take the nonce")
	}
	if _, refusal := send(c, ours); refusal == nil || refusal.Message != "nonce too low: next nonce 1, tx nonce 0" {
		t.Errorf("ours: %+v", refusal)
	}
	before := c.Head()
	if err := c.Reorg(1, true, EncodePlain(tx(alice, key5, 7))); err == nil {
		t.Error("a block with a gap")
	}
	if after := c.Head(); after != before || !isExecuted(c, chain.Keccak(raw)) {
		t.Error("a refused reorg changed the chain")
	}
	checkOnce(t, c)
}

func TestFinality(t *testing.T) {
	c, _ := fresh(t, Rules{Finality: 2})
	for range 5 {
		mine(t, c)
	}
	if got := c.Final().Number; got != 3 {
		t.Fatalf("final is %d", got)
	}
	if err := c.Reorg(3, false); !errors.Is(err, ErrBelowFinal) {
		t.Errorf("reorg below final: %v", err)
	}
	if err := c.Reorg(6, false); err == nil || errors.Is(err, ErrBelowFinal) {
		t.Errorf("reorg of the genesis: %v", err)
	}
	sealed := c.Final()
	if err := c.ReorgBelowFinal(3, false); err != nil {
		t.Fatal(err)
	}
	if got := c.Final(); got.Number != sealed.Number || got.Hash == sealed.Hash {
		t.Errorf("final is %+v, was %+v", got, sealed)
	}
	c.StallFinality(true)
	mine(t, c)
	if got := c.Final().Number; got != 3 {
		t.Errorf("final is %d", got)
	}
	if err := c.Rollback(2); err != nil {
		t.Fatal(err)
	}
	if got := c.Head().Number; got != 4 {
		t.Errorf("head is %d", got)
	}
}

func TestRevert(t *testing.T) {
	c, _ := fresh(t, Rules{})
	raw := EncodePlain(tx(alice, key5, 0))
	hash := chain.Keccak(raw)
	c.Revert(hash, true)
	mine(t, c, raw)
	if r, _ := c.Receipt(hash); r.Status != 0 {
		t.Errorf("receipt %+v", r)
	}
	if got := c.Nonce(chain.Sequence{Chain: id, Sender: alice, Key: key5}); got != 1 {
		t.Errorf("next nonce %d", got)
	}
	c.Revert(hash, false)
	if err := c.ReorgBelowFinal(1, true); err != nil {
		t.Fatal(err)
	}
	mine(t, c)
	if r, _ := c.Receipt(hash); r.Status != 1 {
		t.Errorf("receipt after the reorg %+v", r)
	}
}

func TestRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := New(Options{Chain: id, Decode: DecodePlain})
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { c.Run(ctx, time.Second); close(done) }()
		<-time.After(3*time.Second + time.Millisecond)
		c.Stall(true)
		<-time.After(5 * time.Second)
		c.Stall(false)
		<-time.After(2 * time.Second)
		cancel()
		<-done
		if head := c.Head(); head.Number != 5 {
			t.Errorf("head %+v", head)
		}
	})
}

// TestForksKeepTheRules forks, mines, drops and rolls back at random. After each step it checks
// that the indexes match the blocks.
func TestForksKeepTheRules(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		at := time.Unix(1_800_000_000, 0)
		c := New(Options{
			Chain: id, Decode: DecodePlain, Now: func() time.Time { return at },
			Rand: rand.New(rand.NewPCG(1, 2)), Rules: Rules{Finality: 4},
		})
		orphans := map[chain.Hash]map[chain.Sequence]uint64{}
		for range rapid.IntRange(1, 30).Draw(r, "steps") {
			switch rapid.IntRange(0, 5).Draw(r, "step") {
			case 0, 1:
				signed := tx(alice, chain.NonceKey{31: rapid.Byte().Draw(r, "key") % 2}, rapid.Uint64Range(0, 4).Draw(r, "nonce"))
				signed.Gas = rapid.Uint64Range(1, 2).Draw(r, "gas")
				send(c, signed)
			case 2, 3:
				if _, err := c.Mine(); err != nil {
					r.Fatal(err)
				}
			case 4:
				c.ReorgBelowFinal(rapid.IntRange(1, 3).Draw(r, "depth"), rapid.Bool().Draw(r, "reinject")) //nolint:errcheck // too deep is fine
			case 5:
				c.Rollback(1) //nolint:errcheck // too deep is fine
			}
			at = at.Add(time.Second)
			checkIndexes(r, c, orphans)
		}
	})
}

// checkIndexes compares every index with a fold over the blocks. It compares the state at every
// block ever seen with the state when that block was the head.
func checkIndexes(r *rapid.T, c *Chain, states map[chain.Hash]map[chain.Sequence]uint64) {
	next := map[chain.Sequence]uint64{}
	count := 0
	for number, b := range c.blocks {
		if b.Number != uint64(number) || c.byHash[b.Hash] != b || number > 0 && b.Parent != c.blocks[number-1].Hash {
			r.Fatalf("block %d is out of place", number)
		}
		for i, t := range b.txs {
			if t.Nonce != next[t.Sequence()] {
				r.Fatalf("block %d executes nonce %d where %d is due", number, t.Nonce, next[t.Sequence()])
			}
			next[t.Sequence()]++
			count++
			if c.included[t.Hash] != (place{b, i}) {
				r.Fatalf("%s is indexed elsewhere", t.Hash)
			}
		}
		if states[b.Hash] == nil {
			states[b.Hash] = map[chain.Sequence]uint64{}
			for s, n := range next {
				states[b.Hash][s] = n
			}
		}
	}
	if len(c.included) != count {
		r.Fatalf("%d indexed, %d executed", len(c.included), count)
	}
	for hash, state := range states {
		for key := range byte(2) {
			s := chain.Sequence{Chain: id, Sender: alice, Key: chain.NonceKey{31: key}}
			if got := c.nextAt(s, c.byHash[hash]); got != state[s] {
				r.Fatalf("nonce at block %d: %d, was %d", c.byHash[hash].Number, got, state[s])
			}
		}
	}
	for hash, p := range c.pool.byHash {
		if _, done := c.included[hash]; done || c.pool.byNonce[p.signed.Sequence()][p.signed.Nonce] != p {
			r.Fatalf("%s is out of place in the pool", hash)
		}
	}
}
