package jsonrpc

import (
	"fmt"
	"testing"
)

// BenchmarkSend compares REST and JSON-RPC over one connection: the time until the transaction
// is durable, as seen by a client.
func BenchmarkSend(b *testing.B) {
	for name, request := range map[string]func(raw []byte) (path, body string){
		"rpc": func(raw []byte) (string, string) {
			return "/rpc", fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"eth_sendRawTransaction","params":%s}`, hexParam(raw))
		},
		"rest": func(raw []byte) (string, string) {
			return "/v1/transactions", fmt.Sprintf(`{"chainId":%d,"transactions":%s}`, testChain, hexParam(raw))
		},
	} {
		b.Run(name, func(b *testing.B) {
			s := newStack(b)
			raws := make([][]byte, b.N)
			for i := range raws {
				raws[i], _ = signed(b, testChain, uint64(i))
			}
			b.ResetTimer()
			for _, raw := range raws {
				path, body := request(raw)
				if status, text, _ := s.post(path, body); status != 200 {
					b.Fatal(text)
				}
			}
		})
	}
}
