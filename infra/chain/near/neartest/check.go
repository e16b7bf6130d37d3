package neartest

import (
	"errors"

	"github.com/holiman/uint256"

	"github.com/tempo-watchtower/watchtower/infra/chain/near"
)

// invalid is an InvalidTxError of a node, as JSON; nil: the transaction is valid.
type invalid any

type members = map[string]any

// gasPrice is the price of gas in yoctoNEAR, and the fees of a transaction in gas: what the smallest transfer
// burns (nearcore core/parameters: about 0.45 TGas).
const (
	gasPrice   = 100_000_000
	feeOfOne   = 223_182_562_500
	feeOfMany  = 115_123_062_500 // of each action more
	strictWait = 64              // blocks for which a pool keeps a strict nonce that is not the next
)

// base checks the block hash of a transaction that would run on top of a block (nearcore
// chain/chain/src/store/utils.rs). known tells whether this node knows the block.
func (c *Chain) base(s near.Signed, prev *block, known func(hash) bool) invalid {
	base := c.byHash[s.Block]
	switch {
	case base == nil || !known(s.Block):
		return "Expired"
	case prev.height > base.height+c.options.Validity:
		return "Expired"
	case !prev.has(base):
		return "InvalidChain"
	}
	return nil
}

// bytesInvalid is what follows from the bytes.
func (c *Chain) bytesInvalid(s near.Signed) invalid {
	var reason *near.Invalid
	if err := s.Validate(c.options.Protocol); errors.As(err, &reason) {
		return reason
	}
	return nil
}

// congestion is the refusal for a shard that takes no more (nearcore chain/chain/src/runtime/mod.rs).
func (c *Chain) congestion(s near.Signed) invalid {
	const refusedFrom = 0.8
	shard := c.shardOf(s.Receiver)
	if level := c.congested[shard]; level >= refusedFrom {
		return members{"ShardCongested": members{"shard_id": shard, "congestion_level": level}}
	}
	return nil
}

// cost is what a transaction must be able to pay: deposits, fees and attached gas, in yoctoNEAR.
func cost(s near.Signed) (deposit, gas uint256.Int, overflow bool) {
	units := new(uint256.Int).SetUint64(feeOfOne)
	var sum uint256.Int
	add := func(amount *uint256.Int) {
		if _, over := sum.AddOverflow(&sum, amount); over || sum[2] != 0 || sum[3] != 0 {
			overflow = true
		}
	}
	count := func(actions []near.Action, deposits bool) {
		for _, action := range actions {
			units.AddUint64(units, feeOfMany)
			switch a := action.(type) {
			case near.FunctionCall:
				units.AddUint64(units, a.Gas)
				add(&a.Deposit)
			case near.Transfer:
				add(&a.Deposit)
			case near.StateInit:
				add(&a.Deposit)
			case near.TransferToGasKey:
				add(&a.Deposit)
			}
		}
	}
	count(s.Actions, true)
	for _, action := range s.Actions {
		if d, is := action.(near.Delegate); is {
			count(d.Actions, true) // the signer of the transaction pays what the user's actions deposit
		}
	}
	gas = *units.Mul(units, uint256.NewInt(gasPrice))
	if _, over := new(uint256.Int).AddOverflow(&sum, &gas); over {
		overflow = true
	}
	return sum, gas, overflow
}

// stateInvalid checks a transaction against a state, in a node's order (nearcore
// runtime/runtime/src/verifier.rs). height is that of the block it would run in; 0 leaves out the upper bound
// of nonces, which nodes do not check.
func (c *Chain) stateInvalid(s near.Signed, at *state, height uint64) invalid {
	signer := at.get(s.Signer)
	if signer == nil {
		return members{"SignerDoesNotExist": members{"signer_id": s.Signer}}
	}
	key, known := signer.keys[s.Key]
	if !known {
		return keyError("AccessKeyNotFound", members{"account_id": s.Signer, "public_key": s.Key.String()})
	}
	nonce, bad := nonceOf(s, key)
	if bad != nil {
		return bad
	}
	if n := s.Nonce.Value; n <= nonce || s.Strict && n != nonce+1 {
		return members{"InvalidNonce": members{"tx_nonce": n, "ak_nonce": nonce}}
	}
	if bound := height * noncesPerBlock; height > 0 && s.Nonce.Value >= bound {
		return members{"NonceTooLarge": members{"tx_nonce": s.Nonce.Value, "upper_bound": bound}}
	}
	if bad := funds(s, signer, key); bad != nil {
		return bad
	}
	return permitted(s, key)
}

// nonceOf is the last nonce of the sequence that a transaction belongs to.
func nonceOf(s near.Signed, key accessKey) (uint64, invalid) {
	if s.Nonce.Index == nil {
		return key.nonce, nil
	}
	if index := int(*s.Nonce.Index); index < len(key.nonces) {
		return key.nonces[index], nil
	}
	return 0, members{"InvalidNonceIndex": members{"tx_nonce_index": *s.Nonce.Index, "num_nonces": len(key.nonces)}}
}

func keyError(name string, m any) invalid {
	if m == nil {
		return members{"InvalidAccessKeyError": name}
	}
	return members{"InvalidAccessKeyError": members{name: m}}
}

func funds(s near.Signed, signer *account, key accessKey) invalid {
	deposit, gas, overflow := cost(s)
	if overflow {
		return "CostOverflow"
	}
	if s.Nonce.Index != nil {
		if key.balance.Lt(&gas) {
			return members{"NotEnoughGasKeyBalance": members{"balance": key.balance.Dec(), "cost": gas.Dec()}}
		}
		return nil // a missing deposit shows when it runs, and uses the nonce
	}
	total := new(uint256.Int).Add(&deposit, &gas)
	if signer.balance.Lt(total) {
		return members{"NotEnoughBalance": members{"signer_id": s.Signer, "balance": signer.balance.Dec(), "cost": total.Dec()}}
	}
	if call := key.permission.Call; call != nil && call.Allowance != nil {
		left := new(uint256.Int).Sub(call.Allowance, &key.spent)
		if left.Lt(total) {
			return keyError("NotEnoughAllowance", members{
				"account_id": s.Signer, "public_key": s.Key.String(), "allowance": left.Dec(), "cost": total.Dec(),
			})
		}
	}
	after := *signer
	after.balance.Sub(&signer.balance, total)
	if lack := after.lacks(); lack != nil {
		return members{"LackBalanceForState": members{"signer_id": s.Signer, "amount": lack.Dec()}}
	}
	return nil
}

// permitted checks a key that may only call one contract.
func permitted(s near.Signed, key accessKey) invalid {
	call := key.permission.Call
	if call == nil {
		return nil
	}
	if len(s.Actions) != 1 {
		return keyError("RequiresFullAccess", nil)
	}
	action, is := s.Actions[0].(near.FunctionCall)
	switch {
	case !is:
		return keyError("RequiresFullAccess", nil)
	case !action.Deposit.IsZero():
		return keyError("DepositWithFunctionCall", nil)
	case call.Receiver != s.Receiver:
		return keyError("ReceiverMismatch", members{"tx_receiver": s.Receiver, "ak_receiver": call.Receiver})
	case len(call.Methods) > 0 && !contains(call.Methods, action.Method):
		return keyError("MethodNameMismatch", members{"method_name": action.Method})
	}
	return nil
}

func contains(all []string, one string) bool {
	for _, s := range all {
		if s == one {
			return true
		}
	}
	return false
}
