package main

import (
	"encoding/binary"
	"fmt"
	"slices"
	"time"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
	"github.com/tempo-watchtower/watchtower/eventlog"
)

// stages is the number of events of a delivered transaction.
const stages = 4

// life is the usual history of the i-th transaction: accepted, accepted by a node, mined, final.
func life(i int) []tx.Event {
	at := time.Unix(1_800_000_000, 0).Add(time.Duration(i) * time.Millisecond).UTC()
	block := chain.Block{Number: uint64(i / 100), Hash: name("block", i/100), Parent: name("block", i/100-1), Time: uint64(at.Unix())}
	by := chain.Block{Number: block.Number + 1, Hash: name("block", i/100+1), Parent: block.Hash, Time: block.Time + 1}
	hash := name("transaction", i)
	sender := name("sender", i%1000)
	key := name("key", i)
	return []tx.Event{
		tx.Accepted{
			Chain: 42431, Hash: hash, Type: 0x76, Sender: chain.Address(sender[:20]), Signature: chain.Secp256k1,
			NonceKey: chain.NonceKey(key), EligibleAt: uint64(at.Unix()), Bytes: 230, RawHash: hash, At: at,
		},
		tx.Broadcast{
			Attempt: 1, At: at.Add(5 * time.Millisecond),
			Answers: []tx.Answer{{Endpoint: "node-1", Class: tx.Taken, Took: 1234567}},
		},
		tx.Mined{
			Receipt: chain.Receipt{Block: block, Index: uint64(i % 100), Status: 1, GasUsed: 50_000, EffectiveGasPrice: "20000000000"},
			At:      at.Add(time.Second),
		},
		tx.Finalized{Verdict: tx.StatusExecuted, Block: block, By: by, At: at.Add(2 * time.Second)},
	}
}

// name is a hash derived from a word and a number.
func name(word string, i int) chain.Hash {
	return chain.Keccak([]byte(word), binary.BigEndian.AppendUint64(nil, uint64(i))) //nolint:gosec // any number will do
}

// written is one event, ready to be appended.
type written struct {
	stream   eventlog.Stream
	expected eventlog.Version
	event    eventlog.Event
}

// inFlight is the number of transactions in flight: as many as with hundreds per second on a
// chain with a block a second.
const inFlight = 2000

// write encodes the histories of n transactions. The events of one element may be appended in
// any order, after the elements before. bytes is the mean size of an event's data.
func write(n int) (steps [][]written, bytes float64, err error) {
	codec := tx.Codec()
	total := 0
	for wave := range slices.Chunk(indices(n), inFlight) {
		var byStage [stages][]written
		for _, i := range wave {
			events := life(i)
			stream := tx.Stream(42431, events[0].(tx.Accepted).Hash)
			for stage, e := range events {
				kind, data, err := codec.Encode(e)
				if err != nil {
					return nil, 0, fmt.Errorf("encode %s: %w", kind, err)
				}
				total += len(data)
				byStage[stage] = append(byStage[stage], written{stream, eventlog.Version(stage), eventlog.Event{ //nolint:gosec // below 4
					ID: eventlog.DeriveID(stream, eventlog.ID{15: 1}, stage), Name: kind, Data: data,
					Meta: eventlog.Meta{Correlation: eventlog.ID{1}, Causation: eventlog.ID{2}, Actor: "bench"},
				}})
			}
		}
		steps = append(steps, byStage[:]...)
	}
	return steps, float64(total) / float64(stages*n), nil
}
