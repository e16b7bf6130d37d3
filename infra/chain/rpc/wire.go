package rpc

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
)

// call is one method with its parameters.
type call struct {
	method string
	params []any
}

// reply is a node's reply to one call: a result (possibly the JSON null), or an error, which is
// a *NodeError.
type reply struct {
	result json.RawMessage
	err    error
}

type request struct {
	Version string `json:"jsonrpc"`
	ID      uint64 `json:"id"`
	Method  string `json:"method"`
	Params  []any  `json:"params"`
}

type response struct {
	ID     json.RawMessage `json:"id"`
	Result json.RawMessage `json:"result"`
	Error  *struct {
		Code    int             `json:"code"`
		Message string          `json:"message"`
		Data    json.RawMessage `json:"data"`
	} `json:"error"`
}

// encode writes one call as an object and several as a batch, with ids from
// first upwards.
func encode(calls []call, first uint64) ([]byte, error) {
	requests := make([]request, len(calls))
	for i, c := range calls {
		params := c.params
		if params == nil {
			params = []any{}
		}
		requests[i] = request{"2.0", first + uint64(i), c.method, params}
	}
	if len(requests) == 1 {
		return json.Marshal(requests[0])
	}
	return json.Marshal(requests)
}

// decode matches the replies in a body to n calls with ids from first upwards, in any order.
// One error object in place of a batch's replies, or without an id, is returned as refused: the
// node accepted none of the calls.
func decode(body []byte, first uint64, n int) (replies []reply, refused *NodeError, err error) {
	body = bytes.TrimSpace(body)
	var responses []response
	if len(body) > 0 && body[0] == '[' {
		err = json.Unmarshal(body, &responses)
	} else {
		responses = make([]response, 1)
		err = json.Unmarshal(body, &responses[0])
	}
	if err != nil {
		return nil, nil, fmt.Errorf("reply is not JSON-RPC: %w", trim(err))
	}
	if body[0] != '[' && responses[0].Error != nil && (n > 1 || string(responses[0].ID) == "null") {
		return nil, responses[0].nodeError(), nil
	}
	if len(responses) != n {
		return nil, nil, fmt.Errorf("%d replies to %d calls", len(responses), n)
	}
	replies = make([]reply, n)
	seen := make([]bool, n)
	for _, r := range responses {
		id, err := strconv.ParseUint(string(r.ID), 10, 64)
		if err != nil || id < first || id-first >= uint64(n) || seen[id-first] {
			return nil, nil, fmt.Errorf("reply to another call: id %.40q", r.ID)
		}
		seen[id-first] = true
		switch {
		case r.Error != nil:
			replies[id-first].err = r.nodeError()
		case r.Result == nil:
			return nil, nil, fmt.Errorf("reply has neither result nor error")
		default:
			replies[id-first].result = r.Result
		}
	}
	return replies, nil, nil
}

func (r response) nodeError() *NodeError {
	return &NodeError{Code: r.Error.Code, Message: r.Error.Message, Data: r.Error.Data}
}

// trim shortens a decoder's error so that it does not quote much of the body.
func trim(err error) error {
	const most = 120
	if s := err.Error(); len(s) > most {
		return fmt.Errorf("%s…", s[:most])
	}
	return err
}

// quantity is a number in JSON-RPC form: 0x and hex digits without leading zeros. Source:
// execution-apis, "Hex value encoding".
type quantity uint64

func (q quantity) MarshalText() ([]byte, error) {
	return []byte("0x" + strconv.FormatUint(uint64(q), 16)), nil
}

func (q *quantity) UnmarshalText(b []byte) error {
	digits, ok := strings.CutPrefix(string(b), "0x")
	n, err := strconv.ParseUint(digits, 16, 64)
	if !ok || err != nil || digits[0] == '+' || (digits[0] == '0' && digits != "0") {
		return fmt.Errorf("%.40q is not a quantity of 64 bits", b)
	}
	*q = quantity(n)
	return nil
}
