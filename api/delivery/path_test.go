package delivery

import (
	"net/http"
	"strings"
	"testing"
)

// ask sends a GET with the target unchanged; net/http's client would clean it.
func (s *stack) ask(target string) response {
	s.t.Helper()
	answers, _ := s.raw(get(target), patience)
	if len(answers) != 1 {
		s.t.Fatalf("GET %.100s: answers %v", target, answers)
	}
	return answers[0]
}

// Well-formed parameters are accepted, in any case and order.
func TestParameters(t *testing.T) {
	s := newStack(t)
	for _, q := range []string{
		"", "limit=1", "limit=1000", "sender=0x" + strings.ToUpper(someone[2:]), "status=queued&status=queued&status=expired",
		"ungrouped=false&groupId=" + someGroup, "ungrouped=true", "chainId=18446744073709551615",
	} {
		if res := s.get("/v1/transactions?" + q); res.status != http.StatusOK || string(res.body) != `{"transactions":[],"hasMore":false}`+"\n" {
			t.Errorf("%s: %v", q, res)
		}
	}
}
