package group

import (
	"encoding/binary"

	"github.com/tempo-watchtower/watchtower/domain/chain"
)

// Digest is what the owner signs to cancel a group in the form [FormGroupID]:
// keccak256 of the id's 16 bytes. It names no chain, no service and no time, so that
// anybody who has seen the signature can show it to another service. A group takes it once.
func Digest(g chain.GroupID) chain.Hash { return chain.Keccak(g[:]) }

// Wish is what the owner signs to cancel a group in the form [FormTyped].
type Wish struct {
	ID
	Deployment string // which service is to carry it out
	Expires    uint64 // Unix seconds; from then on it does not count
}

// The typed data (EIP-712). A wallet shows its owner the names that are in it.
const (
	typedName    = "Watchtower"
	typedVersion = "1"
	domainType   = "EIP712Domain(string name,string version,uint256 chainId)"
	wishType     = "CancelGroup(string deployment,address sender,bytes16 groupId,uint64 expires)"
)

// Digest is what is signed: by eth_signTypedData_v4, or by any other key over the
// same 32 bytes. Source: EIP-712, "Specification of the eth_signTypedData JSON RPC".
func (w Wish) Digest() chain.Hash {
	domain := chain.Keccak(keccakOf(domainType), keccakOf(typedName), keccakOf(typedVersion), word(uint64(w.Chain)))
	var sender, id [32]byte
	copy(sender[32-len(w.Sender):], w.Sender[:]) // an address is a number, on the right
	copy(id[:], w.Group[:])                      // bytes16 are bytes, on the left
	wish := chain.Keccak(keccakOf(wishType), keccakOf(w.Deployment), sender[:], id[:], word(w.Expires))
	return chain.Keccak([]byte{0x19, 0x01}, domain[:], wish[:])
}

func keccakOf(text string) []byte {
	h := chain.Keccak([]byte(text))
	return h[:]
}

// word is a number as EIP-712 encodes it: 32 bytes, big-endian.
func word(n uint64) []byte {
	var w [32]byte
	binary.BigEndian.PutUint64(w[24:], n)
	return w[:]
}
