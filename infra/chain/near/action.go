package near

import "github.com/holiman/uint256"

// Action is one thing that a transaction does; the actions of one transaction succeed or fail together,
// except those of a delegate, which run in a receipt of their own (nearcore
// core/primitives/src/action/mod.rs).
type Action interface {
	write(*writer) // the tag and the fields
	show() any     // as a node's JSON shows it
}

// The tags of actions in borsh.
const (
	tagCreateAccount byte = iota
	tagDeployContract
	tagFunctionCall
	tagTransfer
	tagStake
	tagAddKey
	tagDeleteKey
	tagDeleteAccount
	tagDelegate
	tagDeployGlobalContract
	tagUseGlobalContract
	tagStateInit
	tagTransferToGasKey
	tagWithdrawFromGasKey
	tagDelegateV2
	tagsOfActions
)

type (
	// CreateAccount creates the receiver.
	CreateAccount struct{}
	// DeployContract deploys WebAssembly on the receiver.
	DeployContract struct{ Code []byte }
	// FunctionCall calls the receiver's contract. Gas is in gas units, Deposit in yoctoNEAR.
	FunctionCall struct {
		Method  string
		Args    []byte
		Gas     uint64
		Deposit uint256.Int
	}
	// Transfer pays yoctoNEAR to the receiver.
	Transfer struct{ Deposit uint256.Int }
	// Stake makes this the stake, in yoctoNEAR, of the receiver as a validator with this key.
	Stake struct {
		Stake uint256.Int
		Key   PublicKey
	}
	// AddKey adds an access key to the receiver. The chain chooses its first nonce, whatever Nonce says.
	AddKey struct {
		Key        PublicKey
		Nonce      uint64
		Permission Permission
	}
	// DeleteKey removes an access key.
	DeleteKey struct{ Key PublicKey }
	// DeleteAccount deletes the receiver, and pays what it has to the beneficiary.
	DeleteAccount struct{ Beneficiary string }
	// DeployGlobalContract deploys a contract for all accounts (NEP-591), under its hash or under the
	// account's name.
	DeployGlobalContract struct {
		Code      []byte
		ByAccount bool
	}
	// UseGlobalContract makes the receiver use a global contract.
	UseGlobalContract struct{ Contract GlobalContract }
	// StateInit creates an account whose name follows from its first state (NEP-616).
	StateInit struct {
		Contract GlobalContract
		Data     []Entry // in the order of the keys, each key once
		Deposit  uint256.Int
	}
	// TransferToGasKey pays yoctoNEAR into a gas key (NEP-611).
	TransferToGasKey struct {
		Key     PublicKey
		Deposit uint256.Int
	}
	// WithdrawFromGasKey takes yoctoNEAR out of a gas key.
	WithdrawFromGasKey struct {
		Key    PublicKey
		Amount uint256.Int
	}
)

// GlobalContract names a global contract by its code's hash, or by the account that deployed it.
type GlobalContract struct {
	Hash    [32]byte
	Account string // empty: Hash counts
}

// Entry is one entry of a contract's state.
type Entry struct{ Key, Value []byte }

// Permission is what an access key may do (nearcore core/primitives-core/src/account.rs).
type Permission struct {
	// Call restricts the key to calls of one contract; nil: it may do everything.
	Call *CallPermission
	// Gas, when set, makes it a gas key.
	Gas *GasKey
}

// CallPermission restricts a key to calls of one contract.
type CallPermission struct {
	Allowance *uint256.Int // what the key may spend on gas, in yoctoNEAR; nil: without bound
	Receiver  string       // the bytes may hold any text here; see Validate
	Methods   []string     // empty: all
}

// GasKey is the part of a gas key: its own balance in yoctoNEAR, and its number of nonce sequences.
type GasKey struct {
	Balance uint256.Int
	Nonces  uint16
}

// The tags of permissions in borsh.
const (
	permitCall byte = iota
	permitAll
	permitGasCall
	permitGasAll
	permissions
)

func (r *reader) permission() (p Permission) {
	tag := r.tag(permissions)
	if tag == permitGasCall || tag == permitGasAll {
		p.Gas = &GasKey{Balance: r.u128(), Nonces: r.u16()}
	}
	if tag == permitCall || tag == permitGasCall {
		p.Call = &CallPermission{}
		if r.some() {
			allowance := r.u128()
			p.Call.Allowance = &allowance
		}
		p.Call.Receiver = r.text()
		p.Call.Methods = list(r, (*reader).text)
	}
	return p
}

func (p Permission) write(w *writer) {
	tag := permitAll
	if p.Call != nil {
		tag = permitCall
	}
	if p.Gas != nil {
		tag += permitGasCall
		w.u8(tag)
		w.u128(p.Gas.Balance)
		w.u16(p.Gas.Nonces)
	} else {
		w.u8(tag)
	}
	if p.Call == nil {
		return
	}
	if p.Call.Allowance == nil {
		w.u8(0)
	} else {
		w.u8(1)
		w.u128(*p.Call.Allowance)
	}
	w.text(p.Call.Receiver)
	writeList(w, p.Call.Methods, (*writer).text)
}
