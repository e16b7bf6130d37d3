package tempo_test

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/infra/chain/tempo"
)

// vector is one signed transaction of testdata/vectors.json with its expected results. They
// come from how it was made; meta names the tools, and the other programs that agree.
type vector struct {
	Name, Expect, Stage, TxType, SignatureType string
	ChainID                                    chain.ID
	Sender, FeePayer, AccessKey                *chain.Address
	NonceKey                                   chain.NonceKey
	Nonce                                      string
	ValidAfter, ValidBefore                    *uint64
	GroupID                                    *chain.GroupID
	NKG1                                       *string
	Calls                                      int
	Raw                                        string
	Hash                                       *chain.Hash
	Canonical                                  *bool
}

type cancelAuth struct {
	Name, Authorization, Expect, Reason string
	Sender                              chain.Address
	GroupID                             chain.GroupID
	NonceKey                            chain.NonceKey
	Hash                                chain.Hash
}

func load(t testing.TB) (file struct {
	Vectors    []vector
	CancelAuth []cancelAuth
}) {
	t.Helper()
	b, err := os.ReadFile("testdata/vectors.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(b, &file); err != nil {
		t.Fatal(err)
	}
	return file
}

// ours reports whether this package decodes the bytes: all but bytes that begin like an
// Ethereum transaction.
func (v vector) ours() bool {
	switch v.TxType {
	case "0x00", "0x01", "0x02", "0x03", "0x04":
		return false
	}
	return true
}

func (v vector) bytes(t testing.TB) []byte { return unhex(t, v.Raw) }

func unhex(t testing.TB, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.TrimPrefix(s, "0x"))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// faults is the expected fault of each invalid vector.
var faults = map[string]chain.Fault{
	"trunc":                 chain.FaultRLP,
	"trailing":              chain.FaultTrailing,
	"unsigned-13":           chain.FaultRLP,
	"no-calls":              chain.FaultInvalid,
	"create-second":         chain.FaultInvalid,
	"window":                chain.FaultInvalid,
	"secp-high-s":           chain.FaultSignature,
	"sig-v-2":               chain.FaultSignature,
	"p256-high-s":           chain.FaultSignature,
	"p256-tampered":         chain.FaultSignature,
	"p256-129":              chain.FaultSignature,
	"wa-challenge":          chain.FaultSignature,
	"wa-type":               chain.FaultSignature,
	"wa-flags":              chain.FaultSignature,
	"wa-dup-type":           chain.FaultSignature,
	"wa-key-case":           chain.FaultSignature,
	"wa-escaped-type":       chain.FaultSignature,
	"wa-trailing":           chain.FaultSignature,
	"wa-padded-challenge":   chain.FaultSignature,
	"wa-too-long":           chain.FaultSignature,
	"sig-type-05":           chain.FaultSignature,
	"keychain-nested":       chain.FaultSignature,
	"fee-payer-marker":      chain.FaultFeePayer,
	"fee-payer-format":      chain.FaultType,
	"fee-payer-bad-r":       chain.FaultFeePayer,
	"fee-payer-high-s":      chain.FaultFeePayer,
	"nonminimal-int":        chain.FaultNonCanonical,
	"nonce-9-bytes":         chain.FaultOverflow,
	"extra-field":           chain.FaultRLP,
	"keyauth-trailing-null": chain.FaultNonCanonical,
	"type-7f":               chain.FaultType,
	"empty":                 chain.FaultRLP,
}

func TestVectors(t *testing.T) {
	valid, invalid := 0, 0
	for _, v := range load(t).Vectors {
		if !v.ours() {
			continue
		}
		// A decoder does not check whether a window has closed.
		if v.Expect == "valid" || v.Stage == "expired" {
			valid++
			t.Run(v.Name, func(t *testing.T) { checkValid(t, v) })
		} else {
			invalid++
			t.Run(v.Name, func(t *testing.T) { checkFault(t, v.bytes(t), faults[v.Name]) })
		}
	}
	if valid != 41 || invalid != len(faults) {
		t.Errorf("saw %d valid and %d invalid vectors, want 41 and %d", valid, invalid, len(faults))
	}
}

