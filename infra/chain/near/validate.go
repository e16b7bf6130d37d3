package near

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math/bits"
	"strings"

	"github.com/ethereum/go-ethereum/crypto"
)

// Limits of protocol version 86 (nearcore core/parameters/res/runtime_configs, and
// core/primitives-core/src/account.rs for gas keys). Chains have raised them and never lowered one but
// the number of deployments.
const (
	maxSize          = 1_572_864 // bytes of a signed transaction
	maxActions       = 100
	maxDeploys       = 10
	maxGas           = 1_000_000_000_000_000 // 1 PGas
	maxMethod        = 256
	maxMethods       = 2000 // bytes of all methods of a key, with one more for each
	maxArgs          = 4 << 20
	maxContract      = 4 << 20
	maxStateKey      = 2048
	maxStateValue    = 4 << 20
	maxGasKeyNonces  = 1024
	longestShownName = 2 * accountLongest
)

// protocolV1 is the first protocol version that takes V1 transactions, ML-DSA-65 keys, gas keys and
// [Delegate.V2].
const protocolV1 = 86

// Invalid is a node's reason for refusing a transaction: its InvalidTxError, as JSON. It says so of the bytes
// alone, whatever the state of the accounts, so the refusal is permanent while the chain's limits stay.
type Invalid struct {
	Name string // of the variant, or of the variant within ActionsValidation
	json any
}

// Error is the reason as a node's JSON has it.
func (e *Invalid) Error() string {
	text, _ := e.MarshalJSON()
	return "InvalidTxError: " + string(text)
}

// MarshalJSON returns the member InvalidTxError of a node's answer.
func (e *Invalid) MarshalJSON() ([]byte, error) { return json.Marshal(e.json) }

// members are the members of a reason, in no order.
type members map[string]any

func invalid(name string, m members) *Invalid {
	if m == nil {
		return &Invalid{Name: name, json: name}
	}
	return &Invalid{Name: name, json: members{name: m}}
}

// badAction is a reason within ActionsValidation.
func badAction(name string, m members) *Invalid {
	e := invalid(name, m)
	e.json = members{"ActionsValidation": e.json}
	return e
}

// unsupported is the reason for what a chain's protocol does not have yet.
func unsupported(feature string, protocol uint32) *Invalid {
	return badAction("UnsupportedProtocolFeature", members{"protocol_feature": feature, "version": protocol})
}

// Validate applies what a node of a chain with this protocol version checks of the bytes alone, in its order:
// version, actions, size, signature (nearcore runtime/runtime/src/action_validation.rs, and
// check_valid_for_config in core/primitives/src/transaction.rs). Its error is an *[Invalid]. UnsupportedProtocolFeature and
// InvalidTransactionVersion end with the chain's next upgrade; the others are permanent.
func (s Signed) Validate(protocol uint32) error {
	if protocol < protocolV1 && (s.Version == V1 || s.Key.Type == MLDSA65 || s.Signature.Type == MLDSA65) {
		return invalid("InvalidTransactionVersion", nil)
	}
	if bad := checkActions(s.Actions, s.Receiver, protocol); bad != nil {
		return bad
	}
	encoded := s.Transaction.Encode()
	size := len(encoded) + 1 + len(s.Signature.Bytes)
	if protocol < protocolV1 {
		size = len(encoded)
	}
	if size > maxSize {
		return invalid("TransactionSizeExceeded", members{"size": size, "limit": maxSize})
	}
	if !s.Key.Verify(s.Hash(), s.Signature) {
		return invalid("InvalidSignature", nil)
	}
	return nil
}

func checkActions(actions []Action, receiver string, protocol uint32) *Invalid {
	if n := len(actions); n > maxActions {
		return badAction("TotalNumberOfActionsExceeded", members{"total_number_of_actions": n, "limit": maxActions})
	}
	if n := deploys(actions); n > maxDeploys {
		return badAction("TotalNumberOfDeployActionsExceeded", members{"number_of_deploy_actions": n, "limit": maxDeploys})
	}
	delegates := 0
	for i, action := range actions {
		switch action.(type) {
		case DeleteAccount:
			if i+1 < len(actions) {
				return badAction("DeleteActionMustBeFinal", nil)
			}
		case Delegate:
			if delegates++; delegates > 1 {
				return badAction("DelegateActionMustBeOnlyOne", nil)
			}
		}
		if bad := checkAction(action, receiver, protocol); bad != nil {
			return bad
		}
	}
	gas, overflow := prepaidGas(actions)
	switch {
	case overflow:
		return badAction("IntegerOverflow", nil)
	case gas > maxGas:
		return badAction("TotalPrepaidGasExceeded", members{"total_prepaid_gas": gas, "limit": uint64(maxGas)})
	}
	return nil
}

func deploys(actions []Action) (n int) {
	for _, action := range actions {
		switch action.(type) {
		case DeployContract, DeployGlobalContract:
			n++
		}
	}
	return n
}

