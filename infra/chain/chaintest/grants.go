package chaintest

import (
	"encoding/binary"
	"encoding/hex"
	"slices"

	"github.com/tempo-watchtower/watchtower/domain/chain"
)

// SetGrant sets an access key's grant in the AccountKeychain, at every block.
func (c *Chain) SetGrant(key chain.AccessKey, grant chain.Grant) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.grants[key] = grant
}

// accountKeychain answers getKey(address,address). Source: tempoxyz/tempo,
// crates/precompiles/src/account_keychain.
const (
	accountKeychain = "0xaaaaaaaa00000000000000000000000000000000"
	getKey          = "bc298553"
	getKeyBytes     = 4 + 32 + 32
)

func (v view) grant(input []byte) (any, *Refusal) {
	if len(input) != getKeyBytes || hex.EncodeToString(input[:4]) != getKey {
		return nil, &Refusal{Code: codeOfExecution, Message: "execution reverted"}
	}
	key := chain.AccessKey{Account: chain.Address(input[16:36]), Key: chain.Address(input[48:68])}
	g := v.grants[key]
	var out [5 * 32]byte // type, key, expiry, limits enforced, revoked
	if g.Known {
		kinds := []chain.SignatureKind{chain.Secp256k1, chain.P256, chain.WebAuthn}
		out[31] = byte(slices.Index(kinds, g.Kind))
		copy(out[32+12:], key.Key[:])
		binary.BigEndian.PutUint64(out[64+24:], g.Expires)
	}
	if g.Revoked {
		out[4*32+31] = 1
	}
	return "0x" + hex.EncodeToString(out[:]), nil
}
