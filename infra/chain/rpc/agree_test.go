package rpc

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/infra/chain/chaintest"
)

// court is a pool of several endpoints of one chain. Reads use the first, which can be made to
// lie.
type court struct {
	*chaintest.Chain
	pool  *Pool
	liar  *gateway
	nodes []*chaintest.Node
}

func newCourt(t *testing.T, n int, change func(*Config)) court {
	t.Helper()
	c := court{Chain: newChain(t, chaintest.Rules{})}
	var urls []string
	for i := range n {
		node := c.Node(string(rune('a' + i)))
		c.nodes = append(c.nodes, node)
		if i == 0 {
			c.liar = &gateway{node: node}
			urls = append(urls, serve(t, c.liar))
			continue
		}
		urls = append(urls, serve(t, node))
	}
	c.pool = open(t, change, urls...)
	c.read()
	return c
}

// read moves reads to the lying endpoint.
func (c court) read() { c.pool.moveTo(c.pool.reader(), c.pool.endpoints[0]) }

func receiptText(hash chain.Hash, b chain.Block, status int) string {
	return fmt.Sprintf(`{"transactionHash":"%s","blockHash":"%s","blockNumber":"0x%x","transactionIndex":"0x0","status":"0x%x","gasUsed":"0x5208"}`,
		hash, b.Hash, b.Number, status)
}

// A receipt counts only when other endpoints confirm it, whichever endpoint serves it.
func TestNoReceiptOnOneWord(t *testing.T) {
	raw, hash := plain(alice, key5, 0)
	never := chain.Hash{0xee}
	for _, test := range []struct {
		name string
		lie  func(t *testing.T, c court, b chain.Block) (block chain.Block, hash chain.Hash)
	}{
		{"another status", func(t *testing.T, c court, b chain.Block) (chain.Block, chain.Hash) {
			c.liar.replace(t, "eth_getTransactionReceipt", `"result":`+receiptText(hash, b, 0))
			return b, hash
		}},
		{"of what no block holds", func(t *testing.T, c court, b chain.Block) (chain.Block, chain.Hash) {
			c.liar.replace(t, "eth_getTransactionReceipt", `"result":`+receiptText(never, b, 1))
			return b, never
		}},
		{"in a block that does not exist", func(t *testing.T, c court, b chain.Block) (chain.Block, chain.Hash) {
			fake := chain.Block{Number: b.Number + 1, Hash: chain.Hash{0xfa}, Parent: b.Hash, Time: b.Time + 1}
			c.liar.replace(t, "eth_getTransactionReceipt", `"result":`+receiptText(never, fake, 1))
			return fake, never
		}},
	} {
		for _, n := range []int{2, 3, 4} {
			t.Run(fmt.Sprintf("%s, %d endpoints", test.name, n), func(t *testing.T) {
				t.Parallel()
				c := newCourt(t, n, nil)
				b := mine(t, c.Chain, raw)
				block, asked := test.lie(t, c, b)
				if got, err := c.pool.Reader().Receipts(t.Context(), block, []chain.Hash{asked}); err == nil && len(got) > 0 && got[asked].Status != 1 {
					t.Errorf("believed %+v", got)
				} else if asked == never && len(got) > 0 {
					t.Errorf("believed %+v, %v", got, err)
				}
				if c.pool.reader() == c.pool.endpoints[0] {
					t.Error("the liar is read from still")
				}
			})
		}
	}
}

// Confirming a true receipt costs one call, and none if there is no other endpoint.
func TestTrueReceiptsCostOneCallMore(t *testing.T) {
	for n, want := range map[int]int{1: 1, 2: 2, 4: 2} {
		c := newCourt(t, n, nil)
		raw, hash := plain(alice, key5, 0)
		other, otherHash := plain(bob, key5, 0)
		b := mine(t, c.Chain, raw, other)
		if got, err := c.pool.Reader().Receipts(t.Context(), b, []chain.Hash{hash, otherHash}); err != nil || len(got) != 2 {
			t.Errorf("%d endpoints: %v, %v", n, got, err)
		}
		calls := 0
		for _, node := range c.nodes {
			calls += node.Calls()["eth_getBlockReceipts"]
		}
		if calls != want {
			t.Errorf("%d endpoints: %d calls, want %d", n, calls, want)
		}
	}
}

// With Agree 1 the endpoint that reads use is believed.
func TestAgreeOfOne(t *testing.T) {
	c := newCourt(t, 3, func(c *Config) { c.Agree = 1 })
	raw, hash := plain(alice, key5, 0)
	b := mine(t, c.Chain, raw)
	c.liar.replace(t, "eth_getTransactionReceipt", `"result":`+receiptText(hash, b, 0))
	if got, err := c.pool.Reader().Receipts(t.Context(), b, []chain.Hash{hash}); err != nil || got[hash].Status != 0 {
		t.Errorf("%v, %v", got, err)
	}
}

