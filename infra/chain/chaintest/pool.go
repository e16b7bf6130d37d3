package chaintest

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/holiman/uint256"

	"github.com/tempo-watchtower/watchtower/domain/chain"
)

// Refusal is a node's JSON-RPC error.
type Refusal struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
	Data    string `json:"data,omitempty"`
}

func refuse(code int, format string, args ...any) *Refusal {
	return &Refusal{Code: code, Message: fmt.Sprintf(format, args...)}
}

// Codes of the real node, from EIP-1474, as chosen by reth.
const (
	invalidInput  = -32000
	rejected      = -32003
	invalidParams = -32602
)

// pooled is a transaction in the pool.
type pooled struct {
	signed chain.Signed
	raw    []byte
	at     time.Time // time of arrival
	number uint64    // position in the order of arrival
}

// pool holds the transactions that nodes have accepted and no block holds yet.
type pool struct {
	byHash  map[chain.Hash]*pooled
	byNonce map[chain.Sequence]map[uint64]*pooled // without the expiring key's
	arrived uint64
}

func newPool() pool {
	return pool{byHash: map[chain.Hash]*pooled{}, byNonce: map[chain.Sequence]map[uint64]*pooled{}}
}

// add adds a transaction, and replaces another with its nonce.
func (p *pool) add(signed chain.Signed, raw []byte, at time.Time) {
	if p.byHash[signed.Hash] != nil {
		return
	}
	if rival := p.byNonce[signed.Sequence()][signed.Nonce]; rival != nil {
		p.remove(rival.signed.Hash)
	}
	p.arrived++
	entry := &pooled{signed, raw, at, p.arrived}
	p.byHash[signed.Hash] = entry
	if signed.NonceKey.IsExpiring() {
		return
	}
	s := signed.Sequence()
	if p.byNonce[s] == nil {
		p.byNonce[s] = map[uint64]*pooled{}
	}
	p.byNonce[s][signed.Nonce] = entry
}

func (p *pool) remove(hash chain.Hash) bool {
	entry, ok := p.byHash[hash]
	if !ok {
		return false
	}
	delete(p.byHash, hash)
	if s := entry.signed.Sequence(); p.byNonce[s][entry.signed.Nonce] == entry {
		if delete(p.byNonce[s], entry.signed.Nonce); len(p.byNonce[s]) == 0 {
			delete(p.byNonce, s)
		}
	}
	return true
}

// ordered is the pool in the order in which blocks take it: sequences by arrival, each by
// ascending nonce.
func (p *pool) ordered() []*pooled {
	first := map[chain.Sequence]uint64{}
	all := make([]*pooled, 0, len(p.byHash))
	for _, entry := range p.byHash {
		all = append(all, entry)
		if entry.signed.NonceKey.IsExpiring() {
			continue
		}
		s := entry.signed.Sequence()
		if n, ok := first[s]; !ok || entry.number < n {
			first[s] = entry.number
		}
	}
	rank := func(entry *pooled) uint64 {
		if n, ok := first[entry.signed.Sequence()]; ok {
			return n
		}
		return entry.number
	}
	slices.SortFunc(all, func(a, b *pooled) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(a.signed.Nonce, b.signed.Nonce))
	})
	return all
}

// admit adds a transaction to the pool, or returns the refusal.
func (c *Chain) admit(signed chain.Signed, raw []byte) *Refusal {
	refusal := c.acceptable(signed)
	if refusal == nil {
		c.pool.add(signed, raw, c.now())
	}
	return refusal
}

// undecodable is a node's answer to bytes that are no transaction.
func undecodable(raw []byte, err error) *Refusal {
	malformed := (*chain.Malformed)(nil)
	errors.As(err, &malformed)
	switch {
	case len(raw) == 0:
		return refuse(invalidParams, "empty transaction data")
	case malformed != nil && malformed.Fault == chain.FaultSignature:
		return refuse(invalidParams, "invalid transaction signature")
	case malformed != nil && malformed.Fault == chain.FaultFeePayer:
		return refuse(invalidInput, "fee payer signature recovery failed")
	case malformed != nil && malformed.Fault == chain.FaultTooLarge:
		return refuse(invalidInput, "oversized data: transaction size %d, limit %d", len(raw), 128<<10)
	}
	return refuse(invalidParams, "failed to decode signed transaction")
}

// acceptable checks the pool's rules.
func (c *Chain) acceptable(t chain.Signed) *Refusal {
	tip, clock := c.head().Time, uint64(c.now().Unix())
	next := c.next(t.Sequence())
	switch {
	case t.Chain != c.id:
		return refuse(invalidInput, "invalid chain ID")
	case c.pool.byHash[t.Hash] != nil:
		return refuse(invalidInput, "already known")
	case t.NonceKey[0] == 0x5b:
		return refuse(invalidInput, "Tempo Transaction with subblock nonce key prefix aren't supported in the pool")
	case t.Window.Before != 0 && t.Window.Before <= tip+c.rules.BeforeMargin:
		return refuse(invalidInput, "'valid_before' %d is too close to current time (min allowed: %d)", t.Window.Before, tip+c.rules.BeforeMargin)
	case t.Window.After > clock+c.rules.AfterMax:
		return refuse(invalidInput, "'valid_after' %d is too far in the future (max allowed: %d)", t.Window.After, clock+c.rules.AfterMax)
	case !t.NonceKey.IsExpiring() && t.Nonce < next:
		return refuse(invalidInput, "nonce too low: next nonce %d, tx nonce %d", next, t.Nonce)
	}
	if refusal := c.expiring(t, tip); refusal != nil {
		return refusal
	}
	if t.AccessKey != nil && c.rules.Keychain && !c.grants[chain.AccessKey{Account: t.Sender, Key: *t.AccessKey}].Known {
		return refuse(invalidInput, "keychain validation failed: access key does not exist")
	}
	if refusal := c.payable(t); refusal != nil {
		return refusal
	}
	if rival := c.pool.byNonce[t.Sequence()][t.Nonce]; rival != nil {
		if !c.outbids(t, rival.signed) {
			return refuse(invalidInput, "replacement transaction underpriced")
		}
	} else if len(c.pool.byHash) >= c.rules.PoolMax {
		return refuse(rejected, "txpool is full")
	}
	return nil
}