func checkValid(t *testing.T, v vector) {
	raw := v.bytes(t)
	got, err := tempo.Decode(raw)
	if err != nil {
		t.Fatal(err)
	}
	nonce, err := strconv.ParseUint(v.Nonce, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	kind, accessKind := chain.SignatureKind(v.SignatureType), chain.SignatureKind("")
	if version, inner, keychain := strings.Cut(v.SignatureType, ":"); keychain && strings.HasPrefix(version, "keychain") {
		kind, accessKind = chain.Keychain, chain.SignatureKind(inner)
	}
	want := chain.Signed{
		Chain: v.ChainID, Type: tempo.Type, Sender: *v.Sender, Signature: kind,
		AccessKey: v.AccessKey, AccessKind: accessKind, FeePayer: v.FeePayer, NonceKey: v.NonceKey, Nonce: nonce,
		Window: chain.Window{After: value(v.ValidAfter), Before: value(v.ValidBefore)},
	}
	if v.Name == "key-auth-keychain" { // the account's key authorizes the key that signs
		want.Authorized, want.AuthorizedUntil = true, 1_924_992_000
	}
	if want.Hash = chain.Keccak(raw); v.Hash != nil { // the expired vector has no hash
		want.Hash = *v.Hash
	}
	calls := len(got.Calls)
	got.FeeToken, got.Gas, got.MaxFee, got.MaxPriorityFee, got.Calls = nil, 0, nil, nil, nil
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("wrong (-want +got):\n%s", diff)
	}
	if calls != v.Calls {
		t.Errorf("%d calls, want %d", calls, v.Calls)
	}
	if canonical := chain.Keccak(raw) == got.Hash; v.Canonical != nil && canonical != *v.Canonical {
		t.Errorf("canonical is %v, want %v", canonical, *v.Canonical)
	}
	checkGroup(t, v, got.NonceKey)
}

func checkGroup(t *testing.T, v vector, key chain.NonceKey) {
	explicit, ok := key.Explicit()
	if ok != (v.GroupID != nil) || ok != (v.NKG1 != nil) {
		t.Fatalf("explicit is %v, want group %v shown as %v", ok, v.GroupID, v.NKG1)
	}
	if ok && (key.Group() != *v.GroupID || explicit.String() != *v.NKG1) {
		t.Errorf("group %s shown as %q, want %s shown as %q", key.Group(), explicit, v.GroupID, *v.NKG1)
	}
}

func checkFault(t *testing.T, raw []byte, want chain.Fault) {
	t.Helper()
	signed, err := tempo.Decode(raw)
	var malformed *chain.Malformed
	if !errors.As(err, &malformed) || malformed.Fault != want {
		t.Errorf("error is %v, want fault %q", err, want)
	}
	if diff := cmp.Diff(chain.Signed{}, signed); diff != "" {
		t.Errorf("refused, but (-zero +got):\n%s", diff)
	}
}

func value(n *uint64) uint64 {
	if n == nil {
		return 0
	}
	return *n
}

// The sender authorises a group's cancellation by a primitive signature over the hash of the
// group id.
func TestCancelAuthorisations(t *testing.T) {
	cases := load(t).CancelAuth
	for _, c := range cases {
		t.Run(c.Name, func(t *testing.T) {
			group := c.NonceKey.Group()
			digest := chain.Keccak(group[:])
			if group != c.GroupID || digest != c.Hash {
				t.Fatalf("group %s, digest %s; want %s, %s", group, digest, c.GroupID, c.Hash)
			}
			sig := unhex(t, strings.TrimPrefix(c.Authorization, "Signature "))
			account, kind, err := tempo.VerifyPrimitive(sig, digest)
			if accepted := err == nil && account == c.Sender; accepted != (c.Expect == "valid") {
				t.Errorf("%s by %s key, error %v; want %s (%s)", account, kind, err, c.Expect, c.Reason)
			}
			var malformed *chain.Malformed
			if err != nil && (!errors.As(err, &malformed) || malformed.Fault != chain.FaultSignature) {
				t.Errorf("error is %v, want a signature fault", err)
			}
		})
	}
	if len(cases) != 24 {
		t.Errorf("%d cases, want 24", len(cases))
	}
}
