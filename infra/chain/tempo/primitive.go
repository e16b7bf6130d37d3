package tempo

import (
	"errors"
	"math/big"

	"github.com/ethereum/go-ethereum/crypto"

	"github.com/tempo-watchtower/watchtower/domain/chain"
)

// CheckPrimitive checks the form of a primitive signature: length, type, numbers in range, the
// lower s, a point on the curve. Bytes without that form are a valid signature of nothing. The
// error is a *chain.Malformed.
func CheckPrimitive(sig []byte) error {
	if err := checkPrimitive(sig); err != nil {
		return &chain.Malformed{Fault: chain.FaultSignature, Detail: err.Error()}
	}
	return nil
}

func checkPrimitive(sig []byte) error {
	kind, err := primitiveKind(sig)
	switch {
	case err != nil:
		return err
	case kind == chain.Secp256k1:
		r, s := new(big.Int).SetBytes(sig[:32]), new(big.Int).SetBytes(sig[32:64])
		if !crypto.ValidateSignatureValues(byte(parity(sig[64])), r, s, true) {
			return errSecp256k1Values
		}
		return nil
	case kind == chain.P256:
		_, _, _, err = parseP256(sig[1 : p256Size-1])
	case kind == chain.WebAuthn:
		if len(sig) < 1+authenticatorSize+clientDataLeast+128 {
			return errors.New("the WebAuthn data is too short")
		}
		_, _, _, err = parseP256(sig[len(sig)-128:])
	}
	return err
}
