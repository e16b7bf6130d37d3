package tx

import (
	"encoding/binary"

	"github.com/tempo-watchtower/watchtower/domain/chain"
)

// Account names those on whose means a transaction depends: who pays its fee, and
// the access key, if any, that signed it. Anybody can claim to sign for an account
// with a key of his own; so what becomes of one key says nothing of another's. The
// zero Account is nobody's.
type Account [16]byte

// AccountOf is a transaction's account.
func AccountOf(a Accepted) Account {
	payer, key := a.Sender, chain.Address{}
	if a.FeePayer != nil {
		payer = *a.FeePayer
	}
	if a.AccessKey != nil {
		key = *a.AccessKey
	}
	digest := chain.Keccak(binary.BigEndian.AppendUint64(nil, uint64(a.Chain)), payer[:], key[:])
	return Account(digest[:16])
}

// Standing is what an attempt showed about the account behind it.
type Standing string

const (
	Unable  Standing = "unable"  // it cannot pay, or its key is not authorised: a node said so
	Able    Standing = "able"    // a node took the bytes
	Unclear Standing = "unclear" // neither
	Unasked Standing = "unasked" // no node was asked: the transaction has reasons of its own to wait
)

// Standing is what an outcome shows about the account.
func (o Outcome) Standing() Standing {
	switch {
	case o.Class == Taken:
		return Able
	case o.Class == Retry && (o.Cause == Funds || o.Cause == KeyMissing):
		return Unable
	}
	return Unclear
}
