package scheduler_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tempo-watchtower/watchtower/commands/delivery/scheduler"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
	"github.com/tempo-watchtower/watchtower/eventlog"
	"github.com/tempo-watchtower/watchtower/infra/chain/chaintest"
)

// before is the queue as written by the version before clients.
type before struct{ scheduler.Queue }

func (b before) Unfilled(context.Context, tx.Ref, int) ([]tx.Ref, error) { return nil, nil }

func (b before) Apply(ctx context.Context, reader string, from, to eventlog.Position, changes []tx.Change) error {
	for _, c := range changes {
		if c.Open != nil {
			c.Open.Client, c.Open.Bytes, c.Open.Claimed = "", 0, false
		}
	}
	return b.Queue.Apply(ctx, reader, from, to, changes)
}

// ends is a queue whose process ends after a number of batches were filled in.
type ends struct {
	scheduler.Queue
	parts int
	end   func()
	most  int // most changes in one batch
}

func (e *ends) Apply(ctx context.Context, reader string, from, to eventlog.Position, changes []tx.Change) error {
	if len(changes) > 0 && changes[0].Refill != nil {
		if e.most = max(e.most, len(changes)); e.parts == 0 {
			e.end()
			return context.Canceled
		}
		e.parts--
	}
	return e.Queue.Apply(ctx, reader, from, to, changes)
}

// After an upgrade, rows of the version before clients get their missing fields from the
// log, in batches, also if the process ends in the middle. Waiting forged claims then count
// only for their client.
func TestRowsOfBeforeClientsAreFilledIn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const many = 250
		db := open(t)
		d := deliver(t, stored{db.Log(), db.Payloads(), db.Work(), db.Work()}, chaintest.Rules{}, time.Now)
		var claims []chain.Signed
		for n := range uint64(many) {
			claims = append(claims, forged(n))
		}
		attack := d.submitted("mallory", claims[:100]...)
		attack = append(attack, d.submitted("mallory", claims[100:200]...)...)
		attack = append(attack, d.submitted("mallory", claims[200:]...)...)
		d.submitted("wallet", own(1000))
		o := tx.ConfirmGroup{Block: chain.Block{Number: 7, Hash: chain.Hash{7}}, At: time.Now()}
		if !command(t, d.submit.Transactions, attack[0], o) {
			t.Fatal("not confirmed")
		}
		run := func(q scheduler.Queue, ctx context.Context, until func() bool) {
			t.Helper()
			ctx, stop := context.WithCancel(ctx)
			f := feeder(db.Log(), db.Work())
			f.Queue = q
			ended := make(chan error, 1)
			go func() { ended <- f.Run(ctx) }()
			synctest.Wait()
			if !until() {
				t.Error("not done")
			}
			stop()
			if err := <-ended; !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
		}
		unfilled := func() int {
			refs, err := db.Work().Unfilled(t.Context(), tx.Ref{}, 2*many)
			check(t, err)
			return len(refs)
		}
		run(before{db.Work()}, t.Context(), func() bool { return unfilled() == many+1 })
		sequence := chain.Sequence{Chain: id, Sender: victim, Key: chain.NonceKey{31: 1}}
		next, err := db.Work().NextFree(t.Context(), sequence, 0, nil)
		check(t, err)
		if next != many {
			t.Fatalf("of before, the next free nonce is %d", next)
		}

		ctx, end := context.WithCancel(t.Context())
		first := &ends{Queue: db.Work(), parts: 1, end: end}
		run(first, ctx, func() bool { return unfilled() == many+1-first.most })
		if first.most == 0 || first.most > many/2 {
			t.Errorf("%d rows in one go", first.most)
		}
		run(db.Work(), t.Context(), func() bool { return unfilled() == 0 })
		if next, err = db.Work().NextFree(t.Context(), sequence, 0, nil); err != nil || next != 1 {
			t.Errorf("the next free nonce is %d, want 1: nonce 0 is confirmed, the others are claims; %v", next, err)
		}
		for client, want := range map[string]int64{"mallory": many, "wallet": 1, "": 0} {
			if got, _, err := db.Work().Usage(t.Context(), scheduler.Reader, client); err != nil || got.Transactions != want {
				t.Errorf("%q has %d waiting, not %d; %v", client, got.Transactions, want, err)
			}
		}
		found, err := db.Work().Find(t.Context(), id, attack[1:2])
		if check(t, err); len(found) != 1 || !found[0].Claimed || found[0].Client != "mallory" || found[0].Bytes == 0 {
			t.Errorf("%+v", found)
		}
	})
}
