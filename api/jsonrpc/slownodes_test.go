package jsonrpc

import (
	"encoding/json"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tempo-watchtower/watchtower/api/delivery"
	"github.com/tempo-watchtower/watchtower/api/rest"
)

// Reads of one client that wait for slow nodes hold a quarter of the connections.
func TestSlowNodesKeepNobodyOut(t *testing.T) {
	const connections, share, all = 40, 10, 30
	s := newStack(t, func(c *Config, public *delivery.Config) {
		c.Limits.CallTimeout = time.Hour
		public.Limits.Connections, public.Rates.Address = connections, rest.Rate{PerSecond: 1000, Burst: 1000}
	})
	answer := make(chan struct{}) // closed: the node answers
	answers := sync.OnceFunc(func() { close(answer) })
	defer answers()
	s.node.does("eth_call", func(json.RawMessage, int64) (json.RawMessage, error) {
		<-answer
		return json.RawMessage(`"0x"`), nil
	})
	statuses := make(chan int, all)
	for range all {
		go func() {
			body := strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"eth_call","params":[{}]}`)
			req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.url+"/rpc", body)
			if err != nil {
				t.Error(err)
				return
			}
			req.Header.Set("Content-Type", "application/json")
			res, err := http.DefaultClient.Do(req)
			if err != nil {
				statuses <- 0
				return
			}
			res.Body.Close() //nolint:errcheck,gosec // nobody reads it
			statuses <- res.StatusCode
		}()
	}
	deadline := time.After(30 * time.Second)
	for i := range all {
		want := http.StatusTooManyRequests
		if i >= all-share {
			want = http.StatusOK
		}
		if i == all-share {
			answers()
		}
		select {
		case status := <-statuses:
			if status != want {
				t.Errorf("answer %d: status %d, want %d", i, status, want)
			}
		case <-deadline:
			t.Fatalf("%d calls of one client wait for a node", all-i)
		}
	}
}
