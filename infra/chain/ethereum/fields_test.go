package ethereum

import (
	"encoding/json"
	"math/big"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/google/go-cmp/cmp"
	"github.com/holiman/uint256"
)

// Fields equal go-ethereum's JSON.
func TestFields(t *testing.T) {
	key, err := crypto.GenerateKey()
	if err != nil {
		t.Fatal(err)
	}
	to := common.Address{0x77}
	list := types.AccessList{{Address: to, StorageKeys: []common.Hash{{1}, {2}}}, {Address: common.Address{8}, StorageKeys: []common.Hash{}}}
	authorization, err := types.SignSetCode(key, types.SetCodeAuthorization{ChainID: *uint256.NewInt(5), Address: to, Nonce: 300})
	if err != nil {
		t.Fatal(err)
	}
	for name, inner := range map[string]types.TxData{
		"legacy":      &types.LegacyTx{Nonce: 1, GasPrice: big.NewInt(7), Gas: 30_000, To: &to, Value: new(big.Int), Data: []byte{1, 2}},
		"access list": &types.AccessListTx{ChainID: big.NewInt(5), GasPrice: big.NewInt(7), Gas: 50_000, Value: new(big.Int), AccessList: list},
		"dynamic fee": &types.DynamicFeeTx{ChainID: big.NewInt(5), GasTipCap: new(big.Int), GasFeeCap: big.NewInt(7), Gas: 50_000, To: &to, Value: new(big.Int)},
		"set code": &types.SetCodeTx{
			ChainID: uint256.NewInt(5), GasTipCap: new(uint256.Int), GasFeeCap: uint256.NewInt(7), Gas: 90_000, To: to,
			Value: new(uint256.Int), AccessList: list, AuthList: []types.SetCodeAuthorization{authorization},
		},
	} {
		t.Run(name, func(t *testing.T) {
			signed, err := types.SignNewTx(key, types.LatestSignerForChainID(big.NewInt(5)), inner)
			if err != nil {
				t.Fatal(err)
			}
			raw, err := signed.MarshalBinary()
			if err != nil {
				t.Fatal(err)
			}
			text, err := signed.MarshalJSON()
			if err != nil {
				t.Fatal(err)
			}
			var all, got map[string]any
			if err := json.Unmarshal(text, &all); err != nil {
				t.Fatal(err)
			}
			want := map[string]any{}
			for _, name := range []string{"v", "r", "s", "yParity", "accessList", "authorizationList"} {
				if value, ok := all[name]; ok {
					want[name] = value
				}
			}
			fields, err := Fields(raw)
			if err != nil {
				t.Fatal(err)
			}
			shown, err := json.Marshal(fields)
			if err != nil {
				t.Fatal(err)
			}
			if err := json.Unmarshal(shown, &got); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("go-ethereum (-) and Fields (+) differ:\n%s", diff)
			}
		})
	}
}
