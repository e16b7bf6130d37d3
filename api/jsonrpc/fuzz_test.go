package jsonrpc

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/tempo-watchtower/watchtower/api/rest"
	"github.com/tempo-watchtower/watchtower/api/rpcroute"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
)

// codes are the error codes of answers.
var codes = map[int]bool{
	codeParse: true, codeInvalidRequest: true, codeUnknownMethod: true, codeInvalidParams: true, codeInternal: true,
	codeServer: true, codeNotFound: true, codeTimeout: true, codeTooLarge: true, codeLimit: true, codeStillWaiting: true,
}

// Any body gets a JSON-RPC answer for each call, in order, and never an internal error.
func FuzzAnswer(f *testing.F) {
	s := newStack(f)
	rpc := New(s.config)
	raw, hash := signed(f, testChain, 1)
	call := func(id, method, params string) string {
		return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"method":%q,"params":%s}`, id, method, params)
	}
	sent := call("1", "eth_sendRawTransaction", hexParam(raw))
	for _, seed := range []string{
		sent, "[" + sent + "," + sent + "]", call(`"a"`, "eth_chainId", "[]"), call("null", "eth_getTransactionByHash", `["`+hash.String()+`"]`),
		call("2", "eth_getTransactionReceipt", `["`+hash.String()+`"]`), call("3", "eth_getTransactionCount", `["0x00000000000000000000000000000000000000aa","pending"]`),
		call("4", "eth_getBlockByNumber", `["latest",false]`), call("-5.5e3", "eth_sign", "[]"), call("6", "web3_clientVersion", "{}"),
		`{"jsonrpc":"2.0","method":"eth_chainId"}`, `[]`, `[1,null,{}]`, `{"jsonrpc":"2.0","id":1,"id":2,"method":"x"}`, "\"\\ud800\"", "[[[[",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
		defer cancel()
		began := time.Now()
		answer, err := rpc.Answer(ctx, rpcroute.Request{
			Body: body, Submit: s.config.Submit, Shows: func(context.Context, tx.State) (bool, error) { return true, nil }, Counts: func(chain.Address) rpcroute.Counts { return rpcroute.Counts{All: true} },
			Decode: func(ctx context.Context, read func(context.Context) ([]byte, error), decode func([]byte) ([]byte, error)) ([]byte, error) {
				raw, err := read(ctx)
				if err != nil {
					return nil, err
				}
				return decode(raw)
			},
			NextFree: func(ctx context.Context, _ uint64, read func(context.Context, rest.Place) (uint64, error)) (uint64, error) {
				return read(ctx, func(context.Context) (func(), error) { return func() {}, nil })
			},
			Search: func() func(context.Context) { return func(context.Context) {} },
			Charge: func(int) error { return nil }, Weigh: func(int) {}, Rest: func() (func(), bool) { return func() {}, true },
			Problem: func(err error) rest.Problem { return rest.Problem{Detail: err.Error()} },
		})
		if took := time.Since(began); err != nil || took > time.Second {
			t.Fatalf("error %v after %s", err, took)
		}
		if answer == nil {
			return // only notifications
		}
		replies := []reply{{}}
		if answer[0] == '[' {
			err = json.Unmarshal(answer, &replies)
		} else {
			err = json.Unmarshal(answer, &replies[0])
		}
		if err != nil || len(replies) == 0 {
			t.Fatalf("answered %s: %v", answer, err)
		}
		for _, r := range replies {
			if r.Version != "2.0" || r.ID == nil || (r.Error == nil) == (r.Result == nil) {
				t.Errorf("answered %s", answer)
			}
			if r.Error != nil && !codes[r.Error.Code] {
				t.Errorf("the code %d: %s", r.Error.Code, answer)
			}
		}
	})
}
