package tempo_test

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/crypto"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/infra/chain/tempo"
)

func TestVerifyPrimitive(t *testing.T) {
	digest := chain.Keccak([]byte("anything"))
	secp := secp256k1(t, digest)
	p256 := append(append([]byte{0x01}, p256Sign(t, digest)...), 0)
	prehashed := append(append([]byte{0x01}, p256Sign(t, sha256.Sum256(digest[:]))...), 7)
	set := func(sig []byte, at int, b ...byte) []byte {
		out := bytes.Clone(sig)
		copy(out[at:], b)
		return out
	}
	zero, order := make([]byte, 32), crypto.S256().Params().N.Bytes()

	for _, c := range []struct {
		name string
		sig  []byte
		kind chain.SignatureKind // if the signature is valid
	}{
		{"secp256k1", secp, chain.Secp256k1},
		{"secp256k1, v of 0 or 1", set(secp, 64, secp[64]-27), chain.Secp256k1},
		{"secp256k1, v of EIP-155", set(secp, 64, secp[64]+8+200), chain.Secp256k1},
		{"secp256k1, high s", highS(secp), ""},
		{"secp256k1, v = 2", set(secp, 64, 2), ""},
		{"secp256k1, v = 29", set(secp, 64, 29), ""},
		{"secp256k1, v = 34", set(secp, 64, 34), ""},
		{"secp256k1, r = 0", set(secp, 0, zero...), ""},
		{"secp256k1, s = 0", set(secp, 32, zero...), ""},
		{"secp256k1, r = N", set(secp, 0, order...), ""},
		{"secp256k1 of 64 bytes", secp[:64], ""},
		{"secp256k1 of 66 bytes", append(bytes.Clone(secp), 0), ""},
		{"P-256", p256, chain.P256},
		{"P-256, hashed before", prehashed, chain.P256},
		{"P-256, hashed before but not said so", set(prehashed, 129, 0), ""},
		{"P-256, r = 0", set(p256, 1, zero...), ""},
		{"P-256, s = 0", set(p256, 33, zero...), ""},
		{"P-256, key not on the curve", set(p256, 65, p256[65]^1), ""},
		{"P-256, another digest", append(append([]byte{0x01}, p256Sign(t, [32]byte{1})...), 0), ""},
		{"Keychain V2", append(append([]byte{0x04}, recipient...), secp...), ""},
		{"Keychain V1", append(append([]byte{0x03}, recipient...), secp...), ""},
		{"multisig", append([]byte{0x05}, p256[1:]...), ""},
		{"one byte", []byte{0x02}, ""},
		{"empty", nil, ""},
	} {
		t.Run(c.name, func(t *testing.T) { checkPrimitive(t, c.sig, digest, c.kind) })
	}
}

func TestWebAuthn(t *testing.T) {
	digest := chain.Keccak([]byte("anything"))
	asked := `"challenge":"` + challenge(digest) + `"`
	object := func(members ...string) string { return "{" + strings.Join(members, ",") + "}" }
	const get = `"type":"webauthn.get"`

	// The valid and the invalid cases were tried on anvil 1.7.1, whose verifier is the node's.
	// It also accepts the array, and U+FFFD in a name, which we refuse.
	for _, c := range []struct {
		name   string
		flags  byte
		client string
		holds  bool
	}{
		{"as browsers write it", 1, clientData(digest), true},
		{"user verified", 4, clientData(digest), true},
		{"backup flags", 0x1d, clientData(digest), true},
		{"neither present nor verified", 0, clientData(digest), false},
		{"attested data", 0x41, clientData(digest), false},
		{"extensions", 0x81, clientData(digest), false},
		{"space around", 1, " \t\r\n" + clientData(digest) + " \n", true},
		{"unknown member twice", 1, object(get, `"a":1`, `"a":2`, asked), true},
		{"invalid UTF-8 in an unknown value", 1, object(get, `"a":"`+"\xff"+`"`, asked), true},
		{"lone surrogate in an unknown value", 1, object(get, `"a":"\ud800"`, asked), true},
		{"huge number", 1, object(get, `"a":1e999`, asked), true},
		{"deep value", 1, object(get, `"a":`+strings.Repeat("[", 500)+strings.Repeat("]", 500), asked), true},
		{"the name escaped", 1, object(`"t\u0079pe":"webauthn.get"`, asked), true},
		{"the name escaped, and again plain", 1, object(get, `"t\u0079pe":"x"`, asked), false},
		{"type twice, alike", 1, object(get, get, asked), false},
		{"challenge twice", 1, object(get, asked, asked), false},
		{"the challenge escaped", 1, object(get, `"challenge":"\u00`+escaped(challenge(digest))+`"`), false},
		{"another challenge", 1, object(get, `"challenge":"`+challenge(chain.Hash{})+`"`), false},
		{"type null", 1, object(`"type":null`, asked), false},
		{"type create", 1, object(`"type":"webauthn.create"`, asked), false},
		{"type missing", 1, object(asked, `"a":"`+strings.Repeat("x", 32)+`"`), false},
		{"challenge missing", 1, object(get, `"a":"`+strings.Repeat("x", 32)+`"`), false},
		{"type and challenge one level down", 1, object(`"a":` + object(get, asked)), false},
		{"invalid UTF-8 in a name", 1, object(get, `"a`+"\xff"+`":1`, asked), false},
		{"lone surrogate in a name", 1, object(get, `"\ud800":1`, asked), false},
		{"U+FFFD in a name", 1, object(get, `"`+"\ufffd"+`":1`, asked), false},
		{"comma at the end", 1, object(get, asked, ""), false},
		{"two documents", 1, clientData(digest) + "{}", false},
		{"byte order mark", 1, "\ufeff" + clientData(digest), false},
		{"cut off", 1, strings.TrimSuffix(clientData(digest), "}"), false},
		{"array", 1, `["webauthn.get","` + challenge(digest) + `"]`, false},
		{"too short", 1, `{}`, false},
		{"a string", 1, `"` + strings.Repeat("x", 40) + `"`, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			kind := chain.WebAuthn
			if !c.holds {
				kind = ""
			}
			checkPrimitive(t, webAuthn(t, c.flags, c.client), digest, kind)
		})
	}
}

