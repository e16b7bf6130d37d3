package neartest

import (
	"encoding/hex"
	"errors"

	"github.com/tempo-watchtower/watchtower/infra/chain/near"
)

// Stall keeps a shard without new chunks, or ends that.
func (c *Chain) Stall(shard int, stalled bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stalled[shard] = stalled
}

// Shard is the shard of an account.
func (c *Chain) Shard(account string) int { return c.shardOf(account) }

// SetCongestion sets a shard's level of congestion; from 0.8 on it takes no transactions.
func (c *Chain) SetCongestion(shard int, level float64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.congested[shard] = level
}

// SetDelay makes receipts wait for so many blocks before they run.
func (c *Chain) SetDelay(blocks int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.delay = blocks
}

// SetContract gives an account a contract whose methods all succeed.
func (c *Chain) SetContract(account string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.head.state.touch(account).code = idOf("code", hash{}, 1)
}

// SetFailing makes calls of a method fail with a message; empty: they succeed again.
func (c *Chain) SetFailing(account, method, message string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if message == "" {
		delete(c.failing, call{account, method})
		return
	}
	c.failing[call{account, method}] = executionError(message)
}

// SetPromise makes calls of a method succeed and send a further receipt, which fails with the message; empty: it
// succeeds. Nobody returns that receipt's value, so the transaction's status is a success either way.
func (c *Chain) SetPromise(account, method, message string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.promising[call{account, method}] = nil
	if message != "" {
		c.promising[call{account, method}] = executionError(message)
	}
}

func executionError(message string) any {
	return members{"FunctionCallError": members{"ExecutionError": message}}
}

// IncludeInvalid makes producers include transactions that they find invalid, with a failed outcome that does
// not use the nonce.
func (c *Chain) IncludeInvalid(include bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.include = include
}

// SetNonce moves a key's nonce, as transactions that nobody here has seen would.
func (c *Chain) SetNonce(account string, key near.PublicKey, nonce uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	own := c.head.state.touch(account)
	k := own.keys[key]
	k.nonce = nonce
	own.keys[key] = k
}

// RemoveKey takes a key from an account, as a DeleteKey action would.
func (c *Chain) RemoveKey(account string, key near.PublicKey) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.head.state.touch(account).keys, key)
}

// Nonce returns a key's nonce after the newest block, and whether the account has the key.
func (c *Chain) Nonce(account string, key near.PublicKey) (uint64, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	a := c.head.state.get(account)
	if a == nil {
		return 0, false
	}
	k, known := a.keys[key]
	return k.nonce, known
}

// keyOfImplicit is the ed25519 key of an implicit account.
func keyOfImplicit(name string) (near.PublicKey, error) {
	bytes, err := hex.DecodeString(name)
	if err != nil || len(bytes) != 32 {
		return near.PublicKey{}, errors.New("no account of an ed25519 key")
	}
	return near.PublicKey{Type: near.Ed25519, Bytes: string(bytes)}, nil
}
