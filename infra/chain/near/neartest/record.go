package neartest

import "github.com/tempo-watchtower/watchtower/infra/chain/near"

// record is what judges look at.
type record struct {
	received []Delivery
	executed map[hash]int
}

// Delivery is bytes that a node received.
type Delivery struct {
	Node   string
	Method string
	Hash   [32]byte
	Raw    []byte
}

// Received returns what nodes received to send, in order.
func (c *Chain) Received() []Delivery {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]Delivery{}, c.record.received...)
}

// Execution is one transaction that ran on the chain of the newest block, and used a nonce.
type Execution struct {
	Hash    [32]byte
	Account string
	Key     near.PublicKey
	Index   int // of a gas key's sequence; -1 for other keys
	Nonce   uint64
	Height  uint64
}

// Executed returns all transactions that used a nonce on the chain of the newest block, by rising height.
func (c *Chain) Executed() (executed []Execution) {
	c.mu.Lock()
	defer c.mu.Unlock()
	var branch []*block
	for b := c.head; b != nil; b = b.parent {
		branch = append(branch, b)
	}
	for i := len(branch) - 1; i >= 0; i-- {
		b := branch[i]
		for _, chunk := range b.chunks {
			if chunk.created != b.height {
				continue
			}
			for _, s := range chunk.transactions {
				if out := b.outcomes[s.Hash()]; usedNonce(out) {
					q := sequenceOf(s)
					executed = append(executed, Execution{s.Hash(), s.Signer, s.Key, q.index, s.Nonce.Value, b.height})
				}
			}
		}
	}
	return executed
}

// usedNonce reports whether a transaction's outcome means that its nonce is used: it made a receipt, or its gas
// key could not pay the deposit.
func usedNonce(out *outcome) bool {
	status, _ := out.status.(members)
	if _, made := status["SuccessReceiptId"]; made {
		return true
	}
	failed, _ := status["Failure"].(members)
	reason, _ := failed["InvalidTxError"].(members)
	_, deposit := reason["NotEnoughBalanceForDeposit"]
	return deposit
}
