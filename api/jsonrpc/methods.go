package jsonrpc

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/tempo-watchtower/watchtower/domain/chain"
)

// method answers a call of a method that the service handles, alone or with a node.
type method func(s *server, ctx context.Context, x *exchange, c call) (json.RawMessage, *failure)

// own returns the implementation of a method that the service handles; nil for others.
func own(name string) method {
	switch name {
	case "eth_sendRawTransaction":
		return (*server).sendRawTransaction
	case "eth_sendRawTransactionSync":
		return (*server).sendRawTransactionSync
	case "eth_getTransactionReceipt":
		return (*server).transactionReceipt
	case "eth_getTransactionByHash":
		return (*server).transactionByHash
	case "eth_getTransactionCount":
		return (*server).transactionCount
	case "eth_chainId":
		return says(func(_ *server, id chain.ID) any { return quantity(uint64(id)) })
	case "net_version":
		return says(func(_ *server, id chain.ID) any { return id.String() })
	case "web3_clientVersion":
		return says(func(s *server, _ chain.ID) any { return s.Client })
	case "eth_accounts":
		return says(func(*server, chain.ID) any { return []string{} }) // the service holds no keys for clients
	}
	return nil
}

// own returns the implementation of a method, of this package or of another; nil for others.
func (s *server) own(name string) method {
	if other, ok := s.Methods[name]; ok {
		return other.method()
	}
	return own(name)
}

// ownMethods lists these methods, for the test of the documentation.
func ownMethods() []string {
	return []string{
		"eth_accounts", "eth_chainId", "eth_getTransactionByHash", "eth_getTransactionCount", "eth_getTransactionReceipt",
		"eth_sendRawTransaction", "eth_sendRawTransactionSync", "net_version", "web3_clientVersion",
	}
}

// proxiedMethods are the reads that a node answers. They change no state of the node, create no
// filter or subscription, and reveal nothing about the node's pool or configuration.
func proxiedMethods() []string {
	return []string{
		"eth_blobBaseFee", "eth_blockNumber", "eth_call", "eth_createAccessList", "eth_estimateGas", "eth_feeHistory",
		"eth_gasPrice", "eth_getBalance", "eth_getBlockByHash", "eth_getBlockByNumber", "eth_getBlockReceipts",
		"eth_getBlockTransactionCountByHash", "eth_getBlockTransactionCountByNumber", "eth_getCode", "eth_getLogs",
		"eth_getProof", "eth_getStorageAt", "eth_getTransactionByBlockHashAndIndex",
		"eth_getTransactionByBlockNumberAndIndex", "eth_getUncleCountByBlockHash", "eth_getUncleCountByBlockNumber",
		"eth_maxPriorityFeePerGas", "eth_simulateV1", "eth_syncing",
	}
}

// dispatch answers a call.
func (s *server) dispatch(ctx context.Context, x *exchange, c call) (json.RawMessage, *failure) {
	do := s.own(c.method)
	if _, proxied := slices.BinarySearch(proxiedMethods(), c.method); proxied {
		do = (*server).pass
	}
	switch {
	case do == nil:
		return nil, &failure{code: codeUnknownMethod, message: fmt.Sprintf("the method %s does not exist/is not available", shown(c.method))}
	case x.err != nil:
		return nil, x.failureOf(x.err)
	}
	return do(s, ctx, x, c)
}

// shownMax is how many bytes of the client's text an error repeats.
const shownMax = 64

func shown(s string) string {
	if len(s) > shownMax {
		s = s[:shownMax]
	}
	return strings.Trim(strconv.QuoteToASCII(s), `"`)
}

// says returns a method that takes no parameters.
func says(what func(s *server, id chain.ID) any) method {
	return func(s *server, _ context.Context, x *exchange, c call) (json.RawMessage, *failure) {
		if len(c.params) > 0 {
			return nil, invalidParams("too many arguments, want at most 0")
		}
		return jsonOf(what(s, x.chain)), nil
	}
}

// pass sends a call to a node.
func (s *server) pass(ctx context.Context, x *exchange, c call) (json.RawMessage, *failure) {
	return s.ask(ctx, x, c, nil)
}

// ask sends a call to a node whose result is usable, if there is one.
func (s *server) ask(ctx context.Context, x *exchange, c call, usable func(json.RawMessage) bool) (json.RawMessage, *failure) {
	ctx, cancel := context.WithTimeout(ctx, s.Limits.CallTimeout)
	defer cancel()
	params := jsonOf(orEmpty(c.params))
	limit := x.room.rest()
	result, err := x.proxy.Ask(ctx, x.client, c.method, params, limit, usable)
	x.weigh(len(result))
	if err != nil {
		if over := (interface{ Limit() int64 })(nil); errors.As(err, &over) {
			x.weigh(int(limit)) // as much may have been read
		}
		if _, limited := withheld(err); !limited && errors.Is(ctx.Err(), context.DeadlineExceeded) {
			err = ctx.Err()
		}
		return nil, x.proxyFailure(err)
	}
	return result, nil
}

func orEmpty(params []json.RawMessage) []json.RawMessage {
	if params == nil {
		return []json.RawMessage{}
	}
	return params
}

// quantity formats a number for JSON-RPC. Source: execution-apis, "Hex value encoding".
func quantity(n uint64) string { return "0x" + strconv.FormatUint(n, 16) }

// parseQuantity reads a result that must be a 64-bit number.
func parseQuantity(result json.RawMessage) (uint64, error) {
	text, ok := stringOf(result)
	if !ok || len(text) < 3 || text[:2] != "0x" {
		return 0, errors.New("not a quantity")
	}
	return strconv.ParseUint(text[2:], 16, 64)
}

// arguments refuses a call with too few or too many parameters, in go-ethereum's wording.
func arguments(c call, least, most int) *failure {
	switch n := len(c.params); {
	case n < least:
		return invalidParams("missing value for required argument %d", n)
	case n > most:
		return invalidParams("too many arguments, want at most %d", most)
	}
	return nil
}
