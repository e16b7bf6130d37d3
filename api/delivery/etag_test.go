package delivery

import (
	"net/http"
	"testing"

	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
)

// The tag changes with each recorded event. A client that sends the current tag gets 304.
func TestETag(t *testing.T) {
	s := newStack(t)
	hash := s.submit(signed(t, newKey(t), testChain, 0))[0].TxHash
	target := "/v1/transactions/" + hash.String()
	first := s.get(target)
	tag := first.header.Get("ETag")
	if tag == "" || first.header.Get("Cache-Control") != "private, no-cache" {
		t.Fatalf("ETag %q, Cache-Control %q", tag, first.header.Get("Cache-Control"))
	}
	not := func(what, given string, want int) {
		t.Helper()
		res, err := s.send(http.MethodGet, target, nil, "If-None-Match", given)
		if err != nil {
			t.Fatal(err)
		}
		if res.status != want {
			t.Errorf("%s: answered %v", what, res)
		}
		if want == http.StatusNotModified && (len(res.body) > 0 || res.header.Get("ETag") != tag || res.header.Get("X-Request-Id") == "") {
			t.Errorf("%s: answered %v %q", what, res.header, res.body)
		}
	}
	not("the same", tag, http.StatusNotModified)
	not("the same, as a strong one", tag[2:], http.StatusNotModified)
	not("one of several", `"a", `+tag+` , W/"b"`, http.StatusNotModified)
	not("any", "*", http.StatusNotModified)
	not("another", `W/"1"`, http.StatusOK)
	not("none", "", http.StatusOK)

	s.catchUp() // the read model gives the same tag as the log
	not("folded", tag, http.StatusNotModified)
	s.handle(hash, tx.Report{Attempt: 1, At: testTime, Answers: []tx.Answer{{Endpoint: "a", Class: tx.Taken}}})
	s.catchUp()
	not("an earlier one", tag, http.StatusOK)
	if now := s.get(target).header.Get("ETag"); now == tag {
		t.Errorf("the tag did not change: %s", now)
	}

	// An answer after a wait has no tag.
	res := s.get(target + "?wait=accepted")
	if res.header.Get("ETag") != "" || res.header.Get("Cache-Control") != "no-store" {
		t.Errorf("%v", res.header)
	}
	// A problem has no tag.
	res = s.do(http.MethodGet, target+"?chainId=1", nil, "If-None-Match", "*")
	if res.status != http.StatusNotFound || res.header.Get("ETag") != "" {
		t.Errorf("%v %v", res, res.header)
	}
}
