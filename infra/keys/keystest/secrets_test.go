package keystest

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math/big"
	"testing"
)

// The search finds keys in any encoding, and nothing else.
func TestFind(t *testing.T) {
	secret, passphrase := []byte("\x00\x01a key of\xff\xfe32 bytes, no more\n\"\x80\x99"), []byte("correct horse")
	secrets := Secrets{secret, passphrase}
	inJSON, err := json.Marshal(struct{ Key []byte }{secret})
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{
		string(secret), fmt.Sprintf("%x", secret), fmt.Sprintf("%X", secret), fmt.Sprintf("0x%x", secret), fmt.Sprintf("% x", secret),
		fmt.Sprintf("%q", secret), fmt.Sprint(secret), fmt.Sprintf("%v", struct{ k []byte }{secret}), fmt.Sprintf("%#v", secret),
		base64.StdEncoding.EncodeToString(secret), base64.RawURLEncoding.EncodeToString(secret), string(inJSON),
		new(big.Int).SetBytes(secret).String(), fmt.Sprintf("%v", new(big.Int).SetBytes(secret)),
		fmt.Sprintf("%x", secret[:16]), fmt.Sprintf("%x", secret[16:]),
		"the passphrase is correct horse", fmt.Sprintf("%x", passphrase), base64.StdEncoding.EncodeToString(passphrase),
	} {
		if secrets.Find("before "+text+" behind") == "" {
			t.Errorf("%q is not found", text)
		}
	}
	for _, text := range []string{"", "signer(secp256k1 0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266)", "correct", fmt.Sprint(bytes.Repeat([]byte{0}, 32))} {
		if way := secrets.Find(text); way != "" {
			t.Errorf("%q is taken for a secret %s", text, way)
		}
	}
}
