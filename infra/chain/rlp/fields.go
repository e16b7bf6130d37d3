package rlp

import (
	"encoding/binary"
	"fmt"

	"github.com/holiman/uint256"

	"github.com/tempo-watchtower/watchtower/domain/chain"
)

// Uint64 reads an unsigned integer of at most 64 bits.
func (l *List) Uint64(field string) uint64 {
	var n [8]byte
	digits := l.integer(field, len(n))
	copy(n[len(n)-len(digits):], digits)
	return binary.BigEndian.Uint64(n[:])
}

// Uint reads an unsigned integer of at most the given number of bits, which is a
// multiple of 8 and no more than 256.
func (l *List) Uint(field string, bits int) *uint256.Int {
	return new(uint256.Int).SetBytes(l.integer(field, bits/8))
}

// integer reads a big-endian number: no bytes for zero, and no leading zero byte.
func (l *List) integer(field string, size int) []byte {
	digits := l.Bytes(field)
	switch {
	case len(digits) > 0 && digits[0] == 0:
		l.Fail(chain.FaultNonCanonical, field, "has a leading zero byte")
		return nil
	case len(digits) > size:
		l.Fail(chain.FaultOverflow, field, fmt.Sprintf("has %d bytes, more than %d", len(digits), size))
		return nil
	}
	return digits
}

// Address reads 20 bytes.
func (l *List) Address(field string) (a chain.Address) {
	l.fixed(field, a[:])
	return a
}

// MaybeAddress reads 20 bytes, or the empty string, which gives nil.
func (l *List) MaybeAddress(field string) *chain.Address {
	if l.More() && l.payload[l.at] == stringShort {
		l.at++
		return nil
	}
	a := l.Address(field)
	return &a
}

// AccessList reads a list in the form of EIP-2930, [[address, [32-byte key …]] …], and counts
// the addresses and the keys.
func (l *List) AccessList(field string) (addresses, keys uint64) {
	for list := l.List(field); list.More(); addresses++ {
		entry := list.List(field)
		entry.Address(field)
		for slots := entry.List(field); slots.More(); keys++ {
			var slot [32]byte
			slots.fixed(field, slot[:])
		}
		entry.End(field)
	}
	return addresses, keys
}

// fixed reads a string of exactly len(dst) bytes.
func (l *List) fixed(field string, dst []byte) {
	b := l.Bytes(field)
	if *l.fault == nil && len(b) != len(dst) {
		l.Fail(chain.FaultRLP, field, fmt.Sprintf("has %d bytes, not %d", len(b), len(dst)))
	}
	copy(dst, b)
}
