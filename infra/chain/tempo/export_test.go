package tempo

import "github.com/tempo-watchtower/watchtower/domain/chain"

// Canonical decodes and also returns the canonical encoding.
func Canonical(raw []byte) (chain.Signed, []byte, error) { return decode(raw) }
