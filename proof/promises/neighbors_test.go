package promises_test

import (
	"encoding/hex"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/proof/promises"
)

func TestUndisturbed(t *testing.T) {
	life := func(change func(*promises.Life)) promises.Life {
		l := promises.Life{
			Ends: map[string]string{"payment 1": "executed"}, Answers: map[string]string{"request 1": "200"},
			Executed: []string{"payment 1"}, Sends: []time.Duration{time.Second, 2 * time.Second}, Submits: []time.Duration{3 * time.Second},
		}
		change(&l)
		return l
	}
	alone := life(func(*promises.Life) {})
	for name, tt := range map[string]struct {
		change func(*promises.Life)
		says   string // empty: no violation
	}{
		"same":           {func(*promises.Life) {}, ""},
		"within share":   {func(l *promises.Life) { l.Sends[1] = 5 * time.Second }, ""},
		"late":           {func(l *promises.Life) { l.Sends[1] = 5*time.Second + 1 }, "from eligible to the first send"},
		"late intent":    {func(l *promises.Life) { l.Submits[0] = 8 * time.Second }, "from accepted to submitted"},
		"other end":      {func(l *promises.Life) { l.Ends["payment 1"] = "expired" }, `"executed" without`},
		"an end more":    {func(l *promises.Life) { l.Ends["payment 2"] = "expired" }, `payment 2 is ""`},
		"an end less":    {func(l *promises.Life) { l.Ends = nil }, `"" with`},
		"other answer":   {func(l *promises.Life) { l.Answers["request 1"] = "429" }, "the answer of request 1"},
		"executed less":  {func(l *promises.Life) { l.Executed = nil }, "the chain executes 1"},
		"executed other": {func(l *promises.Life) { l.Executed[0] = "payment 7" }, "the chain executes 1"},
	} {
		got := promises.Undisturbed(alone, life(tt.change), time.Second)
		switch {
		case tt.says == "" && len(got) > 0:
			t.Errorf("%s: %v", name, got)
		case tt.says != "" && (len(got) != 1 || got[0].Promise != promises.P36 || !strings.Contains(got[0].Evidence, tt.says)):
			t.Errorf("%s: %v", name, got)
		}
	}
	if got := promises.Undisturbed(promises.Life{}, alone, time.Minute); len(got) != 3 {
		t.Errorf("of a client that was not there: %v", got)
	}
}

func TestPercentile(t *testing.T) {
	var all []time.Duration
	if got := promises.Percentile(all, 99); got != 0 {
		t.Errorf("of none: %s", got)
	}
	for i := range 200 {
		all = append(all, time.Duration(200-i))
	}
	for percent, want := range map[int]time.Duration{1: 2, 50: 100, 99: 198, 100: 200} {
		if got := promises.Percentile(all, percent); got != want {
			t.Errorf("%d in a hundred: %d, want %d", percent, got, want)
		}
	}
}

func TestSecrets(t *testing.T) {
	hash := chain.Keccak([]byte("mine"))
	raw := append([]byte("the same beginning of all "), hash[:]...)
	for name, tt := range map[string]struct {
		shown  promises.Shown
		broken bool
	}{
		"nothing":             {promises.Shown{Client: "b", Body: []byte(`{"transactions":[]}`)}, false},
		"own":                 {promises.Shown{Client: "a", Body: []byte(hash.String())}, false},
		"another's hash":      {promises.Shown{Client: "b", Body: []byte(`{"txHash":"` + hash.String() + `"}`)}, true},
		"in capitals":         {promises.Shown{Client: "b", Body: []byte(strings.ToUpper(hash.String()))}, true},
		"its own words":       {promises.Shown{Client: "b", Request: "/v1/transactions/" + hash.String(), Body: []byte(hash.String())}, false},
		"cut short":           {promises.Shown{Client: "b", Body: []byte(hash.String()[:60])}, false},
		"a node's, too early": {promises.Shown{Client: "b", Body: []byte(hash.String()), Node: true}, true},
		"asked for":           {promises.Shown{Client: "b", Foreign: hash[:], Status: http.StatusOK}, true},
		"forbidden":           {promises.Shown{Client: "b", Foreign: hash[:], Status: http.StatusForbidden}, true},
		"not there":           {promises.Shown{Client: "b", Foreign: hash[:], Status: http.StatusNotFound}, false},
		"too often":           {promises.Shown{Client: "b", Foreign: hash[:], Status: http.StatusTooManyRequests}, false},
		"own, asked for":      {promises.Shown{Client: "a", Foreign: hash[:], Status: http.StatusOK}, false},
		"unknown, asked for":  {promises.Shown{Client: "b", Foreign: make([]byte, 32), Status: http.StatusOK}, false},
	} {
		var s promises.Secrets
		s.Keep("a", "transaction", hash[:])
		if got := s.Shown(tt.shown); (len(got) > 0) != tt.broken {
			t.Errorf("%s: %v", name, got)
		}
	}
	var s promises.Secrets
	s.Keep("a", "transaction", hash[:])
	s.Publish(hash[:])
	s.Publish([]byte("short"))
	s.Publish(make([]byte, 32))
	for node, broken := range map[bool]bool{true: false, false: true} {
		if got := s.Shown(promises.Shown{Client: "b", Body: []byte(hash.String()), Node: node}); (len(got) > 0) != broken {
			t.Errorf("public, shown by a node %t: %v", node, got)
		}
	}
	s.Keep("b", "transaction", hash[:])
	if got := s.Shown(promises.Shown{Client: "b", Body: []byte(hash.String())}); len(got) > 0 {
		t.Errorf("handed in by both: %v", got)
	}
	s = promises.Secrets{}
	s.Keep("a", "signed bytes", raw)
	other := append([]byte("the same beginning of all "), make([]byte, 32)...)
	if got := s.Shown(promises.Shown{Client: "b", Body: []byte("0x" + hex.EncodeToString(other))}); len(got) > 0 {
		t.Errorf("bytes that begin alike: %v", got)
	}
	if got := s.Shown(promises.Shown{Client: "b", Body: []byte("0x" + hex.EncodeToString(raw) + "00")}); len(got) != 1 {
		t.Errorf("bytes within others: %v", got)
	}
	if cases := s.Cases(); cases[promises.P36] != 2 {
		t.Errorf("%d cases", cases[promises.P36])
	}
	defer func() {
		if recover() == nil {
			t.Error("a secret that is too short was kept")
		}
	}()
	s.Keep("a", "counter", make([]byte, 8))
}
