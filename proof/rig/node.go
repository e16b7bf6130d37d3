package rig

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
)

// Call makes one JSON-RPC call to a node.
func Call(ctx context.Context, url string, into any, method string, params ...any) error {
	if params == nil {
		params = []any{}
	}
	body, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
	if err != nil {
		return err
	}
	told, err := ask(ctx, http.MethodPost, url, nil, body)
	if err != nil {
		return err
	}
	var parsed struct {
		Result json.RawMessage
		Error  *struct {
			Code    int
			Message string
		}
	}
	if err := json.Unmarshal(told.body, &parsed); err != nil {
		return fmt.Errorf("%s: %w", method, err)
	}
	if parsed.Error != nil {
		return fmt.Errorf("%s: %d %s", method, parsed.Error.Code, parsed.Error.Message)
	}
	if into == nil {
		return nil
	}
	return json.Unmarshal(parsed.Result, into)
}
