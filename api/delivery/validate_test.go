package delivery

import (
	"errors"
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tempo-watchtower/watchtower/api/rest"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/payload"
)

// Validating answers like submitting, and stores nothing.
func TestValidateOnly(t *testing.T) {
	s := newStack(t, func(c *Config) {
		c.Submitted = func(outcome string) { t.Errorf("counted as %s", outcome) }
	})
	key := newKey(t)
	raws := [][]byte{
		signed(t, key, testChain, 0), []byte("nonsense"), signed(t, key, 1, 0), // of another chain
		signed(t, key, testChain, 1), signed(t, key, testChain, 1),
	}
	validate := func() []object {
		t.Helper()
		res := s.do(http.MethodPost, "/v1/transactions?validate=only", submissionOf(testChain, raws...))
		if res.status != http.StatusOK {
			t.Fatalf("answered %v", res)
		}
		var out struct{ Results []object }
		unmarshal(t, res.body, &out)
		for i, r := range out.Results {
			if ok := r["ok"].(bool); ok != (r["validateOnly"] == true) {
				t.Errorf("result %d: %v", i, r)
			}
		}
		return out.Results
	}
	looked := validate()
	for i, r := range looked {
		if r["status"] != nil {
			t.Errorf("result %d has a status: %v", i, r)
		}
	}
	if events := s.recorded(); len(events) != 0 {
		t.Fatalf("%d events", len(events))
	}
	if _, err := s.db.Payloads().Get(t.Context(), testChain, chain.Keccak(raws[0])); !errors.Is(err, payload.ErrGone) {
		t.Errorf("bytes were kept: %v", err)
	}

	submitted := newStack(t)
	res := submitted.do(http.MethodPost, "/v1/transactions", submissionOf(testChain, raws...))
	var out struct{ Results []object }
	unmarshal(t, res.body, &out)
	for i, taken := range out.Results {
		delete(taken, "status")
		delete(looked[i], "validateOnly")
		for _, r := range []object{taken, looked[i]} {
			if p, ok := r["problem"].(object); ok {
				delete(p, "requestId")
			}
		}
		if diff := cmp.Diff(taken, looked[i]); diff != "" {
			t.Errorf("result %d: submitted (-), validated (+):\n%s", i, diff)
		}
	}
}

// A transaction that was accepted before is known, with its status.
func TestValidateKnown(t *testing.T) {
	s := newStack(t)
	raw := signed(t, newKey(t), testChain, 0)
	s.submit(raw)
	res := s.do(http.MethodPost, "/v1/transactions?validate=only", submissionOf(testChain, raw))
	var out struct{ Results []object }
	unmarshal(t, res.body, &out)
	wantMembers(t, out.Results[0], map[string]string{"ok": "true", "alreadyKnown": "true", "status": `"queued"`, "validateOnly": "true"})
	for _, q := range []string{"validate=", "validate=true", "validate=only&validate=only", "validate=only&wait=executed"} {
		res := s.do(http.MethodPost, "/v1/transactions?"+q, submissionOf(testChain, raw))
		wantProblem(t, q, res, http.StatusBadRequest, rest.ErrInvalidFilter)
	}
	res = s.do(http.MethodPost, "/v1/transactions?validate=only", submissionOf(99, raw))
	wantProblem(t, "another chain", res, http.StatusUnprocessableEntity, "unsupported-chain")
}
