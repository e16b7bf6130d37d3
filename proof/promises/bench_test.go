package promises_test

import (
	"encoding/json"
	"runtime"
	"testing"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
	"github.com/tempo-watchtower/watchtower/eventlog"
	"github.com/tempo-watchtower/watchtower/proof/promises"
)

// BenchmarkJudge judges lives of four events each, and reports the memory used per ended life.
func BenchmarkJudge(b *testing.B) {
	codec := tx.Codec()
	block := blockOf(7, "main")
	facts := []tx.Event{
		alpha.accepted(epoch), tx.Broadcast{Attempt: 1, Answers: []tx.Answer{{Class: tx.Taken}}},
		minedIn(block), tx.Finalized{Verdict: tx.StatusExecuted, Block: block, By: blockOf(9, "main")},
	}
	names, data := make([]string, len(facts)), make([]json.RawMessage, len(facts))
	for i, e := range facts {
		names[i], data[i], _ = codec.Encode(e)
	}
	judge := promises.New(promises.Settings{})
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	position := eventlog.Position(0)
	for n := range b.N {
		a := alpha.accepted(epoch)
		a.Nonce = uint64(n)
		a.Hash = chain.Keccak([]byte{byte(n), byte(n >> 8), byte(n >> 16), byte(n >> 24)})
		a.RawHash = a.Hash
		stream := tx.Stream(testChain, a.Hash)
		_, accepted, _ := codec.Encode(a)
		for i := range facts {
			position++
			r := eventlog.Recorded{
				Event:  eventlog.Event{ID: eventlog.DeriveID(stream, eventlog.ID{}, i), Name: names[i], Data: data[i]},
				Stream: stream, Version: eventlog.Version(i + 1), Position: position, At: epoch,
			}
			if i == 0 {
				r.Data = accepted
			}
			if found := judge.Event(r); len(found) > 0 {
				b.Fatal(found)
			}
		}
	}
	b.StopTimer()
	runtime.GC()
	runtime.ReadMemStats(&after)
	b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/float64(b.N), "kept-B/tx")
	b.ReportMetric(4*float64(b.N)/b.Elapsed().Seconds(), "events/s")
	runtime.KeepAlive(judge)
}
