package rpc

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
)

// BenchmarkSend sends to a server that does nothing. It measures the client, and net/http on
// both sides.
func BenchmarkSend(b *testing.B) {
	hash := chain.Hash{1}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var text json.RawMessage
		if err := json.NewDecoder(r.Body).Decode(&text); err != nil {
			panic(err)
		}
		switch {
		case text[0] == '[':
			var batch []struct{ ID json.RawMessage }
			if err := json.Unmarshal(text, &batch); err != nil {
				panic(err)
			}
			fmt.Fprintf(w, `[{"id":%s,"result":"0xa5bf"},{"id":%s,"result":{"number":"0x0","hash":"%s","parentHash":"%s","timestamp":"0x1"}}]`,
				batch[0].ID, batch[1].ID, hash, hash)
		default:
			fmt.Fprintf(w, `{"id":%s,"result":"%s"}`, idOf(text), hash)
		}
	}))
	defer server.Close()
	p, err := Open(b.Context(), Config{Chain: id, Endpoints: []Endpoint{{URL: server.URL}}})
	if err != nil {
		b.Fatal(err)
	}
	defer p.Close()
	raw := make([]byte, 190)
	b.ReportAllocs()
	b.SetParallelism(16)
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if got := p.Send(b.Context(), raw, hash, 0, tx.Sending{}); got[0].Class != tx.Taken {
				b.Errorf("%+v", got)
			}
		}
	})
}

func BenchmarkClassify(b *testing.B) {
	for b.Loop() {
		Classify(-32000, "nonce too low: next nonce 4, tx nonce 3")
	}
}

// BenchmarkParseBlock parses a block of 5,000 transactions, as hashes and whole.
func BenchmarkParseBlock(b *testing.B) {
	hash := chain.Hash{1}.String()
	whole := fmt.Sprintf(`{"hash":"%s","from":"%s","nonce":"0x7","nonceKey":"0x5","type":"0x76","input":"0x%0512d"}`, hash, chain.Address{1}, 0)
	for name, transaction := range map[string]string{"hashes": `"` + hash + `"`, "whole": whole} {
		b.Run(name, func(b *testing.B) {
			text := fmt.Sprintf(`{"number":"0x1","hash":"%s","parentHash":"%s","timestamp":"0x1","transactions":[%s]}`,
				hash, hash, strings.Repeat(transaction+",", 4_999)+transaction)
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				if seen, err := parseBlock(reply{result: json.RawMessage(text)}, 1); err != nil || len(seen.contents.Hashes) != 5_000 {
					b.Fatal(err)
				}
			}
		})
	}
}
