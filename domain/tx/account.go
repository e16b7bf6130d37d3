package tx

import (
	"encoding/binary"

	"github.com/tempo-watchtower/watchtower/domain/chain"
)

// Account names what a transaction needs beside a node: the fee payer's funds and, if an
// access key signed, the key's authorization. A store puts an account on hold when a node
// says that one is missing, and probes it with one transaction at a time. Two clients have
// two accounts, even with the same fee payer: clients of a relay share its signers, and a
// client chooses the gas, the value and the fee token of its transactions. So a client's
// unpayable transaction holds only its own. The access key is in the account because
// anybody can claim to sign for a sender with a new key. The zero Account is never on hold.
type Account [16]byte

// AccountOf returns a transaction's account. A client without a name adds nothing to the
// digest.
func AccountOf(a Accepted) Account {
	payer, key := a.Sender, chain.Address{}
	if a.FeePayer != nil {
		payer = *a.FeePayer
	}
	if a.AccessKey != nil {
		key = *a.AccessKey
	}
	digest := chain.Keccak(binary.BigEndian.AppendUint64(nil, uint64(a.Chain)), payer[:], key[:], []byte(a.Client))
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
