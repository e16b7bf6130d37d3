package group

import (
	"encoding/binary"

	"github.com/tempo-watchtower/watchtower/domain/chain"
)

// Digest returns the digest that the owner signs to cancel a group in the form [FormGroupID]:
// keccak256 of the id's 16 bytes. It contains no chain, service or time, so that anybody who has
// seen the signature can present it to another service. A group accepts it once.
func Digest(g chain.GroupID) chain.Hash { return chain.Keccak(g[:]) }

// Wish is the content that the owner signs to cancel a group in the form [FormTyped].
type Wish struct {
	ID
	Deployment string // the service that is to cancel the group
	Expires    uint64 // Unix seconds; invalid from then on
}

// The typed data (EIP-712). A wallet shows these names to its owner.
const (
	typedName    = "Watchtower"
	typedVersion = "1"
	domainType   = "EIP712Domain(string name,string version,uint256 chainId)"
	wishType     = "CancelGroup(string deployment,address sender,bytes16 groupId,uint64 expires)"
)

// Digest returns the digest to sign, by eth_signTypedData_v4 or by any other key over the same 32
// bytes. Source: EIP-712, "Specification of the eth_signTypedData JSON RPC".
func (w Wish) Digest() chain.Hash {
	domain := chain.Keccak(keccakOf(domainType), keccakOf(typedName), keccakOf(typedVersion), word(uint64(w.Chain)))
	var sender, id [32]byte
	copy(sender[32-len(w.Sender):], w.Sender[:]) // an address is a number: right-aligned
	copy(id[:], w.Group[:])                      // bytes16 is left-aligned
	wish := chain.Keccak(keccakOf(wishType), keccakOf(w.Deployment), sender[:], id[:], word(w.Expires))
	return chain.Keccak([]byte{0x19, 0x01}, domain[:], wish[:])
}

func keccakOf(text string) []byte {
	h := chain.Keccak([]byte(text))
	return h[:]
}

// word encodes a number as in EIP-712: 32 bytes, big-endian.
func word(n uint64) []byte {
	var w [32]byte
	binary.BigEndian.PutUint64(w[24:], n)
	return w[:]
}
