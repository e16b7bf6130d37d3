package ethereum_test

import (
	"bytes"
	"crypto/ecdsa"
	"errors"
	"math/big"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/rlp"
	"github.com/google/go-cmp/cmp"
	"github.com/holiman/uint256"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/infra/chain/ethereum"
)

var (
	recipient = common.HexToAddress("0x20c0000000000000000000000000000000000001")
	gwei      = big.NewInt(1_000_000_000)
	chainID   = big.NewInt(42431)
)

func testKey(t testing.TB) *ecdsa.PrivateKey {
	t.Helper()
	key, err := crypto.ToECDSA(crypto.Keccak256([]byte("watchtower test key")))
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func testAccount(t testing.TB) chain.Address {
	return chain.Address(crypto.PubkeyToAddress(testKey(t).PublicKey))
}

// sign signs a transaction with go-ethereum; for chain 0, without EIP-155.
func sign(t testing.TB, data types.TxData) []byte {
	t.Helper()
	raw, err := types.MustSignNewTx(testKey(t), types.LatestSignerForChainID(chainID), data).MarshalBinary()
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

func legacy() *types.LegacyTx {
	return &types.LegacyTx{Nonce: 7, GasPrice: gwei, Gas: 90_000, To: &recipient, Value: big.NewInt(5), Data: []byte{0xa9, 0x00}}
}

func dynamic() *types.DynamicFeeTx {
	return &types.DynamicFeeTx{
		ChainID: chainID, Nonce: 7, GasTipCap: big.NewInt(1), GasFeeCap: gwei, Gas: 90_000,
		To: &recipient, Value: big.NewInt(5), Data: []byte{0xa9, 0x00}, AccessList: accessList(),
	}
}

func accessList() types.AccessList {
	return types.AccessList{{Address: recipient, StorageKeys: []common.Hash{{1}, {2}}}, {Address: common.Address{1}, StorageKeys: []common.Hash{}}}
}

func setCode(t testing.TB) *types.SetCodeTx {
	t.Helper()
	auth, err := types.SignSetCode(testKey(t), types.SetCodeAuthorization{ChainID: *uint256.MustFromBig(chainID), Address: recipient, Nonce: 8})
	if err != nil {
		t.Fatal(err)
	}
	return &types.SetCodeTx{
		ChainID: uint256.MustFromBig(chainID), Nonce: 7, GasTipCap: uint256.NewInt(1), GasFeeCap: uint256.MustFromBig(gwei), Gas: 90_000,
		To: recipient, Value: uint256.NewInt(5), Data: []byte{0xa9, 0x00}, AccessList: accessList(), AuthList: []types.SetCodeAuthorization{auth},
	}
}

var typeNames = []string{"legacy", "2930", "1559", "7702", "creation"}

func everyType(t testing.TB) map[string][]byte {
	create := dynamic()
	create.To, create.Value = nil, nil
	return map[string][]byte{
		"legacy":   sign(t, legacy()),
		"2930":     sign(t, &types.AccessListTx{ChainID: chainID, Nonce: 7, GasPrice: gwei, Gas: 90_000, To: &recipient, Value: big.NewInt(5), Data: []byte{0xa9, 0x00}, AccessList: accessList()}),
		"1559":     sign(t, dynamic()),
		"7702":     sign(t, setCode(t)),
		"creation": sign(t, create),
	}
}

func TestEveryFieldIsRead(t *testing.T) {
	to, price := chain.Address(recipient), uint256.MustFromBig(gwei)
	for name, raw := range everyType(t) {
		t.Run(name, func(t *testing.T) {
			want := chain.Signed{
				Chain: 42431, Hash: chain.Keccak(raw), Sender: testAccount(t), Signature: chain.Secp256k1, Nonce: 7, Gas: 90_000,
				Calls: []chain.Call{{To: &to, Value: uint256.NewInt(5), Input: []byte{0xa9, 0x00}}},
			}
			switch name {
			case "legacy":
				want.GasPrice = price
			case "2930":
				want.Type, want.GasPrice = 1, price
			case "7702":
				want.Type, want.MaxFee, want.MaxPriorityFee = 4, price, uint256.NewInt(1)
			case "creation":
				want.Calls[0].To, want.Calls[0].Value = nil, uint256.NewInt(0)
				fallthrough
			default:
				want.Type, want.MaxFee, want.MaxPriorityFee = 2, price, uint256.NewInt(1)
			}
			got, err := ethereum.Decode(raw)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("wrong (-want +got):\n%s", diff)
			}
			clear(raw)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("changed with the buffer (-want +got):\n%s", diff)
			}
		})
	}
}

