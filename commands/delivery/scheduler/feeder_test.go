package scheduler_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/tempo-watchtower/watchtower/commands"
	"github.com/tempo-watchtower/watchtower/commands/delivery/scheduler"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
	"github.com/tempo-watchtower/watchtower/eventlog"
	"github.com/tempo-watchtower/watchtower/eventlog/port"
	"github.com/tempo-watchtower/watchtower/infra/embedded"
)

// feed runs a feeder until it has folded the log up to its present head.
func feed(t *testing.T, log port.Store, work *embedded.Work) {
	t.Helper()
	head, err := log.Head(t.Context())
	check(t, err)
	ctx, stop := context.WithCancel(t.Context())
	f := feeder(log, work)
	f.Fed = func(at eventlog.Position) {
		if at >= head {
			stop()
		}
	}
	if at, err := work.Checkpoint(t.Context(), scheduler.Reader); err != nil || at >= head {
		check(t, err)
		stop()
		return
	}
	if err := f.Run(ctx); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
}

// life draws the next thing that happens to some transaction.
func life(t *testing.T, dice *rand.Rand, h commands.Transactions, txs []tx.Accepted) {
	a := txs[dice.IntN(len(txs))]
	r, err := h.Load(t.Context(), tx.Stream(id, a.Hash))
	check(t, err)
	number := uint64(dice.IntN(20))
	block := chain.Block{Number: number, Hash: chain.Keccak(fmt.Append(nil, number, dice.IntN(2))), Time: uint64(time.Now().Unix())}
	at := time.Now()
	answer := []tx.Answer{
		{Class: tx.Taken}, {Class: tx.Unknown}, {Class: tx.Retry, Cause: tx.Funds}, {Class: tx.Retry, Cause: tx.NonceTooHigh}, {Class: tx.Permanent},
	}[dice.IntN(5)]
	command(t, h, a.Hash, []tx.Command{
		tx.Accept{Accepted: a},
		tx.Accept{Accepted: a},
		tx.Report{Attempt: r.State.Attempt + 1 + dice.IntN(2), Answers: []tx.Answer{answer}, Everyone: dice.IntN(8) == 0, At: at},
		tx.Report{Attempt: r.State.Attempt + 1, Answers: []tx.Answer{answer}, At: at},
		tx.SeeReceipt{Receipt: chain.Receipt{Block: block, Status: number % 2}, At: at},
		tx.SeeNonce{Block: block, Current: number, At: at},
		tx.SeeTime{Block: block, At: at},
		tx.LoseBlock{Was: r.State.Block, Now: block, At: at},
		tx.Finalize{Final: block, At: at},
		tx.Finalize{Final: block, At: at},
		tx.Cancel{At: at},
		tx.Erase{At: at},
		tx.Retire{At: at},
	}[dice.IntN(13)])
}

// A queue rebuilt from the log equals the queue that was kept up to date all the time,
// except for counters between two events.
func TestRebuild(t *testing.T) {
	for seed := range uint64(3) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { rebuild(t, rand.New(rand.NewPCG(seed, seed))) })
		})
	}
}

func rebuild(t *testing.T, dice *rand.Rand) {
	live, rebuilt := open(t), open(t)
	h := handling(live)
	txs := make([]tx.Accepted, 64)
	hashes := make([]chain.Hash, len(txs))
	for i := range txs {
		txs[i] = accepted(uint64(i))
		txs[i].Nonce = uint64(i / 4) // rivals, and more than a window in each sequence
		txs[i].NonceKey = []chain.NonceKey{{31: 1}, {31: 2}, {31: 1}, chain.ExpiringKey}[i%4]
		txs[i].Window.Before = uint64(i%3) * uint64(time.Now().Unix()+120)
		hashes[i] = txs[i].Hash
	}
	for range 200 {
		for range 1 + dice.IntN(5) {
			life(t, dice, h, txs)
		}
		feed(t, live.Log(), live.Work())
		<-time.After(time.Duration(dice.IntN(1500)) * time.Millisecond)
		leased, _, err := live.Work().Lease(t.Context(), id, "worker", time.Second, 3, 3)
		check(t, err)
		for _, w := range leased {
			w.Attempts++
			check(t, live.Work().Done(t.Context(), "worker", []tx.Done{{
				Chain: id, Hash: w.Hash, Attempts: w.Attempts, NextAt: time.Now().Add(time.Second), SentAt: time.Now(), WaitNonce: uint64(dice.IntN(3)),
			}}))
		}
	}
	feed(t, live.Log(), rebuilt.Work())

	want, err := live.Work().Find(t.Context(), id, hashes)
	check(t, err)
	got, err := rebuilt.Work().Find(t.Context(), id, hashes)
	check(t, err)
	phases := map[tx.Phase]int{}
	for i, w := range want {
		phases[w.Phase]++
		if i < len(got) && got[i].Attempts > w.Attempts {
			t.Errorf("%s: %d attempts out of nothing, were %d", w.Hash, got[i].Attempts, w.Attempts)
		}
	}
	counters := cmpopts.IgnoreFields(tx.Work{}, "Attempts", "Note", "SentAt", "NextAt", "WaitNonce", "WaitSince")
	if diff := cmp.Diff(want, got, counters); diff != "" {
		t.Error(diff)
	}
	if phases[tx.Open] == 0 || phases[tx.Watched] == 0 || phases[tx.Announced] == 0 || phases[tx.Sealed] == 0 || len(want) == len(txs) {
		t.Errorf("the histories do not reach everything: %v of %d", phases, len(txs))
	}
}

