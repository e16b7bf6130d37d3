package main

import (
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"go.uber.org/goleak"

	"github.com/tempo-watchtower/watchtower/cmd/signers/program/programtest"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/infra/keys/keystest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	token   = "ya29.canary-of-a-token-that-nobody-may-see-"
	version = "projects/a-project/locations/europe-west3/keyRings/relayer/cryptoKeys/hot/cryptoKeyVersions/2"
)

// double is Cloud KMS with one key, and the token server to which a service account's key
// authenticates, according to their documentation.
type double struct {
	keystest.Double
	tokens    keystest.Double
	key       *keystest.Key
	algorithm string

	account *rsa.PrivateKey
	written []string     // PEM lines of the key
	given   atomic.Int64 // number of tokens issued; only the last is valid
}

// service starts a double, and points Google's library to it.
func service(t *testing.T, kind chain.SignatureKind) *double {
	t.Helper()
	d := &double{
		key:       &keystest.Key{Kind: kind, Secret: []byte("32 bytes, a secret of a test's .")},
		algorithm: map[chain.SignatureKind]string{chain.P256: "EC_SIGN_P256_SHA256", chain.Secp256k1: "EC_SIGN_SECP256K1_SHA256"}[kind],
	}
	var err error
	if d.account, err = rsa.GenerateKey(rand.Reader, 2048); err != nil {
		t.Fatal(err)
	}
	d.tokens.Start(t, d.tokens.Does(d.token), nil)
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/"+version+"/publicKey", d.Does(d.public))
	mux.HandleFunc("POST /v1/{path...}", d.Does(d.sign))
	d.Start(t, mux, nil)
	der, err := x509.MarshalPKCS8PrivateKey(d.account)
	if err != nil {
		t.Fatal(err)
	}
	private := string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}))
	d.written = strings.Split(private, "\n")
	file := filepath.Join(t.TempDir(), "account.json")
	account := text(map[string]string{
		"type": "service_account", "client_email": "relayer@a-project.iam.gserviceaccount.com", "private_key_id": "1",
		"private_key": private, "token_uri": d.tokens.URL,
	})
	if err := os.WriteFile(file, []byte(account), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("GOOGLE_APPLICATION_CREDENTIALS", file)
	return d
}

func text(value any) string {
	b, err := json.Marshal(value)
	if err != nil {
		panic(err)
	}
	return string(b)
}

// token issues a token for an assertion signed by the account's key (RFC 7523, section 2.1).
func (d *double) token(body []byte, _ *http.Request, _ keystest.Trouble) (string, int) {
	form, err := url.ParseQuery(string(body))
	parts := strings.Split(form.Get("assertion"), ".")
	if err != nil || len(parts) != 3 {
		return `{"error":"invalid_request"}`, http.StatusBadRequest
	}
	digest := sha256.Sum256([]byte(parts[0] + "." + parts[1]))
	signature, errMark := base64.RawURLEncoding.DecodeString(parts[2])
	claim, errClaim := base64.RawURLEncoding.DecodeString(parts[1])
	if errMark != nil || errClaim != nil || !strings.Contains(string(claim), `"scope":"https://www.googleapis.com/auth/cloudkms"`) ||
		rsa.VerifyPKCS1v15(&d.account.PublicKey, crypto.SHA256, digest[:], signature) != nil {
		return `{"error":"invalid_grant"}`, http.StatusBadRequest
	}
	return text(map[string]any{"access_token": fmt.Sprint(token, d.given.Add(1)), "token_type": "Bearer", "expires_in": 3599}), http.StatusOK
}

func fault(status int, name string, details ...any) string {
	return text(map[string]any{"error": map[string]any{"code": status, "message": "why", "status": name, "details": details}})
}

// allowed reports whether a request has the last token.
func (d *double) allowed(r *http.Request) bool {
	return r.Header.Get("Authorization") == fmt.Sprint("Bearer ", token, d.given.Load())
}

func (d *double) public(_ []byte, r *http.Request, _ keystest.Trouble) (string, int) {
	if !d.allowed(r) {
		return fault(401, "UNAUTHENTICATED"), 401
	}
	return text(map[string]any{"pem": d.key.PEM(), "algorithm": d.algorithm, "pemCrc32c": "1", "name": version, "protectionLevel": "HSM"}), 200
}

