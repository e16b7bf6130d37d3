package tempo_test

import (
	"bytes"
	"errors"
	"math"
	"reflect"
	"testing"

	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/rlp"
	"github.com/google/go-cmp/cmp"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/infra/chain/rlp/rlptest"
	"github.com/tempo-watchtower/watchtower/infra/chain/tempo"
)

func FuzzDecode(f *testing.F) {
	for _, v := range load(f).Vectors {
		if v.ours() {
			f.Add(v.bytes(f))
		}
	}
	// Inputs that a decoder is likely to accept or refuse wrongly.
	f.Add(plain().signed(f, highS(secp256k1(f, plain().digest(f)))))
	f.Add(plain().with(fCalls, []any{[]any{recipient, bytes.Repeat([]byte{1}, 33), []byte{}}}).sign(f))
	f.Add(append(plain().sign(f), 0)) // trailing byte
	f.Add(plain().with(fNonceKey, []byte{}).with(fNonce, uint64(math.MaxUint64)).sign(f))
	f.Add([]byte{0xc0}) // legacy, not for this decoder
	f.Fuzz(func(t *testing.T, raw []byte) { checkDecode(t, raw) })
}

// Transactions made by wallets, mutated at random.
func TestMutations(t *testing.T) {
	var seeds [][]byte
	for _, v := range load(t).Vectors {
		if v.ours() && v.Expect == "valid" {
			seeds = append(seeds, v.bytes(t))
		}
	}
	calls := make([]any, 300)
	for i := range calls {
		calls[i] = []any{recipient, uint64(i), bytes.Repeat([]byte{0xa9}, 40)}
	}
	rlptest.Try(t, rlptest.Decoder{
		Seeds: seeds,
		Large: [][]byte{
			plain().with(fCalls, calls).sign(t),
			plain().with(fCalls, []any{[]any{recipient, []byte{}, bytes.Repeat([]byte{1}, 16<<10)}}).sign(t),
		},
		Decode: func(raw []byte) error { _, err := tempo.Decode(raw); return err },
		Check:  checkDecode,
	})
}

// checkDecode checks Decode's guarantees for any bytes.
func checkDecode(t *testing.T, raw []byte) {
	t.Helper()
	kept := bytes.Clone(raw)
	got, err := tempo.Decode(raw)
	if !bytes.Equal(kept, raw) {
		t.Error("the bytes were changed")
	}
	if err != nil {
		var malformed *chain.Malformed
		if !errors.As(err, &malformed) || malformed.Detail == "" || !reflect.DeepEqual(got, chain.Signed{}) {
			t.Errorf("refused by %v with %v", err, got)
		}
		return
	}
	_, canonical, err := tempo.Canonical(raw)
	if err != nil || got.Hash != chain.Keccak(canonical) || len(canonical) != len(raw) {
		t.Errorf("encoded again: %x, error %v, hash %s", canonical, err, got.Hash)
	}
	again, twice, err := tempo.Canonical(canonical)
	if err != nil || !bytes.Equal(canonical, twice) || !reflect.DeepEqual(got, again) {
		t.Errorf("the canonical encoding says otherwise, error %v:\n%s", err, cmp.Diff(got, again))
	}
	checkSender(t, canonical, got)
}

// checkSender checks the decoder against go-ethereum's RLP and key recovery. The encoding is
// canonical, and a secp256k1 sender is the account that signed the fields, encoded again.
func checkSender(t *testing.T, canonical []byte, got chain.Signed) {
	t.Helper()
	var items fields
	if err := rlp.DecodeBytes(canonical[1:], (*[]any)(&items)); err != nil {
		t.Fatal(err)
	}
	if b := items.encode(t, 0x76); !bytes.Equal(b, canonical) {
		t.Errorf("go-ethereum writes %x", b)
	}
	if got.Signature != chain.Secp256k1 {
		return
	}
	sig := bytes.Clone(items[len(items)-1].([]byte))
	sig[64] -= 27
	unsigned := items[:len(items)-1]
	if _, sponsored := unsigned[fFeePayer].([]any); sponsored {
		unsigned = unsigned.with(fFeeToken, []byte{}).with(fFeePayer, rlp.RawValue{0x00})
	}
	digest := unsigned.digest(t)
	key, err := crypto.SigToPub(digest[:], sig)
	if err != nil || got.Sender != chain.Address(crypto.PubkeyToAddress(*key)) {
		t.Errorf("sender is %s, but the signature over %s is not theirs: %v", got.Sender, digest, err)
	}
}
