package main

import (
	"encoding/base64"
	"encoding/json"
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

const (
	access = "AKIDCANARY0000000000"
	secret = "canary/of+a+secret+that+nobody+may+see00"
	arn    = "arn:aws:kms:eu-central-1:111122223333:key/1234abcd-12ab-34cd-56ef-1234567890ab"
)

// double is AWS KMS with one key, according to its documentation; the library's own client calls
// it. It checks who signed a request, but not the request's signature.
type double struct {
	keystest.Double
	key   *keystest.Key
	usage string
}

// service starts a double, and points the library to it.
func service(t *testing.T, kind chain.SignatureKind) *double {
	t.Helper()
	d := &double{key: &keystest.Key{Kind: kind, Secret: []byte("32 bytes, a secret of a test's .")}, usage: "SIGN_VERIFY"}
	d.Start(t, d.Does(d.answer), nil)
	none := filepath.Join(t.TempDir(), "none")
	for name, value := range map[string]string{
		"AWS_ENDPOINT_URL_KMS": d.URL, "AWS_REGION": "eu-central-1", "AWS_ACCESS_KEY_ID": access, "AWS_SECRET_ACCESS_KEY": secret,
		"AWS_SESSION_TOKEN": "", "AWS_PROFILE": "", "AWS_CONFIG_FILE": none, "AWS_SHARED_CREDENTIALS_FILE": none, "AWS_EC2_METADATA_DISABLED": "true",
	} {
		t.Setenv(name, value)
	}
	return d
}

func trouble(name, message string) (string, int) {
	return text(map[string]string{"__type": name, "message": message}), http.StatusBadRequest
}

func text(value any) string {
	b, err := json.Marshal(value)
	if err != nil {
		panic(err)
	}
	return string(b)
}

func (d *double) answer(body []byte, r *http.Request, of keystest.Trouble) (string, int) {
	var asked struct{ KeyId, Message, MessageType, SigningAlgorithm string } //nolint:staticcheck // ST1003: AWS calls it so
	credential := "AWS4-HMAC-SHA256 Credential=" + access + "/"
	switch err := json.Unmarshal(body, &asked); {
	case err != nil || r.Method != http.MethodPost || r.URL.Path != "/" || r.Header.Get("Content-Type") != "application/x-amz-json-1.1":
		return trouble("SerializationException", "not a request")
	case !strings.HasPrefix(r.Header.Get("Authorization"), credential) || !strings.Contains(r.Header.Get("Authorization"), "/eu-central-1/kms/aws4_request"):
		return trouble("IncompleteSignatureException", "not signed")
	case asked.KeyId != arn:
		return trouble("NotFoundException", "Key '"+asked.KeyId+"' does not exist")
	}
	spec := map[chain.SignatureKind]string{chain.P256: "ECC_NIST_P256", chain.Secp256k1: "ECC_SECG_P256K1"}[d.key.Kind]
	switch r.Header.Get("X-Amz-Target") {
	case "TrentService.GetPublicKey":
		return text(map[string]any{
			"KeyId": arn, "PublicKey": d.key.SPKI(), "KeySpec": spec, "CustomerMasterKeySpec": spec, "KeyUsage": d.usage,
			"SigningAlgorithms": []string{"ECDSA_SHA_256"},
		}), http.StatusOK
	case "TrentService.Sign":
		digest, err := base64.StdEncoding.DecodeString(asked.Message)
		if err != nil || len(digest) != 32 || asked.MessageType != "DIGEST" || asked.SigningAlgorithm != "ECDSA_SHA_256" {
			return trouble("ValidationException", "not a digest")
		}
		of.Form = keystest.DER
		return text(map[string]any{"KeyId": arn, "Signature": d.key.Sign(chain.Hash(digest), of), "SigningAlgorithm": "ECDSA_SHA_256"}), http.StatusOK
	default:
		return trouble("UnknownOperationException", "no such operation")
	}
}

func contract(d *double) programtest.Case {
	return programtest.Case{
		Program: signer(), Double: &d.Double, Key: d.key, Name: arn, Unknown: strings.Replace(arn, "1234abcd", "00000000", 1),
		Throttled: keystest.Trouble{Status: 400, Body: `{"__type":"ThrottlingException","message":"Rate exceeded"}`},
		Refused:   keystest.Trouble{Status: 400, Body: `{"__type":"AccessDeniedException","Message":"User: arn:aws:iam::111122223333:user/x is not authorized to perform: kms:Sign"}`},
		Secrets:   keystest.Secrets{[]byte(secret), d.key.Secret},
	}
}

func TestContract(t *testing.T) {
	t.Run("P-256", func(t *testing.T) { programtest.Contract(t, contract(service(t, chain.P256))) })
	t.Run("secp256k1", func(t *testing.T) { programtest.Signs(t, contract(service(t, chain.Secp256k1))) })
}

// TestReal checks the contract against the real service.
func TestReal(t *testing.T) {
	programtest.Real(t, signer(), "WATCHTOWER_TEST_AWS_KMS_KEYS", os.Getenv("AWS_SECRET_ACCESS_KEY"), os.Getenv("AWS_SESSION_TOKEN"))
}

// A key of the right curve may have another purpose.
func TestOtherKindsOfKeys(t *testing.T) {
	d := service(t, chain.P256)
	d.usage = "KEY_AGREEMENT"
	contract(d).Fails(t, "not for SIGN_VERIFY", "-keys", arn)
}

// Errors of a failing or busy service are classified, and its requested pauses are respected.
func TestPauses(t *testing.T) {
	d := service(t, chain.P256)
	c := contract(d)
	for _, trouble := range []keystest.Trouble{
		{Status: 400, Body: `{"__type":"ThrottlingException"}`, Header: http.Header{"Retry-After": {"40"}}},
		{Status: 429, Header: http.Header{"Retry-After": {"40"}}},
		{Status: 503, Body: `{"__type":"DependencyTimeoutException"}`, Header: http.Header{"Retry-After": {"40"}}},
	} {
		c.Pauses(t, trouble, 40)
	}
}

func TestRegion(t *testing.T) {
	c := contract(service(t, chain.P256))
	t.Setenv("AWS_REGION", "")
	t.Setenv("AWS_DEFAULT_REGION", "")
	c.Fails(t, "no region", "-keys", c.Listed())
}
