package rig

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
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
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	res, err := client().Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close() //nolint:errcheck // read to its end
	answer, err := io.ReadAll(res.Body)
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
	if err := json.Unmarshal(answer, &parsed); err != nil {
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