// prepaidGas sums the gas of all calls, of those within a delegate too.
func prepaidGas(actions []Action) (sum uint64, overflow bool) {
	for _, action := range actions {
		gas := uint64(0)
		switch a := action.(type) {
		case FunctionCall:
			gas = a.Gas
		case Delegate:
			if gas, overflow = prepaidGas(a.Actions); overflow {
				return 0, true
			}
		}
		var carry uint64
		if sum, carry = bits.Add64(sum, gas, 0); carry > 0 {
			return 0, true
		}
	}
	return sum, false
}

func checkAction(action Action, receiver string, protocol uint32) *Invalid {
	switch a := action.(type) {
	case DeployContract:
		return checkContract(a.Code)
	case DeployGlobalContract:
		return checkContract(a.Code)
	case FunctionCall:
		return checkCall(a)
	case Stake:
		if a.Key.Type != Ed25519 {
			return badAction("UnsuitableStakingKey", members{"public_key": a.Key.String()})
		}
	case AddKey:
		return checkAddKey(a, protocol)
	case Delegate:
		if a.V2 && protocol < protocolV1 {
			return unsupported("DelegateV2", protocol)
		}
		return checkActions(a.Actions, receiver, protocol)
	case StateInit:
		return checkStateInit(a, receiver)
	case TransferToGasKey, WithdrawFromGasKey:
		if protocol < protocolV1 {
			return unsupported("GasKeys", protocol)
		}
	}
	return nil
}

func checkContract(code []byte) *Invalid {
	if len(code) > maxContract {
		return badAction("ContractSizeExceeded", members{"size": len(code), "limit": maxContract})
	}
	return nil
}

func checkCall(a FunctionCall) *Invalid {
	switch {
	case a.Gas == 0:
		return badAction("FunctionCallZeroAttachedGas", nil)
	case len(a.Method) > maxMethod:
		return badAction("FunctionCallMethodNameLengthExceeded", members{"length": len(a.Method), "limit": maxMethod})
	case len(a.Args) > maxArgs:
		return badAction("FunctionCallArgumentsLengthExceeded", members{"length": len(a.Args), "limit": maxArgs})
	}
	return nil
}

func checkAddKey(a AddKey, protocol uint32) *Invalid {
	call, gas := a.Permission.Call, a.Permission.Gas
	if call != nil {
		if bad := checkCallPermission(call); bad != nil {
			return bad
		}
	}
	switch {
	case gas == nil:
		return nil
	case protocol < protocolV1:
		return unsupported("GasKeys", protocol)
	case call != nil && call.Allowance != nil:
		return badAction("GasKeyFunctionCallAllowanceNotAllowed", nil)
	case gas.Nonces == 0 || gas.Nonces > maxGasKeyNonces:
		return badAction("GasKeyInvalidNumNonces", members{"requested_nonces": gas.Nonces, "limit": maxGasKeyNonces})
	case !gas.Balance.IsZero():
		return badAction("AddGasKeyWithNonZeroBalance", members{"balance": gas.Balance.Dec()})
	}
	return nil
}

func checkCallPermission(call *CallPermission) *Invalid {
	if CheckAccount(call.Receiver) != nil {
		return badAction("InvalidAccountId", members{"account_id": cut(call.Receiver, longestShownName)})
	}
	sum := 0
	for _, method := range call.Methods {
		if len(method) > maxMethod {
			return badAction("AddKeyMethodNameLengthExceeded", members{"length": len(method), "limit": maxMethod})
		}
		sum += len(method) + 1
	}
	if sum > maxMethods {
		return badAction("AddKeyMethodNamesNumberOfBytesExceeded", members{"total_number_of_bytes": sum, "limit": maxMethods})
	}
	return nil
}

// cut returns as much of the text as fits, in whole characters.
func cut(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "")
}

func checkStateInit(a StateInit, receiver string) *Invalid {
	if derived := a.Account(); derived != receiver {
		return badAction("InvalidDeterministicStateInitReceiver", members{"derived_id": derived, "receiver_id": receiver})
	}
	for _, entry := range a.Data {
		switch {
		case len(entry.Key) > maxStateKey:
			return badAction("DeterministicStateInitKeyLengthExceeded", members{"length": len(entry.Key), "limit": maxStateKey})
		case len(entry.Value) > maxStateValue:
			return badAction("DeterministicStateInitValueLengthExceeded", members{"length": len(entry.Value), "limit": maxStateValue})
		}
	}
	return nil
}

// Account is the name of the account that this state creates: "0s" and the last 20 bytes of its Keccak-256
// in hex (nearcore core/primitives/src/utils.rs).
func (a StateInit) Account() string {
	var w writer
	a.writeState(&w)
	return fmt.Sprintf("0s%s", hex.EncodeToString(crypto.Keccak256(w)[12:]))
}
