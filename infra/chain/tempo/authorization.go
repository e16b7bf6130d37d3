package tempo

import (
	"bytes"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/infra/chain/rlp"
)

// authorizations reads the list of [chainId, address, nonce, signature] by which accounts
// delegate to code (EIP-7702), and reports whether it has any. It does not verify the
// signatures: the chain skips an invalid authorization.
func authorizations(l *rlp.List) (some bool) {
	for list := l.List("authorizations"); list.More(); some = true {
		entry := list.List("authorization")
		entry.Uint("authorization chain id", 256)
		entry.Address("authorization address")
		entry.Uint64("authorization nonce")
		readSignature(&entry, "authorization signature", chain.FaultRLP, settle)
		entry.End("authorization")
	}
	return some
}

// maxNesting bounds the lists inside one field of a key authorization. The deepest known field
// is the recipients of allowed calls, nested four lists deep.
const maxNesting = 8

// keyAuthorization reads [[chainId, keyType, keyId, expiry?, limits?, …], signature], by which
// an account admits an access key. The format grows with the forks, so fields after the limits
// are only checked for form. The chain checks whether the account signed it, and may.
//
// Optional fields are 0x80 in the middle and omitted at the end. An optional field written out
// at the end is refused: only some nodes accept it, and they hash the transaction without it.
func keyAuthorization(l *rlp.List) *grant {
	const field = "key authorization"
	signed := l.List(field)
	fields := signed.List(field)
	g := &grant{chain: chain.ID(fields.Uint64("key chain id"))}
	g.kind = fields.Uint("key type", 8).Uint64()
	g.key = fields.Address("key id")
	for i := 0; fields.More(); i++ {
		refuseLastEmpty(&fields, field)
		switch {
		case i == 0:
			g.until = fields.Uint64("key expiry")
		case i == 1 && fields.NextIsList():
			limits(&fields)
		case i == accountField && !fields.NextIsList():
			g.account = fields.Bytes("key account")
		default:
			fields.Skip(field, maxNesting)
			g.foreign = g.foreign || i >= accountField
		}
	}
	g.terms = signed.Taken()
	g.signature = readSignature(&signed, "key authorization signature", chain.FaultRLP, settlePrimitive)
	signed.End(field)
	return g
}

// accountField is the index, among the fields after the key's id, of the account that the
// authorization is for.
const accountField = 5

// grant is a key authorization: the terms, and the signature over them.
type grant struct {
	chain     chain.ID
	kind      uint64 // of the key: 0 secp256k1, 1 P-256, 2 WebAuthn
	key       chain.Address
	until     uint64 // Unix seconds; 0: for ever
	account   []byte // the account that it is for; empty if not given
	foreign   bool   // it has fields unknown to this program
	terms     []byte // the signed encoding
	signature []byte
}

// covers reports whether the account named by a signature has itself authorized, for this
// chain, the access key that made the signature. If another access key authorized it, only the
// chain can confirm that.
func (g *grant) covers(id chain.ID, by signer) bool {
	kinds := map[chain.SignatureKind]uint64{chain.Secp256k1: 0, chain.P256: 1, chain.WebAuthn: 2}
	switch kind, known := kinds[by.accessKind]; {
	case g == nil || by.accessKey == nil || by.legacy || g.foreign:
		return false
	case g.chain != id || g.key != *by.accessKey || !known || g.kind != kind:
		return false
	case len(g.account) > 0 && !bytes.Equal(g.account, by.account[:]):
		return false
	}
	account, _, err := verifyPrimitive(g.signature, chain.Keccak(g.terms))
	return err == nil && account == by.account
}

// limits reads [[token, limit, period?] …].
func limits(l *rlp.List) {
	for list := l.List("key limits"); list.More(); {
		entry := list.List("key limit")
		entry.Address("key limit token")
		entry.Uint("key limit", 256)
		if entry.More() {
			refuseLastEmpty(&entry, "key limit period")
			entry.Uint64("key limit period")
		}
		entry.End("key limit")
	}
}

// refuseLastEmpty refuses a list whose only remaining item is an empty string.
func refuseLastEmpty(l *rlp.List, field string) {
	if rest := l.Rest(); len(rest) == 1 && rest[0] == 0x80 {
		l.Fail(chain.FaultNonCanonical, field, "an absent last item is to be left out")
	}
}
