package keys

import (
	"bytes"
	"encoding/json"
	"errors"
	"testing"

	"github.com/tempo-watchtower/watchtower/domain/chain"
)

// A damaged or hostile file gives an error, and never a panic.
func FuzzDecrypt(f *testing.F) {
	const good = `{"version":3,"address":"f466859ead1932d743d622cb74fc058882e8648a","crypto":{"cipher":"aes-128-ctr",
		"ciphertext":"cb664472deacb41a2e995fa7f96fe29ce744471deb8d146a0e43c7898c9ddd4d","cipherparams":{"iv":"dfd9ee70812add5f4b8f89d0811c9158"},
		"kdf":"scrypt","kdfparams":{"dklen":32,"n":8,"p":16,"r":8,"salt":"0d6769bf016d45c479213990d6a08d938469c4adad8a02ce507b4a4e7b7739f1"},
		"mac":"bac9af994b15a45dd39669fc66f9aa8a3b9dd8c22cb16e4d8d7ea089d0f1a1a9"}}`
	f.Add([]byte(good))
	f.Add(bytes.ReplaceAll([]byte(good), []byte(`"n":8,`), []byte(`"n":-8,`)))
	f.Add([]byte(`{"version":3,"crypto":{"cipher":"aes-128-ctr","kdf":"pbkdf2","kdfparams":{"c":1,"dklen":32,"prf":"hmac-sha256"}}}`))
	f.Add([]byte(`[]`))
	f.Fuzz(func(t *testing.T, text []byte) {
		var file stored
		if json.Unmarshal(text, &file) == nil {
			if d := file.Crypto.KDFParams; d.C > 1000 || d.bearable() && d.N*d.R*d.P > 1<<12 {
				return // it would only take long
			}
		}
		secret, _, err := decrypt(text, []byte("foobar"))
		if (err == nil) != (len(secret) == 32) {
			t.Errorf("%d bytes and %v", len(secret), err)
		}
	})
}

// For any answer of a signer, Sign returns a signature by its account or an error.
func FuzzSettle(f *testing.F) {
	s, err := secp256k1(bytes.Repeat([]byte{7}, 32), "the test")
	if err != nil {
		f.Fatal(err)
	}
	digest := chain.Keccak([]byte("payload"))
	good, err := s.Sign(f.Context(), []byte("payload"))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(good)
	f.Add(good[:64])
	f.Add([]byte{0x30, 6, 2, 1, 1, 2, 1, 1})
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, answer []byte) {
		sig, err := s.settle(answer, digest)
		switch {
		case err == nil && !bytes.Equal(sig[:32], good[:32]): // a valid signature with another k would be a forgery
			t.Errorf("%x is taken for a signature: %x", answer, sig)
		case err != nil && (sig != nil || !errors.Is(err, errForm) && !errors.Is(err, ErrWrongKey)):
			t.Errorf("%x and %v", sig, err)
		}
	})
}
