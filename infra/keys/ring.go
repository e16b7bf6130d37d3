package keys

import (
	"maps"
	"slices"

	"github.com/tempo-watchtower/watchtower/domain/chain"
)

// Ring holds the usable signers, by address.
type Ring struct {
	signers map[chain.Address]*Signer
}

// NewRing accepts signers whose addresses are all in allowed. It refuses an unlisted signer and
// a duplicate: an unintended key must be found before it signs. A listed address without a
// signer is fine: its key may be held elsewhere. An empty list allows nothing.
//
// The ring owns the signers: [Ring.Close] closes them. If NewRing refuses, the caller still
// owns them.
func NewRing(allowed []chain.Address, signers ...*Signer) (*Ring, error) {
	r := &Ring{signers: make(map[chain.Address]*Signer, len(signers))}
	for _, s := range signers {
		if !slices.Contains(allowed, s.address) {
			return nil, ErrUnlisted.Because("the key of %s (%s) is not among the %d addresses allowed", s.address, s.kind, len(allowed))
		}
		if _, twice := r.signers[s.address]; twice {
			return nil, ErrBadKey.Because("two signers hold the key of %s", s.address)
		}
		r.signers[s.address] = s
	}
	return r, nil
}

// Signer returns the signer of an address, or a refusal.
func (r *Ring) Signer(a chain.Address) (*Signer, error) {
	s, there := r.signers[a]
	if !there {
		return nil, ErrUnknownKey.Because("there is no key of %s", a)
	}
	return s, nil
}

// Addresses are the signers' addresses, sorted.
func (r *Ring) Addresses() []chain.Address {
	return slices.SortedFunc(maps.Keys(r.signers), func(a, b chain.Address) int {
		return slices.Compare(a[:], b[:])
	})
}

// Close closes all signers.
func (r *Ring) Close() {
	for _, s := range r.signers {
		s.Close()
	}
}
