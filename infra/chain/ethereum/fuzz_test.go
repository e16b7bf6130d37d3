package ethereum_test

import (
	"bytes"
	"errors"
	"reflect"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/google/go-cmp/cmp"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/infra/chain/ethereum"
	"github.com/tempo-watchtower/watchtower/infra/chain/rlp/rlptest"
)

func FuzzDecode(f *testing.F) {
	for _, v := range vectors(f) {
		f.Add(v.raw)
	}
	every := everyType(f)
	for _, name := range typeNames {
		f.Add(every[name])
	}
	// Inputs that a decoder is likely to accept or refuse wrongly.
	typed := sign(f, dynamic())
	f.Add(highS(f))
	f.Add(replace(f, typed, 6, bytes.Repeat([]byte{1}, 33))) // value of 33 bytes
	f.Add(append(typed, 0))                                  // trailing byte
	f.Add(maxNonce(f))
	f.Add(unprotected(f))
	f.Fuzz(func(t *testing.T, raw []byte) { checkDecode(t, raw) })
}

// Transactions made by wallets and go-ethereum, mutated at random.
func TestMutations(t *testing.T) {
	var seeds [][]byte
	for _, v := range vectors(t) {
		if v.Expect == "valid" {
			seeds = append(seeds, v.raw)
		}
	}
	every := everyType(t)
	for _, name := range typeNames {
		seeds = append(seeds, every[name])
	}
	data, listed := dynamic(), dynamic()
	data.Data, data.Gas = bytes.Repeat([]byte{1}, 16<<10), 1_000_000
	listed.AccessList, listed.Gas = types.AccessList{{Address: recipient, StorageKeys: make([]common.Hash, 400)}}, 1_000_000
	rlptest.Try(t, rlptest.Decoder{
		Seeds: seeds, Large: [][]byte{sign(t, data), sign(t, listed)},
		Decode: func(raw []byte) error { _, err := ethereum.Decode(raw); return err },
		Check:  checkDecode,
	})
}

// checkDecode checks Decode's guarantees for any bytes, and compares it with go-ethereum's
// decoder. All that ours accepts, theirs accepts with the same fields. If only theirs accepts,
// our reason is neither the form nor the signature.
func checkDecode(t *testing.T, raw []byte) {
	t.Helper()
	kept := bytes.Clone(raw)
	got, err := ethereum.Decode(raw)
	again, _ := ethereum.Decode(raw)
	if !bytes.Equal(kept, raw) {
		t.Error("the bytes were changed")
	}
	if !reflect.DeepEqual(got, again) {
		t.Errorf("the second time it says otherwise:\n%s", cmp.Diff(got, again))
	}
	var tx types.Transaction
	theirs := tx.UnmarshalBinary(raw)
	if err != nil {
		var malformed *chain.Malformed
		if !errors.As(err, &malformed) || malformed.Detail == "" || !reflect.DeepEqual(got, chain.Signed{}) {
			t.Errorf("refused by %v with %v", err, got)
		}
		if theirs == nil {
			checkRefusal(t, &tx, malformed)
		}
		return
	}
	if theirs != nil {
		t.Fatalf("go-ethereum refuses it: %v", theirs)
	}
	checkAgreement(t, raw, &tx, got)
}

func checkRefusal(t *testing.T, tx *types.Transaction, ours *chain.Malformed) {
	t.Helper()
	switch ours.Fault {
	case chain.FaultOverflow, chain.FaultUnprotected, chain.FaultWrongChain, chain.FaultInvalid, chain.FaultTooLarge, chain.FaultType:
		return
	}
	if _, err := types.Sender(types.LatestSignerForChainID(tx.ChainId()), tx); err == nil {
		t.Errorf("refused by %v, but go-ethereum finds its sender", ours)
	}
}

func checkAgreement(t *testing.T, raw []byte, tx *types.Transaction, got chain.Signed) {
	t.Helper()
	reencoded, err := tx.MarshalBinary()
	if err != nil || !bytes.Equal(reencoded, raw) || got.Hash != chain.Hash(crypto.Keccak256Hash(raw)) {
		t.Errorf("encoded again: %x, error %v, hash %s", reencoded, err, got.Hash)
	}
	sender, err := types.Sender(types.LatestSignerForChainID(tx.ChainId()), tx)
	if err != nil || got.Sender != chain.Address(sender) {
		t.Errorf("sender is %s, go-ethereum says %s, error %v", got.Sender, sender, err)
	}
	call := got.Calls[0]
	same := uint64(got.Chain) == tx.ChainId().Uint64() && got.Type == tx.Type() && got.Nonce == tx.Nonce() && got.Gas == tx.Gas() &&
		len(got.Calls) == 1 && call.Value.ToBig().Cmp(tx.Value()) == 0 && bytes.Equal(call.Input, tx.Data()) &&
		(call.To == nil) == (tx.To() == nil) && (call.To == nil || *call.To == chain.Address(*tx.To()))
	if got.GasPrice != nil {
		same = same && got.GasPrice.ToBig().Cmp(tx.GasPrice()) == 0 && got.MaxFee == nil && got.MaxPriorityFee == nil
	} else {
		same = same && got.MaxFee.ToBig().Cmp(tx.GasFeeCap()) == 0 && got.MaxPriorityFee.ToBig().Cmp(tx.GasTipCap()) == 0
	}
	if !same {
		t.Errorf("read %v", got)
	}
}