// Two feeders never both apply: a feeder that finds the checkpoint moved stops without
// changes.
func TestFeederStopsWhenAnotherFeeds(t *testing.T) {
	db := open(t)
	h := handling(db)
	first, second := accepted(1), accepted(2)
	command(t, h, first.Hash, tx.Accept{Accepted: first})
	fed := make(chan eventlog.Position, 10)
	f := feeder(db.Log(), db.Work())
	f.Fed = func(at eventlog.Position) { fed <- at }
	ended := make(chan error, 1)
	go func() { ended <- f.Run(t.Context()) }()
	at := <-fed
	check(t, db.Work().MoveCheckpoint(t.Context(), scheduler.Reader, at, at+1)) // another feeder

	command(t, h, second.Hash, tx.Accept{Accepted: second})
	if err := <-ended; !errors.Is(err, eventlog.ErrMoved) {
		t.Errorf("%v, want ErrMoved", err)
	}
	if rows, err := db.Work().Find(t.Context(), id, []chain.Hash{first.Hash, second.Hash}); err != nil || len(rows) != 1 {
		t.Errorf("%d rows, %v; want only what was fed before", len(rows), err)
	}
	select {
	case at := <-fed:
		t.Errorf("told that it fed up to %d", at)
	default:
	}
}

// A feeder that skipped an unreadable event would silently lose a transaction.
func TestFeederStopsAtWhatItCannotRead(t *testing.T) {
	for name, bad := range map[string]struct {
		stream eventlog.Stream
		event  eventlog.Event
	}{
		"unknown name":   {tx.Stream(id, chain.Hash{9}), eventlog.Event{Name: "tx.strange.v9", Data: []byte(`{}`)}},
		"unknown fields": {tx.Stream(id, chain.Hash{9}), eventlog.Event{Name: "tx.mined.v1", Data: []byte(`{"receipt":7}`)}},
		"no transaction": {"tx-nothing", eventlog.Event{Name: "tx.retired.v1", Data: []byte(`{}`)}},
	} {
		t.Run(name, func(t *testing.T) {
			db := open(t)
			good := accepted(1)
			command(t, handling(db), good.Hash, tx.Accept{Accepted: good})
			feed(t, db.Log(), db.Work())
			before, err := db.Work().Checkpoint(t.Context(), scheduler.Reader)
			check(t, err)
			bad.event.ID = eventlog.ID{1}
			appended, err := db.Log().Append(t.Context(), bad.stream, 0, bad.event)
			check(t, err)

			err = feeder(db.Log(), db.Work()).Run(t.Context())
			if err == nil || !strings.Contains(err.Error(), fmt.Sprint("position ", appended.Position)) {
				t.Errorf("%v, want an error that names position %d", err, appended.Position)
			}
			if at, err := db.Work().Checkpoint(t.Context(), scheduler.Reader); err != nil || at != before {
				t.Errorf("checkpoint at %d, %v; want %d", at, err, before)
			}
		})
	}
}

// Other streams' events move the checkpoint and nothing else.
func TestFeederSkipsOtherStreams(t *testing.T) {
	db := open(t)
	appended, err := db.Log().Append(t.Context(), "lane-1", 0, eventlog.Event{ID: eventlog.ID{1}, Name: "lane.opened.v1", Data: []byte(`{}`)})
	check(t, err)
	feed(t, db.Log(), db.Work())
	if at, err := db.Work().Checkpoint(t.Context(), scheduler.Reader); err != nil || at != appended.Position {
		t.Errorf("checkpoint at %d, %v; want %d", at, err, appended.Position)
	}
}
