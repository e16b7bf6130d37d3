package jsonrpc

import (
	"context"
	"encoding/json"

	"github.com/tempo-watchtower/watchtower/api/rpcroute"
	"github.com/tempo-watchtower/watchtower/domain/chain"
)

// Codes of errors for methods of other packages. Sources: see codeParse.
const (
	CodeUnknownMethod = codeUnknownMethod
	CodeInvalidParams = codeInvalidParams
	CodeInternal      = codeInternal
	CodeServer        = codeServer
	CodeNotFound      = codeNotFound
	CodeStillWaiting  = codeStillWaiting
)

// Method answers a call of a method of another package. The result is encoded as JSON. An error that
// is no [*Error] is answered as an error of the service.
type Method func(ctx context.Context, c Call) (result any, err error)

// Call is one call of a request, on a chain that is served.
type Call struct {
	rpcroute.Request
	On     chain.ID
	Batch  bool // the call is one of a batch
	Params []json.RawMessage
	// Node sends a read to a node of the chain, like a call of the client.
	Node func(ctx context.Context, method string, params ...any) (json.RawMessage, error)
}

// Error is an error of an answer.
type Error struct {
	Code    int
	Message string
	Data    any // omitted if nil
}

func (e *Error) Error() string { return e.Message }

// method returns the method as this package calls its own.
func (m Method) method() method {
	return func(s *server, ctx context.Context, x *exchange, c call) (json.RawMessage, *failure) {
		node := func(ctx context.Context, name string, params ...any) (json.RawMessage, error) {
			of := call{method: name}
			for _, p := range params {
				of.params = append(of.params, jsonOf(p))
			}
			result, f := s.ask(ctx, x, of, isSomething)
			if f != nil {
				return nil, &Error{f.code, f.message, f.data}
			}
			return result, nil
		}
		result, err := m(ctx, Call{Request: x.request, On: x.chain, Batch: x.batch, Params: c.params, Node: node})
		if err != nil {
			return nil, x.failureOf(err)
		}
		return jsonOf(result), nil
	}
}
