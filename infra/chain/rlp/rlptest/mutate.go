// Package rlptest mutates transactions for the decoders' tests.
package rlptest

import (
	"bytes"
	"math/rand/v2"
	"slices"

	"github.com/ethereum/go-ethereum/rlp"
)

// Mutate returns a copy of a transaction with a few changes: to bytes anywhere, or, as often,
// to an item of one of its lists, with all lengths corrected.
func Mutate(r *rand.Rand, raw []byte) []byte {
	if r.IntN(2) == 0 {
		if out, ok := graft(r, raw); ok {
			return out
		}
	}
	out := bytes.Clone(raw)
	for range 1 + r.IntN(3) {
		out = scribble(r, out)
	}
	return out
}

// telling are bytes at which RLP or a signature changes its meaning.
const telling = "\x00\x01\x02\x03\x04\x05\x1b\x1c\x23\x76\x7f\x80\x81\x94\xa0\xb7\xb8\xb9\xbf\xc0\xc1\xf7\xf8\xf9\xff"

func scribble(r *rand.Rand, b []byte) []byte {
	if len(b) == 0 {
		return []byte{telling[r.IntN(len(telling))]}
	}
	at := r.IntN(len(b))
	end := min(len(b), at+1+r.IntN(40))
	switch r.IntN(6) {
	case 0:
		b[at] ^= 1 << r.IntN(8)
	case 1:
		b[at] = telling[r.IntN(len(telling))]
	case 2:
		b = slices.Delete(b, at, end)
	case 3:
		b = slices.Insert(b, at, bytes.Clone(b[at:end])...)
	case 4:
		copy(b[r.IntN(len(b)):], bytes.Clone(b[at:end]))
	case 5:
		b = b[:at]
	}
	return b
}

// graft replaces, drops or duplicates one item.
func graft(r *rand.Rand, raw []byte) ([]byte, bool) {
	prefix := 1
	if len(raw) == 0 || raw[0] >= 0xc0 {
		prefix = 0
	}
	var tree []any
	if rlp.DecodeBytes(raw[prefix:], &tree) != nil {
		return nil, false
	}
	list, err := rlp.EncodeToBytes(change(r, tree))
	if err != nil {
		return nil, false
	}
	return append(bytes.Clone(raw[:prefix]), list...), true
}

func change(r *rand.Rand, list []any) []any {
	if len(list) == 0 {
		return []any{scion(r)}
	}
	at := r.IntN(len(list))
	if inner, ok := list[at].([]any); ok && r.IntN(4) > 0 {
		list[at] = change(r, inner)
		return list
	}
	switch r.IntN(8) {
	case 0:
		return slices.Delete(list, at, at+1)
	case 1:
		return slices.Insert(list, at, list[at])
	case 2:
		list[at] = list[r.IntN(len(list))]
	case 3, 4:
		if b, ok := list[at].([]byte); ok {
			list[at] = scribble(r, bytes.Clone(b))
		}
	default:
		list[at] = scion(r)
	}
	return list
}

// scion is an item of a valid field size, or just off it.
func scion(r *rand.Rand) any {
	sizes := []int{0, 1, 7, 8, 9, 16, 17, 20, 32, 33, 65, 86, 130}
	b := make([]byte, sizes[r.IntN(len(sizes))])
	for i := range b {
		b[i] = byte(r.IntN(256))
	}
	switch r.IntN(8) {
	case 0:
		return []any{}
	case 1:
		return []any{b}
	default:
		return b
	}
}
