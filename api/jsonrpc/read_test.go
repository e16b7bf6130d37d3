package jsonrpc

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"slices"
	"strings"
	"testing"

	"github.com/tempo-watchtower/watchtower/api/delivery"
	"github.com/tempo-watchtower/watchtower/api/rest"
	"github.com/tempo-watchtower/watchtower/api/rpcroute"
	"github.com/tempo-watchtower/watchtower/commands"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
	"github.com/tempo-watchtower/watchtower/domain/payload"
	"github.com/tempo-watchtower/watchtower/eventlog"
	"github.com/tempo-watchtower/watchtower/eventlog/port"
)

// brokenRows is a vault that cannot be written to.
type brokenRows struct {
	commands.PayloadRows
	err error
}

func (b brokenRows) Put(context.Context, []payload.Sealed) error {
	if b.err != nil {
		return b.err
	}
	return errors.Join(errBroken, context.DeadlineExceeded)
}

func TestPassesOn(t *testing.T) {
	s := newStack(t)
	s.node.says("eth_call", `{"any": [ "thing" ], "n":1.0}`)
	s.call("eth_call", `[{"to":"0x1"}, "latest"]`).wantResult(t, `{"any": [ "thing" ], "n":1.0}`)
	if want := []string{`eth_call[{"to":"0x1"},"latest"]`}; !slices.Equal(s.node.asked, want) {
		t.Errorf("the node was asked %v, want %v", s.node.asked, want)
	}
	s.node.does("eth_estimateGas", func(json.RawMessage, int64) (json.RawMessage, error) {
		return nil, declined{3, "execution reverted", `"0x08c379a0"`}
	})
	r := s.call("eth_estimateGas", `[{}]`)
	r.wantError(t, 3, "execution reverted")
	if string(r.Error.Data) != `"0x08c379a0"` {
		t.Errorf("data %s", r.Error.Data)
	}
	s.node.does("eth_gasPrice", func(json.RawMessage, int64) (json.RawMessage, error) { return nil, errBroken })
	s.call("eth_gasPrice", `[]`).wantError(t, codeInternal, "no node of chain 1337 responds")
}

// spent is the error of a limit that kept a node from being asked.
type spent struct{ error }

func (spent) Withheld() string { return "endpoints.rate" }

// Nodes are asked on behalf of a client. The client learns which limit kept the call from being
// made, and nothing about the nodes.
func TestLimitsOnCallsToNodes(t *testing.T) {
	s := newStack(t)
	s.node.does("eth_call", func(json.RawMessage, int64) (json.RawMessage, error) {
		return nil, errors.Join(context.DeadlineExceeded, spent{errors.New("node-1: not asked")})
	})
	answer, err := New(s.config).Answer(t.Context(), rpcroute.Request{
		Body: []byte(`{"jsonrpc":"2.0","id":7,"method":"eth_call","params":[{}]}`), Client: "alice", Charge: func(int) error { return nil }, Weigh: func(int) {},
	})
	check(t, err)
	if want := `{"jsonrpc":"2.0","id":7,"error":{"code":-32005,"message":"no node may be called now: the limit is endpoints.rate"}}`; string(answer) != want {
		t.Errorf("%s, want %s", answer, want)
	}
	if want := []string{"alice"}; !slices.Equal(s.node.clients, want) {
		t.Errorf("the node was asked for %q, want %q", s.node.clients, want)
	}
}

// Methods that are not in the table are refused before a node is asked.
func TestRefusesTheRest(t *testing.T) {
	s := newStack(t)
	for _, method := range []string{
		"eth_sendTransaction", "eth_sign", "eth_signTransaction", "eth_signTypedData_v4", "personal_sign", "personal_unlockAccount",
		"debug_traceTransaction", "admin_peers", "txpool_content", "miner_start", "eth_newFilter", "eth_newBlockFilter", "eth_subscribe",
		"eth_fillTransaction", "anvil_mine", "evm_mine", "hardhat_setBalance", "eth_", "", "eth_call ", "ETH_CALL", "rpc_modules",
	} {
		if r := s.call(method, `[]`); r.Error == nil || r.Error.Code != codeUnknownMethod {
			t.Errorf("%q: %s %+v", method, r.Result, r.Error)
		}
	}
	if len(s.node.asked) > 0 {
		t.Errorf("the node was asked %v", s.node.asked)
	}
	if !slices.IsSorted(proxiedMethods()) {
		t.Error("the table must be sorted: it is searched")
	}
	for _, m := range ownMethods() {
		if own(m) == nil {
			t.Errorf("%s is named, and not there", m)
		}
	}
}

