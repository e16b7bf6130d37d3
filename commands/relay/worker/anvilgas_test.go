package worker

import (
	"bytes"
	"testing"

	"github.com/holiman/uint256"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/relay/fee"
	"github.com/tempo-watchtower/watchtower/infra/chain/ethereum"
	"github.com/tempo-watchtower/watchtower/infra/chain/tempo"
)

// first uses the signer's first nonce, which costs more than later ones on Tempo.
func (d *devnode) first(kind uint8) {
	d.t.Helper()
	raw, _ := d.signedGas(chain.Unsigned{Type: kind, Chain: moderato, Gas: 1_000_000, Calls: []chain.Call{{To: &chain.Address{9}, Value: new(uint256.Int)}}})
	must(d.t, d.send(raw))
	must(d.t, d.ask(nil, "evm_mine"))
}

// mines reports whether the node mines a transaction with this much gas. It takes the node back
// to where it was.
func (d *devnode) mines(tx chain.Unsigned, gas uint64) bool {
	d.t.Helper()
	tx.Gas = gas
	raw, hash := d.signedGas(tx)
	if raw == nil {
		return false // its gas is below what the codec knows
	}
	var before string
	must(d.t, d.ask(&before, "evm_snapshot"))
	_ = d.send(raw) // the node may take it all the same
	must(d.t, d.ask(nil, "evm_mine"))
	mined := d.receipt(hash) != nil
	must(d.t, d.ask(nil, "evm_revert", before))
	return mined
}

// signedGas signs a transaction at the market's price; nil if the codec refuses its gas.
func (d *devnode) signedGas(tx chain.Unsigned) ([]byte, chain.Hash) {
	d.t.Helper()
	offer, err := d.Offer(d.t.Context(), fee.Terms{Sender: d.signer.Address()})
	must(d.t, err)
	offer.Put(&tx)
	payload, encode, decode := ethereum.Payload, func(mark []byte) ([]byte, error) { return ethereum.Encode(tx, mark) }, ethereum.Decode
	if tx.Type == tempo.Type {
		payload, encode, decode = tempo.Payload, func(mark []byte) ([]byte, error) { return tempo.Encode(tx, mark, nil) }, tempo.Decode
	}
	toSign, err := payload(tx)
	must(d.t, err)
	mark, err := d.signer.Sign(d.t.Context(), toSign)
	must(d.t, err)
	raw, err := encode(mark)
	must(d.t, err)
	signed, err := decode(raw)
	if err != nil {
		return nil, signed.Hash
	}
	return raw, signed.Hash
}

// A real node mines no transaction with less gas than the codecs' least, and mines one with not
// much more.
func TestAnvilLeastGas(t *testing.T) {
	data := func(size int, of byte) []byte { return bytes.Repeat([]byte{of}, size) }
	to := &chain.Address{0x70, 0x99}
	for _, network := range []struct {
		name string
		kind uint8
		args []string
		more uint64 // at most above the least
	}{
		{"ethereum", ethereum.DynamicFee, nil, 29_000},
		{"tempo T1", tempo.Type, []string{"--network", "tempo", "--hardfork", "T1"}, 0},
		{"tempo T4", tempo.Type, []string{"--network", "tempo", "--hardfork", "T4"}, 0},
	} {
		t.Run(network.name, func(t *testing.T) {
			d := newDevnode(t, network.kind, nil, network.args...)
			d.first(network.kind)
			for name, calls := range map[string][]chain.Call{
				"no data":    {{To: to}},
				"some data":  {{To: to, Input: data(5000, 0xff)}},
				"zeros":      {{To: to, Input: data(5000, 0)}},
				"a creation": {{Input: data(1000, 0)}},
				"two calls":  {{To: to, Input: data(1000, 0xff)}, {To: to, Input: data(1000, 0xff)}},
				"two small":  {{To: to}, {To: to}},
			} {
				if len(calls) > 1 && network.kind != tempo.Type {
					continue
				}
				for i := range calls {
					calls[i].Value = new(uint256.Int)
				}
				least := ethereum.LeastGas(calls[0])
				if network.kind == tempo.Type {
					least = tempo.LeastGas(calls)
				}
				tx := chain.Unsigned{Type: network.kind, Chain: moderato, Calls: calls, Nonce: 1}
				low, high := uint64(0), least+network.more // mined with high, and not with low
				if !d.mines(tx, high) {
					t.Errorf("%s: not mined with %d", name, high)
					continue
				}
				for low+1 < high {
					if middle := (low + high) / 2; d.mines(tx, middle) {
						high = middle
					} else {
						low = middle
					}
				}
				t.Logf("%s: mined with %d, the least is %d", name, high, least)
				if high < least {
					t.Errorf("%s: mined with %d, less than %d", name, high, least)
				}
			}
		})
	}
}
