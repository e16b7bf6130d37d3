package jsonrpc

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"

	"github.com/tempo-watchtower/watchtower/api/delivery"
	"github.com/tempo-watchtower/watchtower/api/rest"
	"github.com/tempo-watchtower/watchtower/commands"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/payload"
	"github.com/tempo-watchtower/watchtower/infra/chain/ethereum"
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
	s := newStack(t, func(_ *Config, c *delivery.Config) {
		c.Rates.Address = rest.Rate{PerSecond: 1, Burst: 20}
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

// large signs a transaction with much data.
func large(t *testing.T) ([]byte, chain.Hash) {
	t.Helper()
	signedTx, err := types.SignNewTx(testKey(), types.LatestSignerForChainID(big.NewInt(testChain)), &types.DynamicFeeTx{
		ChainID: big.NewInt(testChain), GasTipCap: big.NewInt(1), GasFeeCap: big.NewInt(100), Gas: 10_000_000, To: &common.Address{0x77}, Data: make([]byte, 100<<10),
	})
	check(t, err)
	raw, err := signedTx.MarshalBinary()
	check(t, err)
	return raw, chain.Hash(signedTx.Hash())
}

// pendingOf is n calls for a transaction.
func pendingOf(hash chain.Hash, n int) string {
	one := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"eth_getTransactionByHash","params":["%s"]}`, hash)
	if n == 1 {
		return one
	}
	return "[" + strings.TrimSuffix(strings.Repeat(one+",", n), ",") + "]"
}

// A call that shows a waiting transaction is charged for the bytes that it reads or answers with, as
// GET /v1/transactions/{hash} is, and each call of a batch by itself.
func TestPendingIsCharged(t *testing.T) {
	const unit, burst = 16 << 10, 200
	var hours atomic.Int64
	var broken atomic.Bool
	s := newStack(t, func(c *Config, public *delivery.Config) {
		public.Rates.Address = rest.Rate{PerSecond: 1, Burst: burst}
		public.Now = func() time.Time {
			return time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC).Add(time.Duration(hours.Load()) * time.Hour)
		}
		c.Fields = func(raw []byte) (map[string]any, error) {
			if broken.Load() {
				return nil, errors.New("broken")
			}
			return ethereum.Fields(raw)
		}
	})
	raw, hash := large(t)
	s.call("eth_sendRawTransaction", hexParam(raw))
	one, reading := 13, (len(raw)+unit-1)/unit // 100 KiB are 200 KiB of hex
	for _, c := range []struct {
		calls, units int
		broken       bool
	}{{1, one, false}, {2, 2 * one, false}, {10, 10 * one, false}, {1, reading, true}} {
		hours.Add(1)
		broken.Store(c.broken)
		status, answer, header := s.post("/rpc", pendingOf(hash, c.calls))
		want := c.calls
		if c.broken {
			want = 0
		}
		if shown := strings.Count(answer, `"input":"0x000`); status != http.StatusOK || shown != want {
			t.Errorf("%d calls answered %d, and showed %d transactions, want %d", c.calls, status, shown, want)
		}
		if got, want := header.Get("RateLimit"), fmt.Sprintf(`"address";r=%d;t=%d`, burst-c.units, c.units); got != want {
			t.Errorf("%d calls: RateLimit %s, want %s", c.calls, got, want)
		}
	}
	broken.Store(false)
	hours.Add(1)
	s.post("/rpc", pendingOf(hash, 16)) // more than the burst
	if status, _, header := s.post("/rpc", batchOf(1)); status != http.StatusTooManyRequests || header.Get("Retry-After") != fmt.Sprint(16*one-burst+1) {
		t.Errorf("the next request: %d, Retry-After %s", status, header.Get("Retry-After"))
	}
}

// countedRows is a vault that counts its reads.
type countedRows struct {
	commands.PayloadRows
	read func()
}

func (c countedRows) Get(ctx context.Context, id chain.ID, hash chain.Hash) (payload.Sealed, error) {
	row, err := c.PayloadRows.Get(ctx, id, hash)
	c.read()
	return row, err
}

