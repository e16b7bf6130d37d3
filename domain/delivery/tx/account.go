package tx

import (
	"encoding/binary"

	"github.com/tempo-watchtower/watchtower/domain/chain"
)

// Account identifies the on-chain preconditions that transactions share: the fee payer's funds
// and, if an access key signed, the key's authorization. When a node reports that one of them is
// missing, the store puts the account on hold and probes it with one transaction at a time.
//
// Two clients have two accounts, even with the same fee payer: clients of a relay share its
// signers, and each client chooses the gas, value and fee token of its transactions. So a
// client's unpayable transaction holds back only that client's transactions. The access key is
// part of the account because anybody can sign with a new key and name any sender. The zero
// Account is never on hold.
type Account [16]byte

// AccountOf returns a transaction's account.
func AccountOf(a Accepted) Account { return a.Terms().Account(a.Chain, a.Client) }

// Account returns a client's account of a transaction with these terms. An empty client name adds
// nothing to the digest.
func (t Terms) Account(id chain.ID, client string) Account {
	key := chain.Address{}
	if t.AccessKey != nil {
		key = *t.AccessKey
	}
	digest := chain.Keccak(binary.BigEndian.AppendUint64(nil, uint64(id)), t.Payer[:], key[:], []byte(client))
	return Account(digest[:16])
}

// OwnerOf returns the owner of the transaction whose account it is: the client in whose turn a row
// with this account was leased. For an account of no owner, as in rows of an older version, it is the
// first one.
func (s State) OwnerOf(a Account) string {
	accepted := s.Accepted
	for _, accepted.Client = range s.Owners() {
		if AccountOf(accepted) == a {
			return accepted.Client
		}
	}
	return s.Accepted.Client
}

// Standing is the evidence that an attempt gave about its account.
type Standing string

const (
	Unable  Standing = "unable"  // the account cannot pay, or its key is not authorized, by a node's answer
	Able    Standing = "able"    // a node accepted the bytes
	Unclear Standing = "unclear" // the answer shows neither
	Unasked Standing = "unasked" // no node was asked: the transaction waits for reasons of its own
)

// OfAll reports whether the outcome would have been the same in the name of any other client: a node
// has dealt with the bytes, and the outcome does not depend on the account. A client's calls may be
// refused, or wait too long, because it makes many.
func (o Outcome) OfAll() bool {
	switch o.Cause {
	case NonceTooLow, NonceTooHigh, TooEarly, TooLate, Fee, FeeCap, Underpriced, PoolFull, Replayed:
		return true
	}
	return o.Class == Taken
}

// Standing returns the evidence that the outcome gives about the account.
func (o Outcome) Standing() Standing {
	switch {
	case o.Class == Taken:
		return Able
	case o.Class == Retry && (o.Cause == Funds || o.Cause == KeyMissing):
		return Unable
	}
	return Unclear
}
