package tempo

import (
	"bytes"
	"encoding/hex"

	"github.com/holiman/uint256"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/infra/chain/rlp"
)

// Fields returns the fields of a signed transaction that [chain.Signed] does not keep, under
// the names and in the form of a Tempo node's JSON-RPC: the access list and the signatures of
// the sender and the fee payer. Authorizations, of delegates and of keys, are left out. raw
// must be accepted by [Decode].
func Fields(raw []byte) (map[string]any, error) {
	tx, err := read(bytes.Clone(raw[1:]))
	if err != nil {
		return nil, err
	}
	fields := map[string]any{"signature": signatureFields(tx.signature)}
	if p := tx.payer; p != nil {
		parity := uint256.NewInt(p.parity).Hex()
		fields["feePayerSignature"] = map[string]any{"r": p.r.Hex(), "s": p.s.Hex(), "v": parity, "yParity": parity}
	}
	l := rlp.Read(raw[1:])
	for range 5 { // chain id, two fees, gas, calls
		l.Skip("field", 2)
	}
	fields["accessList"] = l.Accesses("access list")
	return fields, l.Err()
}

// signatureFields splits a normalized signature into its fields.
func signatureFields(sig []byte) map[string]any {
	number := func(b []byte) string { return new(uint256.Int).SetBytes(b).Hex() }
	if isKeychain(sig) {
		version := "v1"
		if sig[0] == keychainV2 {
			version = "v2"
		}
		return map[string]any{
			"type": "keychain", "userAddress": chain.Address(sig[1:accountEnd]), "version": version,
			"signature": signatureFields(sig[accountEnd:]),
		}
	}
	if len(sig) == secp256k1Size {
		y := number([]byte{byte(parity(sig[64]))})
		return map[string]any{"type": "secp256k1", "r": number(sig[:32]), "s": number(sig[32:64]), "v": y, "yParity": y}
	}
	fields := map[string]any{}
	rsxy := sig[1 : p256Size-1]
	if sig[0] == p256Type {
		fields["type"], fields["preHash"] = "p256", sig[p256Size-1] != 0
	} else {
		rsxy = sig[len(sig)-128:]
		fields["type"], fields["webauthnData"] = "webAuthn", "0x"+hex.EncodeToString(sig[1:len(sig)-128])
	}
	for i, name := range []string{"r", "s", "pubKeyX", "pubKeyY"} {
		fields[name] = "0x" + hex.EncodeToString(rsxy[32*i:32*i+32])
	}
	return fields
}
