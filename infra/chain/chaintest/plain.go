package chaintest

import (
	"encoding/json"
	"fmt"

	"github.com/tempo-watchtower/watchtower/domain/chain"
)

// EncodePlain writes a transaction without a signature, for tests that are not about
// signatures. Its hash is the hash of the bytes; t.Hash is ignored.
func EncodePlain(t chain.Signed) []byte {
	t.Hash = chain.Hash{}
	raw, err := json.Marshal(t)
	if err != nil {
		panic(fmt.Sprintf("chaintest: %v", err)) // it is plain data
	}
	return raw
}

// DecodePlain reads the output of EncodePlain. It believes every sender.
func DecodePlain(raw []byte) (chain.Signed, error) {
	var t chain.Signed
	if err := json.Unmarshal(raw, &t); err != nil {
		return chain.Signed{}, &chain.Malformed{Fault: chain.FaultRLP, Detail: "not a plain transaction"}
	}
	t.Hash = chain.Keccak(raw)
	return t, nil
}
