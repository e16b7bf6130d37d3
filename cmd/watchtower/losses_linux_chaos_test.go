//go:build chaos && linux

package main_test

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tempo-watchtower/watchtower/cmd/program/app"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
	"github.com/tempo-watchtower/watchtower/domain/payload"
	"github.com/tempo-watchtower/watchtower/eventlog"
	"github.com/tempo-watchtower/watchtower/proof/promises"
	"github.com/tempo-watchtower/watchtower/proof/rig"
)

// standing returns the payments that the service has.
func (b *box) standing(t *testing.T, payments []rig.Payment) map[chain.Hash]bool {
	t.Helper()
	all := map[chain.Hash]bool{}
	for _, p := range payments {
		events, err := rig.Events(b.ctx, b.service.URL, p.Hash)
		if err == nil && len(events) > 0 {
			all[p.Hash] = true
		}
	}
	return all
}

// lost counts the acknowledged payments that are missing, and the unacknowledged payments that
// exist.
func lost(acked, standing map[chain.Hash]bool) (lost, unheard int) {
	for hash := range acked {
		if !standing[hash] {
			lost++
		}
	}
	return lost, len(standing) - (len(acked) - lost)
}

// unwritten counts the broadcasts to the node whose attempt is missing from the present log.
func (b *box) unwritten(t *testing.T, payments []rig.Payment) (n int) {
	t.Helper()
	since := map[chain.Hash]time.Time{}
	for _, p := range payments {
		if events, err := rig.Events(b.ctx, b.service.URL, p.Hash); err == nil && len(events) > 0 {
			since[p.Hash] = events[0].At
		}
	}
	for _, d := range b.proxy.Deliveries() {
		signed, err := app.Decode(d.Raw)
		check(t, err)
		if at, written := since[signed.Hash]; !written || d.At.Before(at) {
			n++
		}
	}
	return n
}

// without counts the transactions in the log that may have to be sent, but whose bytes or key
// are missing from the store.
func (b *box) without(t *testing.T) (n int) {
	t.Helper()
	store, err := b.inspect(b.ctx)
	check(t, err)
	defer store.Close() //nolint:errcheck // it was only read
	needed := map[payload.Ref]bool{}
	for after := eventlog.Position(0); ; {
		page, err := store.Page(b.ctx, after, 1000)
		check(t, err)
		if len(page) == 0 {
			break
		}
		for _, e := range page {
			after = e.Position
			if id, hash, err := tx.ParseStream(e.Stream); err == nil { // it is a transaction's stream
				needed[payload.Ref{Chain: id, Hash: hash}] = !strings.HasPrefix(e.Name, "tx.finalized.")
			}
		}
	}
	maps.DeleteFunc(needed, func(_ payload.Ref, needed bool) bool { return !needed })
	bytes, keys, err := store.Payloads(b.ctx, slices.Collect(maps.Keys(needed)))
	check(t, err)
	for ref := range needed {
		if !bytes[ref] || !keys[ref] {
			n++
		}
	}
	return n
}

// judgeLosses judges a store that is expected to have lost acknowledged payments, sent attempts,
// and some signed bytes. The judge must find exactly these losses; otherwise it could not be
// trusted to find any.
func (b *box) judgeLosses(t *testing.T, lost, without, unwritten int) {
	t.Helper()
	losses := map[promises.Number]int{promises.P1: lost, promises.P2: without, promises.P8: unwritten}
	for n, want := range losses {
		if delete(b.broken, n); want > 0 {
			b.broken[n] = "the store has lost it, as it had to"
		}
	}
	b.judged = false
	b.judge(t)
	for n, want := range losses {
		if b.blamed[n] != want {
			t.Errorf("%s is broken %d times, and the judge tells of %d", n, want, b.blamed[n])
		}
	}
}