// escaped is the text with its first character written as \u00XX.
func escaped(s string) string {
	const digits = "0123456789abcdef"
	return string([]byte{digits[s[0]>>4], digits[s[0]&15]}) + s[1:]
}

// checkPrimitive wants the test account of this kind of key, or a refusal.
func checkPrimitive(t *testing.T, sig []byte, digest chain.Hash, want chain.SignatureKind) {
	t.Helper()
	kept := bytes.Clone(sig)
	account, kind, err := tempo.VerifyPrimitive(sig, digest)
	if !bytes.Equal(kept, sig) {
		t.Error("the signature was changed")
	}
	var malformed *chain.Malformed
	switch {
	case want == "":
		if !errors.As(err, &malformed) || malformed.Fault != chain.FaultSignature || account != (chain.Address{}) || kind != "" {
			t.Errorf("%s by %q, error %v; want a signature fault", account, kind, err)
		}
	case err != nil:
		t.Error(err)
	case want == chain.Secp256k1 && account != testAccount(t), want != chain.Secp256k1 && account != p256Account(t), kind != want:
		t.Errorf("%s by %q, want the test account by %q", account, kind, want)
	}
}

// A Keychain signature is made by a key on behalf of an account that it names.
func TestKeychain(t *testing.T) {
	digest := plain().digest(t)
	root := chain.Address(recipient)
	v1 := append([]byte{0x03}, recipient...)
	v2 := append([]byte{0x04}, recipient...)
	bound := chain.Keccak([]byte{0x04}, digest[:], root[:])
	secp := func(prefix []byte, d chain.Hash) []byte { return append(bytes.Clone(prefix), secp256k1(t, d)...) }
	byP256 := append(append(append(bytes.Clone(v2), 0x01), p256Sign(t, bound)...), 0)
	byPasskey := append(bytes.Clone(v2), webAuthn(t, 1, clientData(bound))...)

	for _, c := range []struct {
		name string
		sig  []byte
		key  chain.Address
	}{
		{"V1", secp(v1, digest), testAccount(t)},
		{"V2", secp(v2, bound), testAccount(t)},
		{"V2, P-256", byP256, p256Account(t)},
		{"V2, WebAuthn", byPasskey, p256Account(t)},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := tempo.Decode(plain().signed(t, c.sig))
			if err != nil {
				t.Fatal(err)
			}
			if got.Sender != root || got.Signature != chain.Keychain || got.AccessKey == nil || *got.AccessKey != c.key {
				t.Errorf("sender %s by %s key %v, want %s by keychain key %s", got.Sender, got.Signature, got.AccessKey, root, c.key)
			}
		})
	}
	// V2 binds the account: a signature of the digest alone recovers to another key.
	got, err := tempo.Decode(plain().signed(t, secp(v2, digest)))
	if err == nil && *got.AccessKey == testAccount(t) {
		t.Error("a V2 signature held without its account")
	}
	for name, sig := range map[string][]byte{
		"nothing inside": v2,
		"high s inside":  append(bytes.Clone(v2), highS(secp256k1(t, bound))...),
		"another inside": append(bytes.Clone(v2), secp(v2, bound)...),
	} {
		t.Run(name, func(t *testing.T) { checkFault(t, plain().signed(t, sig), chain.FaultSignature) })
	}
}