// If a node lacks a receipt and the log says that the transaction is mined, another node is
// asked.
func TestReceipt(t *testing.T) {
	s := newStack(t)
	raw, hash := signed(t, testChain, 0)
	ask := `["` + hash.String() + `"]`
	s.call("eth_getTransactionReceipt", ask).wantResult(t, `null`)
	s.call("eth_sendRawTransaction", hexParam(raw))
	s.call("eth_getTransactionReceipt", ask).wantResult(t, `null`)
	s.mine(hash)
	times := 0
	s.node.does("eth_getTransactionReceipt", func(json.RawMessage, int64) (json.RawMessage, error) {
		if times++; times == 1 {
			return json.RawMessage(`null`), nil
		}
		return json.RawMessage(`{"status":"0x1"}`), nil
	})
	s.call("eth_getTransactionReceipt", ask).wantResult(t, `{"status":"0x1"}`)
	for _, bad := range []string{`["0x12"]`, `[1]`, `[null]`} {
		s.call("eth_getTransactionReceipt", bad).wantError(t, codeInvalidParams, "invalid argument 0: a hash is 0x and 64 hex digits")
	}
	s.call("eth_getTransactionReceipt", `[]`).wantError(t, codeInvalidParams, "missing value for required argument 0")
}

// A transaction that the service holds and no node knows looks like a node's pending one.
func TestPending(t *testing.T) {
	s := newStack(t)
	raw, hash := signed(t, testChain, 3)
	ask := `["` + hash.String() + `"]`
	s.call("eth_getTransactionByHash", ask).wantResult(t, `null`)
	s.call("eth_sendRawTransaction", hexParam(raw))
	r := s.call("eth_getTransactionByHash", ask)
	var got map[string]any
	check(t, json.Unmarshal(r.Result, &got))
	for name, want := range map[string]any{
		"hash": hash.String(), "blockHash": nil, "blockNumber": nil, "transactionIndex": nil, "type": "0x2", "nonce": "0x3",
		"from": "0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266", "to": "0x7700000000000000000000000000000000000000",
		"value": "0x5", "gas": "0x7530", "gasPrice": "0x64", "maxFeePerGas": "0x64", "maxPriorityFeePerGas": "0x1",
		"input": "0xcafe", "chainId": "0x539",
	} {
		if value, there := got[name]; !there || value != want {
			t.Errorf("%s is %v, want %v", name, value, want)
		}
	}
	for _, name := range []string{"r", "s", "v", "yParity"} {
		if text, _ := got[name].(string); !strings.HasPrefix(text, "0x") {
			t.Errorf("%s is %v", name, got[name])
		}
	}
	if list, _ := got["accessList"].([]any); len(list) != 1 {
		t.Errorf("access list %v", got["accessList"])
	}
	s.node.says("eth_getTransactionByHash", `{"blockNumber":"0x1"}`)
	s.call("eth_getTransactionByHash", ask).wantResult(t, `{"blockNumber":"0x1"}`)
}

func TestTransactionCount(t *testing.T) {
	const sender = "0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266"
	var asked []chain.Sequence
	s := newStack(t, func(c *Config, _ *delivery.Config) {
		c.NextFree = func(_ context.Context, sequence chain.Sequence, from uint64, _ []string, _ rest.Place) (uint64, error) {
			asked = append(asked, sequence)
			return from + 3, nil
		}
	})
	s.node.says("eth_getTransactionCount", `"0x5"`)
	for tag, want := range map[string]string{`"pending"`: `"0x8"`, `"latest"`: `"0x5"`, `"0x10"`: `"0x5"`, `{"blockNumber":"0x1"}`: `"0x5"`} {
		s.call("eth_getTransactionCount", `["`+sender+`",`+tag+`]`).wantResult(t, want)
	}
	if want, err := chain.ParseAddress(sender); err != nil || len(asked) != 1 || asked[0] != (chain.Sequence{Chain: testChain, Sender: want}) {
		t.Errorf("asked about %v", asked)
	}
	s.call("eth_getTransactionCount", `["0x1","pending"]`).wantError(t, codeInvalidParams, "invalid argument 0: an address is 0x and 40 hex digits")
	s.node.says("eth_getTransactionCount", `5`)
	s.call("eth_getTransactionCount", `["`+sender+`","pending"]`).wantError(t, codeInternal, "no node of chain 1337 responds")
}

