package neartest

import (
	"strings"

	"github.com/holiman/uint256"

	"github.com/tempo-watchtower/watchtower/infra/chain/near"
)

// apply runs an action; it returns the ActionErrorKind of a failure as JSON.
func (x *execution) apply(action near.Action) any {
	name := x.receipt.receiver
	if create, is := action.(near.CreateAccount); is {
		return x.create(create, name)
	}
	if x.state.get(name) == nil {
		switch a := action.(type) {
		case near.Transfer:
			if !implicit(name) {
				return members{"AccountDoesNotExist": members{"account_id": name}}
			}
			x.createImplicit(name, a)
			return nil
		case near.StateInit:
			x.state.create(name).balance = a.Deposit
			return nil
		default:
			return members{"AccountDoesNotExist": members{"account_id": name}}
		}
	}
	switch a := action.(type) {
	case near.Transfer:
		own := x.state.touch(name)
		own.balance.Add(&own.balance, &a.Deposit)
		return nil
	case near.FunctionCall:
		return x.call(name, a)
	case near.Delegate:
		return x.delegate(a)
	case near.StateInit:
		return nil // it exists
	}
	if x.actor != name {
		return members{"ActorNoPermission": members{"account_id": name, "actor_id": x.actor}}
	}
	return x.applyOwn(name, x.state.touch(name), action)
}

// applyOwn runs an action that only the account itself may do.
func (x *execution) applyOwn(name string, own *account, action near.Action) any {
	switch a := action.(type) {
	case near.DeployContract:
		own.code, own.storage = idOf("code", hash{}, uint64(len(a.Code))), own.storage+uint64(len(a.Code))
	case near.DeployGlobalContract:
		// The code's price is burnt, and the account stays as it is.
	case near.UseGlobalContract:
		own.code = idOf("global "+a.Contract.Account, a.Contract.Hash, 0)
	case near.Stake:
		if own.balance.Lt(&a.Stake) {
			return members{"TriesToStake": members{"account_id": name, "stake": a.Stake.Dec(), "locked": "0", "balance": own.balance.Dec()}}
		}
	case near.AddKey:
		return x.addKey(name, own, a)
	case near.DeleteKey:
		if _, known := own.keys[a.Key]; !known {
			return members{"DeleteKeyDoesNotExist": members{"account_id": name, "public_key": a.Key.String()}}
		}
		delete(own.keys, a.Key)
		own.storage -= storageOfKey
		x.changes = append(x.changes, change{account: name, key: a.Key, cause: "receipt_processing", by: x.receipt.id, deleted: true})
	case near.DeleteAccount:
		x.made = append(x.made, x.send(a.Beneficiary, "system", near.Transfer{Deposit: own.balance}))
		x.state.remove(name)
	case near.TransferToGasKey, near.WithdrawFromGasKey:
		return gasKeyBalance(name, own, action)
	}
	return nil
}

func (x *execution) create(_ near.CreateAccount, name string) any {
	if x.state.get(name) != nil {
		return members{"AccountAlreadyExists": members{"account_id": name}}
	}
	_, parent, below := strings.Cut(name, ".")
	switch {
	case below && parent != x.actor:
		return members{"CreateAccountNotAllowed": members{"account_id": name, "predecessor_id": x.actor}}
	case !below && x.actor != "registrar":
		return members{"CreateAccountOnlyByRegistrar": members{"account_id": name, "registrar_account_id": "registrar", "predecessor_id": x.actor}}
	}
	x.state.create(name)
	x.actor = name // the actions that follow are the new account's own
	return nil
}

// implicit reports whether a name is a key's own account, which the first transfer creates.
func implicit(name string) bool {
	hex := func(s string) bool { return strings.Trim(s, "0123456789abcdef") == "" }
	return len(name) == 64 && hex(name) || len(name) == 42 && strings.HasPrefix(name, "0x") && hex(name[2:])
}

func (x *execution) createImplicit(name string, a near.Transfer) {
	own := x.state.create(name)
	own.balance = a.Deposit
	if key, err := keyOfImplicit(name); err == nil {
		own.keys[key] = accessKey{nonce: firstNonce(x.block.height)}
	}
}

func (x *execution) call(name string, a near.FunctionCall) any {
	own := x.state.touch(name)
	if own.code == (hash{}) {
		return members{"FunctionCallError": members{"CompilationError": members{"CodeDoesNotExist": members{"account_id": name}}}}
	}
	own.balance.Add(&own.balance, &a.Deposit)
	at := call{name, a.Method}
	if kind, fails := x.chain.failing[at]; fails {
		return kind
	}
	if kind, promises := x.chain.promising[at]; promises {
		further := x.send(name, name)
		further.isCallback, further.callback = true, kind
		x.made = append(x.made, further)
	}
	return nil
}

