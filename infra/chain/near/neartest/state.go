package neartest

import (
	"maps"

	"github.com/holiman/uint256"

	"github.com/tempo-watchtower/watchtower/infra/chain/near"
)

// account is one account's state. It is copied before it changes, so that earlier blocks keep theirs.
type account struct {
	balance uint256.Int // yoctoNEAR
	storage uint64      // bytes
	code    hash        // zero without a contract
	keys    map[near.PublicKey]accessKey
}

// accessKey is one access key. For a gas key, nonces are those of its sequences.
type accessKey struct {
	nonce      uint64
	permission near.Permission
	spent      uint256.Int // of the allowance
	nonces     []uint64
	balance    uint256.Int // of a gas key
}

// state is the state after a block: what changed in the block over its parent's state.
type state struct {
	under   *state
	depth   int // states below it
	changed map[string]*account
}

// flattenEvery bounds how many states a read visits.
const flattenEvery = 32

func (s *state) next() *state {
	n := &state{under: s, changed: map[string]*account{}}
	if s == nil {
		return n
	}
	if n.depth = s.depth + 1; n.depth >= flattenEvery {
		n.changed, n.under, n.depth = s.all(), nil, 0
	}
	return n
}

func (s *state) all() map[string]*account {
	if s == nil {
		return map[string]*account{}
	}
	all := s.under.all()
	for name, a := range s.changed {
		all[name] = a
	}
	return all
}

// get returns an account; nil without it. The caller does not change it.
func (s *state) get(name string) *account {
	for ; s != nil; s = s.under {
		if a, known := s.changed[name]; known {
			return a
		}
	}
	return nil
}

// touch returns a copy of an account to change; nil without it.
func (s *state) touch(name string) *account {
	a := s.get(name)
	if a == nil {
		return nil
	}
	own := *a
	own.keys = maps.Clone(a.keys)
	s.changed[name] = &own
	return &own
}

func (s *state) create(name string) *account {
	a := &account{keys: map[near.PublicKey]accessKey{}, storage: storageOfAccount}
	s.changed[name] = a
	return a
}

func (s *state) remove(name string) { s.changed[name] = nil }

// clone is a copy that a failed receipt's actions run on.
func (s *state) scratch() *state { return &state{under: s, changed: map[string]*account{}} }

// keep takes over what a scratch changed.
func (s *state) keep(scratch *state) {
	for name, a := range scratch.changed {
		s.changed[name] = a
	}
}

// Storage of accounts in bytes, and what a byte stakes (nearcore core/parameters, storage_amount_per_byte, and
// the limit below which an account needs no stake, NEP-448).
const (
	storageOfAccount = 100
	storageOfKey     = 82
	storageFree      = 770
)

var stakePerByte = uint256.MustFromDecimal("10000000000000000000")

// lacks returns what an account misses of the balance that its storage stakes; nil if it has that.
func (a *account) lacks() *uint256.Int {
	if a.storage <= storageFree {
		return nil
	}
	stake := new(uint256.Int).Mul(stakePerByte, uint256.NewInt(a.storage))
	if a.balance.Lt(stake) {
		return stake.Sub(stake, &a.balance)
	}
	return nil
}
