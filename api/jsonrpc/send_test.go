package jsonrpc

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tempo-watchtower/watchtower/api/delivery"
	"github.com/tempo-watchtower/watchtower/api/rest"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
	"github.com/tempo-watchtower/watchtower/eventlog"
)

// state is a transaction's state in the log.
func (s *stack) state(hash chain.Hash) tx.State {
	s.t.Helper()
	r, err := s.config.Submit.Transactions.Load(s.t.Context(), tx.Stream(testChain, hash))
	check(s.t, err)
	return r.State
}

func TestSend(t *testing.T) {
	var mu sync.Mutex
	outcomes := map[string]int{}
	s := newStack(t, func(c *Config, _ *delivery.Config) {
		c.Submitted = func(outcome string) {
			mu.Lock()
			defer mu.Unlock()
			outcomes[outcome]++
		}
	})
	raw, hash := signed(t, testChain, 0)
	for range 2 { // sending again changes nothing
		s.call("eth_sendRawTransaction", hexParam(raw)).wantResult(t, `"`+hash.String()+`"`)
	}
	if s.state(hash).Status != tx.StatusQueued {
		t.Errorf("the log says %q", s.state(hash).Status)
	}
	if len(s.node.asked) != 0 {
		t.Errorf("the node was asked %v", s.node.asked)
	}
	mu.Lock()
	defer mu.Unlock()
	if outcomes["accepted"] != 1 || outcomes["known"] != 1 {
		t.Errorf("outcomes %v", outcomes)
	}
}

func TestSendRefuses(t *testing.T) {
	s := newStack(t)
	elsewhere, _ := signed(t, 1, 0)
	for name, test := range map[string]struct {
		params, message string
		code            int
		problem         string // the code of the problem in the data
	}{
		"nothing":      {`[]`, "missing value for required argument 0", -32602, ""},
		"two":          {`["0x00","0x00"]`, "too many arguments, want at most 1", -32602, ""},
		"null":         {`[null]`, "invalid argument 0: must be a string", -32602, ""},
		"number":       {`[1]`, "invalid argument 0: must be a string", -32602, ""},
		"no prefix":    {`["02c0"]`, "invalid argument 0: hex string without 0x prefix", -32602, ""},
		"odd":          {`["0x02c"]`, "invalid argument 0: hex string of odd length", -32602, ""},
		"not hex":      {`["0x0g"]`, "invalid argument 0: invalid hex string", -32602, ""},
		"empty":        {`["0x"]`, "typed transaction too short", -32000, ""},
		"unknown type": {`["0x7ec0"]`, "transaction type not supported: transaction type 0x7e is unsupported", -32000, "invalid-transaction"},
		"wrong chain":  {hexParam(elsewhere), "invalid chain id for signer: signed for chain 1, submitted for chain 1337", -32000, "wrong-chain"},
		"too large":    {`["0x` + strings.Repeat("00", 128<<10+1) + `"]`, "oversized data: transaction size 131073, limit 131072", -32000, ""},
	} {
		t.Run(name, func(t *testing.T) {
			r := s.call("eth_sendRawTransaction", test.params)
			r.wantError(t, test.code, test.message)
			var p rest.Problem
			if test.problem != "" && (json.Unmarshal(r.Error.Data, &p) != nil || p.Code != test.problem || p.RequestID == "") {
				t.Errorf("the data is %s", r.Error.Data)
			}
		})
	}
	raw, _ := signed(t, testChain, 0)
	raw[len(raw)-40] ^= 1
	if r := s.call("eth_sendRawTransaction", hexParam(raw[:len(raw)-1])); r.Error == nil || r.Error.Code != -32000 || !strings.HasPrefix(r.Error.Message, "rlp: ") {
		t.Errorf("cut bytes: %+v", r.Error)
	}
}

// A transaction that has ended and is sent again gets the error that a node would return.
func TestSendWhatIsOver(t *testing.T) {
	s := newStack(t)
	for nonce, test := range []struct {
		command tx.Command
		message string
	}{
		{tx.SeeNonce{Block: chain.Block{Number: 1, Hash: chain.Hash{1}}, Current: 9, At: time.Now()}, "nonce too low: another transaction with this nonce was mined"},
		{tx.Cancel{Reason: "test", At: time.Now()}, "transaction canceled by its owner"},
	} {
		raw, hash := signed(t, testChain, uint64(nonce))
		s.call("eth_sendRawTransaction", hexParam(raw)).wantResult(t, `"`+hash.String()+`"`)
		s.decide(hash, test.command)
		r := s.call("eth_sendRawTransaction", hexParam(raw))
		r.wantError(t, codeServer, test.message)
		if want := fmt.Sprintf(`{"status":%q,"txHash":"%s"}`, s.state(hash).Status, hash); string(r.Error.Data) != want {
			t.Errorf("data %s, want %s", r.Error.Data, want)
		}
		s.call("eth_sendRawTransactionSync", hexParam(raw)).wantError(t, codeServer, test.message)
	}
	raw, hash := signed(t, testChain, 7)
	s.call("eth_sendRawTransaction", hexParam(raw))
	s.mine(hash)
	s.call("eth_sendRawTransaction", hexParam(raw)).wantResult(t, `"`+hash.String()+`"`)
}

