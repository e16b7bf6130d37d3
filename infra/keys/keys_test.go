package keys_test

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/x509"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"
	"golang.org/x/crypto/scrypt"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/eventlog"
	"github.com/tempo-watchtower/watchtower/infra/keys"
	"github.com/tempo-watchtower/watchtower/infra/keys/keystest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// The first two development accounts of anvil and hardhat.
const (
	secretA = "ac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80"
	secretB = "59c6995e998f97a5a0044966f0945389dc9e86dae88c7a8412f4603b6b78690d"
	phrase  = "correct horse battery staple"
)

var (
	accountA = address("0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266")
	accountB = address("0x70997970c51812dc3a010c7d01b50e0d17dc79c8")
	secrets  = keystest.Secrets{unhex(secretA), unhex(secretB), []byte(phrase)}
)

func address(text string) chain.Address {
	a, err := chain.ParseAddress(text)
	if err != nil {
		panic(err)
	}
	return a
}

func unhex(digits string) []byte {
	b, err := hex.DecodeString(digits)
	if err != nil {
		panic(err)
	}
	return b
}

// encrypted is a keystore file of a key, with a cheap key derivation.
func encrypted(t *testing.T, secret, passphrase string, change func(file map[string]any)) string {
	t.Helper()
	salt, iv := bytes.Repeat([]byte{1}, 32), bytes.Repeat([]byte{2}, 16)
	derived, err := scrypt.Key([]byte(passphrase), salt, 2, 8, 1, 32)
	if err != nil {
		t.Fatal(err)
	}
	block, err := aes.NewCipher(derived[:16])
	if err != nil {
		t.Fatal(err)
	}
	text := unhex(secret)
	cipher.NewCTR(block, iv).XORKeyStream(text, text)
	mac := chain.Keccak(derived[16:], text)
	file := map[string]any{
		"version": 3, "id": "3198bc9c-6672-5ab3-d995-4942343ae5b6",
		"crypto": map[string]any{
			"cipher": "aes-128-ctr", "ciphertext": hex.EncodeToString(text),
			"cipherparams": map[string]any{"iv": hex.EncodeToString(iv)},
			"kdf":          "scrypt", "mac": hex.EncodeToString(mac[:]),
			"kdfparams": map[string]any{"n": 2, "r": 8, "p": 1, "dklen": 32, "salt": hex.EncodeToString(salt)},
		},
	}
	if change != nil {
		change(file)
	}
	written, err := json.Marshal(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(written)
}

// folder makes a folder with these files.
func folder(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func inFile(t *testing.T, text string) string {
	return filepath.Join(folder(t, map[string]string{"file": text}), "file")
}

// p256Key is a key of P-256, in PEM.
func p256Key(t *testing.T) (secret []byte, text string) {
	t.Helper()
	secret = unhex(secretA)
	key, err := ecdsa.ParseRawPrivateKey(elliptic.P256(), secret)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return secret, string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}))
}

func only(t *testing.T, signers []*keys.Signer, err error) *keys.Signer {
	t.Helper()
	if err != nil || len(signers) != 1 {
		t.Fatalf("%d signers (%v), want one", len(signers), err)
	}
	t.Cleanup(signers[0].Close)
	return signers[0]
}

func TestKeystoreContract(t *testing.T) {
	dir := folder(t, map[string]string{"a.json": encrypted(t, secretA, phrase, nil)})
	keystest.Contract(t, keystest.Case{
		Open: func(t *testing.T) *keys.Signer {
			signers, err := keys.Keystore(t.Context(), dir, keys.PassphraseFile(inFile(t, phrase+"\n")))
			return only(t, signers, err)
		},
		Address: accountA, Kind: chain.Secp256k1, Secrets: secrets,
	})
}

func TestEnvironmentContract(t *testing.T) {
	keystest.Contract(t, keystest.Case{
		Open: func(t *testing.T) *keys.Signer {
			signers, err := keys.Environment([]string{"RELAYER_PRIVATE_KEY_0=0x" + secretB}, true, slog.New(slog.DiscardHandler))
			return only(t, signers, err)
		},
		Address: accountB, Kind: chain.Secp256k1, Secrets: secrets,
	})
}

