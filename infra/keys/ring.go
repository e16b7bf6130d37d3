package keys

import (
	"maps"
	"slices"

	"github.com/tempo-watchtower/watchtower/domain/chain"
)

// Ring is the signers that may be used, by address.
type Ring struct {
	signers map[chain.Address]*Signer
}

// NewRing takes signers whose addresses are all on the list of those allowed. One
// that is not is refused, and so is one that comes twice: a key that nobody named
// must not be found out by what it signed. An address on the list without a signer
// is fine: its key may be held elsewhere. An empty list allows nothing.
//
// The ring owns the signers: [Ring.Close] closes them. When it refuses, they are
// still the caller's.
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

// Signer is that of an address, or a refusal.
func (r *Ring) Signer(a chain.Address) (*Signer, error) {
	s, there := r.signers[a]
	if !there {
		return nil, ErrUnknownKey.Because("there is no key of %s", a)
	}
	return s, nil
}

// Addresses are those of the signers, in their order.
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