// expiring checks the rules of the expiring key at a block time.
func (c *Chain) expiring(t chain.Signed, time uint64) *Refusal {
	most := time + c.rules.ExpiringWindow
	_, done := c.included[t.Hash]
	switch {
	case !t.NonceKey.IsExpiring():
		return nil
	case t.Nonce != 0:
		return refuse(invalidInput, "expiring nonce transaction must have nonce == 0")
	case t.Window.Before == 0:
		return refuse(invalidInput, "expiring nonce transaction requires valid_before to be set")
	case t.Window.Before > most:
		return refuse(invalidInput, "nonce manager error: expiring nonce valid_before (%d) too far in the future: must be within %ds of block timestamp (%d), max allowed is %d",
			t.Window.Before, c.rules.ExpiringWindow, time, most)
	case done:
		return refuse(invalidInput, "nonce manager error: ExpiringNonceReplay(ExpiringNonceReplay)")
	}
	return nil
}

// payable checks whether the fee can be paid now.
func (c *Chain) payable(t chain.Signed) *Refusal {
	payer := t.Sender
	if t.FeePayer != nil {
		payer = *t.FeePayer
	}
	limit, _ := fees(t)
	switch {
	case c.broke[payer] || c.gasMax[payer] != 0 && t.Gas > c.gasMax[payer]:
		return refuse(rejected, "insufficient funds for gas * price + value: have 0 want %d", max(t.Gas, 1))
	case limit.CmpUint64(c.nextBaseFee()) < 0:
		return refuse(invalidInput, "max fee per gas less than block base fee")
	}
	return nil
}

// outbids reports whether one transaction may replace another with its nonce.
func (c *Chain) outbids(t, rival chain.Signed) bool {
	dearer := func(a, b *uint256.Int) bool {
		floor := new(uint256.Int).Mul(b, uint256.NewInt(100+c.rules.PriceBump))
		floor.Div(floor, uint256.NewInt(100))
		return a.Gt(b) && !a.Lt(floor)
	}
	limit, tip := fees(t)
	was, wasTip := fees(rival)
	return dearer(limit, was) && dearer(tip, wasTip)
}

// executable checks the rules of execution in a block of a time, after the transactions in
// pending.
func (c *Chain) executable(t chain.Signed, time uint64, pending map[chain.Sequence]uint64) *Refusal {
	next, ok := pending[t.Sequence()]
	if !ok {
		next = c.next(t.Sequence())
	}
	switch {
	case t.Chain != c.id:
		return refuse(invalidInput, "invalid chain ID")
	case time < t.Window.After:
		return refuse(invalidInput, "transaction not valid yet: current block timestamp %d < validAfter %d", time, t.Window.After)
	case t.Window.ClosedAt(time):
		return refuse(invalidInput, "transaction expired: current block timestamp %d >= validBefore %d", time, t.Window.Before)
	case t.NonceKey.IsExpiring():
		if refusal := c.expiring(t, time); refusal != nil {
			return refusal
		}
	case t.Nonce < next:
		return refuse(invalidInput, "nonce %d too low, expected %d", t.Nonce, next)
	case t.Nonce > next:
		return refuse(invalidInput, "nonce %d too high, expected %d", t.Nonce, next)
	}
	return c.payable(t)
}

// leavesOut reports whether blocks leave out one of the calls.
func (c *Chain) leavesOut(calls []chain.Call) bool {
	return slices.ContainsFunc(calls, func(call chain.Call) bool { return call.To != nil && c.leftOut[*call.To] })
}

// evict drops the transactions that a real node's pool drops after each block.
func (c *Chain) evict() {
	now, tip := c.now(), c.head().Time
	follows := map[chain.Sequence]uint64{} // the nonce that would continue an unbroken run
	for _, p := range c.pool.ordered() {
		t, s := p.signed, p.signed.Sequence()
		life := c.rules.PendingFor
		_, done := c.included[t.Hash]
		if !t.NonceKey.IsExpiring() {
			want, ok := follows[s]
			if !ok {
				want = c.next(s)
			}
			done = done || t.Nonce < c.next(s)
			if t.Nonce > want {
				life = c.rules.QueuedFor
			} else if !done {
				follows[s] = t.Nonce + 1
			}
		}
		if done || now.Sub(p.at) >= life || c.payable(t) != nil ||
			t.Window.Before != 0 && t.Window.Before <= tip+c.rules.BeforeMargin {
			c.pool.remove(t.Hash)
		}
	}
}