// Calls that show waiting transactions decode them in the places of GET /v1/transactions/{hash}: one
// client's requests decode one transaction at a time, in both interfaces together. While they wait
// for a place, they have not read the bytes.
func TestPendingTakesPlaces(t *testing.T) {
	const calls = 7
	var reads, decoding, most atomic.Int64
	var watching atomic.Bool
	first, end := make(chan struct{}), make(chan struct{}) // the first decodes; it may end
	decode := func() (leave func()) {
		n := decoding.Add(1)
		for seen := most.Load(); n > seen && !most.CompareAndSwap(seen, n); seen = most.Load() {
		}
		return func() { decoding.Add(-1) }
	}
	s := newStack(t, func(c *Config, public *delivery.Config) {
		c.Limits.CallTimeout, public.Limits.WorkTimeout = time.Second, time.Second
		c.Submit.Decoders[testChain] = func(raw []byte) (chain.Signed, error) {
			defer decode()()
			if watching.CompareAndSwap(true, false) {
				close(first)
				<-end
			}
			return ethereum.Decode(raw)
		}
		c.Fields = func(raw []byte) (map[string]any, error) { defer decode()(); return ethereum.Fields(raw) }
		c.Submit.Vault.Rows = countedRows{c.Submit.Vault.Rows, func() { reads.Add(1) }}
	})
	raw, hash := signed(t, testChain, 0)
	s.call("eth_sendRawTransaction", hexParam(raw))
	watching.Store(true)
	reads.Store(0)
	get := func() (string, error) {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.url+"/v1/transactions/"+hash.String(), http.NoBody)
		if err != nil {
			return "", err
		}
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			return "", err
		}
		defer res.Body.Close() //nolint:errcheck // read to its end
		text, err := io.ReadAll(res.Body)
		return string(text), err
	}
	shown := make(chan error, 1)
	go func() {
		_, err := get()
		shown <- err
	}()
	<-first
	oneRead := func() {
		t.Helper()
		if n := reads.Load(); n != 1 {
			t.Errorf("the bytes of %d transactions are read while one is decoded", n)
		}
	}
	if status, answer, _ := s.post("/rpc", pendingOf(hash, calls)); status != http.StatusOK || strings.Contains(answer, `"input":`) {
		t.Errorf("calls without a place: %d %s", status, answer)
	}
	oneRead()
	if answer, err := get(); err != nil || strings.Contains(answer, `"input":`) {
		t.Errorf("a read without a place: %s %v", answer, err)
	}
	oneRead()
	close(end)
	check(t, <-shown)
	if status, answer, _ := s.post("/rpc", pendingOf(hash, calls)); status != http.StatusOK || strings.Count(answer, `"input":"0xcafe"`) != calls {
		t.Errorf("answered %d %s", status, answer)
	}
	if n := most.Load(); n != 1 {
		t.Errorf("%d transactions were decoded at once for one client", n)
	}
}

// A node's answer costs one unit for each 16 KiB, as other reads do. So does an answer above the limit
// of one request, as far as it may have been read.
func TestAnswersAreCharged(t *testing.T) {
	const unit, burst = 16 << 10, 2000
	var hours atomic.Int64
	s := newStack(t, func(c *Config, public *delivery.Config) {
		public.Rates.Address = rest.Rate{PerSecond: 1, Burst: burst}
		public.Now = func() time.Time {
			return time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC).Add(time.Duration(hours.Load()) * time.Hour)
		}
	})
	s.node.says("eth_blockNumber", `"0x10"`)
	s.node.says("eth_getLogs", `["`+strings.Repeat("ab", 20*unit)+`"]`)
	one := func(method string) string {
		return fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":%q,"params":[]}`, method)
	}
	logs := `{"jsonrpc":"2.0","id":1,"method":"eth_getLogs","params":[{}]}`
	for _, c := range []struct {
		body  string
		units int
	}{{one("eth_blockNumber"), 1}, {logs, 41}, {"[" + logs + "," + logs + "," + one("eth_blockNumber") + "]", 83}} {
		hours.Add(1)
		status, _, header := s.post("/rpc", c.body)
		if got, want := header.Get("RateLimit"), fmt.Sprintf(`"address";r=%d;t=%d`, burst-c.units, c.units); got != want || status != http.StatusOK {
			t.Errorf("%.40s: %d, RateLimit %s, want %s", c.body, status, got, want)
		}
	}
	s.node.does("eth_getLogs", func(_ json.RawMessage, limit int64) (json.RawMessage, error) { return nil, overLimit(limit) })
	hours.Add(1)
	if _, answer, header := s.post("/rpc", logs); !strings.Contains(header.Get("RateLimit"), fmt.Sprintf(`t=%d`, DefaultLimits().AnswerBytes/unit)) {
		t.Errorf("an answer that is too large: RateLimit %s, %.100s", header.Get("RateLimit"), answer)
	}
}
