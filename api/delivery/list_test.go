package delivery

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/crypto"

	"github.com/tempo-watchtower/watchtower/api/rest"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
)

type listed struct {
	Transactions []struct {
		TxHash  chain.Hash `json:"txHash"`
		Status  tx.Status  `json:"status"`
		Sender  string     `json:"sender"`
		GroupID string     `json:"groupId"`
		Gas     *uint64    `json:"gas"`
	} `json:"transactions"`
	NextCursor string `json:"nextCursor"`
	HasMore    bool   `json:"hasMore"`
}

// walk reads a list to its end by its links and by its cursors, which must agree.
func (s *stack) walk(query string, pageSize int) (hashes []chain.Hash) {
	s.t.Helper()
	target := "/v1/transactions?limit=" + fmt.Sprint(pageSize) + "&" + query
	for target != "" {
		res := s.get(target)
		var page listed
		unmarshal(s.t, res.body, &page)
		if res.status != http.StatusOK || len(page.Transactions) > pageSize || page.HasMore && len(page.Transactions) != pageSize {
			s.t.Fatalf("%s: %v", target, res)
		}
		for _, t := range page.Transactions {
			hashes = append(hashes, t.TxHash)
		}
		target = next(s.t, res)
		if (target != "") != page.HasMore || !strings.Contains(target, url.QueryEscape(page.NextCursor)) {
			s.t.Fatalf("%s: hasMore %v, nextCursor %q, next %q", query, page.HasMore, page.NextCursor, target)
		}
	}
	return hashes
}

func TestList(t *testing.T) {
	s := newStack(t)
	alice, bob := newKey(t), newKey(t)
	var all, ofAlice, ofBob, grouped, retried []chain.Hash // newest first
	group := ""
	add := func(raw []byte, into *[]chain.Hash) chain.Hash {
		res := s.submit(raw)[0]
		if !res.OK {
			t.Fatalf("%+v", res)
		}
		all = slices.Insert(all, 0, res.TxHash)
		*into = slices.Insert(*into, 0, res.TxHash)
		if res.GroupID != "" {
			group = res.GroupID
		}
		return res.TxHash
	}
	for i := range uint64(15) {
		add(signed(t, alice, testChain, i), &ofAlice)
		hash := add(signed(t, bob, testChain, i), &ofBob)
		if i%5 == 0 {
			s.handle(hash, tx.Report{Attempt: 1, At: testTime, Answers: []tx.Answer{{Endpoint: "a", Class: tx.Retry}}})
			retried = slices.Insert(retried, 0, hash)
		}
		if i == 7 {
			add(vectorNamed(t, "nkg1-ascii").raw(t), &grouped)
		}
	}
	s.catchUp()
	senderOf := func(hex string) string { return strings.ToUpper(strings.TrimPrefix(hex, "0x")) }
	byAlice := "sender=0x" + senderOf(crypto.PubkeyToAddress(alice.PublicKey).Hex())
	byBob := "sender=0x" + senderOf(crypto.PubkeyToAddress(bob.PublicKey).Hex())
	ungrouped := slices.DeleteFunc(slices.Clone(all), func(h chain.Hash) bool { return slices.Contains(grouped, h) })
	queued := slices.DeleteFunc(slices.Clone(all), func(h chain.Hash) bool { return slices.Contains(retried, h) })
	for _, tt := range []struct {
		query string
		want  []chain.Hash
	}{
		{"", all},
		{"chainId=42431", all},
		{"chainId=1", nil},
		{byAlice, ofAlice},
		{byBob, ofBob},
		{byBob + "&status=retry_scheduled", retried},
		{"status=retry_scheduled", retried},
		{"status=queued", queued},
		{"status=queued&status=retry_scheduled", all},
		{"status=executed", nil},
		{"groupId=" + group, grouped},
		{"groupId=0x" + strings.ToUpper(group[2:]), grouped},
		{"groupId=" + group + "&" + byBob, nil},
		{"ungrouped=true", ungrouped},
		{"ungrouped=false", all},
	} {
		for _, size := range []int{1, 7, 30, 31, 32, 1000} {
			if got := s.walk(tt.query, size); !slices.Equal(got, tt.want) {
				t.Errorf("%s in pages of %d: %d transactions, want %d in the order of their acceptance, newest first", tt.query, size, len(got), len(tt.want))
			}
		}
	}
	s.checkCursors(byAlice, byBob)
}

// checkCursors checks that a cursor is valid only for its list.
func (s *stack) checkCursors(byAlice, byBob string) {
	t := s.t
	t.Helper()
	var page listed
	unmarshal(t, s.get("/v1/transactions?limit=2&"+byAlice).body, &page)
	if len(page.Transactions) != 2 || page.Transactions[0].Gas != nil || page.NextCursor == "" {
		t.Fatalf("page: %+v", page)
	}
	with := func(q string) response {
		return s.get("/v1/transactions?cursor=" + url.QueryEscape(page.NextCursor) + "&" + q)
	}
	if res := with(byAlice + "&limit=500"); res.status != http.StatusOK {
		t.Errorf("with another limit: %v", res)
	}
	for _, q := range []string{"", byBob, byAlice + "&status=queued", byAlice + "&chainId=42431", byAlice + "&ungrouped=true"} {
		wantProblem(t, "cursor with "+q, with(q), http.StatusBadRequest, rest.ErrInvalidCursor)
	}
	other := newStack(t, func(c *Config) { c.CursorKey = []byte(strings.Repeat("k", rest.CursorKeyBytes)) })
	wantProblem(t, "another service's cursor", other.get("/v1/transactions?"+byAlice+"&cursor="+url.QueryEscape(page.NextCursor)), 400, rest.ErrInvalidCursor)
}
