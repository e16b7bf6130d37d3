package ethereum

import (
	"errors"

	"github.com/ethereum/go-ethereum/crypto"
	"github.com/holiman/uint256"

	"github.com/tempo-watchtower/watchtower/domain/chain"
)

// recoverSender returns the account whose key signed the digest. Of the two valid values of s
// only the lower is accepted (EIP-2): the other would give the same transaction a second hash.
func recoverSender(digest chain.Hash, r, s *uint256.Int, parity uint64) (chain.Address, error) {
	if parity > 1 {
		return chain.Address{}, errors.New("y parity is neither 0 nor 1")
	}
	if !crypto.ValidateSignatureValues(byte(parity), r.ToBig(), s.ToBig(), true) {
		return chain.Address{}, errors.New("r or s is zero or beyond the curve's order, or s is in its upper half (EIP-2)")
	}
	var sig [crypto.SignatureLength]byte
	r.WriteToSlice(sig[:32])
	s.WriteToSlice(sig[32:64])
	sig[crypto.RecoveryIDOffset] = byte(parity)
	key, err := crypto.Ecrecover(digest[:], sig[:])
	if err != nil {
		return chain.Address{}, errors.New("no key fits the signature")
	}
	hash := chain.Keccak(key[1:])
	return chain.Address(hash[12:]), nil
}
