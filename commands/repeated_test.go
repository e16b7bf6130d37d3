package commands_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/tempo-watchtower/watchtower/commands"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
	"github.com/tempo-watchtower/watchtower/domain/payload"
	"github.com/tempo-watchtower/watchtower/eventlog"
)

// countedRows count the writes of payloads.
type countedRows struct {
	commands.PayloadRows
	writes atomic.Int64
	before func() // called before each Put; may be nil
}

func (c *countedRows) Put(ctx context.Context, rows []payload.Sealed) error {
	c.writes.Add(1)
	if c.before != nil {
		c.before()
	}
	return c.PayloadRows.Put(ctx, rows)
}

func (c *countedRows) Erase(ctx context.Context, id chain.ID, hashes []chain.Hash) error {
	c.writes.Add(1)
	return c.PayloadRows.Erase(ctx, id, hashes)
}

// A client that submits its own transaction again and again writes nothing. Bytes that the vault has
// lost are stored again, and bytes that it should not have are erased.
func TestRepetitionsWriteNothing(t *testing.T) {
	d := newDesk(t)
	rows := &countedRows{PayloadRows: d.Vault.Rows}
	d.Vault.Rows = rows
	raw, hash := plain(0)
	d.take(t, raw)
	repeat := func(when string, want int64) {
		t.Helper()
		rows.writes.Store(0)
		for _, a := range append(d.submit(t, raw), d.submit(t, raw, raw)...) {
			if a.Err != nil || !a.Known {
				t.Errorf("%s: known %v, %v", when, a.Known, a.Err)
			}
		}
		if n := rows.writes.Load(); n != want {
			t.Errorf("%s: %d writes, want %d", when, n, want)
		}
	}
	repeat("waiting", 0)
	check(t, rows.PayloadRows.Erase(t.Context(), moderato, []chain.Hash{hash}))
	repeat("without bytes", 1)
	if !d.kept(t, hash) {
		t.Error("lost bytes are not stored again")
	}
	d.handle(t, hash, tx.Cancel{Reason: "owner"})
	repeat("canceled, with bytes", 2)
	if d.kept(t, hash) {
		t.Error("the bytes of a canceled transaction are kept")
	}
	repeat("canceled", 0)
}

// A client submits a new transaction many times at once: its bytes are written once. Another client's
// submission of it does not wait.
func TestEqualSubmissionsTakeTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t)
		d.Turns = new(commands.Turns)
		release := make(chan struct{})
		rows := &countedRows{PayloadRows: d.Vault.Rows, before: func() { <-release }}
		d.Vault.Rows = rows
		raw, _ := plain(0)
		other, _ := plain(1)
		var all sync.WaitGroup
		submit := func(client string, raws ...[]byte) {
			all.Go(func() {
				answers, err := d.Batch(t.Context(), moderato, raws, commands.From(client), eventlog.Meta{})
				if err != nil || answers[0].Err != nil || answers[len(raws)-1].Err != nil {
					t.Errorf("%v, %+v", err, answers)
				}
			})
		}
		for range 20 {
			submit("ann", raw, other)
			submit("ann", other, raw)
		}
		synctest.Wait()
		if n := rows.writes.Load(); n != 1 {
			t.Errorf("%d writes of one client at once", n)
		}
		ended, end := context.WithCancel(t.Context())
		end()
		if _, err := d.Batch(ended, moderato, [][]byte{raw}, commands.From("ann"), eventlog.Meta{}); err == nil {
			t.Error("a request that has ended waits on")
		}
		submit("bob", raw)
		synctest.Wait()
		if n := rows.writes.Load(); n != 2 {
			t.Errorf("%d writes, want another client's too", n)
		}
		close(release)
		all.Wait()
		if n := rows.writes.Load(); n != 2 {
			t.Errorf("%d writes in all, want 2", n)
		}
	})
}
