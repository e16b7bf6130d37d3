package rpc

import (
	"context"
	"fmt"

	"github.com/tempo-watchtower/watchtower/domain/chain"
)

// AgreedNonce is the next nonce that the chain wants in a sequence at a block, and whose
// word that is.
type AgreedNonce struct {
	Nonce     uint64
	Block     chain.Block
	Endpoints []string // that agree; at least Needed of Asked
	Needed    int
	Asked     int // that are configured
}

// AgreedNonce asks for the next nonce in a sequence, for whoever signs by the answer: what
// [Reader.Nonces] is content with when others are away for long is not enough here. As many
// endpoints as are to agree have to say the same, or all when there are fewer.
func (r *Reader) AgreedNonce(ctx context.Context, at chain.Block, s chain.Sequence) (AgreedNonce, error) {
	nonces, by, err := hedgedBy(ctx, r.pool, func(ctx context.Context, e *endpoint) ([]uint64, error) {
		return r.noncesAt(ctx, e, at, []chain.Sequence{s})
	})
	if err != nil {
		return AgreedNonce{}, err
	}
	what := fmt.Sprintf("nonce %d at block %s", nonces[0], at.Hash)
	others, _, err := r.pool.borneOutBy(ctx, by, claim{about: ofNonces, what: what, check: r.sameNonces(at, []chain.Sequence{s}, nonces)})
	if err != nil {
		return AgreedNonce{}, err
	}
	asked := len(r.pool.endpoints)
	agreed := AgreedNonce{nonces[0], at, []string{by.name}, min(r.pool.config.Agree, asked), asked}
	for _, other := range others {
		agreed.Endpoints = append(agreed.Endpoints, other.name)
	}
	if len(agreed.Endpoints) < agreed.Needed {
		return AgreedNonce{}, &Unreachable{Endpoint: by.name, Err: fmt.Errorf("%s: %w (%d of %d have to agree)", what, errAlone, agreed.Needed, asked)}
	}
	return agreed, nil
}
