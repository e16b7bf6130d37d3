package main

import (
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/tempo-watchtower/watchtower/cmd/signers/program/programtest"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/infra/keys/keystest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const token = "hvs.canary-of-a-token-that-nobody-may-see"

// double is a Vault with a transit engine at the path crypto/tempo, according to its
// documentation. It has a key relayer with versions 1 and 2, of which 2 is the latest.
type double struct {
	keystest.Double
	versions map[string]*keystest.Key
	public   string // replaces the public keys in answers, if not empty
	kind     string
}

// vault starts a double.
func vault(t *testing.T) *double {
	key := func(secret string) *keystest.Key { return &keystest.Key{Kind: chain.P256, Secret: []byte(secret)} }
	d := &double{kind: "ecdsa-p256", versions: map[string]*keystest.Key{
		"1": key("32 bytes, the first secret, yes!"), "2": key("32 bytes, the second secret, no!"),
	}}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/crypto/tempo/keys/relayer", d.Does(d.read))
	mux.HandleFunc("POST /v1/crypto/tempo/sign/relayer", d.Does(d.sign))
	d.Start(t, mux, nil)
	return d
}

// allowed reports whether a request has the right token and namespace.
func (d *double) allowed(r *http.Request) bool {
	return r.Header.Get("X-Vault-Token") == token && r.Header.Get("X-Vault-Namespace") == "team/one"
}

const denied = `{"errors":["1 error occurred:\n\t* permission denied\n\n"]}`

func (d *double) read(_ []byte, r *http.Request, _ keystest.Trouble) (string, int) {
	if !d.allowed(r) {
		return denied, http.StatusForbidden
	}
	versions := map[string]any{}
	for n, k := range d.versions {
		text := k.PEM()
		if d.public != "" {
			text = d.public
		}
		versions[n] = map[string]any{"name": "P-256", "public_key": text, "creation_time": "2026-11-22T01:00:00Z"}
	}
	return answer(map[string]any{"type": d.kind, "latest_version": 2, "keys": versions, "supports_signing": true}), http.StatusOK
}

func (d *double) sign(body []byte, r *http.Request, trouble keystest.Trouble) (string, int) {
	var asked struct {
		Input       []byte `json:"input"` // encoded in base64
		Prehashed   bool   `json:"prehashed"`
		Marshaling  string `json:"marshaling_algorithm"`
		Hash        string `json:"hash_algorithm"`
		Version     int    `json:"key_version"`
		Unsupported any    `json:"signature_algorithm"` // for RSA only
	}
	decoder := json.NewDecoder(strings.NewReader(string(body)))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&asked); err != nil {
		return `{"errors":["` + "error parsing JSON" + `"]}`, http.StatusBadRequest
	}
	key, there := d.versions[string(rune('0'+asked.Version))]
	switch {
	case !d.allowed(r):
		return denied, http.StatusForbidden
	case !there || len(asked.Input) != 32 || !asked.Prehashed || asked.Marshaling != "asn1" || asked.Hash != "sha2-256":
		return `{"errors":["unsupported"]}`, http.StatusBadRequest
	}
	trouble.Form = keystest.DER
	signature := key.Sign(chain.Hash(asked.Input), trouble)
	return answer(map[string]any{
		"key_version": asked.Version, "signature": "vault:v" + string(rune('0'+asked.Version)) + ":" + base64.StdEncoding.EncodeToString(signature),
	}), http.StatusOK
}

// answer wraps data as Vault does.
func answer(data any) string {
	text, err := json.Marshal(map[string]any{"request_id": "15f87d0a", "lease_id": "", "renewable": false, "lease_duration": 0, "data": data, "warnings": nil})
	if err != nil {
		panic(err)
	}
	return string(text)
}

// led is the environment that points to a double.
func led(d *double) func(string) string {
	return func(name string) string {
		return map[string]string{"VAULT_ADDR": d.URL + "/", "VAULT_TOKEN": token, "VAULT_NAMESPACE": "team/one"}[name]
	}
}

