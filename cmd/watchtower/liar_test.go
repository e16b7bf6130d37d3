package main_test

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/tempo-watchtower/watchtower/domain/chain"
)

// liar is a gate with well-formed but false answers.
type liar struct {
	mu       sync.Mutex
	kept     []chain.Hash            // broadcasts that it claimed to accept
	inserted map[chain.Hash]inserted // those it claims are mined, by block
	turns    int
}

type inserted struct {
	number string // of the block, as JSON
	hashes []chain.Hash
}

func (l *liar) serve(g *gate, w http.ResponseWriter, r *http.Request, body []byte) {
	var batch []question
	single := json.Unmarshal(body, &batch) != nil
	if single {
		batch = make([]question, 1)
		if json.Unmarshal(body, &batch[0]) != nil {
			panic(http.ErrAbortHandler)
		}
	}
	answers := make([]answer, len(batch))
	for i, q := range batch {
		answers[i] = l.answer(r.Context(), g, q)
	}
	if single {
		_ = json.NewEncoder(w).Encode(answers[0])
		return
	}
	_ = json.NewEncoder(w).Encode(answers)
}

func (l *liar) answer(ctx context.Context, g *gate, q question) answer {
	l.mu.Lock()
	l.turns++
	turn := l.turns
	l.mu.Unlock()
	says := func(format string, args ...any) answer {
		return answer{Version: "2.0", ID: q.ID, Result: fmt.Appendf(nil, format, args...)}
	}
	switch q.Method {
	case "eth_sendRawTransaction": // it drops half of them, and renames the other half
		digits := strings.TrimPrefix(strings.Trim(string(q.Params[0]), `"`), "0x")
		raw, err := hex.DecodeString(digits)
		if err != nil {
			panic(http.ErrAbortHandler)
		}
		hash := chain.Keccak(raw)
		l.mu.Lock()
		l.kept = append(l.kept, hash)
		l.mu.Unlock()
		if turn%2 == 0 {
			return says(`"%s"`, chain.Keccak(hash[:]))
		}
		return says(`"%s"`, hash)
	case "eth_getTransactionCount":
		return says(`"0x8000000000000000"`)
	case "eth_call":
		return says(`"0x%064x"`, uint64(1)<<63)
	case "eth_blockNumber":
		if turn%3 == 0 {
			return says(`"0x10000000000"`)
		}
	}
	if string(q.Params0()) == `"latest"` && turn%5 == 0 {
		q.Params[0] = json.RawMessage(`"0x1"`) // a stale head
	}
	text, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": q.ID, "method": q.Method, "params": q.Params})
	if err != nil {
		panic(err)
	}
	var truth answer
	if json.Unmarshal(g.forward(ctx, text), &truth) != nil {
		panic(http.ErrAbortHandler)
	}
	truth.Result = l.embroider(q, truth.Result, turn)
	return truth
}

// Params0 is the first parameter.
func (q question) Params0() json.RawMessage {
	if len(q.Params) == 0 {
		return nil
	}
	return q.Params[0]
}

// embroider adds dropped transactions to blocks, and receipts for them; now and then it adds a
// head that does not exist.
func (l *liar) embroider(q question, result json.RawMessage, turn int) json.RawMessage {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch q.Method {
	case "eth_getBlockByNumber", "eth_getBlockByHash":
		return l.block(result, string(q.Params0()) == `"latest"` && turn%7 == 0)
	case "eth_getBlockReceipts":
		var receipts []json.RawMessage
		var of chain.Hash
		if json.Unmarshal(q.Params0(), &of) != nil || json.Unmarshal(result, &receipts) != nil {
			return result
		}
		for _, hash := range l.inserted[of].hashes {
			receipts = append(receipts, fakeReceipt(hash, of, l.inserted[of].number))
		}
		return must(json.Marshal(receipts))
	case "eth_getTransactionReceipt":
		var hash chain.Hash
		if json.Unmarshal(q.Params0(), &hash) != nil || string(result) != "null" {
			return result
		}
		for of, in := range l.inserted {
			if slices.Contains(in.hashes, hash) {
				return fakeReceipt(hash, of, in.number)
			}
		}
	}
	return result
}

func (l *liar) block(result json.RawMessage, future bool) json.RawMessage {
	var block map[string]json.RawMessage
	var hash chain.Hash
	if json.Unmarshal(result, &block) != nil || block == nil || json.Unmarshal(block["hash"], &hash) != nil || string(block["number"]) == `"0x0"` {
		return result
	}
	if future {
		block["number"], block["hash"] = json.RawMessage(`"0x100000"`), json.RawMessage(`"`+chain.Keccak(hash[:]).String()+`"`)
		return must(json.Marshal(block))
	}
	if _, ok := l.inserted[hash]; !ok {
		n := min(len(l.kept), 3)
		l.inserted[hash] = inserted{string(block["number"]), slices.Clone(l.kept[:n])}
		l.kept = l.kept[n:]
	}
	var hashes []chain.Hash
	if json.Unmarshal(block["transactions"], &hashes) != nil {
		return result
	}
	block["transactions"] = must(json.Marshal(append(hashes, l.inserted[hash].hashes...)))
	return must(json.Marshal(block))
}

func fakeReceipt(hash, block chain.Hash, number string) json.RawMessage {
	return fmt.Appendf(nil, `{"transactionHash":"%s","blockHash":"%s","blockNumber":%s,"transactionIndex":"0x0","status":"0x1","gasUsed":"0x5208"}`,
		hash, block, number)
}