// One batch with several transactions: each is accepted, and answered in its place.
func TestSendBatch(t *testing.T) {
	s := newStack(t)
	var calls []string
	var hashes []chain.Hash
	for nonce := range uint64(20) {
		raw, hash := signed(t, testChain, nonce)
		hashes = append(hashes, hash)
		calls = append(calls, fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"eth_sendRawTransaction","params":%s}`, nonce, hexParam(raw)))
	}
	calls[4] = strings.Replace(calls[4], `"id":4,`, "", 1) // a notification: it is executed and not answered
	_, text, _ := s.post("/rpc", "["+strings.Join(calls, ",")+"]")
	var got []reply
	check(t, json.Unmarshal([]byte(text), &got))
	if len(got) != 19 {
		t.Fatalf("%d answers", len(got))
	}
	for i, r := range got {
		if i >= 4 {
			i++
		}
		r.wantResult(t, `"`+hashes[i].String()+`"`)
	}
	if s.state(hashes[4]).Status != tx.StatusQueued {
		t.Error("the notification was not carried out")
	}
}

func TestSync(t *testing.T) {
	s := newStack(t)
	const receipt = `{"status":"0x1"}`
	s.node.says("eth_getTransactionReceipt", receipt)
	raw, hash := signed(t, testChain, 0)
	waited := make(chan string, 1)
	go func() {
		_, text, _, err := s.send("/rpc", `{"jsonrpc":"2.0","id":7,"method":"eth_sendRawTransactionSync","params":`+hexParam(raw)+`}`)
		waited <- fmt.Sprint(text, err)
	}()
	_, err := s.tail.Await(t.Context(), testChain, hash, func(s tx.State) bool { return s.Status == tx.StatusQueued })
	check(t, err)
	s.mine(hash)
	if got, want := <-waited, `{"jsonrpc":"2.0","id":7,"result":`+receipt+`}<nil>`; got != want {
		t.Errorf("answered %s, want %s", got, want)
	}
	s.call("eth_sendRawTransactionSync", strings.Replace(hexParam(raw), "]", ",500]", 1)).wantResult(t, receipt)
}

// A wait that times out returns the hash, and the transaction is kept.
func TestSyncInVain(t *testing.T) {
	s := newStack(t, func(c *Config, _ *delivery.Config) { c.Limits.SyncMax = 50 * time.Millisecond })
	for nonce, timeout := range []string{"1", `"0x1"`, "50", "4000000000", "99999999999999999999999", `"0xffffffffffffffffffff"`} {
		raw, hash := signed(t, testChain, uint64(nonce))
		r := s.call("eth_sendRawTransactionSync", strings.Replace(hexParam(raw), "]", ","+timeout+"]", 1))
		if r.Error == nil || r.Error.Code != 4 || string(r.Error.Data) != `"`+hash.String()+`"` || !strings.Contains(r.Error.Message, "not mined within") {
			t.Errorf("timeout %s: %+v", timeout, r.Error)
		}
		if s.state(hash).Status != tx.StatusQueued {
			t.Errorf("timeout %s: the transaction is %q", timeout, s.state(hash).Status)
		}
	}
	raw, hash := signed(t, testChain, 99)
	for _, timeout := range []string{`"5"`, `1.5`, `-1`, `true`, `[]`, `"0x"`} {
		s.call("eth_sendRawTransactionSync", strings.Replace(hexParam(raw), "]", ","+timeout+"]", 1)).
			wantError(t, codeInvalidParams, "invalid argument 1: the timeout is a number of milliseconds")
	}
	if s.state(hash).Status != "" {
		t.Error("taken on, though its parameters were refused")
	}
	s.tail.Leave()
	r := s.call("eth_sendRawTransactionSync", hexParam(raw))
	if r.Error == nil || r.Error.Code != 4 || !strings.Contains(r.Error.Message, "cannot wait for it any longer") {
		t.Errorf("while stopping: %+v", r.Error)
	}
}

// A mined transaction whose receipt no node has: nodes are asked ever more rarely, and each further
// round costs one unit. A client that cannot pay is answered as at the timeout.
func TestSyncRoundsAreCharged(t *testing.T) {
	now := time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC) // stands still, so nothing is refilled
	for burst, want := range map[int]int{100: 4, 3: 2} {  // at 0, 100, 300 and 700 ms; two units are paid before these
		s := newStack(t, func(_ *Config, c *delivery.Config) {
			c.Rates.Address = rest.Rate{PerSecond: 1, Burst: burst}
			c.Now = func() time.Time { return now }
		})
		s.node.says("eth_getTransactionReceipt", null)
		raw, hash := signed(t, testChain, 0)
		s.call("eth_sendRawTransaction", hexParam(raw)).wantResult(t, `"`+hash.String()+`"`)
		s.mine(hash)
		before := s.node.count()
		r := s.call("eth_sendRawTransactionSync", strings.Replace(hexParam(raw), "]", ",1000]", 1))
		if r.Error == nil || r.Error.Code != 4 || !strings.Contains(r.Error.Message, "not mined within 1s") {
			t.Errorf("burst %d: %+v", burst, r.Error)
		}
		if asked := s.node.count() - before; asked > want || asked < want-1 {
			t.Errorf("burst %d: nodes were asked %d times, not %d", burst, asked, want)
		}
	}
}

// If the database does not answer, the error code is one after which client libraries retry.
func TestSendWithoutStore(t *testing.T) {
	s := newStack(t)
	s.config.Submit.Vault.Rows = brokenRows{PayloadRows: s.config.Submit.Vault.Rows}
	raw, _ := signed(t, testChain, 0)
	r := s.call("eth_sendRawTransaction", hexParam(raw))
	r.wantError(t, codeInternal, "The service cannot do this now")
	if strings.Contains(string(r.Error.Data), "secret") {
		t.Errorf("the data tells of the inside: %s", r.Error.Data)
	}
	s.config.Submit.Vault.Rows = brokenRows{PayloadRows: s.config.Submit.Vault.Rows, err: eventlog.ErrUnknown}
	s.call("eth_sendRawTransaction", hexParam(raw)).wantError(t, codeInternal, "it is unknown whether the transaction was accepted: send it again")
}

var errBroken = errors.New("secret: no connection")

func TestPanicsEndOneRequest(t *testing.T) {
	s := newStack(t)
	s.node.does("eth_call", func(json.RawMessage, int64) (json.RawMessage, error) { panic("broken") })
	call := `{"jsonrpc":"2.0","id":1,"method":"eth_call","params":[{}]}`
	for _, body := range []string{call, "[" + call + "," + call + "]"} {
		if status, text, _ := s.post("/rpc", body); status != 500 || !strings.Contains(text, `"internal"`) {
			t.Errorf("%d %s", status, text)
		}
	}
	s.call("net_version", `[]`).wantResult(t, `"1337"`)
}

func TestDeadline(t *testing.T) {
	s := newStack(t, func(c *Config, _ *delivery.Config) { c.Limits.CallTimeout = time.Nanosecond })
	s.call("eth_blockNumber", `[]`).wantError(t, codeTimeout, "request timed out")
	s.node.does("eth_call", func(json.RawMessage, int64) (json.RawMessage, error) { return nil, context.DeadlineExceeded })
	s.call("eth_call", `[{}]`).wantError(t, codeTimeout, "request timed out")
}

// One client cannot take all places for waiting; its transactions are accepted all the same.
func TestSyncSendsOfOneClient(t *testing.T) {
	s := newStack(t, func(_ *Config, c *delivery.Config) {
		c.Rates.Address = rest.Rate{PerSecond: 1000, Burst: 1000}
		c.Limits.Connections = 4 // one of them may wait
	})
	first, _ := signed(t, testChain, 0)
	second, hash := signed(t, testChain, 1)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		body := `{"jsonrpc":"2.0","id":1,"method":"eth_sendRawTransactionSync","params":["0x` + hex.EncodeToString(first) + `",60000]}`
		for ctx.Err() == nil { // again, in case the second had the place just then
			req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.url+"/rpc", strings.NewReader(body))
			if err != nil {
				return
			}
			req.Header.Set("Content-Type", "application/json")
			if res, err := http.DefaultClient.Do(req); err == nil {
				res.Body.Close() //nolint:errcheck,gosec // nobody reads it
			}
		}
	}()
	defer func() { stop(); <-ended }()
	// Until the first waits, the second can wait for a millisecond.
	const full = "The transaction was accepted and its delivery continues, but this replica cannot wait for it any longer"
	deadline := time.After(30 * time.Second)
	for {
		got := s.call("eth_sendRawTransactionSync", `["0x`+hex.EncodeToString(second)+`",1]`)
		if got.Error == nil || got.Error.Code != codeStillWaiting || string(got.Error.Data) != `"`+hash.String()+`"` {
			t.Fatalf("%s, %+v", got.Result, got.Error)
		}
		if got.Error.Message == full {
			return
		}
		select {
		case <-deadline:
			t.Fatal("one client waits as often as it likes")
		case <-time.After(5 * time.Millisecond):
		}
	}
}
