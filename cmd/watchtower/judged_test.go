package main_test

import (
	"context"
	"iter"
	"testing"
	"time"

	"github.com/tempo-watchtower/watchtower/cmd/devnet/wallet"
	"github.com/tempo-watchtower/watchtower/cmd/internal/rig"
	"github.com/tempo-watchtower/watchtower/cmd/watchtower/app"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/event"
	"github.com/tempo-watchtower/watchtower/domain/promise"
	"github.com/tempo-watchtower/watchtower/infra/embedded"
	"github.com/tempo-watchtower/watchtower/infra/postgres"
)

func decodeTempo(raw []byte) (chain.Signed, error) { return app.Decode(raw) }

// settle ends all trouble, has everything end, and judges what has been.
func (c *campaign) settle(t *testing.T) {
	t.Helper()
	for _, l := range c.leaks {
		l.calm.Store(true)
	}
	for _, r := range c.replicas {
		r.Env = nil
		check(t, r.Start(c.ctx))
	}
	s := c.replicas[0]
	lost := 0
	for hash, acked := range c.acked {
		if _, err := rig.Get(c.ctx, s.URL, hash); acked && err != nil {
			lost++
			t.Errorf("acknowledged and lost: %v", err)
		}
	}
	for _, i := range c.items {
		if !c.acked[i.Hash] {
			c.post(i, s.URL)
		}
	}
	c.cancel(c.items) // what came after the first cancel waits for what was canceled
	for _, i := range c.items {
		if !c.acked[i.Hash] {
			continue // it was refused: its window had closed
		}
		if _, err := rig.Await(c.ctx, s.URL, i.Hash, over); err != nil {
			t.Fatalf("%s: %v", i.kind, err)
		}
	}
	c.wait(3 * time.Second) // pools may still hold what was canceled
	executed := 0
	for _, i := range c.items {
		if c.acked[i.Hash] && c.ended(t, s.URL, i) {
			executed++
		}
	}
	c.recorded(t, s.URL)
	paid := uint64(0)
	for _, to := range c.tos {
		n, err := rig.Balance(c.ctx, c.chain.URL(), wallet.PathUSD, to)
		check(t, err)
		paid += n
	}
	doubled := int(paid) - executed
	if doubled != 0 {
		t.Errorf("%d payments were made by %d transactions", paid, executed)
	}
	for _, r := range c.replicas {
		check(t, r.Stop(c.ctx))
	}
	t.Log(c.told(lost, doubled, c.judge(t)))
}

func over(t rig.Transaction) bool {
	return t.Finalized || canceled(t) || t.Canceled && t.Status == "executed"
}

// ended holds what is said of a transaction against the chain.
func (c *campaign) ended(t *testing.T, url string, i item) (executed bool) {
	t.Helper()
	got, err := rig.Get(c.ctx, url, i.Hash)
	check(t, err)
	var receipt *struct {
		BlockHash chain.Hash `json:"blockHash"`
	}
	check(t, rig.Call(c.ctx, c.chain.URL(), &receipt, "eth_getTransactionReceipt", i.Hash))
	switch {
	case got.Status == "executed" && (receipt == nil || receipt.BlockHash != got.Receipt.BlockHash):
		t.Errorf("%s %s is said to be executed", i.kind, i.Hash)
	case got.Status != "executed" && receipt != nil && !got.Canceled:
		t.Errorf("%s %s is executed, and said to be %s", i.kind, i.Hash, got.Status)
	case got.Status != "executed" && (i.kind == "alone" || i.kind == "sequence"):
		t.Errorf("%s %s ended %s", i.kind, i.Hash, got.Status)
	}
	return receipt != nil
}

// judge holds a stopped campaign's log, what nodes were handed, and what clients were
// told against the promises.
func (c *campaign) judge(t *testing.T) promise.Figures {
	t.Helper()
	// The nodes are two doors to one proxy, at which the work of four replicas meets.
	judge := promise.New(promise.Settings{Decode: app.Decode, Rate: 20})
	told := func(violations []promise.Violation) {
		for _, v := range violations {
			t.Error(v)
		}
	}
	sends := c.proxy.Deliveries()
	hand := func(before time.Time) {
		for len(sends) > 0 && (before.IsZero() || sends[0].At.Before(before)) {
			told(judge.Sent(promise.Sent{Chain: rig.TempoChain, Node: "proxy", Raw: sends[0].Raw, At: sends[0].At}))
			sends = sends[1:]
		}
	}
	c.events(t, func(all iter.Seq2[event.Batch, error]) {
		for batch, err := range all {
			check(t, err)
			for _, e := range batch.Events {
				hand(e.At)
				told(judge.Event(e))
			}
		}
	})
	hand(time.Time{})
	for _, call := range c.calls {
		told(judge.Call(call))
	}
	told(judge.Finish(promise.End{Now: time.Now(), Quiet: true}))
	return judge.Figures()
}

// events reads the whole log of a stopped service.
func (w *world) events(t *testing.T, read func(iter.Seq2[event.Batch, error])) {
	t.Helper()
	dir, dsn := w.engine()
	if dir != "" {
		db, err := embedded.Open(dir, embedded.Options{})
		check(t, err)
		defer func() { check(t, db.Close()) }()
		read(db.Log().ReadAll(w.ctx, 0, event.Filter{}, 1000))
		return
	}
	db, err := postgres.Open(w.ctx, dsn, postgres.Options{})
	check(t, err)
	defer func() { check(t, db.Close(context.Background())) }()
	read(db.Log.ReadAll(w.ctx, 0, event.Filter{}, 1000))
}
