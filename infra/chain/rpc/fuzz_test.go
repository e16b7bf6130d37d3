package rpc

import (
	"encoding/json"
	"testing"
)

// Any body decodes to as many whole replies as there were calls, or to an error.
func FuzzReply(f *testing.F) {
	for _, body := range []string{
		`[{"jsonrpc":"2.0","id":12,"result":null},{"id":10,"result":"0x1"},{"id":11,"error":{"code":-32000,"message":"no","data":{}}}]`,
		`{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"no batches"}}`, `{"id":10,"result":[]}`, `{}`, `[]`, `null`, `<html>`,
		`[{"id":10,"result":1},{"id":10,"result":1},{"id":11}]`, `{"id":10,"result":"0x`, `{"id":10.0,"Error":{"CODE":1e9}}`,
	} {
		f.Add([]byte(body), uint8(1))
		f.Add([]byte(body), uint8(3))
	}
	f.Fuzz(func(t *testing.T, body []byte, n uint8) {
		calls := 1 + int(n%4)
		replies, refused, err := decode(body, 10, calls)
		switch {
		case err != nil || refused != nil:
			if err != nil && refused != nil || replies != nil {
				t.Fatalf("%v, %v, %v", replies, refused, err)
			}
		case len(replies) != calls:
			t.Fatalf("%d replies to %d calls", len(replies), calls)
		}
		for i, r := range replies {
			if (r.err == nil) == (r.result == nil) || r.result != nil && !json.Valid(r.result) {
				t.Fatalf("reply %d: %s, %v", i, r.result, r.err)
			}
		}
		var q quantity
		if q.UnmarshalText(body) == nil {
			if text, _ := q.MarshalText(); len(text) != len(body) {
				t.Fatalf("%q is the quantity %s", body, text)
			}
		}
	})
}
