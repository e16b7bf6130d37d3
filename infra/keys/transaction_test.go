package keys_test

import (
	"bytes"
	"log/slog"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/holiman/uint256"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/infra/chain/ethereum"
	"github.com/tempo-watchtower/watchtower/infra/chain/tempo"
	"github.com/tempo-watchtower/watchtower/infra/keys"
	"github.com/tempo-watchtower/watchtower/infra/keys/keystest"
)

// transactions has one transaction of each kind that is encoded.
func transactions() map[string]chain.Unsigned {
	to, token := chain.Address{1}, chain.Address{0x20, 0xc0}
	call := chain.Call{To: &to, Value: uint256.NewInt(7), Input: []byte{0xa9, 0x05, 0x9c, 0xbb}}
	fee, tip := uint256.NewInt(40e9), uint256.NewInt(1e9)
	return map[string]chain.Unsigned{
		"legacy": {Type: ethereum.Legacy, Chain: 31337, Nonce: 3, Gas: 100_000, GasPrice: fee, Calls: []chain.Call{call}},
		"type 2": {Type: ethereum.DynamicFee, Chain: 31337, Nonce: 3, Gas: 100_000, MaxFee: fee, MaxPriorityFee: tip, Calls: []chain.Call{call}},
		"Tempo": {
			Type: tempo.Type, Chain: 42431, NonceKey: chain.NonceKey{31: 5}, Nonce: 3, Gas: 100_000, MaxFee: fee, MaxPriorityFee: tip,
			Calls: []chain.Call{call, call}, Window: chain.Window{After: 10, Before: 20}, FeeToken: &token,
		},
	}
}

// signed signs a transaction and decodes it.
func signed(t *testing.T, s *keys.Signer, tx chain.Unsigned) chain.Signed {
	t.Helper()
	must := func(b []byte, err error) []byte {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	var got chain.Signed
	var err error
	if tx.Type == tempo.Type {
		signature := must(s.Sign(t.Context(), must(tempo.Payload(tx))))
		got, err = tempo.Decode(must(tempo.Encode(tx, signature, nil)))
	} else {
		signature := must(s.Sign(t.Context(), must(ethereum.Payload(tx))))
		got, err = ethereum.Decode(must(ethereum.Encode(tx, signature)))
	}
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// A signed transaction is the account's, with the intended fields.
func TestTransactions(t *testing.T) {
	_, text := p256Key(t)
	p256, err := keys.P256File(inFile(t, text))
	if err != nil {
		t.Fatal(err)
	}
	ones, err := keys.Environment([]string{"RELAYER_PRIVATE_KEY_0=" + secretA}, true, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	far := remoteSigner(t, keystest.Serve(t, keyOf(chain.Secp256k1, secretB)).URL, nil)
	for _, s := range append(ones, far, p256) {
		for name, tx := range transactions() {
			if s.Kind() == chain.P256 && tx.Type != tempo.Type {
				continue
			}
			got := signed(t, s, tx)
			want := chain.Signed{
				Chain: tx.Chain, Hash: got.Hash, Type: tx.Type, Sender: s.Address(), Signature: s.Kind(),
				FeeToken: tx.FeeToken, NonceKey: tx.NonceKey, Nonce: tx.Nonce, Window: tx.Window, Gas: tx.Gas,
				GasPrice: tx.GasPrice, MaxFee: tx.MaxFee, MaxPriorityFee: tx.MaxPriorityFee, Calls: tx.Calls,
			}
			if diff := cmp.Diff(want, got, cmp.Comparer(bytes.Equal)); diff != "" {
				t.Errorf("%s by %s (-asked for +read):\n%s", name, s, diff)
			}
		}
	}
}

// A sponsor's signature, also by a signer, makes the sponsor the fee payer.
func TestSponsored(t *testing.T) {
	ones, err := keys.Environment([]string{"RELAYER_PRIVATE_KEY_0=" + secretA, "RELAYER_PRIVATE_KEY_1=" + secretB}, true, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	tx := transactions()["Tempo"]
	tx.Sponsored = true
	payload, err := tempo.Payload(tx)
	if err != nil {
		t.Fatal(err)
	}
	sender, err := ones[0].Sign(t.Context(), payload)
	if err != nil {
		t.Fatal(err)
	}
	if payload, err = tempo.PayerPayload(tx, accountA); err != nil {
		t.Fatal(err)
	}
	payer, err := ones[1].Sign(t.Context(), payload)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := tempo.Encode(tx, sender, payer)
	if err != nil {
		t.Fatal(err)
	}
	got, err := tempo.Decode(raw)
	if err != nil || got.Sender != accountA || got.FeePayer == nil || *got.FeePayer != accountB || *got.FeeToken != *tx.FeeToken {
		t.Errorf("from %s, paid by %v in %v (%v)", got.Sender, got.FeePayer, got.FeeToken, err)
	}
}