// A node on a minority's fork has a receipt and a canonical block that holds it. It alone
// announces nothing. When most endpoints deny the receipt, the node does not keep them from
// reporting that there is none.
func TestAForksReceiptIsNotFound(t *testing.T) {
	raw, hash := plain(alice, key5, 0)
	for n, certain := range map[int]bool{2: false, 3: true, 4: true} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			t.Parallel()
			c := newCourt(t, n, nil)
			fork := newChain(t, chaintest.Rules{})
			at := mine(t, c.Chain)
			head := mine(t, c.Chain)
			mine(t, fork, raw)
			mine(t, fork)
			c.liar.node = fork.Node("fork") // the same genesis: the fork cannot be detected at the start
			r := c.pool.Reader()
			for range 2 {
				c.read()
				if got, err := r.FindReceipt(t.Context(), hash, at); got != nil || (err == nil) != certain {
					t.Errorf("%+v, %v", got, err)
				}
			}
			if certain == (c.pool.Status()[0].Lies == 0) {
				t.Errorf("the fork's node: %+v", c.pool.Status()[0])
			}
			// The reader's own claim passes when the majority shares it.
			c.pool.moveTo(c.pool.reader(), c.pool.endpoints[1])
			if got, err := r.Head(t.Context()); err != nil || got != head {
				t.Errorf("head %+v, %v", got, err)
			}
		})
	}
}

// A used nonce makes transactions stale, so one endpoint's claim is not enough.
func TestNoNonceOnOneWord(t *testing.T) {
	huge := `"0x8000000000000000"`
	for _, n := range []int{2, 3, 4} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			t.Parallel()
			c := newCourt(t, n, nil)
			b := mine(t, c.Chain)
			account := chain.Sequence{Chain: id, Sender: alice}
			c.liar.replace(t, "eth_getTransactionCount", `"result":`+huge)
			r := c.pool.Reader()
			if got, err := r.Nonces(t.Context(), b, []chain.Sequence{account}); err == nil {
				t.Errorf("believed %d", got)
			}
			if got, err := r.Nonces(t.Context(), b, []chain.Sequence{account}); err != nil || !slices.Equal(got, []uint64{0}) {
				t.Errorf("then: %d, %v", got, err)
			}
		})
	}
	two := newCourt(t, 2, nil)
	b := mine(t, two.Chain)
	two.liar.replace(t, "eth_getTransactionCount", `"result":`+huge)
	for range 3 {
		two.read()
		if got, err := two.pool.Reader().Nonces(t.Context(), b, []chain.Sequence{{Chain: id, Sender: alice}}); !errors.Is(err, errAlone) {
			t.Errorf("two that differ: %d, %v", got, err)
		}
	}
	for _, s := range two.pool.Status() {
		if s.Differences != 3 || s.Lies != 0 || s.State != Healthy {
			t.Errorf("nobody can say who is wrong: %+v", s)
		}
	}
	c := newCourt(t, 3, nil)
	raw, _ := plain(alice, chain.NonceKey{}, 0)
	b = mine(t, c.Chain, raw)
	if got, err := c.pool.Reader().Nonces(t.Context(), b, []chain.Sequence{{Chain: id, Sender: alice}}); err != nil || !slices.Equal(got, []uint64{1}) {
		t.Errorf("the truth: %d, %v", got, err)
	}
}

// A free nonce shows that a transaction is in no block, so one endpoint's claim is not enough, in the
// service's name or a client's. Nonces does not check it.
func TestNoFreeNonceOnOneWord(t *testing.T) {
	raw, _ := plain(alice, chain.NonceKey{}, 0)
	for _, n := range []int{2, 3} {
		c := newCourt(t, n, nil)
		b := mine(t, c.Chain, raw)
		account := []chain.Sequence{{Chain: id, Sender: alice}, {Chain: id, Sender: bob}, {Chain: id, Sender: bob, Key: chain.ExpiringKey}}
		c.liar.replace(t, "eth_getTransactionCount", `"result":"0x0"`)
		r := c.pool.Reader()
		if got, err := r.Nonces(t.Context(), b, account); err != nil || got[0] != 0 {
			t.Errorf("%d endpoints: the liar is not read: %d, %v", n, got, err)
		}
		for name, read := range map[string]func(context.Context, chain.Block, []chain.Sequence) ([]uint64, error){
			"own": r.SureNonces, "a client's": r.Repeating("alice").SureNonces,
		} {
			if got, err := read(t.Context(), b, account); err == nil && got[0] != 1 {
				t.Errorf("%d endpoints, %s: believed %d", n, name, got)
			}
		}
	}
	c := newCourt(t, 3, nil)
	b := mine(t, c.Chain, raw)
	got, err := c.pool.Reader().SureNonces(t.Context(), b, []chain.Sequence{{Chain: id, Sender: alice}, {Chain: id, Sender: bob}, {Chain: id, Sender: bob, Key: chain.ExpiringKey}})
	if err != nil || !slices.Equal(got, []uint64{1, 0, 0}) {
		t.Errorf("the truth: %d, %v", got, err)
	}
}

