package rpc

import (
	"context"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/tempo-watchtower/watchtower/domain/chain"
)

// accountKeychain is Tempo's precompile for access keys. getKey is its selector for
// getKey(address,address) returns (uint8 signatureType, address keyId, uint64 expiry, bool
// enforceLimits, bool isRevoked); all fields are zero for an unknown key. Source: the
// tempoxyz/tempo node, crates/precompiles/src/account_keychain.
const (
	accountKeychain = "0xaaaaaaaa00000000000000000000000000000000"
	getKey          = "0xbc298553"
	grantWords      = 5
)

// Grants returns, for each access key, its grant in the AccountKeychain at a block. A known key
// lets transactions into an account's groups, so it counts when other endpoints confirm it.
func (r *Reader) Grants(ctx context.Context, at chain.Block, keys []chain.AccessKey) ([]chain.Grant, error) {
	grants, by, err := hedgedBy(ctx, r.pool, func(ctx context.Context, e *endpoint) ([]chain.Grant, error) {
		return r.grantsAt(ctx, e, at, keys)
	})
	if err != nil {
		return nil, err
	}
	err = r.confirmGrants(ctx, by, at, keys, grants)
	var lost *outvoted
	if other := r.pool.best(by); errors.As(err, &lost) && other != nil && !isOwn(ctx) {
		// Reads of clients do not move to another endpoint: the next one would fail too.
		if grants, err = r.grantsAt(ctx, other, at, keys); err == nil {
			err = r.confirmGrants(ctx, other, at, keys, grants)
		}
	}
	if err != nil {
		return nil, err
	}
	return grants, nil
}

// confirmGrants asks other endpoints to confirm the known keys among an endpoint's grants.
func (r *Reader) confirmGrants(ctx context.Context, by *endpoint, at chain.Block, keys []chain.AccessKey, grants []chain.Grant) error {
	var known []chain.AccessKey
	var said []chain.Grant
	for i, g := range grants {
		if g.Known {
			known, said = append(known, keys[i]), append(said, g)
		}
	}
	if len(known) == 0 {
		return nil
	}
	same := func(ctx context.Context, other *endpoint) say {
		found, err := r.grantsAt(ctx, other, at, known)
		switch {
		case err != nil:
			return r.sayOf(ctx, other, at, err)
		case slices.Equal(found, said):
			return saysYes
		}
		return saysNo
	}
	return r.pool.borneOut(ctx, by, claim{about: ofKeys, what: fmt.Sprintf("access keys at block %s", at.Hash), check: same})
}

func (r *Reader) grantsAt(ctx context.Context, e *endpoint, at chain.Block, keys []chain.AccessKey) ([]chain.Grant, error) {
	replies, err := r.stateAt(ctx, e, useOf(ctx), at, len(keys), func(i int, state any) call {
		const padding = "000000000000000000000000"
		input := getKey + padding + hex.EncodeToString(keys[i].Account[:]) + padding + hex.EncodeToString(keys[i].Key[:])
		return call{"eth_call", []any{map[string]string{"to": accountKeychain, "data": input}, state}}
	})
	if err != nil {
		return nil, err
	}
	grants := make([]chain.Grant, len(keys))
	for i, k := range keys {
		if grants[i], err = parseGrant(replies[i], k); err != nil {
			return nil, r.pool.dispute(ctx, e, fmt.Errorf("access key %s of %s: %w", k.Key, k.Account, err))
		}
	}
	return grants, nil
}

func parseGrant(r reply, k chain.AccessKey) (g chain.Grant, err error) {
	var text *string
	if err := r.into(&text); err != nil {
		return g, err
	}
	if text == nil {
		return g, contradiction("no answer")
	}
	data, err := hex.DecodeString(strings.TrimPrefix(*text, "0x"))
	if err != nil || len(data) < 32*grantWords {
		return g, contradiction("%.80q is not a result of getKey", *text)
	}
	word := func(i int) chain.Hash { return chain.Hash(data[32*i:]) }
	kind, key, expires := word(0), chain.Address(data[32+12:]), word(2)
	g = chain.Grant{Revoked: !word(4).IsZero()}
	switch {
	case key == chain.Address{}:
		return g, nil // unknown, or revoked with nothing else stored
	case key != k.Key:
		return chain.Grant{}, contradiction("it speaks of %s", key)
	case !zero(expires[:24]):
		return chain.Grant{}, contradiction("an expiry of more than 64 bits")
	}
	g.Known, g.Kind, g.Expires = true, grantKind(kind), binary.BigEndian.Uint64(expires[24:])
	return g, nil
}

// grantKind reads a signature type. A type of a later node equals none of our kinds.
func grantKind(word chain.Hash) chain.SignatureKind {
	kinds := [...]chain.SignatureKind{chain.Secp256k1, chain.P256, chain.WebAuthn}
	if n := int(word[31]); zero(word[:31]) && n < len(kinds) {
		return kinds[n]
	}
	return chain.SignatureKind("type " + word.String())
}

func zero(b []byte) bool { return !slices.ContainsFunc(b, func(c byte) bool { return c != 0 }) }