// edit decodes a transaction's list, changes it and encodes it again, without signing: Decode
// checks the form first.
func edit(t testing.TB, raw []byte, change func(items []any) []any) []byte {
	t.Helper()
	prefix := 1
	if raw[0] >= 0xc0 {
		prefix = 0
	}
	var items []any
	if err := rlp.DecodeBytes(raw[prefix:], &items); err != nil {
		t.Fatal(err)
	}
	list, err := rlp.EncodeToBytes(change(items))
	if err != nil {
		t.Fatal(err)
	}
	return append(bytes.Clone(raw[:prefix]), list...)
}

func replace(t testing.TB, raw []byte, place int, item any) []byte {
	return edit(t, raw, func(items []any) []any {
		items[place] = item
		return items
	})
}

// unprotected is a legacy transaction from before EIP-155, valid on every chain.
func unprotected(t testing.TB) []byte {
	t.Helper()
	raw, err := types.MustSignNewTx(testKey(t), types.HomesteadSigner{}, legacy()).MarshalBinary()
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// highS is the malleated twin of a type 2 transaction: it recovers to the same sender and has
// another hash.
func highS(t testing.TB) []byte {
	return edit(t, sign(t, dynamic()), func(items []any) []any {
		n := len(items)
		parity := len(items[n-3].([]byte))
		items[n-3] = uint64(1 - parity)
		items[n-1] = new(big.Int).Sub(crypto.S256().Params().N, new(big.Int).SetBytes(items[n-1].([]byte)))
		return items
	})
}

func maxNonce(t testing.TB) []byte {
	tx := dynamic()
	tx.Nonce = 1<<64 - 1
	return sign(t, tx)
}

func TestFaults(t *testing.T) {
	typed, old, delegating := sign(t, dynamic()), sign(t, legacy()), sign(t, setCode(t))
	long, order := bytes.Repeat([]byte{1}, 33), crypto.S256().Params().N
	tip := dynamic()
	tip.GasTipCap = new(big.Int).Add(gwei, common.Big1)
	big128 := dynamic()
	big128.Data, big128.Gas = make([]byte, 128<<10), 3_000_000
	bare := setCode(t)
	bare.AuthList = nil
	authorization := []any{uint64(1), recipient, uint64(1), uint64(1), uint64(1), uint64(1)}
	v := func(v *big.Int) []byte { return replace(t, old, 6, v) }

	for _, c := range []struct {
		name string
		raw  []byte
		want chain.Fault
	}{
		{"nothing", nil, chain.FaultRLP},
		{"type byte only", []byte{0x02}, chain.FaultRLP},
		{"empty list", []byte{0x02, 0xc0}, chain.FaultRLP},
		{"type 3", append([]byte{0x03}, typed[1:]...), chain.FaultType},
		{"type 5", append([]byte{0x05}, typed[1:]...), chain.FaultType},
		{"type 0x76", append([]byte{0x76}, typed[1:]...), chain.FaultType},
		{"type 0x7f", append([]byte{0x7f}, typed[1:]...), chain.FaultType},
		{"a string", append([]byte{0xb8}, typed[1:]...), chain.FaultType},
		{"type 0 as a type byte", append([]byte{0x00}, old...), chain.FaultType},
		{"trailing byte", append(bytes.Clone(typed), 0), chain.FaultTrailing},
		{"trailing byte, legacy", append(bytes.Clone(old), 0), chain.FaultTrailing},
		{"cut off", typed[:len(typed)-1], chain.FaultRLP},
		{"length of 2^63", append([]byte{0x02, 0xff, 0x80}, make([]byte, 7)...), chain.FaultRLP},
		{"long form of a short list", []byte{0x02, 0xf8, 0x01, 0x01}, chain.FaultNonCanonical},
		{"length with a leading zero", append([]byte{0x02, 0xf9, 0x00}, typed[2:]...), chain.FaultNonCanonical},
		{"a field more", edit(t, typed, func(i []any) []any { return append(i, uint64(1)) }), chain.FaultRLP},
		{"a field less", edit(t, typed, func(i []any) []any { return i[:len(i)-1] }), chain.FaultRLP},
		{"nonce 0x00", replace(t, typed, 1, []byte{0}), chain.FaultNonCanonical},
		{"value 0x0001", replace(t, typed, 6, []byte{0, 1}), chain.FaultNonCanonical},
		{"value 0x8101", replace(t, typed, 6, rlp.RawValue{0x81, 0x01}), chain.FaultNonCanonical},
		{"value of 33 bytes", replace(t, typed, 6, long), chain.FaultOverflow},
		{"nonce 2^64", replace(t, typed, 1, new(big.Int).Lsh(common.Big1, 64)), chain.FaultOverflow},
		{"nonce 2^64-1", maxNonce(t), chain.FaultOverflow},
		{"nonce a list", replace(t, typed, 1, []any{}), chain.FaultRLP},
		{"access list a string", replace(t, typed, 8, []byte{}), chain.FaultRLP},
		{"access list 100 deep", replace(t, typed, 8, nest(100)), chain.FaultRLP},
		{"10^5 storage keys", replace(t, typed, 8, []any{[]any{recipient, make([]common.Hash, 100_000)}}), chain.FaultTooLarge},
		{"data of 128 KiB", sign(t, big128), chain.FaultTooLarge},
		{"high s", highS(t), chain.FaultSignature},
		{"r = 0", replace(t, typed, 10, uint64(0)), chain.FaultSignature},
		{"s = 0", replace(t, typed, 11, uint64(0)), chain.FaultSignature},
		{"r = N", replace(t, typed, 10, order), chain.FaultSignature},
		{"r of 33 bytes", replace(t, typed, 10, long), chain.FaultOverflow},
		{"y parity 2", replace(t, typed, 9, uint64(2)), chain.FaultSignature},
		{"y parity 27", replace(t, typed, 9, uint64(27)), chain.FaultSignature},
		{"unprotected", unprotected(t), chain.FaultUnprotected},
		{"v = 0", v(common.Big0), chain.FaultSignature},
		{"v = 34", v(big.NewInt(34)), chain.FaultSignature},
		{"v = 35, chain id 0", v(big.NewInt(35)), chain.FaultWrongChain},
		{"v for chain id 2^64", v(new(big.Int).Add(new(big.Int).Lsh(common.Big1, 65), big.NewInt(35))), chain.FaultWrongChain},
		{"chain id 0", replace(t, typed, 0, uint64(0)), chain.FaultWrongChain},
		{"chain id 2^64", replace(t, typed, 0, new(big.Int).Lsh(common.Big1, 64)), chain.FaultWrongChain},
		{"tip above max fee", sign(t, tip), chain.FaultInvalid},
		{"type 4 without authorizations", sign(t, bare), chain.FaultInvalid},
		{"type 4 creation", replace(t, delegating, 5, []byte{}), chain.FaultRLP},
		{"authorization of 5 items", replace(t, delegating, 9, []any{authorization[:5]}), chain.FaultRLP},
		{"authorization parity of 2 bytes", replace(t, delegating, 9, []any{[]any{uint64(1), recipient, uint64(1), uint64(256), uint64(1), uint64(1)}}), chain.FaultOverflow},
		{"authorization s of 33 bytes", replace(t, delegating, 9, []any{[]any{uint64(1), recipient, uint64(1), uint64(1), uint64(1), long}}), chain.FaultOverflow},
	} {
		t.Run(c.name, func(t *testing.T) { checkFault(t, c.raw, c.want) })
	}
}

func nest(depth int) (item []any) {
	for range depth {
		item = []any{item}
	}
	return item
}

func checkFault(t *testing.T, raw []byte, want chain.Fault) {
	t.Helper()
	signed, err := ethereum.Decode(raw)
	var malformed *chain.Malformed
	if !errors.As(err, &malformed) || malformed.Fault != want {
		t.Errorf("error is %v, want fault %q", err, want)
	}
	if diff := cmp.Diff(chain.Signed{}, signed); diff != "" {
		t.Errorf("refused, but (-zero +got):\n%s", diff)
	}
}

// A signature copied from another transaction recovers to another account, or to none.
func TestPastedSignature(t *testing.T) {
	other := dynamic()
	other.Nonce = 8
	pasted := edit(t, sign(t, dynamic()), func(items []any) []any {
		items[1] = other.Nonce
		return items
	})
	got, err := ethereum.Decode(pasted)
	if err != nil || got.Sender == testAccount(t) {
		t.Errorf("sender %s, error %v; want a stranger", got.Sender, err)
	}
}

// The largest chain id has a v that does not fit 64 bits.
func TestLargestChain(t *testing.T) {
	id := new(big.Int).SetUint64(1<<64 - 1)
	raw, err := types.MustSignNewTx(testKey(t), types.LatestSignerForChainID(id), legacy()).MarshalBinary()
	if err != nil {
		t.Fatal(err)
	}
	got, err := ethereum.Decode(raw)
	if err != nil || got.Chain != 1<<64-1 || got.Sender != testAccount(t) {
		t.Errorf("chain %s, sender %s, error %v", got.Chain, got.Sender, err)
	}
}

// Gas is refused exactly below the minimum of the cheapest schedule.
func TestLeastGas(t *testing.T) {
	self := common.Address(testAccount(t))
	none := types.AccessList{}
	for _, c := range []struct {
		name  string
		to    *common.Address
		value int64
		data  []byte
		list  types.AccessList
		least uint64
	}{
		{"transfer", &recipient, 1, nil, none, 21_000},
		{"call", &recipient, 0, nil, none, 15_000},
		{"to oneself", &self, 1, nil, none, 12_000},
		{"calldata", &recipient, 1, []byte{0, 0, 1}, none, 21_000 + 2*4 + 16},
		{"creation", nil, 1, make([]byte, 33), none, 24_000 + 33*4 + 2*2},
		{"access list", &recipient, 1, nil, accessList(), 21_000 + 2*2_400 + 2*1_900},
	} {
		t.Run(c.name, func(t *testing.T) {
			tx := dynamic()
			tx.To, tx.Value, tx.Data, tx.AccessList = c.to, big.NewInt(c.value), c.data, c.list
			tx.Gas = c.least - 1
			checkFault(t, sign(t, tx), chain.FaultInvalid)
			tx.Gas = c.least
			if _, err := ethereum.Decode(sign(t, tx)); err != nil {
				t.Error(err)
			}
		})
	}
	tx := setCode(t)
	tx.Gas = 21_000 + 4 + 16 + 2*2_400 + 2*1_900 + 7_816 - 1
	checkFault(t, sign(t, tx), chain.FaultInvalid)
	tx.Gas++
	if _, err := ethereum.Decode(sign(t, tx)); err != nil {
		t.Error(err)
	}
}

// The least gas for a call has EIP-7623's floor; decoding a transaction of an older fork has not.
func TestLeastGasHasTheFloor(t *testing.T) {
	to := chain.Address(recipient)
	for name, c := range map[string]struct {
		call chain.Call
		want uint64
	}{
		"no data":    {chain.Call{To: &to}, 12_000},
		"some data":  {chain.Call{To: &to, Input: []byte{0, 0, 1}}, 12_000 + 10*(2+4)},
		"a creation": {chain.Call{Input: make([]byte, 33)}, 24_000 + 33*4 + 2*2},
		"much of it": {chain.Call{Input: bytes.Repeat([]byte{1}, 1000)}, 12_000 + 40*1000},
	} {
		if got := ethereum.LeastGas(c.call); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
	tx := dynamic()
	tx.Data, tx.AccessList, tx.Gas = bytes.Repeat([]byte{1}, 1000), nil, 21_000+16*1000
	if got, err := ethereum.Decode(sign(t, tx)); err != nil || got.Gas >= ethereum.LeastGas(got.Calls[0]) {
		t.Errorf("%d gas: %v", got.Gas, err)
	}
}
