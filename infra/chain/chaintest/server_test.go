package chaintest

import (
	"bytes"
	"context"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/tempo-watchtower/watchtower/domain/chain"
)

// serve serves a node over HTTP.
func serve(t *testing.T, n *Node) string {
	t.Helper()
	server := httptest.NewServer(n)
	t.Cleanup(server.Close)
	t.Cleanup(n.chain.Close)
	return server.URL
}

// post sends a body and returns the reply; err if the connection was cut.
func post(url, body string) (int, string, error) {
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	response, err := client.Post(url, "application/json", strings.NewReader(body))
	if err != nil {
		return 0, "", err
	}
	defer response.Body.Close() //nolint:errcheck // it is a test's
	text, err := io.ReadAll(response.Body)
	return response.StatusCode, string(bytes.TrimSpace(text)), err
}

func ask(t *testing.T, url, method, params string) string {
	t.Helper()
	_, text, err := post(url, fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":%q,"params":%s}`, method, params))
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func field(t *testing.T, text string, path ...string) string {
	t.Helper()
	var v any
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	for _, key := range path {
		m, ok := v.(map[string]any)
		if !ok {
			t.Fatalf("no %s in %s", key, text)
		}
		v = m[key]
	}
	return fmt.Sprint(v)
}

func rawParam(signed chain.Signed) string {
	return `["0x` + hex.EncodeToString(EncodePlain(signed)) + `"]`
}

func TestServe(t *testing.T) {
	c, _ := fresh(t, Rules{})
	n := c.Node("a")
	url := serve(t, n)
	hash := chain.Keccak(EncodePlain(tx(alice, key5, 0)))
	if got := field(t, ask(t, url, sendRaw, rawParam(tx(alice, key5, 0))), "result"); got != hash.String() {
		t.Fatalf("result %s", got)
	}
	if got := field(t, ask(t, url, "eth_getTransactionByHash", `["`+hash.String()+`"]`), "result", "blockHash"); got != "<nil>" {
		t.Errorf("a pooled transaction is in block %s", got)
	}
	genesis := c.Head()
	b := mine(t, c)
	at := func(b chain.Block) string { return fmt.Sprintf(`{"blockHash":"%s"}`, b.Hash) }
	input := "0x89535803" + strings.Repeat("0", 24) + hex.EncodeToString(alice[:]) + strings.Repeat("0", 63) + "5"
	call := `[{"to":"0x4E4F4E4345000000000000000000000000000000","data":"` + input + `"},%s]`
	keyZero := strings.Replace(call, input, strings.TrimSuffix(input, "5")+"0", 1)
	for _, test := range []struct {
		method, params, want string
		path                 []string
	}{
		{"eth_chainId", `[]`, "0xa5bf", []string{"result"}},
		{"net_version", `[]`, "42431", []string{"result"}},
		{"eth_blockNumber", `[]`, "0x1", []string{"result"}},
		{"eth_getBlockByNumber", `["latest",false]`, "[" + hash.String() + "]", []string{"result", "transactions"}},
		{"eth_getBlockByNumber", `["finalized",false]`, genesis.Hash.String(), []string{"result", "hash"}},
		{"eth_getBlockByNumber", `["0x2",false]`, "<nil>", []string{"result"}},
		{"eth_getBlockByHash", `["` + b.Hash.String() + `",true]`, "0x1", []string{"result", "number"}},
		{"eth_getBlockReceipts", `["` + b.Hash.String() + `"]`, hash.String(), []string{"result"}},
		{"eth_getTransactionReceipt", `["` + hash.String() + `"]`, b.Hash.String(), []string{"result", "blockHash"}},
		{"eth_getTransactionReceipt", `["` + b.Hash.String() + `"]`, "<nil>", []string{"result"}},
		{"eth_getTransactionByHash", `["` + hash.String() + `"]`, "0x1", []string{"result", "blockNumber"}},
		{"eth_getTransactionCount", `["` + alice.String() + `","latest"]`, "0x0", []string{"result"}},
		{"eth_call", fmt.Sprintf(call, at(b)), fmt.Sprintf("0x%064d", 1), []string{"result"}},
		{"eth_call", fmt.Sprintf(call, at(genesis)), fmt.Sprintf("0x%064d", 0), []string{"result"}},
		{"eth_call", fmt.Sprintf(keyZero, `"latest"`), "0x1bc81ca9", []string{"error", "data"}},
		{"eth_getTransactionCount", `["` + alice.String() + `",{"blockHash":"` + hash.String() + `"}]`, "-32001", []string{"error", "code"}},
		{"eth_getCode", `["` + alice.String() + `","latest"]`, "0x", []string{"result"}},
		{"eth_gasPrice", `[]`, "0x0", []string{"result"}},
		{"eth_nope", `[]`, "-32601", []string{"error", "code"}},
		{sendRaw, `["0x12"]`, "failed to decode signed transaction", []string{"error", "message"}},
		{sendRaw, `["12"]`, "-32602", []string{"error", "code"}},
	} {
		got := field(t, ask(t, url, test.method, test.params), test.path...)
		if !strings.Contains(got, test.want) {
			t.Errorf("%s %s: %.200s, want %s", test.method, test.params, got, test.want)
		}
	}
	received := c.Received()
	if len(received) != 2 || received[0].Hash != hash || received[0].Answer != nil || received[1].Answer == nil || received[1].Number != 2 {
		t.Errorf("received %+v", received)
	}
	if got := n.Calls()[sendRaw]; got != 3 {
		t.Errorf("%d sends counted", got)
	}
}

func TestServeBatchesAndRubbish(t *testing.T) {
	c, _ := fresh(t, Rules{})
	n := c.Node("a")
	url := serve(t, n)
	two := `[{"jsonrpc":"2.0","id":"x","method":"eth_chainId"},{"jsonrpc":"2.0","id":2,"method":"eth_blockNumber","params":[]}]`
	for _, test := range []struct{ body, want string }{
		{two, `[{"jsonrpc":"2.0","id":"x","result":"0xa5bf"},{"jsonrpc":"2.0","id":2,"result":"0x0"}]`},
		{`[]`, `{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"invalid request"}}`},
		{`{`, `{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"parse error"}}`},
	} {
		if _, got, err := post(url, test.body); err != nil || got != test.want {
			t.Errorf("%s: %s %v", test.body, got, err)
		}
	}
	n.Set(Faults{NoBatch: true})
	if _, got, err := post(url, two); err != nil || field(t, got, "error", "code") != "-32600" {
		t.Errorf("a refused batch: %s %v", got, err)
	}
	response, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	response.Body.Close() //nolint:errcheck // it is a test's
	if response.StatusCode != http.StatusMethodNotAllowed {
		t.Errorf("GET: %d", response.StatusCode)
	}
}

func TestFaultsOfBroadcasts(t *testing.T) {
	body := func(nonce uint64) string {
		return `{"jsonrpc":"2.0","id":1,"method":"eth_sendRawTransaction","params":` + rawParam(tx(alice, key5, nonce)) + `}`
	}
	hash := chain.Keccak(EncodePlain(tx(alice, key5, 0)))
	for _, test := range []struct {
		name     string
		faults   Faults
		cut      bool
		status   int
		result   string // kind of reply; "other" for another hash
		received int
		pooled   int
	}{
		{"none", Faults{}, false, 200, hash.String(), 1, 1},
		{"lose", Faults{Lose: 1}, true, 0, "", 0, 0},
		{"down", Faults{Down: true}, true, 0, "", 0, 0},
		{"cut", Faults{Cut: 1}, true, 0, "", 1, 1},
		{"cut all", Faults{CutAll: 1}, true, 0, "", 1, 1},
		{"fail", Faults{Fail: 1}, false, 503, "", 0, 0},
		{"rate limit", Faults{Fail: 1, Status: 429}, false, 429, "", 0, 0},
		{"forget", Faults{Forget: 1}, false, 200, hash.String(), 1, 0},
		{"wrong hash", Faults{WrongHash: 1}, false, 200, "other", 1, 1},
		{"refuse", Faults{Refuse: func(chain.Signed) *Refusal { return &Refusal{Code: -32003, Message: "no"} }}, false, 200, "", 1, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			c, _ := fresh(t, Rules{})
			n := c.Node("a")
			url := serve(t, n)
			n.Set(test.faults)
			status, text, err := post(url, body(0))
			if cut := err != nil; cut != test.cut || status != test.status {
				t.Fatalf("status %d, error %v", status, err)
			}
			if test.result == "other" {
				if got := field(t, text, "result"); got == hash.String() || len(got) != 66 {
					t.Errorf("result %s", got)
				}
			} else if test.result != "" && field(t, text, "result") != test.result {
				t.Errorf("reply %s", text)
			}
			if len(c.Received()) != test.received || len(c.Pooled()) != test.pooled {
				t.Errorf("%d received, %d pooled", len(c.Received()), len(c.Pooled()))
			}
		})
	}
	t.Run("half", func(t *testing.T) {
		c, _ := fresh(t, Rules{})
		n := c.Node("a")
		url := serve(t, n)
		n.Set(Faults{Cut: 0.5})
		cut := 0
		for nonce := range uint64(40) {
			if _, _, err := post(url, body(nonce)); err != nil {
				cut++
			}
		}
		if cut < 10 || cut > 30 || len(c.Pooled()) != 40 {
			t.Errorf("%d of 40 cut, %d pooled", cut, len(c.Pooled()))
		}
	})
}

func TestFaultsOfReads(t *testing.T) {
	c, _ := fresh(t, Rules{})
	n := c.Node("a")
	url := serve(t, n)
	raw := EncodePlain(tx(alice, chain.NonceKey{}, 0))
	hash := chain.Keccak(raw)
	first := mine(t, c)
	second := mine(t, c, raw)
	count := `["` + alice.String() + `","latest"]`
	receipt := `["` + hash.String() + `"]`
	for _, test := range []struct {
		name           string
		faults         Faults
		method, params string
		path, want     string
	}{
		{"lag: number", Faults{Lag: 1}, "eth_blockNumber", `[]`, "result", "0x1"},
		{"lag: hash", Faults{Lag: 1}, "eth_getBlockByHash", `["` + second.Hash.String() + `",false]`, "result", "<nil>"},
		{"lag: receipt", Faults{Lag: 1}, "eth_getTransactionReceipt", receipt, "result", "<nil>"},
		{"lag: nonce", Faults{Lag: 1}, "eth_getTransactionCount", count, "result", "0x0"},
		{"ahead", Faults{Ahead: 3}, "eth_blockNumber", `[]`, "result", "0x5"},
		{"ahead: nonce", Faults{Ahead: 3}, "eth_getTransactionCount", count, "result", "0x1"},
		{"stale nonce", Faults{StaleNonces: 1}, "eth_getTransactionCount", count, "result", "0x0"},
		{"high nonce", Faults{HighNonces: 1}, "eth_getTransactionCount", count, "result", "0x2"},
		{"other chain", Faults{ChainID: 1}, "eth_chainId", `[]`, "result", "0x1"},
		{"other genesis", Faults{Genesis: hash}, "eth_getBlockByNumber", `["0x0",false]`, "result", hash.String()},
		{"phantom", Faults{Phantom: true}, "eth_getTransactionReceipt", `["` + first.Hash.String() + `"]`, "result", second.Hash.String()},
		{"no receipts", Faults{NoBlockReceipts: true}, "eth_getBlockReceipts", `["latest"]`, "error", "-32601"},
		{"no hashes", Faults{NoBlockHashes: true}, "eth_getTransactionCount", `["` + alice.String() + `",{"blockHash":"` + second.Hash.String() + `"}]`, "error", "-32602"},
	} {
		t.Run(test.name, func(t *testing.T) {
			n.Set(test.faults)
			if got := field(t, ask(t, url, test.method, test.params), test.path); !strings.Contains(got, test.want) {
				t.Errorf("%.300s, want %s", got, test.want)
			}
		})
	}
	n.Set(Faults{Delay: 30 * time.Millisecond})
	began := time.Now()
	ask(t, url, "eth_chainId", `[]`)
	if took := time.Since(began); took < 30*time.Millisecond {
		t.Errorf("answered after %s", took)
	}
}

func TestSubscription(t *testing.T) {
	c, _ := fresh(t, Rules{Finality: 9})
	n := c.Node("a")
	url := serve(t, n)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	conn, _, err := websocket.Dial(ctx, strings.Replace(url, "http", "ws", 1), nil) //nolint:bodyclose // its answer has none
	if err != nil {
		t.Fatal(err)
	}
	defer conn.CloseNow() //nolint:errcheck // it is a test's
	say := func(text string) {
		if err := conn.Write(ctx, websocket.MessageText, []byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	hear := func() string {
		_, text, err := conn.Read(ctx)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	say(`{"jsonrpc":"2.0","id":7,"method":"eth_chainId","params":[]}`)
	if got := field(t, hear(), "result"); got != "0xa5bf" {
		t.Errorf("chain id %s", got)
	}
	say(`{"jsonrpc":"2.0","id":8,"method":"eth_subscribe","params":["newHeads"]}`)
	if got := field(t, hear(), "result"); got != "0x1" {
		t.Errorf("subscription %s", got)
	}
	var told []string
	b := mine(t, c)
	told = append(told, field(t, hear(), "params", "result", "hash"))
	if err := c.Reorg(1, false); err != nil {
		t.Fatal(err)
	}
	told = append(told, field(t, hear(), "params", "result", "hash"))
	if want := []string{b.Hash.String(), c.Head().Hash.String()}; !slices.Equal(told, want) {
		t.Errorf("told %v, want %v", told, want)
	}
	c.Close()
	if _, _, err := conn.Read(ctx); err == nil || ctx.Err() != nil {
		t.Errorf("after Close: %v", err)
	}
	//nolint:bodyclose // there is none
	if _, _, err := websocket.Dial(ctx, strings.Replace(url, "http", "ws", 1), nil); err == nil {
		t.Error("a closed chain takes connections")
	}
}