func TestOwnAnswers(t *testing.T) {
	s := newStack(t)
	s.call("eth_chainId", `[]`).wantResult(t, `"0x539"`)
	s.call("net_version", `[]`).wantResult(t, `"1337"`)
	s.call("web3_clientVersion", `[]`).wantResult(t, `"Watchtower/test"`)
	s.call("eth_accounts", `[]`).wantResult(t, `[]`)
}

// A client that is bound to other senders may not submit for this one, and sees only the nodes'
// answers.
func TestBoundClient(t *testing.T) {
	s := newStack(t, func(c *Config, _ *delivery.Config) {
		c.NextFree = func(context.Context, chain.Sequence, uint64, []string, rest.Place) (uint64, error) { return 99, nil }
	})
	raw, hash := signed(t, testChain, 0)
	s.call("eth_sendRawTransaction", hexParam(raw))
	s.node.says("eth_getTransactionCount", `"0x0"`)
	bound := *s.config.Submit
	bound.Allow = func(chain.Signed) error { return rest.ErrForeignSender }
	var searches []string
	reads := readAt{s.config.Submit.Transactions.Store, func() { searches = append(searches, "read") }}
	s.config.Submit.Transactions.Store = reads
	ask := func(method, params string) string {
		t.Helper()
		answer, err := New(s.config).Answer(t.Context(), rpcroute.Request{
			Search: func() func(context.Context) {
				searches = append(searches, "begin")
				return func(context.Context) { searches = append(searches, "wait") }
			},
			Body:   []byte(`{"jsonrpc":"2.0","id":1,"method":"` + method + `","params":` + params + `}`),
			Submit: &bound, Shows: func(context.Context, tx.State) (bool, error) { return false, nil }, Counts: func(chain.Address) rpcroute.Counts { return rpcroute.Counts{} },
			Charge: func(int) error { return nil }, Weigh: func(int) {},
			Problem: func(error) rest.Problem { return rest.Problem{Title: "foreign"} },
		})
		check(t, err)
		return string(answer)
	}
	other, otherHash := signed(t, testChain, 1)
	if got := ask("eth_sendRawTransaction", hexParam(other)); !strings.Contains(got, `"code":-32000,"message":"foreign"`) {
		t.Errorf("a foreign transaction: %s", got)
	}
	if s.state(otherHash).Status != "" {
		t.Error("a foreign transaction was taken on")
	}
	if got := ask("eth_getTransactionByHash", `["`+hash.String()+`"]`); !strings.Contains(got, `"result":null`) {
		t.Errorf("what is held for others: %s", got)
	}
	for name, of := range map[string]chain.Hash{"held for others": hash, "unknown": {0xab}} {
		for _, method := range []string{"eth_getTransactionByHash", "eth_getTransactionReceipt"} {
			searches = nil
			ask(method, `["`+of.String()+`"]`)
			if want := []string{"begin", "read", "wait"}; !slices.Equal(searches, want) {
				t.Errorf("%s of what is %s: %v, want %v", method, name, searches, want)
			}
		}
	}
	if got := ask("eth_getTransactionCount", `["0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266","pending"]`); !strings.Contains(got, `"result":"0x0"`) {
		t.Errorf("how many are held for others: %s", got)
	}
}

// readAt is a store that reports reads of streams.
type readAt struct {
	port.Store
	report func()
}

func (r readAt) ReadStream(ctx context.Context, stream eventlog.Stream, after eventlog.Version) iter.Seq2[eventlog.Recorded, error] {
	r.report()
	return r.Store.ReadStream(ctx, stream, after)
}
