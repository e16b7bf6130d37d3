package jsonrpc

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/tempo-watchtower/watchtower/api"
)

// batchOf is a batch of n calls that the node answers.
func batchOf(n int) string {
	const call = `{"jsonrpc":"2.0","id":1,"method":"eth_blockNumber","params":[]}`
	return "[" + strings.TrimSuffix(strings.Repeat(call+",", n), ",") + "]"
}

// count returns the number of calls that reached the node.
func (n *node) count() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return len(n.asked)
}

// TestBatchIsCharged: a batch costs at least its calls. A client with 20 at once gets one
// batch of 12, is refused the second, and none of the second's calls reaches the node.
func TestBatchIsCharged(t *testing.T) {
	now := time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC) // stands still, so nothing is refilled
	s := newStack(t, func(_ *Config, c *api.Config) {
		c.Rates.Address = api.Rate{PerSecond: 1, Burst: 20}
		c.Now = func() time.Time { return now }
	})
	s.node.says("eth_blockNumber", `"0x10"`)
	if status, answer, _ := s.post("/rpc", batchOf(12)); status != http.StatusOK || strings.Count(answer, `"result":"0x10"`) != 12 {
		t.Fatalf("the first batch: %d %s", status, answer)
	}
	if asked := s.node.count(); asked != 12 {
		t.Fatalf("the node was asked %d times", asked)
	}
	status, answer, header := s.post("/rpc", batchOf(12))
	if status != http.StatusTooManyRequests || header.Get("Retry-After") == "" {
		t.Errorf("the second batch: %d %s, Retry-After %q", status, answer, header.Get("Retry-After"))
	}
	if asked := s.node.count(); asked != 12 {
		t.Errorf("%d calls of a batch that was refused reached the node", asked-12)
	}
	// A batch of more calls than the burst is refused for good.
	if status, answer, _ = s.post("/rpc", batchOf(21)); status/100 != 4 || strings.Contains(answer, `"result"`) {
		t.Errorf("a batch above the burst: %d %s", status, answer)
	}
}
