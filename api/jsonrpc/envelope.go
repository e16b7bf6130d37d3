package jsonrpc

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/tempo-watchtower/watchtower/api/rest"
)

// call is one element of a request.
type call struct {
	id      json.RawMessage // as sent; nil for a notification
	method  string
	params  []json.RawMessage
	refused *failure // set if the element is no valid call
}

// null is the id in an answer to a call without a readable id.
const null = "null"

// The most members and parameters of a call. A call with more is refused before it is decoded.
// No method takes more than four parameters.
const membersMax, paramsMax = 64, 16

// parse reads a request: a call or a batch of calls. Calls are counted and charged before they
// are decoded. A request that is refused as a whole is answered with one error. err is the
// error of charge.
func parse(body []byte, itemsMax int, charge func(calls int) error) (calls []call, batch bool, refused *failure, err error) {
	body = bytes.TrimLeft(body, " \t\r\n")
	n := 1
	if batch = len(body) > 0 && body[0] == '['; batch {
		n = rest.CountElements(body, itemsMax)
	}
	if n > itemsMax {
		return nil, batch, &failure{code: codeInvalidRequest, message: fmt.Sprintf("batch too large: at most %d calls", itemsMax)}, nil
	}
	if err := charge(max(n, 1)); err != nil {
		return nil, batch, nil, err
	}
	if err := strict(body); err != nil {
		return nil, batch, &failure{code: codeParse, message: "parse error: " + err.Error()}, nil
	}
	if !batch {
		return []call{parseCall(body)}, false, nil, nil
	}
	var items []json.RawMessage
	if err := json.Unmarshal(body, &items); err != nil {
		return nil, true, &failure{code: codeParse, message: "parse error"}, nil
	}
	if len(items) == 0 {
		return nil, true, &failure{code: codeInvalidRequest, message: "empty batch"}, nil
	}
	for _, item := range items {
		calls = append(calls, parseCall(item))
	}
	return calls, true, nil, nil
}

// parseCall reads one call object. It ignores unknown members, as wallets add their own.
func parseCall(text json.RawMessage) call {
	invalid := func(id json.RawMessage, why string) call {
		return call{id: id, refused: &failure{code: codeInvalidRequest, message: "invalid request: " + why}}
	}
	if text[0] == '{' && rest.CountElements(text, membersMax) > membersMax {
		return invalid(json.RawMessage(null), fmt.Sprintf("a call has at most %d members", membersMax))
	}
	var members map[string]json.RawMessage // a map matches names exactly; a struct would ignore case
	if json.Unmarshal(text, &members) != nil || members == nil {
		return invalid(json.RawMessage(null), "a call is an object")
	}
	c := call{id: members["id"]}
	if c.id != nil && !isID(c.id) {
		return invalid(json.RawMessage(null), "an id is a string, a number or null")
	}
	var version string
	if json.Unmarshal(members["jsonrpc"], &version) != nil || version != "2.0" {
		return invalid(orNull(c.id), `the member jsonrpc must be "2.0"`)
	}
	method, ok := stringOf(members["method"])
	if !ok {
		return invalid(orNull(c.id), "the member method must be a string")
	}
	c.method = method
	switch params := members["params"]; {
	case params == nil, string(params) == null:
	case params[0] == '[' && rest.CountElements(params, paramsMax) > paramsMax:
		c.refused = &failure{code: codeInvalidParams, message: fmt.Sprintf("too many arguments, want at most %d", paramsMax)}
	case params[0] == '[':
		if json.Unmarshal(params, &c.params) != nil {
			return invalid(orNull(c.id), "params must be an array")
		}
	case params[0] == '{':
		c.refused = &failure{code: codeInvalidParams, message: "parameters are taken by position: params must be an array"}
	default:
		return invalid(orNull(c.id), "params must be an array")
	}
	if c.refused != nil {
		c.id = orNull(c.id)
	}
	return c
}

// isID reports whether a value is a string, a number or null.
func isID(value json.RawMessage) bool {
	c := value[0]
	return c == '"' || c == '-' || '0' <= c && c <= '9' || c == 'n'
}

func orNull(id json.RawMessage) json.RawMessage {
	if id == nil {
		return json.RawMessage(null)
	}
	return id
}

// stringOf reads a value that must be a string.
func stringOf(value json.RawMessage) (s string, ok bool) {
	if len(value) == 0 || value[0] != '"' {
		return "", false
	}
	return s, json.Unmarshal(value, &s) == nil
}

// encode writes an answer with a result, which is JSON, or with an error.
func encode(id, result json.RawMessage, refused *failure) []byte {
	id = orNull(id)
	name, value := "result", result
	if refused != nil {
		name, value = "error", refused.encode()
	}
	text := make([]byte, 0, len(value)+len(id)+len(`{"jsonrpc":"2.0","id":,"result":}`))
	text = append(text, `{"jsonrpc":"2.0","id":`...)
	text = append(text, id...)
	text = append(text, `,"`...)
	text = append(text, name...)
	text = append(text, `":`...)
	text = append(text, value...)
	return append(text, '}')
}

// jsonOf encodes one of this package's values; it panics if that fails.
func jsonOf(v any) json.RawMessage {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(v); err != nil {
		panic(fmt.Sprintf("jsonrpc: encode %T: %v", v, err))
	}
	return bytes.TrimSuffix(text.Bytes(), []byte("\n"))
}