// Endpoints that decline have no vote; endpoints that lag are waited for.
func TestBearingOutWithoutWitnesses(t *testing.T) {
	raw, hash := plain(alice, key5, 0)
	clock := newTimer()
	c := newCourt(t, 2, func(c *Config) { c.Now = clock.now })
	b := mine(t, c.Chain, raw)
	ask := func() error {
		c.read()
		_, err := c.pool.Reader().Receipts(t.Context(), b, []chain.Hash{hash})
		return err
	}
	c.nodes[1].Set(chaintest.Faults{Lag: 1})
	if err := ask(); !errors.Is(err, errAlone) {
		t.Errorf("the other lags: %v", err)
	}
	caughtUp := time.AfterFunc(100*time.Millisecond, func() { c.nodes[1].Set(chaintest.Faults{}) })
	defer caughtUp.Stop()
	if err := ask(); err != nil {
		t.Errorf("the other catches up: %v", err)
	}
	c.nodes[1].Set(chaintest.Faults{Down: true})
	if err := ask(); err == nil {
		t.Error("the other is down, and nobody knows that yet")
	}
	for range 3 {
		c.pool.blame(c.pool.endpoints[1], errors.New("down"))
	}
	if err := ask(); !errors.Is(err, errAlone) {
		t.Errorf("the other has been away for a moment: %v", err)
	}
	clock.advance(missedBrief)
	if err := ask(); err != nil {
		t.Errorf("nobody else has been healthy for a while: %v", err)
	}
	nonces := func() error {
		_, err := c.pool.Reader().Nonces(t.Context(), b, []chain.Sequence{{Chain: id, Sender: alice, Key: key5}})
		return err
	}
	if err := nonces(); !errors.Is(err, errAlone) {
		t.Errorf("a used nonce, on one word: %v", err)
	}
	if clock.advance(missedBrief); !errors.Is(nonces(), errAlone) {
		t.Error("a used nonce, on the word of one who has been alone for moments")
	}
	clock.advance(missedFor)
	if err := nonces(); err != nil {
		t.Errorf("a used nonce, nobody else has been healthy for a while: %v", err)
	}
}

// An endpoint that contradicts itself or others repeatedly is distrusted, longer each time.
func TestLiarsAreDistrusted(t *testing.T) {
	clock := newTimer()
	c := newCourt(t, 3, func(c *Config) { c.Now = clock.now })
	c.liar.replace(t, "eth_getBlockByHash", `"result":{}`)
	lie := func(times int) {
		for i := range times {
			if _, err := c.pool.Reader().blockByHash(t.Context(), c.pool.endpoints[0], chain.Hash{1, byte(i)}); err == nil {
				t.Fatal("no lie was noticed")
			}
		}
	}
	status := func() Status { return c.pool.Status()[0] }
	blame := contradiction("a lie")
	lie(1)
	c.pool.blame(c.pool.endpoints[0], blame)
	if got := status(); got.State == Distrusted {
		t.Errorf("distrusted after two: %+v", got)
	}
	c.pool.blame(c.pool.endpoints[0], blame)
	if got := status(); got.State != Distrusted || got.Distrust != distrustMin || got.Lies < 3 {
		t.Errorf("after three: %+v", got)
	}
	if got := c.pool.Endpoints(); !slices.Equal(got, []string{"b", "c"}) {
		t.Errorf("in rotation: %v", got)
	}
	c.pool.endpoints[0].succeeded(time.Millisecond) // it answers other calls
	if got := status(); got.State != Distrusted {
		t.Errorf("forgiven at once: %+v", got)
	}
	clock.advance(distrustMin)
	if got := status(); got.State != Healthy {
		t.Errorf("after its time: %+v", got)
	}
	for range liesMax {
		c.pool.blame(c.pool.endpoints[0], blame)
	}
	if got := status(); got.Distrust != 2*distrustMin {
		t.Errorf("the second time: %+v", got)
	}
}

// A node that claims to be far ahead of all others is not read from. A burst of blocks that the
// others show too does not have this effect.
func TestLeadingAlone(t *testing.T) {
	c := newCourt(t, 4, nil)
	for i := range 4 {
		c.pool.sawHead(c.pool.endpoints[i], 10)
	}
	c.pool.sawHead(c.pool.endpoints[0], 1<<40)
	if got := c.pool.Status()[0]; got.State != Leading || got.Lead != 1<<40-10 {
		t.Errorf("alone: %+v", got)
	}
	if c.pool.reader() == c.pool.endpoints[0] {
		t.Error("it is read from")
	}
	c.pool.sawHead(c.pool.endpoints[0], 1010)
	c.pool.sawHead(c.pool.endpoints[1], 1010)
	for _, got := range c.pool.Status()[:2] {
		if got.State != Healthy {
			t.Errorf("a burst: %+v", got)
		}
	}
}
