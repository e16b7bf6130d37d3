package rlp_test

import (
	"bytes"
	"errors"
	"math"
	"math/rand/v2"
	"testing"

	geth "github.com/ethereum/go-ethereum/rlp"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/infra/chain/rlp"
	"github.com/tempo-watchtower/watchtower/infra/chain/rlp/rlptest"
)

// Skip accepts the same bytes as go-ethereum's decoder.
func TestSkipAgreesWithGoEthereum(t *testing.T) {
	const deep = 64
	seed, err := geth.EncodeToBytes([]any{
		[]byte{}, []byte{0x7f}, []byte{0x80}, bytes.Repeat([]byte{1}, 55), bytes.Repeat([]byte{2}, 56), bytes.Repeat([]byte{3}, 300),
		[]any{}, []any{[]any{[]byte{1}}, []byte{2, 3}}, []any{bytes.Repeat([]byte{4}, 60)},
	})
	if err != nil {
		t.Fatal(err)
	}
	r := rand.New(rand.NewPCG(3, 4))
	taken := 0
	for range 100_000 {
		b := rlptest.Mutate(r, seed)
		list := rlp.Read(b)
		for list.More() {
			list.Skip("item", deep)
		}
		var tree []any
		if theirs := geth.DecodeBytes(b, &tree); (theirs == nil) != (list.Err() == nil) {
			t.Fatalf("%x: ours %v, go-ethereum's %v", b, list.Err(), theirs)
		}
		if list.Err() == nil {
			taken++
		}
	}
	if taken < 10_000 || taken > 90_000 {
		t.Errorf("%d of 100000 were taken: the mutations try too little", taken)
	}
}

func TestEncodingAgreesWithGoEthereum(t *testing.T) {
	for _, n := range []uint64{0, 1, 0x7f, 0x80, 0xff, 0x100, 1<<56 - 1, 1 << 56, math.MaxUint64} {
		want, err := geth.EncodeToBytes(n)
		if got := rlp.Uint64(n); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%d is %x, want %x", n, got, want)
		}
	}
	for _, size := range []int{0, 1, 55, 56, 255, 256, 70_000} {
		items := make([]any, size)
		for i := range items {
			items[i] = []byte{1}
		}
		list, err := geth.EncodeToBytes(items)
		if got := rlp.ListHeader(size); err != nil || !bytes.Equal(got, list[:len(list)-size]) {
			t.Errorf("a list of %d bytes begins %x, want %x", size, got, list[:len(list)-size])
		}
	}
}

func TestTheFirstFaultSticks(t *testing.T) {
	list := rlp.Read([]byte{0xc4, 0xc1, 0x00, 0x82, 0x01})
	inner := list.List("inner")
	if n := inner.Uint64("n"); n != 0 {
		t.Errorf("n is %d", n)
	}
	if list.More() || inner.More() {
		t.Error("there is more after a fault")
	}
	list.Bytes("other")
	list.Fail(chain.FaultInvalid, "other", "too")
	var malformed *chain.Malformed
	if err := list.Err(); !errors.As(err, &malformed) || *malformed != (chain.Malformed{Fault: chain.FaultNonCanonical, Detail: "n: has a leading zero byte"}) {
		t.Errorf("error is %v", err)
	}
}

func TestDepth(t *testing.T) {
	nested := []byte{0x80}
	for range 3 {
		nested = append(rlp.ListHeader(len(nested)), nested...)
	}
	for depth, fits := range []bool{false, false, false, true} {
		list := rlp.Read(append(rlp.ListHeader(len(nested)), nested...))
		list.Skip("nested", depth)
		if (list.Err() == nil) != fits {
			t.Errorf("three lists within a depth of %d: %v", depth, list.Err())
		}
	}
}
