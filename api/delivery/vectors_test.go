package delivery

import (
	"encoding/hex"
	"encoding/json"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/tempo-watchtower/watchtower/domain/chain"
)

// vector is a transaction that independent programs made and judged.
type vector struct {
	Name, Expect         string
	Stage                *string
	ChainID              uint64
	Sender, FeePayer     *string
	SignatureType        *string
	NonceKey             string
	Nonce                string
	ValidAfter           *uint64
	ValidBefore          *uint64
	GroupID, NKG1        *string
	Raw, Hash, AccessKey *string
}

func vectors(t testing.TB) []vector {
	t.Helper()
	text, err := os.ReadFile("../../infra/chain/tempo/testdata/vectors.json")
	if err != nil {
		t.Fatal(err)
	}
	var all struct{ Vectors []vector }
	unmarshal(t, text, &all)
	if len(all.Vectors) == 0 {
		t.Fatal("there are no vectors")
	}
	return all.Vectors
}

func vectorNamed(t testing.TB, name string) vector {
	t.Helper()
	for _, v := range vectors(t) {
		if v.Name == name {
			return v
		}
	}
	t.Fatalf("no vector %s", name)
	return vector{}
}

func (v vector) raw(t testing.TB) []byte {
	t.Helper()
	raw, err := hex.DecodeString(strings.TrimPrefix(*v.Raw, "0x"))
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// Row 65, and every vector: the answers to submitting and reading match the vector.
func TestVectors(t *testing.T) {
	s := newStack(t)
	for _, v := range vectors(t) {
		t.Run(v.Name, func(t *testing.T) {
			res := s.do(http.MethodPost, "/v1/transactions", submissionOf(v.ChainID, v.raw(t)))
			var out struct{ Results []result }
			unmarshal(t, res.body, &out)
			if len(out.Results) != 1 {
				t.Fatalf("answered %v", res)
			}
			got := out.Results[0]
			if v.Expect != "valid" {
				code := "invalid-transaction"
				if v.Stage != nil && *v.Stage == "expired" {
					code = "already-expired"
				}
				if got.OK || got.Problem.Code != code || got.Problem.Status != 422 {
					t.Errorf("answered %s", res.body)
				}
				return
			}
			if !got.OK || got.TxHash.String() != *v.Hash || !strings.EqualFold(got.Sender, *v.Sender) {
				t.Fatalf("answered %s", res.body)
			}
			key, err := chain.ParseNonceKey(v.NonceKey)
			if err != nil || got.NonceKey != key.String() || number(got.Nonce) != v.Nonce || got.GroupID != text(v.GroupID) {
				t.Errorf("answered %s, %v", res.body, err)
			}
			v.check(t, s.one(got.TxHash))
		})
	}
}

// check compares a shown transaction with its vector.
func (v vector) check(t testing.TB, shown object) {
	t.Helper()
	quoted := func(p *string) string {
		if p == nil {
			return "null"
		}
		return `"` + strings.ToLower(*p) + `"`
	}
	seconds := func(p *uint64) string {
		if p == nil {
			return "null"
		}
		return number(*p)
	}
	wantMembers(t, shown, map[string]string{
		"chainId": number(v.ChainID), "sender": quoted(v.Sender), "feePayer": quoted(v.FeePayer), "accessKey": quoted(v.AccessKey),
		"nonce": v.Nonce, "groupId": quoted(v.GroupID), "status": `"queued"`,
		"validAfter": seconds(v.ValidAfter), "validBefore": seconds(v.ValidBefore), "expiresAt": seconds(v.ValidBefore),
	})
	if parts, ok := shown["nonceKeyInfo"].(object); ok != (v.NKG1 != nil) {
		t.Errorf("nonceKeyInfo is %v", parts)
	} else if ok {
		line := "kind=" + parts["kind"].(string) + ", scope=" + parts["scope"].(string) + ", group=" + parts["group"].(string) + ", memo=" + parts["memo"].(string)
		if line != *v.NKG1 {
			t.Errorf("nonceKeyInfo is %s, want %s", line, *v.NKG1)
		}
	}
	if calls, _ := shown["calls"].([]any); len(calls) == 0 || shown["gas"] == nil {
		t.Errorf("calls %v, gas %v", shown["calls"], shown["gas"])
	}
}

func number(n uint64) string {
	b, _ := json.Marshal(n)
	return string(b)
}

func text(s *string) string {
	if s == nil {
		return ""
	}
	return strings.ToLower(*s)
}