func (x *execution) addKey(name string, own *account, a near.AddKey) any {
	if _, known := own.keys[a.Key]; known {
		return members{"AddKeyAlreadyExists": members{"account_id": name, "public_key": a.Key.String()}}
	}
	key := accessKey{nonce: firstNonce(x.block.height), permission: a.Permission}
	if gas := a.Permission.Gas; gas != nil {
		for range gas.Nonces {
			key.nonces = append(key.nonces, key.nonce)
		}
	}
	own.keys[a.Key] = key
	own.storage += storageOfKey
	x.changes = append(x.changes, change{account: name, key: a.Key, cause: "receipt_processing", by: x.receipt.id, nonce: key.nonce})
	return nil
}

func gasKeyBalance(name string, own *account, action near.Action) any {
	var of near.PublicKey
	var amount uint256.Int
	pay := false
	switch a := action.(type) {
	case near.TransferToGasKey:
		of, amount, pay = a.Key, a.Deposit, true
	case near.WithdrawFromGasKey:
		of, amount = a.Key, a.Amount
	}
	key, known := own.keys[of]
	if !known || key.permission.Gas == nil {
		return members{"GasKeyDoesNotExist": members{"account_id": name, "public_key": of.String()}}
	}
	if pay {
		key.balance.Add(&key.balance, &amount)
	} else {
		if key.balance.Lt(&amount) {
			return members{"InsufficientGasKeyBalance": members{"account_id": name, "public_key": of.String(), "balance": key.balance.Dec(), "required": amount.Dec()}}
		}
		key.balance.Sub(&key.balance, &amount)
		own.balance.Add(&own.balance, &amount)
	}
	own.keys[of] = key
	return nil
}

// delegate checks a user's signed actions, and sends them on in a receipt of their own (nearcore
// runtime/runtime/src/actions.rs, apply_delegate_action).
func (x *execution) delegate(d near.Delegate) any {
	switch {
	case !d.Verified():
		return "DelegateActionInvalidSignature"
	case x.block.height > d.MaxHeight:
		return "DelegateActionExpired"
	case d.Sender != x.receipt.receiver:
		return members{"DelegateActionSenderDoesNotMatchTxReceiver": members{"sender_id": d.Sender, "receiver_id": x.receipt.receiver}}
	}
	user := x.state.touch(d.Sender)
	key, known := user.keys[d.Key]
	if !known {
		return members{"DelegateActionAccessKeyError": members{"AccessKeyNotFound": members{"account_id": d.Sender, "public_key": d.Key.String()}}}
	}
	last := key.nonce
	if d.Nonce.Index != nil {
		if int(*d.Nonce.Index) >= len(key.nonces) {
			return members{"DelegateActionInvalidNonceIndex": members{"nonce_index": *d.Nonce.Index, "num_nonces": len(key.nonces)}}
		}
		last = key.nonces[*d.Nonce.Index]
	}
	switch bound := x.block.height * noncesPerBlock; {
	case d.Nonce.Value <= last:
		return members{"DelegateActionInvalidNonce": members{"delegate_nonce": d.Nonce.Value, "ak_nonce": last}}
	case d.Nonce.Value >= bound:
		return members{"DelegateActionNonceTooLarge": members{"delegate_nonce": d.Nonce.Value, "upper_bound": bound}}
	}
	if bad := delegatePermitted(d, key); bad != nil {
		return members{"DelegateActionAccessKeyError": bad.(members)["InvalidAccessKeyError"]}
	}
	if d.Nonce.Index != nil {
		key.nonces = append([]uint64{}, key.nonces...)
		key.nonces[*d.Nonce.Index] = d.Nonce.Value
	} else {
		key.nonce = d.Nonce.Value
	}
	user.keys[d.Key] = key
	x.changes = append(x.changes, change{account: d.Sender, key: d.Key, cause: "receipt_processing", by: x.receipt.id, nonce: d.Nonce.Value})
	x.made = append(x.made, x.send(d.Receiver, d.Sender, d.Actions...))
	return nil
}

func delegatePermitted(d near.Delegate, key accessKey) invalid {
	return permitted(near.Signed{Transaction: near.Transaction{Receiver: d.Receiver, Actions: d.Actions}}, key)
}
