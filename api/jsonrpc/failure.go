package jsonrpc

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/tempo-watchtower/watchtower/api/rest"
	"github.com/tempo-watchtower/watchtower/commands"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
	"github.com/tempo-watchtower/watchtower/eventlog"
)

// Error codes. Sources: JSON-RPC 2.0, section 5.1; EIP-1474; EIP-7966 for codeStillWaiting;
// go-ethereum's rpc/errors.go for codeTimeout and codeTooLarge.
const (
	codeParse          = -32700
	codeInvalidRequest = -32600
	codeUnknownMethod  = -32601
	codeInvalidParams  = -32602
	codeInternal       = -32603
	codeServer         = -32000
	codeNotFound       = -32001
	codeTimeout        = -32002
	codeTooLarge       = -32003
	codeLimit          = -32005
	codeStillWaiting   = 4
)

// failure is the error of an answer.
type failure struct {
	code    int
	message string
	data    any // omitted if nil
}

func tooLarge() *failure { return &failure{code: codeTooLarge, message: "response too large"} }

// noRoom uses a code after which client libraries retry.
func noRoom() *failure {
	return &failure{code: codeLimit, message: "too many large responses are being sent: try again"}
}

func (f *failure) encode() json.RawMessage {
	return jsonOf(struct {
		Code    int    `json:"code"`
		Message string `json:"message"`
		Data    any    `json:"data,omitempty"`
	}{f.code, f.message, f.data})
}

func invalidParams(format string, args ...any) *failure {
	return &failure{code: codeInvalidParams, message: fmt.Sprintf(format, args...)}
}

// proxyFailure passes on a node's error, or says why there is no answer to pass on.
func (x *exchange) proxyFailure(err error) *failure {
	var declined interface {
		Declined() (code int, message string, data json.RawMessage)
	}
	var over interface{ Limit() int64 }
	limit, limited := withheld(err)
	switch {
	case errors.As(err, &declined):
		code, message, data := declined.Declined()
		f := &failure{code: code, message: message}
		if len(data) > 0 {
			f.data = data
		}
		return f
	case errors.As(err, &over):
		return tooLarge()
	case limited:
		return &failure{code: codeLimit, message: "no node may be called now: the limit is " + limit}
	case errors.Is(err, context.DeadlineExceeded):
		return &failure{code: codeTimeout, message: "request timed out"}
	}
	// Other errors may contain internals. Client libraries retry after this code.
	return &failure{code: codeInternal, message: fmt.Sprintf("no node of chain %s responds", x.chain)}
}

// withheld returns the limit that kept a call from being made.
func withheld(err error) (limit string, limited bool) {
	var kept interface{ Withheld() string }
	if !errors.As(err, &kept) {
		return "", false
	}
	return kept.Withheld(), true
}

// failureOf returns the JSON-RPC error for an error of the service.
func (x *exchange) failureOf(err error) *failure {
	if own := (*Error)(nil); errors.As(err, &own) {
		return &failure{code: own.Code, message: own.Message, data: own.Data}
	}
	p := x.problem(err)
	var malformed *chain.Malformed
	switch {
	case errors.As(err, &malformed):
		return malformedFailure(malformed, p)
	case errors.Is(err, tx.ErrAlreadyExpired):
		return &failure{code: codeServer, message: "transaction expired: " + p.Detail, data: p}
	case errors.Is(err, commands.ErrUnsupportedChain):
		return &failure{code: codeNotFound, message: p.Detail, data: p}
	case errors.Is(err, rest.ErrRateLimited): // client libraries retry after this code
		return &failure{code: codeLimit, message: p.Detail + ": try again", data: p}
	case commands.IsRefusal(err):
		return &failure{code: codeServer, message: p.Title, data: p}
	case errors.Is(err, eventlog.ErrUnknown):
		return &failure{code: codeInternal, message: "it is unknown whether the transaction was accepted: send it again", data: p}
	}
	return &failure{code: codeInternal, message: p.Title, data: p}
}

// malformedFailure starts with go-ethereum's wording, which wallets match, and adds the
// service's own detail.
func malformedFailure(m *chain.Malformed, p rest.Problem) *failure {
	f := &failure{code: codeServer, data: p}
	switch m.Fault {
	case chain.FaultHex:
		f.code, f.message = codeInvalidParams, "invalid argument 0: "+m.Detail
	case chain.FaultType:
		f.message = "transaction type not supported: " + m.Detail
	case chain.FaultRLP, chain.FaultTrailing, chain.FaultNonCanonical, chain.FaultOverflow:
		f.message = "rlp: " + m.Detail
	case chain.FaultSignature:
		f.message = "invalid sender: " + m.Detail
	case chain.FaultFeePayer:
		f.message = "invalid fee payer: " + m.Detail
	case chain.FaultUnprotected:
		f.message = "only replay-protected (EIP-155) transactions allowed over RPC"
	case chain.FaultWrongChain:
		f.message = "invalid chain id for signer: " + m.Detail
	case chain.FaultTooLarge:
		f.message = "oversized data: " + m.Detail
	default:
		f.message = "invalid transaction: " + m.Detail
	}
	return f
}