func (d *double) sign(body []byte, r *http.Request, trouble keystest.Trouble) (string, int) {
	var asked struct{ Digest struct{ SHA256 []byte } }
	switch err := json.Unmarshal(body, &asked); {
	case !d.allowed(r):
		return fault(401, "UNAUTHENTICATED"), 401
	case r.URL.Path != "/v1/"+version+":asymmetricSign":
		return fault(404, "NOT_FOUND"), 404
	case err != nil || len(asked.Digest.SHA256) != 32:
		return fault(400, "INVALID_ARGUMENT"), 400
	}
	trouble.Form = keystest.DER
	signature := d.key.Sign(chain.Hash(asked.Digest.SHA256), trouble)
	return text(map[string]any{"signature": signature, "signatureCrc32c": "1", "name": version, "protectionLevel": "HSM"}), 200
}

func contract(d *double) programtest.Case {
	return programtest.Case{
		Program: signer(), Args: []string{"-endpoint", d.URL}, Double: &d.Double, Key: d.key,
		Name: version, Unknown: strings.Replace(version, "/hot/", "/cold/", 1),
		Throttled: keystest.Trouble{Status: 429, Body: fault(429, "RESOURCE_EXHAUSTED")},
		Refused:   keystest.Trouble{Status: 403, Body: fault(403, "PERMISSION_DENIED")},
		Secrets:   keystest.Secrets{[]byte(token), d.key.Secret, []byte(d.written[5])},
	}
}

func TestContract(t *testing.T) {
	t.Run("P-256", func(t *testing.T) { programtest.Contract(t, contract(service(t, chain.P256))) })
	t.Run("secp256k1", func(t *testing.T) { programtest.Signs(t, contract(service(t, chain.Secp256k1))) })
}

// TestReal checks the contract against the real service.
func TestReal(t *testing.T) { programtest.Real(t, signer(), "WATCHTOWER_TEST_GCP_KMS_KEYS") }

func TestOtherKindsOfKeys(t *testing.T) {
	d := service(t, chain.P256)
	c := contract(d)
	d.algorithm = "RSA_SIGN_PSS_2048_SHA256"
	c.Fails(t, "neither for EC_SIGN_P256_SHA256", "-keys", version)
	for _, name := range []string{"hot", version + "/..", strings.TrimSuffix(version, "/2"), version + "%2f.."} {
		c.Fails(t, "not the name of a key version", "-keys", name)
	}
}

// The service may request a pause in two ways.
func TestPauses(t *testing.T) {
	c := contract(service(t, chain.P256))
	delay := map[string]string{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "40s"}
	for _, trouble := range []keystest.Trouble{
		{Status: 429, Header: http.Header{"Retry-After": {"40"}}},
		{Status: 429, Body: fault(429, "RESOURCE_EXHAUSTED", delay)},
		{Status: 503, Body: fault(503, "UNAVAILABLE", map[string]string{"@type": "another"}, delay)},
	} {
		c.Pauses(t, trouble, 40)
	}
}

// One token is valid for many signatures; a token that the service rejects is replaced.
func TestTokens(t *testing.T) {
	d := service(t, chain.P256)
	c := contract(d)
	s := c.Signer(t)
	for range 3 {
		if _, err := s.Sign(t.Context(), []byte("payload")); err != nil {
			t.Fatal(err)
		}
	}
	if n := d.given.Load(); n != 1 {
		t.Errorf("%d tokens were given, want 1", n)
	}
	d.given.Add(1) // its token is no longer valid
	if _, err := s.Sign(t.Context(), []byte("payload")); err != nil || d.given.Load() != 3 {
		t.Errorf("after %d tokens: %v", d.given.Load(), err)
	}
}

// The token server's answers are never shown, since they may contain a token.
func TestTokenTrouble(t *testing.T) {
	d := service(t, chain.P256)
	c := contract(d)
	for _, trouble := range []keystest.Trouble{
		{Status: 400, Body: `{"error":"invalid_grant","error_description":"` + token + `"}`},
		{Status: 500, Body: token},
		{Body: token},
		{Body: `{"access_token":"` + token},
		{Cut: true},
		{Huge: true},
	} {
		d.tokens.Misbehave(trouble)
		c.Fails(t, "no access token", "-keys", c.Listed())
	}
	d.tokens.Misbehave(keystest.Trouble{Hang: true})
	c.Fails(t, "no access token", "-keys", c.Listed(), "-timeout", "100ms")
	t.Setenv("GOOGLE_APPLICATION_CREDENTIALS", filepath.Join(t.TempDir(), "none"))
	c.Fails(t, "no credentials", "-keys", c.Listed())
}

func TestEndpoint(t *testing.T) {
	c := contract(service(t, chain.P256))
	for endpoint, says := range map[string]string{
		"":                     "must be https://host:port",
		"cloudkms:443":         "must be https://host:port",
		"https://u:p@cloudkms": "must be https://host:port",
		"http://10.0.0.1":      "must use https",
	} {
		c.Fails(t, says, "-keys", c.Listed(), "-endpoint", endpoint)
	}
}
