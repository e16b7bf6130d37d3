package rpc

import (
	"context"
	"fmt"

	"github.com/tempo-watchtower/watchtower/domain/chain"
)

// AgreedNonce is the chain's next nonce in a sequence at a block, with the endpoints that
// confirmed it.
type AgreedNonce struct {
	Nonce     uint64
	Block     chain.Block
	Endpoints []string // that agree; at least Needed of Asked
	Needed    int
	Asked     int // number of configured endpoints
}

// AgreedNonce returns the next nonce in a sequence to a caller that signs with it. It is
// stricter than [Reader.Nonces], which accepts fewer votes when endpoints are away for long.
// Here Agree endpoints must say the same, or all if fewer are configured.
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