func TestP256Contract(t *testing.T) {
	_, text := p256Key(t)
	keystest.Contract(t, keystest.Case{
		Open: func(t *testing.T) *keys.Signer {
			s, err := keys.P256File(inFile(t, text))
			return only(t, []*keys.Signer{s}, err)
		},
		// As computed by ox (P256.getPublicKey, Address.fromPublicKey).
		Address: address("0x1ecba262e4510f333fb5051743e2a53a765debd0"), Kind: chain.P256, Secrets: secrets,
	})
}

// A key in memory gives the same signature each time, so that a transaction signed again has
// the same hash.
func TestLocalSignersRepeat(t *testing.T) {
	_, text := p256Key(t)
	p, err := keys.P256File(inFile(t, text))
	if err != nil {
		t.Fatal(err)
	}
	ones, err := keys.Environment([]string{"RELAYER_PRIVATE_KEY_0=" + secretA}, true, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range append(ones, p) {
		first, err := s.Sign(t.Context(), []byte("payload"))
		if err != nil {
			t.Fatal(err)
		}
		again, err := s.Sign(t.Context(), []byte("payload"))
		if err != nil || !bytes.Equal(first, again) {
			t.Errorf("%s signs twice: %x and %x (%v)", s, first, again, err)
		}
		s.Close()
	}
}

func TestEnvironment(t *testing.T) {
	const a, b = "RELAYER_PRIVATE_KEY_0=" + secretA, "RELAYER_PRIVATE_KEY_1=0x" + secretB
	for _, c := range []struct {
		name    string
		environ []string
		want    []chain.Address
		refused string // part of the refusal's text
	}{
		{name: "nothing", environ: []string{"HOME=/root", "RELAYER_ENABLED=true"}},
		{name: "one", environ: []string{a}, want: []chain.Address{accountA}},
		{name: "counted", environ: []string{b, a}, want: []chain.Address{accountA, accountB}},
		{name: "array", environ: []string{`RELAYER_PRIVATE_KEYS_JSON=["0x` + secretB + `", "` + secretA + `"]`}, want: []chain.Address{accountB, accountA}},
		{name: "both", environ: []string{`RELAYER_PRIVATE_KEYS_JSON=["` + secretB + `"]`, a}, want: []chain.Address{accountB, accountA}},
		{name: "twice", environ: []string{a, "RELAYER_PRIVATE_KEY_1=" + secretA}, refused: "RELAYER_PRIVATE_KEY_0 and RELAYER_PRIVATE_KEY_1 hold the same key"},
		{name: "gap", environ: []string{a, "RELAYER_PRIVATE_KEY_2=" + secretB}, refused: "but not RELAYER_PRIVATE_KEY_1"},
		{name: "no count", environ: []string{"RELAYER_PRIVATE_KEY_FILE=" + secretA}, refused: "a number from 0"},
		{name: "count written twice", environ: []string{a, "RELAYER_PRIVATE_KEY_00=" + secretB}, refused: "a number from 0"},
		{name: "empty", environ: []string{"RELAYER_PRIVATE_KEY_0="}, refused: "RELAYER_PRIVATE_KEY_0 is not 64 hex digits"},
		{name: "short", environ: []string{"RELAYER_PRIVATE_KEY_0=" + secretA[1:]}, refused: "RELAYER_PRIVATE_KEY_0 is not 64 hex digits"},
		{name: "no hex", environ: []string{"RELAYER_PRIVATE_KEY_0=" + secretA[1:] + "g"}, refused: "RELAYER_PRIVATE_KEY_0 is not 64 hex digits"},
		{name: "zero", environ: []string{"RELAYER_PRIVATE_KEY_0=" + strings.Repeat("0", 64)}, refused: "no private key of secp256k1"},
		{name: "beyond the order", environ: []string{"RELAYER_PRIVATE_KEY_0=" + strings.Repeat("f", 64)}, refused: "no private key of secp256k1"},
		{name: "no array", environ: []string{`RELAYER_PRIVATE_KEYS_JSON=` + secretA}, refused: "RELAYER_PRIVATE_KEYS_JSON is not a JSON array"},
		{name: "cut array", environ: []string{`RELAYER_PRIVATE_KEYS_JSON=["` + secretA}, refused: "RELAYER_PRIVATE_KEYS_JSON is not a JSON array"},
		{name: "empty array", environ: []string{`RELAYER_PRIVATE_KEYS_JSON=[]`}, refused: "RELAYER_PRIVATE_KEYS_JSON is not a JSON array"},
		{name: "null", environ: []string{`RELAYER_PRIVATE_KEYS_JSON=["` + secretA + `", null]`}, refused: "RELAYER_PRIVATE_KEYS_JSON[1] is not 64 hex digits"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var log bytes.Buffer
			signers, err := keys.Environment(c.environ, true, slog.New(slog.NewTextHandler(&log, nil)))
			if c.refused != "" {
				refusal(t, err, keys.ErrBadKey, c.refused)
				if signers != nil || log.Len() > 0 {
					t.Errorf("refused, it gives %v and logs %s", signers, &log)
				}
				return
			}
			if err != nil || len(signers) != len(c.want) {
				t.Fatalf("%v (%v), want signers of %v", signers, err, c.want)
			}
			for i, s := range signers {
				if s.Address() != c.want[i] {
					t.Errorf("signer %d is of %s, want %s", i, s.Address(), c.want[i])
				}
				if !strings.Contains(log.String(), c.want[i].String()) || !strings.Contains(log.String(), "level=WARN") {
					t.Errorf("the log warns of no %s: %s", c.want[i], &log)
				}
			}
			secrets.Missing(t, "the log", log.String())
			if len(c.environ) > 0 && len(c.want) > 0 {
				signers, err := keys.Environment(c.environ, false, slog.New(slog.DiscardHandler))
				refusal(t, err, keys.ErrNotDevelopment, "development")
				if signers != nil {
					t.Errorf("refused, it gives %v", signers)
				}
			}
		})
	}
}

