package scheduler_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tempo-watchtower/watchtower/commands/delivery/scheduler"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
	"github.com/tempo-watchtower/watchtower/eventlog"
)

// asked counts the calls of Lease.
type asked struct {
	scheduler.Queue
	times atomic.Int64
}

func (q *asked) Lease(ctx context.Context, id chain.ID, holder string, ttl time.Duration, limit, repeats int) ([]tx.Work, time.Duration, error) {
	q.times.Add(1)
	return q.Queue.Lease(ctx, id, holder, ttl, limit, repeats)
}

// Transactions that are repeated often and slowly keep no other from its first attempt. The
// queue is not asked for them while their slots are full.
func TestFirstAttemptsHaveTheirShare(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const repeated = 40
		db, made := open(t), &attempts{}
		fill(t, db.Work(), repeated, now)
		q := &asked{Queue: db.Work()}
		w := worker(q, "a", made)
		w.Poll = time.Minute
		w.Attempt = func(_ context.Context, work tx.Work) tx.Done {
			made.add("a", work)
			if work.Attempts > 0 {
				<-time.After(2 * time.Second)
			}
			return tx.Done{Chain: id, Hash: work.Hash, Attempts: work.Attempts + 1, SentAt: time.Now(), NextAt: time.Now()}
		}
		stop := run(t, w)
		<-time.After(time.Minute)
		before := q.times.Load()
		for i := range 20 {
			a := accepted(uint64(1000 + i))
			at := eventlog.Position(repeated + i)
			check(t, db.Work().Apply(t.Context(), scheduler.Reader, at, at+1, []tx.Change{{Chain: id, Hash: a.Hash, Open: &tx.Work{
				Chain: id, Hash: a.Hash, Sender: chain.Address{9, byte(i)}, Phase: tx.Open, NextAt: time.Now(),
			}}}))
			w.Wake()
			<-time.After(time.Second)
		}
		if times := q.times.Load() - before; times > 20*12 {
			t.Errorf("the queue was asked %d times in 20 s", times)
		}
		stop()
		firsts, repeats := 0, 0
		for _, a := range made.all() {
			late := a.at.Sub(a.work.NextAt)
			switch {
			case a.work.Attempts > 0:
				repeats++
			case late > 10*time.Millisecond:
				t.Errorf("a first attempt was late by %s", late)
			default:
				firsts++
			}
		}
		// Six of eight slots, each for two seconds, for 80 s.
		if firsts != repeated+20 || repeats < 200 || repeats > 6*42 {
			t.Errorf("%d first attempts of %d, %d repeats", firsts, repeated+20, repeats)
		}
	})
}
