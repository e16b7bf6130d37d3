package scheduler_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tempo-watchtower/watchtower/commands"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
)

// A transaction is attempted again within the longest pause until it has ended, and never
// after that, unless its end is revoked.
func TestOnlyAnEndStopsAttempts(t *testing.T) {
	for seed := range uint64(4) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { endless(t, rand.New(rand.NewPCG(seed, 9))) })
		})
	}
}

func endless(t *testing.T, dice *rand.Rand) {
	db := open(t)
	h := handling(db)
	txs := make([]tx.Accepted, 40)
	for i := range txs {
		txs[i] = accepted(uint64(i))
		txs[i].Sender = chain.Address{byte(i)} // no transaction waits for another's nonce or account
		txs[i].Nonce = uint64(i % 20)
		if i%4 == 0 {
			txs[i].EligibleAt += uint64(dice.IntN(1200))
		}
	}
	pause := tx.DefaultSchedule().RebroadcastMax
	attempted, ended, back := 0, map[tx.Status]bool{}, 0
	were := map[chain.Hash]bool{}
	for range 150 {
		for range 1 + dice.IntN(8) {
			life(t, dice, h, txs)
		}
		if dice.IntN(5) == 0 {
			refuse(t, h, txs[dice.IntN(len(txs))])
		}
		feed(t, db.Log(), db.Work())
		<-time.After(pause)
		var want, got []string
		for _, a := range txs {
			r, err := h.Load(t.Context(), tx.Stream(id, a.Hash))
			check(t, err)
			s := r.State
			if !s.Sendable() {
				ended[s.Status], were[a.Hash] = true, s.Status != tx.StatusAbsent
				continue
			}
			if were[a.Hash] {
				back++
			}
			were[a.Hash] = false
			// A transaction that was sent once is eligible, even if our clock disagrees.
			if s.Attempt > 0 || a.EligibleAt <= uint64(time.Now().Unix()) { //nolint:gosec // after 1970
				want = append(want, a.Hash.String())
			}
		}
		leased, _, err := db.Work().Lease(t.Context(), id, "worker", time.Second, len(txs), len(txs))
		check(t, err)
		for _, w := range leased {
			got = append(got, w.Hash.String())
			check(t, db.Work().Done(t.Context(), "worker", []tx.Done{{
				Chain: id, Hash: w.Hash, Attempts: w.Attempts + 1, NextAt: time.Now().Add(time.Second), SentAt: time.Now(),
			}}))
		}
		slices.Sort(want)
		slices.Sort(got)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("to be attempted (-open +leased):\n%s", diff)
		}
		attempted += len(got)
	}
	if attempted < 100 || back == 0 {
		t.Errorf("%d attempts, %d taken back: the histories do not reach everything", attempted, back)
	}
	for _, s := range []tx.Status{tx.StatusExecuted, tx.StatusStale, tx.StatusInvalid, tx.StatusCanceled} {
		if !ended[s] {
			t.Errorf("nothing ended %s", s)
		}
	}
}

// refuse makes every node refuse a transaction for good.
func refuse(t *testing.T, h commands.Transactions, a tx.Accepted) {
	t.Helper()
	r, err := h.Load(t.Context(), tx.Stream(id, a.Hash))
	check(t, err)
	command(t, h, a.Hash, tx.Report{Attempt: r.State.Attempt + 1, Answers: []tx.Answer{{Class: tx.Permanent}}, Everyone: true, At: time.Now()})
}
