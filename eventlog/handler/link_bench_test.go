package handler_test

import (
	"crypto/rand"
	"encoding/binary"
	"testing"
	"time"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
	"github.com/tempo-watchtower/watchtower/eventlog"
	"github.com/tempo-watchtower/watchtower/eventlog/handler"
	"github.com/tempo-watchtower/watchtower/infra/embedded"
)

// BenchmarkLinkShare accepts transactions into an in-memory embedded store, and reports the
// share of the time that computing links takes.
func BenchmarkLinkShare(b *testing.B) {
	db, err := embedded.Open("", embedded.Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer db.Close() //nolint:errcheck // it is in memory
	h := handler.Handler[tx.State, tx.Command, tx.Event]{Store: db.Log(), Codec: tx.Codec()}
	at := time.Unix(1_800_000_000, 0).UTC()
	n := uint64(0)
	b.ReportAllocs()
	for b.Loop() {
		n++
		var hash chain.Hash
		binary.BigEndian.PutUint64(hash[:], n)
		o, err := handler.Begin(rand.Reader, eventlog.Meta{Correlation: eventlog.ID{1}, Actor: "bench"})
		if err != nil {
			b.Fatal(err)
		}
		wish := tx.Accept{Accepted: tx.Accepted{Chain: 42431, Hash: hash, Signature: chain.Secp256k1, Bytes: 200, RawHash: hash, At: at}}
		if _, err := h.HandleFrom(b.Context(), tx.Stream(42431, hash), handler.Result[tx.State]{}, wish, o); err != nil {
			b.Fatal(err)
		}
	}
	total := b.Elapsed()
	var accepted eventlog.Recorded
	for r, err := range db.Log().ReadStream(b.Context(), tx.Stream(42431, chain.Hash{7: 1}), 0) {
		if err != nil {
			b.Fatal(err)
		}
		accepted = r
	}
	began := time.Now()
	var link eventlog.Link
	for range n {
		link = link.Next(accepted.Stream, accepted.Version, accepted.Event)
	}
	b.ReportMetric(100*time.Since(began).Seconds()/total.Seconds(), "link-%")
}
