package jsonrpc

import (
	"net/http"
	"testing"

	contracts "github.com/tempo-watchtower/watchtower/api"
	"github.com/tempo-watchtower/watchtower/api/rest/contractfuzz"
)

// No call that the contract describes, or almost describes, gets an answer that it does not.
func TestContractFuzz(t *testing.T) {
	c, err := contractfuzz.Parse(contracts.Delivery(), "json-rpc")
	if err != nil {
		t.Fatal(err)
	}
	s := newStack(t)
	methods := []any{"eth_chainId", "net_version", "eth_blockNumber", "eth_sendRawTransaction", "eth_getTransactionByHash", "eth_getTransactionReceipt", "eth_getTransactionCount", "eth_call", "no_such"}
	contractfuzz.Check(t, c, contractfuzz.Target{
		Base: s.url, Header: http.Header{}, Known: map[string][]any{"chainId": {"1337", "eip155:1337", "1"}, "method": methods},
	})
}
