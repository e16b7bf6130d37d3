package delivery

import (
	"bytes"
	"net/http"
	"strings"
	"testing"

	"github.com/tempo-watchtower/watchtower/api/rest"
	"github.com/tempo-watchtower/watchtower/commands"
)

// A chain is named by its number or by CAIP-2, in bodies and in filters. Answers have the number.
func TestChainsByCAIP2(t *testing.T) {
	s := newStack(t)
	body := submissionOf(testChain, signed(t, newKey(t), testChain, 0))
	named := bytes.Replace(body, []byte(`"chainId":42431`), []byte(`"chainId":"eip155:42431"`), 1)
	first, again := s.do(http.MethodPost, "/v1/transactions", named), s.do(http.MethodPost, "/v1/transactions", body)
	var one, two struct{ Results []result }
	unmarshal(t, first.body, &one)
	unmarshal(t, again.body, &two)
	if first.status != 200 || !one.Results[0].OK || !two.Results[0].AlreadyKnown || one.Results[0].TxHash != two.Results[0].TxHash {
		t.Fatalf("%s, then %s", first.body, again.body)
	}
	s.catchUp()
	at := "/v1/transactions/" + one.Results[0].TxHash.String()
	for _, target := range []string{at, at + "/events", "/v1/transactions"} {
		byNumber := s.get(target + "?chainId=42431")
		for _, name := range []string{"eip155:42431", "eip155%3A42431"} {
			if byName := s.get(target + "?chainId=" + name); byName.status != byNumber.status || !bytes.Equal(byName.body, byNumber.body) {
				t.Errorf("%s: %s, by number %s", target, byName.body, byNumber.body)
			}
		}
		for _, bad := range []string{"near:testnet", "eip155:", "eip155:042431", "EIP155:1", "eip155:x"} {
			wantProblem(t, target+" "+bad, s.get(target+"?chainId="+bad), 400, rest.ErrInvalidFilter)
		}
	}
	if !bytes.Contains(s.get(at).body, []byte(`"chainId":42431,`)) {
		t.Error("the answer has no number")
	}
	for name, want := range map[string]struct {
		status int
		code   error
	}{
		`"near:testnet"`: {422, commands.ErrUnsupportedChain}, `"eip155:5"`: {422, commands.ErrUnsupportedChain}, `"42431"`: {400, rest.ErrInvalidRequest},
		`"eip155:0"`: {400, rest.ErrInvalidRequest}, `"near:"`: {400, rest.ErrInvalidRequest}, `""`: {400, rest.ErrInvalidRequest}, `["eip155:1"]`: {400, rest.ErrInvalidRequest},
	} {
		res := s.do(http.MethodPost, "/v1/transactions", bytes.Replace(body, []byte(`"chainId":42431`), []byte(`"chainId":`+name), 1))
		if res.status != want.status || want.code != nil && !strings.Contains(string(res.body), `"code":"`+want.code.Error()+`"`) {
			t.Errorf("%s answered %d %s", name, res.status, res.body)
		}
	}
}
