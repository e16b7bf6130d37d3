package near

import (
	"bytes"
	"fmt"
	"slices"
)

// fields reads the fields of the action with this tag.
func (r *reader) fields(tag byte) Action {
	switch tag {
	case tagCreateAccount:
		return CreateAccount{}
	case tagDeployContract:
		return DeployContract{Code: r.bytes()}
	case tagFunctionCall:
		return FunctionCall{Method: r.text(), Args: r.bytes(), Gas: r.u64(), Deposit: r.u128()}
	case tagTransfer:
		return Transfer{Deposit: r.u128()}
	case tagStake:
		return Stake{Stake: r.u128(), Key: r.publicKey()}
	case tagAddKey:
		return AddKey{Key: r.publicKey(), Nonce: r.u64(), Permission: r.permission()}
	case tagDeleteKey:
		return DeleteKey{Key: r.publicKey()}
	case tagDeleteAccount:
		return DeleteAccount{Beneficiary: r.account()}
	case tagDelegate:
		return r.delegate()
	case tagDeployGlobalContract:
		return DeployGlobalContract{Code: r.bytes(), ByAccount: r.tag(2) == 1}
	case tagUseGlobalContract:
		return UseGlobalContract{Contract: r.globalContract()}
	case tagStateInit:
		return r.stateInit()
	case tagTransferToGasKey:
		return TransferToGasKey{Key: r.publicKey(), Deposit: r.u128()}
	case tagWithdrawFromGasKey:
		return WithdrawFromGasKey{Key: r.publicKey(), Amount: r.u128()}
	case tagDelegateV2:
		return r.delegateV2()
	}
	panic(fmt.Sprintf("near: action with tag %d", tag))
}

func (r *reader) action() Action { return r.actionIn(false) }

// innerAction reads an action of a delegate action, which holds no further one.
func (r *reader) innerAction() Action { return r.actionIn(true) }

func (r *reader) actionIn(delegate bool) Action {
	tag := r.tag(tagsOfActions)
	switch {
	case r.err != nil:
		return nil
	case delegate && (tag == tagDelegate || tag == tagDelegateV2):
		r.fail("DelegateAction mustn't contain a nested one")
		return nil
	}
	return r.fields(tag)
}

func (r *reader) globalContract() (c GlobalContract) {
	if r.tag(2) == 1 {
		c.Account = r.account()
	} else {
		c.Hash = r.hash()
	}
	return c
}

// stateInit reads the action in any order of its entries, and keeps the last of two with one key, as a node
// does: it sorts them before it hashes the transaction.
func (r *reader) stateInit() StateInit {
	r.tag(1) // the version of the state, of which there is one
	a := StateInit{Contract: r.globalContract()}
	entries := list(r, func(r *reader) Entry { return Entry{Key: r.bytes(), Value: r.bytes()} })
	slices.SortStableFunc(entries, func(x, y Entry) int { return bytes.Compare(x.Key, y.Key) })
	for i, entry := range entries {
		if i+1 == len(entries) || !bytes.Equal(entry.Key, entries[i+1].Key) {
			a.Data = append(a.Data, entry)
		}
	}
	a.Deposit = r.u128()
	return a
}

func (CreateAccount) write(w *writer)    { w.u8(tagCreateAccount) }
func (a DeployContract) write(w *writer) { w.u8(tagDeployContract); w.bytes(a.Code) }

func (a FunctionCall) write(w *writer) {
	w.u8(tagFunctionCall)
	w.text(a.Method)
	w.bytes(a.Args)
	w.u64(a.Gas)
	w.u128(a.Deposit)
}

func (a Transfer) write(w *writer) { w.u8(tagTransfer); w.u128(a.Deposit) }
func (a Stake) write(w *writer)    { w.u8(tagStake); w.u128(a.Stake); w.publicKey(a.Key) }

func (a AddKey) write(w *writer) {
	w.u8(tagAddKey)
	w.publicKey(a.Key)
	w.u64(a.Nonce)
	a.Permission.write(w)
}

func (a DeleteKey) write(w *writer)     { w.u8(tagDeleteKey); w.publicKey(a.Key) }
func (a DeleteAccount) write(w *writer) { w.u8(tagDeleteAccount); w.text(a.Beneficiary) }

func (a DeployGlobalContract) write(w *writer) {
	w.u8(tagDeployGlobalContract)
	w.bytes(a.Code)
	if a.ByAccount {
		w.u8(1)
	} else {
		w.u8(0)
	}
}

func (a UseGlobalContract) write(w *writer) { w.u8(tagUseGlobalContract); a.Contract.write(w) }

func (c GlobalContract) write(w *writer) {
	if c.Account != "" {
		w.u8(1)
		w.text(c.Account)
	} else {
		w.u8(0)
		w.raw(c.Hash[:])
	}
}

func (a StateInit) write(w *writer) {
	w.u8(tagStateInit)
	a.writeState(w)
	w.u128(a.Deposit)
}

// writeState writes the part of which the account's name is a hash.
func (a StateInit) writeState(w *writer) {
	w.u8(0)
	a.Contract.write(w)
	writeList(w, a.Data, func(w *writer, e Entry) { w.bytes(e.Key); w.bytes(e.Value) })
}

func (a TransferToGasKey) write(w *writer) {
	w.u8(tagTransferToGasKey)
	w.publicKey(a.Key)
	w.u128(a.Deposit)
}

func (a WithdrawFromGasKey) write(w *writer) {
	w.u8(tagWithdrawFromGasKey)
	w.publicKey(a.Key)
	w.u128(a.Amount)
}
