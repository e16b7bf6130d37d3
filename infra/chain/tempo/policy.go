package tempo

import "fmt"

// subBlock is the first byte of nonce keys that are reserved for sub-blocks.
const subBlock = 0x5b

// Unwanted returns why nodes refuse a transaction although its bytes are valid, as far as the bytes
// alone show it; empty: nothing is known. raw must be accepted by [Decode]. These are rules of the
// nodes' pool (tempoxyz/tempo, crates/transaction-pool), which may change: [Decode] does not apply
// them.
func Unwanted(raw []byte) (string, error) {
	tx, err := Decode(raw)
	if err != nil {
		return "", err
	}
	fields, err := Fields(raw)
	if err != nil {
		return "", err
	}
	signature, _ := fields["signature"].(map[string]any)
	switch {
	case signature["version"] == "v1":
		return "its access key's signature has the old format, V1; nodes take V2 alone", nil
	case tx.FeePayer != nil && *tx.FeePayer == tx.Sender:
		return "its fee payer is its sender", nil
	case tx.NonceKey[0] == subBlock:
		return "its nonce key begins with 0x5b, which is reserved for sub-blocks", nil
	case tx.NonceKey.IsExpiring() && tx.Nonce != 0:
		return "a transaction with an expiring nonce has nonce 0", nil
	case tx.NonceKey.IsExpiring() && tx.Window.Before == 0:
		return "a transaction with an expiring nonce needs valid before", nil
	}
	if least := LeastGas(tx.Calls); tx.Gas < least {
		return fmt.Sprintf("its gas limit is %d, and its calls need %d before any code runs", tx.Gas, least), nil
	}
	for _, call := range tx.Calls {
		if call.Value != nil && !call.Value.IsZero() {
			return "a call moves value, which Tempo does not allow", nil
		}
	}
	return "", nil
}
