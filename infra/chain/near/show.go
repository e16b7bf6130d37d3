package near

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"

	"github.com/holiman/uint256"
	"github.com/mr-tron/base58"
)

// longestShown is how many bytes of code or arguments are shown; of more, their length and hash.
const longestShown = 256

// HashText is a hash as NEAR shows it.
func HashText(hash [32]byte) string { return base58.Encode(hash[:]) }

// ParseHash reads a hash from its text.
func ParseHash(text string) (hash [32]byte, err error) {
	bytes, err := base58.Decode(text)
	if err != nil || len(bytes) != len(hash) {
		return hash, &DecodeError{Text: "not the base58 of 32 bytes"}
	}
	return [32]byte(bytes), nil
}

// ShowActions returns the actions as JSON values, by the names of nearcore's JSON. Amounts, gas and nonces
// are decimal strings. Code and arguments of more than 256 bytes are shown by their length and SHA-256.
func (t Transaction) ShowActions() []any { return showActions(t.Actions) }

func showActions(actions []Action) []any {
	shown := make([]any, 0, len(actions))
	for _, action := range actions {
		shown = append(shown, action.show())
	}
	return shown
}

// blob adds bytes to the members: in base64, or by length and hash.
func (m members) blob(name string, b []byte) members {
	if len(b) <= longestShown {
		m[name] = base64.StdEncoding.EncodeToString(b)
		return m
	}
	sum := sha256.Sum256(b)
	m[name+"_len"], m[name+"_sha256"] = len(b), hex.EncodeToString(sum[:])
	return m
}

func (CreateAccount) show() any { return members{"CreateAccount": members{}} }

func (a DeployContract) show() any {
	return members{"DeployContract": members{}.blob("code", a.Code)}
}

func (a FunctionCall) show() any {
	return members{"FunctionCall": members{
		"method_name": a.Method, "gas": decimal(a.Gas), "deposit": a.Deposit.Dec(),
	}.blob("args", a.Args)}
}

func (a Transfer) show() any { return members{"Transfer": members{"deposit": a.Deposit.Dec()}} }

func (a Stake) show() any {
	return members{"Stake": members{"stake": a.Stake.Dec(), "public_key": a.Key.String()}}
}

func (a AddKey) show() any {
	return members{"AddKey": members{
		"public_key": a.Key.String(),
		"access_key": members{"nonce": decimal(a.Nonce), "permission": a.Permission.show()},
	}}
}

func (p Permission) show() any {
	name, shown := "FullAccess", members{}
	if p.Call != nil {
		name = "FunctionCall"
		shown["allowance"] = nil
		if p.Call.Allowance != nil {
			shown["allowance"] = p.Call.Allowance.Dec()
		}
		shown["receiver_id"] = p.Call.Receiver
		shown["method_names"] = append([]string{}, p.Call.Methods...)
	}
	switch {
	case p.Gas != nil:
		name = "GasKey" + name
		shown["balance"], shown["num_nonces"] = p.Gas.Balance.Dec(), p.Gas.Nonces
	case p.Call == nil:
		return name
	}
	return members{name: shown}
}

func (a DeleteKey) show() any { return members{"DeleteKey": members{"public_key": a.Key.String()}} }

func (a DeleteAccount) show() any {
	return members{"DeleteAccount": members{"beneficiary_id": a.Beneficiary}}
}

func (a DeployGlobalContract) show() any {
	mode := "CodeHash"
	if a.ByAccount {
		mode = "AccountId"
	}
	return members{"DeployGlobalContract": members{"deploy_mode": mode}.blob("code", a.Code)}
}

func (a UseGlobalContract) show() any { return members{"UseGlobalContract": a.Contract.show()} }

func (c GlobalContract) show() any {
	if c.Account != "" {
		return members{"account_id": c.Account}
	}
	return members{"hash": HashText(c.Hash)}
}

func (a StateInit) show() any {
	data := members{}
	for _, entry := range a.Data {
		data[base64.StdEncoding.EncodeToString(entry.Key)] = base64.StdEncoding.EncodeToString(entry.Value)
	}
	return members{"DeterministicStateInit": members{"code": a.Contract.show(), "data": data, "deposit": a.Deposit.Dec()}}
}

func (a TransferToGasKey) show() any {
	return members{"TransferToGasKey": members{"public_key": a.Key.String(), "deposit": a.Deposit.Dec()}}
}

func (a WithdrawFromGasKey) show() any {
	return members{"WithdrawFromGasKey": members{"public_key": a.Key.String(), "amount": a.Amount.Dec()}}
}

func (d Delegate) show() any {
	signed := members{
		"sender_id": d.Sender, "receiver_id": d.Receiver, "actions": showActions(d.Actions),
		"nonce": decimal(d.Nonce.Value), "max_block_height": decimal(d.MaxHeight), "public_key": d.Key.String(),
	}
	if !d.V2 {
		return members{"Delegate": members{"delegate_action": signed, "signature": d.Signature.String()}}
	}
	nonce := members{"nonce": decimal(d.Nonce.Value)}
	if d.Nonce.Index == nil {
		signed["nonce"] = members{"Nonce": nonce}
	} else {
		nonce["nonce_index"] = *d.Nonce.Index
		signed["nonce"] = members{"GasKeyNonce": nonce}
	}
	return members{"DelegateV2": members{"delegate_action": members{"V2": signed}, "signature": d.Signature.String()}}
}

// decimal shows a number that may exceed what JSON's readers hold.
func decimal(v uint64) string { return uint256.NewInt(v).Dec() }
