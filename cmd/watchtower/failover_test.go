package main_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/tempo-watchtower/watchtower/cmd/devnet/wallet"
	"github.com/tempo-watchtower/watchtower/proof/failover"
	"github.com/tempo-watchtower/watchtower/proof/rig"
)

// Leaders of an EventStoreDB cluster are killed and resign under a steady load. No request is
// refused, no accepted payment is lost, and none is made twice. docs/howto/eventstoredb.md lists the
// variables for another cluster, and for longer runs.
func TestLeaderChanges(t *testing.T) { // not parallel: it measures response times
	settings := failover.ReadSettings(t)
	cluster, url := failover.Open(t)
	w := newWorld(t, func(t *testing.T, dir string) []string { return eventStoreAt(t, dir, url) }, "--block-time", "1")
	ctx, cancel := context.WithTimeout(w.history.Record(context.Background()), patience+settings.For)
	defer cancel()
	w.ctx = ctx
	s := w.service(t)
	check(t, s.Start(ctx))
	payments, to := rig.Payments(9500, settings.Requests())
	sent := make([]time.Time, len(payments))
	figures := failover.Run(ctx, t, cluster, settings, func(ctx context.Context, n int) error {
		sent[n] = time.Now()
		results, err := rig.Submit(ctx, s.URL, rig.TempoChain, payments[n].Raw)
		if err == nil && !results[0].OK {
			err = errors.New(results[0].Problem.Code + ": " + results[0].Problem.Detail)
		}
		return err
	})
	t.Log(figures)
	figures.Judge(t)
	for n := range figures.Refused { // a client repeats a request that was refused
		w.insist(t, payments[n:n+1], 1, s.URL)
	}
	lost := 0
	for _, p := range payments {
		if _, err := rig.Await(ctx, s.URL, p.Hash, rig.Executed); err != nil {
			lost++
			t.Errorf("accepted and lost: %v", err)
		}
	}
	paid, err := rig.Balance(ctx, w.chain.URL(), wallet.PathUSD, to)
	check(t, err)
	w.observe(t)
	t.Logf("%d lost, %d paid twice; from request to block %s", lost, int(paid)-len(payments)+lost, failover.Percentiles(w.mined(payments, sent)))
	w.paidOnce(t, to, len(payments))
	check(t, s.Stop(ctx))
}

// mined returns for each payment the time from its request to the end of the second in which its
// block was made. Payments without a block are left out.
func (w *world) mined(payments []rig.Payment, sent []time.Time) (after []time.Duration) {
	for n, p := range payments {
		if receipt, ok := w.ledger.Receipt(p.Hash); ok {
			block, _ := w.ledger.At(receipt.Block.Number)
			after = append(after, time.Unix(int64(block.Time)+1, 0).Sub(sent[n]))
		}
	}
	return after
}