func contract(d *double) programtest.Case {
	return programtest.Case{
		Program: signer(led(d)), Double: &d.Double, Key: d.versions["1"], Name: "crypto/tempo/relayer@1", Unknown: "crypto/tempo/nobody@1",
		Throttled: keystest.Trouble{Status: http.StatusTooManyRequests, Body: `{"errors":["request path \"crypto\": rate limit quota exceeded"]}`},
		Refused:   keystest.Trouble{Status: http.StatusForbidden, Body: denied},
		Secrets:   keystest.Secrets{[]byte(token), d.versions["1"].Secret, d.versions["2"].Secret},
	}
}

func TestContract(t *testing.T) { programtest.Contract(t, contract(vault(t))) }

// TestReal checks the contract against a real Vault.
func TestReal(t *testing.T) {
	programtest.Real(t, signer(os.Getenv), "WATCHTOWER_TEST_VAULT_KEYS", os.Getenv("VAULT_TOKEN"))
}

// Another version is another account.
func TestVersions(t *testing.T) {
	d := vault(t)
	c := contract(d)
	c.Key, c.Name = d.versions["2"], "crypto/tempo/relayer@2"
	programtest.Signs(t, c)
	for name, says := range map[string]string{
		"crypto/tempo/relayer@3": "has no version 3",
		"crypto/tempo/relayer":   "is not MOUNT/NAME@VERSION",
		"crypto/tempo/relayer@":  "is not MOUNT/NAME@VERSION",
		"crypto/tempo/relayer@0": "is not MOUNT/NAME@VERSION",
		"relayer@1":              "is not MOUNT/NAME@VERSION",
		"/@1":                    "is not MOUNT/NAME@VERSION",
	} {
		c.Fails(t, says, "-keys", c.Key.Address().String()+"="+name)
	}
}

// The engine's key may be of a type that no chain accepts.
func TestOtherKindsOfKeys(t *testing.T) {
	d := vault(t)
	c := contract(d)
	d.kind = "ed25519"
	c.Fails(t, "type is not ecdsa-p256", "-keys", "crypto/tempo/relayer@1")
	d.kind = "ecdsa-p256"
	for text, says := range map[string]string{
		"nonsense": "an elliptic curve key",
		string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: []byte("nonsense")})): "an elliptic curve key",
	} {
		d.public = text
		c.Fails(t, says, "-keys", "crypto/tempo/relayer@1")
	}
}

// The token's file is reread: agents write a new token before the old one expires.
func TestTokenFile(t *testing.T) {
	d := vault(t)
	file := filepath.Join(t.TempDir(), "token")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	c := contract(d)
	c.Program = signer(func(string) string { return "" })
	c.Args = []string{"-vault", d.URL, "-namespace", "team/one", "-token-file", file}
	c.Fails(t, "no such file", "-keys", c.Listed())
	for _, text := range []string{"", "\n", "two words", "a\r\nHost: elsewhere"} {
		write(text)
		c.Fails(t, "has no token", "-keys", c.Listed())
	}
	write("hvs.another\n")
	c.Fails(t, "403", "-keys", c.Listed())
	write(token + "\n")
	s := c.Signer(t)
	write("hvs.another\n")
	if _, err := s.Sign(t.Context(), []byte("payload")); err == nil {
		t.Error("it signs with a token that is not in the file any more")
	}
	write(token)
	if _, err := s.Sign(t.Context(), []byte("payload")); err != nil {
		t.Error(err)
	}
}

// The connection to Vault must be secure against eavesdropping.
func TestAddress(t *testing.T) {
	c := contract(vault(t))
	for address, says := range map[string]string{
		"":                                 "must be https://host:port",
		"vault:8200":                       "must be https://host:port",
		"https://user:" + token + "@vault": "must be https://host:port",
		"http://10.0.0.1:8200":             "must use https",
		"http://localhost.example.org":     "must use https",
	} {
		c.Fails(t, says, "-keys", c.Listed(), "-vault", address)
	}
	file := filepath.Join(t.TempDir(), "none.pem")
	if err := os.WriteFile(file, []byte("nonsense"), 0o600); err != nil {
		t.Fatal(err)
	}
	c.Fails(t, "has no PEM certificate", "-keys", c.Listed(), "-authorities", file)
}
