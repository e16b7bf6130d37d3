package chaintest

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/holiman/uint256"
	"go.uber.org/goleak"

	"github.com/tempo-watchtower/watchtower/domain/chain"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const id = chain.ID(42431)

var (
	alice = chain.Address{0xa1}
	bob   = chain.Address{0xb0}
	key5  = chain.NonceKey{31: 5}
)

// clock is a clock that a test sets.
type clock struct{ at time.Time }

func (c *clock) now() time.Time          { return c.at }
func (c *clock) advance(d time.Duration) { c.at = c.at.Add(d) }
func (c *clock) unix() uint64            { return uint64(c.at.Unix()) }

func fresh(t *testing.T, rules Rules) (*Chain, *clock) {
	t.Helper()
	clock := &clock{time.Unix(1_800_000_000, 0)}
	c := New(Options{Chain: id, Decode: DecodePlain, Now: clock.now, Rules: rules})
	t.Cleanup(c.Close)
	return c, clock
}

func send(c *Chain, t chain.Signed) (chain.Hash, *Refusal) {
	raw := EncodePlain(t)
	signed, err := DecodePlain(raw)
	if err != nil {
		panic(err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return signed.Hash, c.admit(signed, raw)
}

func mustSend(t *testing.T, c *Chain, signed chain.Signed) chain.Hash {
	t.Helper()
	hash, refusal := send(c, signed)
	if refusal != nil {
		t.Fatalf("refused: %s", refusal.Message)
	}
	return hash
}

func mine(t *testing.T, c *Chain, others ...[]byte) chain.Block {
	t.Helper()
	b, err := c.Mine(others...)
	if err != nil {
		t.Fatal(err)
	}
	checkOnce(t, c)
	return b
}

// checkOnce checks the promise of every chain: no transaction twice, no nonce twice, none left
// out.
func checkOnce(t *testing.T, c *Chain) {
	t.Helper()
	for hash, times := range c.Executed() {
		if times != 1 {
			t.Fatalf("%s was executed %d times", hash, times)
		}
	}
	next := map[chain.Sequence]uint64{}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, b := range c.blocks {
		for _, tx := range b.txs {
			if tx.NonceKey.IsExpiring() {
				continue
			}
			if tx.Nonce != next[tx.Sequence()] {
				t.Fatalf("block %d executes nonce %d where %d is due", b.Number, tx.Nonce, next[tx.Sequence()])
			}
			next[tx.Sequence()]++
		}
	}
}

func isExecuted(c *Chain, hash chain.Hash) bool {
	_, ok := c.Receipt(hash)
	return ok
}

func tx(sender chain.Address, key chain.NonceKey, nonce uint64) chain.Signed {
	return chain.Signed{Chain: id, Type: 0x76, Sender: sender, NonceKey: key, Nonce: nonce, Gas: 50_000}
}

func TestRefusals(t *testing.T) {
	c, clock := fresh(t, Rules{PoolMax: 3})
	mustSend(t, c, tx(alice, key5, 0))
	mine(t, c)
	taken := tx(alice, key5, 1)
	mustSend(t, c, taken)
	mustSend(t, c, tx(bob, chain.NonceKey{}, 0))
	c.SetBroke(chain.Address{0xee}, true)
	c.SetBaseFee(100)
	now := clock.unix()
	priced := func(signed chain.Signed) chain.Signed {
		signed.MaxFee = uint256.NewInt(100)
		return signed
	}
	window := func(after, before uint64) chain.Signed {
		signed := priced(tx(alice, chain.NonceKey{1}, 0))
		signed.Window = chain.Window{After: after, Before: before}
		return signed
	}
	expiring := func(nonce, before uint64) chain.Signed {
		signed := priced(tx(alice, chain.ExpiringKey, nonce))
		signed.Window.Before = before
		return signed
	}
	other := priced(tx(alice, key5, 9))
	other.Chain = 1
	tests := []struct {
		name string
		tx   chain.Signed
		code int
		want string
	}{
		{"other chain", other, -32000, "invalid chain ID"},
		{"again", taken, -32000, "already known"},
		{"used nonce", priced(tx(alice, key5, 0)), -32000, "nonce too low: next nonce 1, tx nonce 0"},
		{"rival with no tip", priced(taken), -32000, "replacement transaction underpriced"},
		{"sub-block key", priced(tx(alice, chain.NonceKey{0x5b}, 0)), -32000, "Tempo Transaction with subblock nonce key prefix aren't supported in the pool"},
		{"validBefore at the margin", window(0, now+3), -32000, "'valid_before' 1800000003 is too close to current time (min allowed: 1800000003)"},
		{"validAfter beyond the limit", window(now+121, 0), -32000, "'valid_after' 1800000121 is too far in the future (max allowed: 1800000120)"},
		{"expiring with a nonce", expiring(1, now+20), -32000, "expiring nonce transaction must have nonce == 0"},
		{"expiring without end", expiring(0, 0), -32000, "expiring nonce transaction requires valid_before to be set"},
		{"expiring too far", expiring(0, now+31), -32000, "nonce manager error: expiring nonce valid_before (1800000031) too far in the future: must be within 30s of block timestamp (1800000000), max allowed is 1800000030"},
		{"no funds", priced(tx(chain.Address{0xee}, key5, 0)), -32003, "insufficient funds for gas * price + value: have 0 want 50000"},
		{"below the base fee", tx(alice, chain.NonceKey{1}, 0), -32000, "max fee per gas less than block base fee"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			_, refusal := send(c, test.tx)
			if refusal == nil || refusal.Message != test.want || refusal.Code != test.code {
				t.Errorf("got %+v, want %d %s", refusal, test.code, test.want)
			}
		})
	}
	for _, good := range []chain.Signed{window(now+120, 0), window(0, now+4), expiring(0, now+30)} {
		mustSend(t, c, good)
		if len(c.Pooled()) == 3 {
			if _, refusal := send(c, priced(tx(alice, chain.NonceKey{2}, 0))); refusal == nil || refusal.Message != "txpool is full" {
				t.Errorf("a full pool says %+v", refusal)
			}
		}
		raw := EncodePlain(good)
		c.Drop(chain.Keccak(raw))
	}
}

func TestUndecodable(t *testing.T) {
	for _, test := range []struct {
		raw  []byte
		err  error
		want Refusal
	}{
		{nil, &chain.Malformed{Fault: chain.FaultRLP}, Refusal{Code: -32602, Message: "empty transaction data"}},
		{[]byte{1}, &chain.Malformed{Fault: chain.FaultRLP}, Refusal{Code: -32602, Message: "failed to decode signed transaction"}},
		{[]byte{1}, &chain.Malformed{Fault: chain.FaultSignature}, Refusal{Code: -32602, Message: "invalid transaction signature"}},
		{[]byte{1}, &chain.Malformed{Fault: chain.FaultFeePayer}, Refusal{Code: -32000, Message: "fee payer signature recovery failed"}},
		{[]byte{1}, &chain.Malformed{Fault: chain.FaultTooLarge}, Refusal{Code: -32000, Message: "oversized data: transaction size 1, limit 131072"}},
	} {
		if diff := cmp.Diff(&test.want, undecodable(test.raw, test.err)); diff != "" {
			t.Errorf("%v: %s", test.err, diff)
		}
	}
}

func TestNoncesAreExecutedInOrder(t *testing.T) {
	c, _ := fresh(t, Rules{})
	third := mustSend(t, c, tx(alice, key5, 2))
	second := mustSend(t, c, tx(alice, key5, 1))
	elsewhere := mustSend(t, c, tx(alice, chain.NonceKey{}, 0))
	mine(t, c)
	if isExecuted(c, second) || isExecuted(c, third) || !isExecuted(c, elsewhere) {
		t.Fatal("a gap was jumped, or another sequence waited for it")
	}
	first := mustSend(t, c, tx(alice, key5, 0))
	b := mine(t, c)
	for i, hash := range []chain.Hash{first, second, third} {
		r, ok := c.Receipt(hash)
		if !ok || r.Block != b || r.Index != uint64(i) || r.Status != 1 {
			t.Errorf("nonce %d: %+v", i, r)
		}
	}
	if got := c.Nonce(chain.Sequence{Chain: id, Sender: alice, Key: key5}); got != 3 {
		t.Errorf("next nonce %d", got)
	}
}

func TestLeftOut(t *testing.T) {
	c, _ := fresh(t, Rules{})
	call := func(nonce uint64, to chain.Address) chain.Signed {
		s := tx(alice, key5, nonce)
		s.Calls = []chain.Call{{To: &to}}
		return s
	}
	first, second := mustSend(t, c, call(0, bob)), mustSend(t, c, call(1, alice))
	c.SetLeftOut(bob, true)
	mine(t, c)
	if isExecuted(c, first) || isExecuted(c, second) || len(c.Pooled()) != 2 {
		t.Errorf("%d are left in the pool", len(c.Pooled()))
	}
	c.SetLeftOut(bob, false)
	mine(t, c)
	if !isExecuted(c, first) || !isExecuted(c, second) {
		t.Error("they are not executed")
	}
}

func TestBlockIsBounded(t *testing.T) {
	c, _ := fresh(t, Rules{BlockMax: 2})
	for nonce := range uint64(5) {
		mustSend(t, c, tx(alice, key5, nonce))
	}
	for _, left := range []int{3, 1, 0} {
		mine(t, c)
		if got := len(c.Pooled()); got != left {
			t.Errorf("%d left, want %d", got, left)
		}
	}
}

func TestWindow(t *testing.T) {
	c, clock := fresh(t, Rules{})
	start := clock.unix()
	early := tx(alice, key5, 0)
	early.Window = chain.Window{After: start + 10}
	hash := mustSend(t, c, early)
	clock.advance(9 * time.Second)
	mine(t, c)
	if isExecuted(c, hash) {
		t.Fatal("executed a second before validAfter")
	}
	clock.advance(time.Second)
	if mine(t, c); !isExecuted(c, hash) {
		t.Fatal("not executed in a block at validAfter")
	}

	late := tx(alice, key5, 1)
	late.Window = chain.Window{Before: clock.unix() + 5}
	raw := EncodePlain(late)
	mustSend(t, c, late)
	clock.advance(5 * time.Second)
	if _, err := c.Mine(raw); err == nil {
		t.Error("executed in a block at validBefore")
	}
	mine(t, c)
	if isExecuted(c, chain.Keccak(raw)) || len(c.Pooled()) != 0 {
		t.Error("the pool keeps what has expired")
	}

	latest := tx(alice, key5, 1)
	latest.Window = chain.Window{Before: clock.unix() + 5}
	last := mustSend(t, c, latest)
	clock.advance(4 * time.Second)
	if mine(t, c); !isExecuted(c, last) {
		t.Error("not executed a second before validBefore")
	}
}

func TestExpiringKey(t *testing.T) {
	c, clock := fresh(t, Rules{})
	once := tx(alice, chain.ExpiringKey, 0)
	once.Window.Before = clock.unix() + 30
	hash := mustSend(t, c, once)
	mine(t, c)
	if !isExecuted(c, hash) {
		t.Fatal("not executed")
	}
	if _, refusal := send(c, once); refusal == nil || refusal.Message != "nonce manager error: ExpiringNonceReplay(ExpiringNonceReplay)" {
		t.Errorf("a replay: %+v", refusal)
	}
	if got := c.Nonce(once.Sequence()); got != 0 {
		t.Errorf("the expiring key counts to %d", got)
	}
	mine(t, c)
	if err := c.ReorgBelowFinal(2, false); err != nil {
		t.Fatal(err)
	}
	mustSend(t, c, once)
	if mine(t, c); !isExecuted(c, hash) {
		t.Error("not executed again after it was undone")
	}
}

func TestEviction(t *testing.T) {
	c, clock := fresh(t, Rules{})
	gapped := mustSend(t, c, tx(alice, key5, 1))
	closing := tx(bob, chain.NonceKey{7}, 0)
	closing.Window = chain.Window{After: clock.unix() + 62, Before: clock.unix() + 64}
	closed := mustSend(t, c, closing)
	waiting := tx(bob, key5, 0)
	waiting.Window.After = clock.unix() + 100
	patient := mustSend(t, c, waiting)

	clock.advance(60 * time.Second)
	mine(t, c)
	if got := len(c.Pooled()); got != 3 {
		t.Fatalf("%d pooled", got)
	}
	clock.advance(time.Second)
	mine(t, c)
	if got := c.Pooled(); !slices.Equal(got, []chain.Hash{gapped, patient}) || isExecuted(c, closed) {
		t.Fatalf("3 s before validBefore the pool holds %v", got)
	}
	c.SetBroke(bob, true)
	mine(t, c)
	c.SetBroke(bob, false)
	if got := c.Pooled(); !slices.Equal(got, []chain.Hash{gapped}) {
		t.Fatalf("the pool keeps what cannot be paid: %v", got)
	}
	clock.advance(59 * time.Second)
	mine(t, c)
	if got := c.Pooled(); len(got) != 0 {
		t.Errorf("after 120 s the pool holds %v", got)
	}
}

func TestBaseFee(t *testing.T) {
	c, _ := fresh(t, Rules{})
	c.SetBaseFee(10)
	cheap := tx(alice, key5, 0)
	cheap.MaxFee = uint256.NewInt(10)
	hash := mustSend(t, c, cheap)
	c.SetBaseFee(11)
	mine(t, c)
	if isExecuted(c, hash) {
		t.Error("executed below the base fee")
	}
}

func TestPendingLife(t *testing.T) {
	c, clock := fresh(t, Rules{AfterMax: 10_000})
	waiting := tx(bob, key5, 0)
	waiting.Window.After = clock.unix() + 3_600
	mustSend(t, c, waiting)
	clock.advance(30*time.Minute - time.Second)
	mine(t, c)
	if len(c.Pooled()) != 1 {
		t.Fatal("evicted early")
	}
	clock.advance(time.Second)
	mine(t, c)
	if len(c.Pooled()) != 0 {
		t.Error("kept for ever")
	}
}

func TestReplacement(t *testing.T) {
	c, _ := fresh(t, Rules{})
	at := func(fee, tip uint64) chain.Signed {
		signed := tx(alice, key5, 0)
		signed.MaxFee, signed.MaxPriorityFee = uint256.NewInt(fee), uint256.NewInt(tip)
		return signed
	}
	mustSend(t, c, at(100, 10))
	for _, tooCheap := range []chain.Signed{at(109, 11), at(110, 10), at(1, 1)} {
		if _, refusal := send(c, tooCheap); refusal == nil || refusal.Message != "replacement transaction underpriced" {
			t.Errorf("%v/%v: %+v", tooCheap.MaxFee, tooCheap.MaxPriorityFee, refusal)
		}
	}
	winner := mustSend(t, c, at(110, 11))
	if got := c.Pooled(); !slices.Equal(got, []chain.Hash{winner}) {
		t.Errorf("pooled %v", got)
	}
	mine(t, c)
	if r, ok := c.Receipt(winner); !ok || r.EffectiveGasPrice != "11" {
		t.Errorf("receipt %+v", r)
	}
}

func TestHugeNonceIsNoNonce(t *testing.T) {
	c, _ := fresh(t, Rules{})
	hash := mustSend(t, c, tx(alice, key5, math.MaxUint64))
	mine(t, c)
	if isExecuted(c, hash) {
		t.Error("a gap of 2^64-1 was jumped")
	}
}