// refusal fails the test unless an error is the refusal, contains says, and shows no secret.
func refusal(t *testing.T, err error, want eventlog.Refusal, says string) {
	t.Helper()
	if !errors.Is(err, want) || !strings.Contains(err.Error(), says) {
		t.Fatalf("error %v, want %s that says %q", err, want, says)
	}
	secrets.Printed(t, err)
}

func TestP256File(t *testing.T) {
	_, good := p256Key(t)
	key, err := ecdsa.ParseRawPrivateKey(elliptic.P384(), append(make([]byte, 16), unhex(secretA)...))
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	block, _ := pem.Decode([]byte(good))
	for text, says := range map[string]string{
		"":          "no PEM block",
		secretA:     "no PEM block",
		good + good: "not one PEM block",
		strings.ReplaceAll(good, "PRIVATE KEY", "EC PRIVATE KEY"):                                         "not one PEM block PRIVATE KEY",
		strings.ReplaceAll(good, "PRIVATE KEY", "ENCRYPTED PRIVATE KEY"):                                  "not one PEM block PRIVATE KEY",
		string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: block.Bytes[:40]})):              "no private key in PKCS #8",
		string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})):                           "not a P-256 key",
		string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: bytes.Repeat(der, 100_000/40)})): "more than",
	} {
		_, err := keys.P256File(inFile(t, text))
		refusal(t, err, keys.ErrBadKey, says)
	}
	if _, err := keys.P256File(filepath.Join(t.TempDir(), "missing")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a missing file: %v", err)
	}
}

func TestRing(t *testing.T) {
	open := func() []*keys.Signer {
		signers, err := keys.Environment([]string{"RELAYER_PRIVATE_KEY_0=" + secretA, "RELAYER_PRIVATE_KEY_1=" + secretB}, true, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		return signers
	}
	signers := open()
	for _, allowed := range [][]chain.Address{nil, {accountA}, {{1}}} {
		_, err := keys.NewRing(allowed, signers...)
		refusal(t, err, keys.ErrUnlisted, "not among")
	}
	_, err := keys.NewRing([]chain.Address{accountA, accountB}, append(signers, signers[0])...)
	refusal(t, err, keys.ErrBadKey, "two signers hold the key of "+accountA.String())

	ring, err := keys.NewRing([]chain.Address{accountA, accountB, {1}}, signers...)
	if err != nil {
		t.Fatal(err)
	}
	if got := ring.Addresses(); len(got) != 2 || got[0] != accountB || got[1] != accountA {
		t.Errorf("addresses %v", got)
	}
	s, err := ring.Signer(accountA)
	if err != nil || s.Address() != accountA {
		t.Errorf("signer %v (%v)", s, err)
	}
	_, err = ring.Signer(chain.Address{1})
	refusal(t, err, keys.ErrUnknownKey, "there is no key of")
	ring.Close()
	if _, err := s.Sign(t.Context(), []byte{1}); !errors.Is(err, eventlog.ErrClosed) {
		t.Errorf("its ring closed, a signer says %v", err)
	}
}
