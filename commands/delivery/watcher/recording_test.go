package watcher

import (
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tempo-watchtower/watchtower/commands"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
	"github.com/tempo-watchtower/watchtower/eventlog"
	"github.com/tempo-watchtower/watchtower/eventlog/handler"
	"github.com/tempo-watchtower/watchtower/eventlog/port"
	"github.com/tempo-watchtower/watchtower/infra/chain/chaintest"
	"github.com/tempo-watchtower/watchtower/infra/embedded"
)

// laboring is a log whose appends take a while, and which may fail.
type laboring struct {
	port.Store
	takes time.Duration
	fails atomic.Bool
	mu    sync.Mutex
	at    map[eventlog.Stream]time.Time // of the appends
}

func (l *laboring) Append(ctx context.Context, s eventlog.Stream, v eventlog.Version, events ...eventlog.Event) (eventlog.Appended, error) {
	time.Sleep(l.takes)
	if l.fails.Load() {
		return eventlog.Appended{}, errTrouble
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.at[s] = time.Now()
	return l.Store.Append(ctx, s, v, events...)
}

// recorder returns a watcher's run on a log whose appends take a tenth of a second.
func recorder(t *testing.T) (*run, *laboring) {
	db, err := embedded.Open("", embedded.Options{})
	must(t, err)
	t.Cleanup(func() { must(t, db.Close()) })
	log := &laboring{Store: db.Log(), takes: 100 * time.Millisecond, at: map[eventlog.Stream]time.Time{}}
	w := &Watcher{
		Chain: moderato, Transactions: commands.Transactions{Store: log, Codec: tx.Codec(), Random: rand.Reader},
		Now: time.Now, Log: slog.New(slog.DiscardHandler),
	}
	return w.start(nil), log
}

// includes returns n transactions of a client, which a block includes.
func includes(t *testing.T, r *run, log *laboring, client string, number uint64, n int) (all []entry) {
	t.Helper()
	block := chain.Block{Number: number, Hash: chain.Keccak(fmt.Append(nil, number))}
	h := commands.Transactions{Store: log.Store, Codec: tx.Codec(), Random: rand.Reader}
	for i := range n {
		hash := chain.Keccak(fmt.Append(nil, client, number, i))
		o, err := handler.Begin(rand.Reader, eventlog.Meta{Actor: "test"})
		must(t, err)
		_, err = h.Handle(t.Context(), tx.Stream(moderato, hash), tx.Accept{Accepted: tx.Accepted{Chain: moderato, Hash: hash, Client: client}}, o)
		must(t, err)
		all = append(all, r.receipt(tx.Work{Chain: moderato, Hash: hash, Client: client}, chain.Receipt{Block: block, Status: 1}))
	}
	return all
}

// recorded returns the time until the last of some receipts was recorded, and their number.
func (l *laboring) recorded(since time.Time, of []entry) (last time.Duration, n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, m := range of {
		if at, ok := l.at[tx.Stream(moderato, m.row.Hash)]; ok {
			last, n = max(last, at.Sub(since)), n+1
		}
	}
	return last, n
}

// A client with many transactions in a block delays neither the receipts of another client's in the
// same block nor the next blocks, and the board gets no block whose receipts are not all recorded.
func TestReceiptsAreRecordedInTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, log := recorder(t)
		crowd, few := includes(t, r, log, "mallory", 7, 20*commandsMax), includes(t, r, log, "alice", 7, 3)
		began := time.Now()
		r.recording.begin(t.Context(), slices.Concat(crowd, few))
		if took := time.Since(began); took != recordWait {
			t.Errorf("the step waited %s", took)
		}
		if last, n := log.recorded(began, few); n != 3 || last > log.takes {
			t.Errorf("%d receipts of the other client are recorded, the last one after %s", n, last)
		}
		if r.recording.below() != 7 || r.recording.full(7+recordBlocks) || !r.recording.full(8+recordBlocks) {
			t.Errorf("block %d is the first one with receipts left", r.recording.below())
		}
		next := includes(t, r, log, "alice", 8, 3)
		again := time.Now()
		r.recording.begin(t.Context(), next)
		if took := time.Since(again); took != 0 {
			t.Errorf("the next block waited %s", took)
		}
		r.recording.running.Wait()
		if last, n := log.recorded(again, next); n != 3 || last > 2*log.takes {
			t.Errorf("%d receipts of the next block are recorded, the last one after %s", n, last)
		}
		// A step does not wait if the receipts before took long, and waits again if they did not.
		for _, waits := range []time.Duration{0, log.takes} {
			began := time.Now()
			r.recording.begin(t.Context(), includes(t, r, log, "alice", 9+uint64(waits), 3))
			if took := time.Since(began); took != waits {
				t.Errorf("a step waited %s, want %s", took, waits)
			}
			r.recording.running.Wait()
		}
		if _, n := log.recorded(began, crowd); n != len(crowd) || r.recording.below() < 1<<63 {
			t.Errorf("%d receipts of the crowd are recorded; block %d is open", n, r.recording.below())
		}
	})
}

// Receipts of a block that has left the chain are not recorded any more. If some are being recorded,
// the watcher waits for them, and then revokes their verdicts.
func TestReceiptsOfALostBlockAreDropped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, log := recorder(t)
		log.takes = time.Second
		lost, stay := includes(t, r, log, "mallory", 8, 3*commandsMax), includes(t, r, log, "alice", 7, 3)
		r.recording.begin(t.Context(), slices.Concat(lost, stay))
		must(t, r.recording.keep(t.Context(), map[chain.Hash]bool{stay[0].block.Hash: true}))
		_, before := log.recorded(time.Time{}, lost)
		r.recording.running.Wait()
		if _, n := log.recorded(time.Time{}, lost); n != before || n > commandsMax || r.recording.has(lost[len(lost)-1].row.Hash) {
			t.Errorf("%d receipts of the lost block are recorded, %d of them later", n, n-before)
		}
		if _, n := log.recorded(time.Time{}, stay); n != 3 {
			t.Errorf("%d receipts of the block that stays are recorded", n)
		}
	})
}

// A receipt that could not be recorded is tried again in the next step.
func TestFailedReceiptIsRecordedLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, log := recorder(t)
		some := includes(t, r, log, "alice", 7, 3)
		log.fails.Store(true)
		r.recording.begin(t.Context(), some)
		if r.recording.news() == nil || r.recording.news() != nil || r.recording.below() != 7 {
			t.Error("the failure is not told once, or its block counts as read")
		}
		log.fails.Store(false)
		r.recording.begin(t.Context(), nil)
		if _, n := log.recorded(time.Time{}, some); n != 3 || r.recording.below() == 7 {
			t.Errorf("%d receipts are recorded", n)
		}
	})
}

// gated is a log whose appends to some streams wait while they are shut.
type gated struct {
	port.Store
	shut map[eventlog.Stream]bool
	open chan struct{}
}

func (g gated) Append(ctx context.Context, s eventlog.Stream, v eventlog.Version, events ...eventlog.Event) (eventlog.Appended, error) {
	if g.shut[s] && events[0].Name == "tx.finalized.v1" {
		<-g.open
	}
	return g.Store.Append(ctx, s, v, events...)
}

// Steps do not wait for the final verdicts of a client with many transactions, and another client's
// are recorded meanwhile.
func TestSealingHoldsUpNobody(t *testing.T) {
	w := newWorld(t, 1)
	w.apart = true
	w.step()
	gate := gated{Store: w.log.Store, shut: map[eventlog.Stream]bool{}, open: make(chan struct{})}
	w.log.Store = gate
	open := sync.OnceFunc(func() { close(gate.open) })
	defer open()
	hang := time.AfterFunc(time.Minute, open) // without the fix, a step waits until then
	defer hang.Stop()
	var hashes []chain.Hash
	for block := range 2 {
		var raws [][]byte
		for n := range 20 {
			s, client := sender(100*block+n), "mallory"
			if n == 0 {
				client = "alice"
			}
			hash := w.submit(client, s)
			hashes, raws = append(hashes, hash), append(raws, chaintest.EncodePlain(s))
			gate.shut[tx.Stream(moderato, hash)] = client == "mallory"
		}
		w.feed()
		w.mine(raws...)
		w.step()
		w.run.recording.running.Wait()
		w.feed()
	}
	for range 3 {
		w.mine()
		w.step()
		w.feed()
	}
	for i, hash := range hashes {
		if s := w.state(hash); s.Status != tx.StatusExecuted || i%20 > 0 && s.Sealed {
			t.Fatalf("transaction %d is %s, sealed %v, while sealing waits", i, s.Status, s.Sealed)
		}
	}
	for !w.state(hashes[0]).Sealed || !w.state(hashes[20]).Sealed {
		if w.step(); t.Context().Err() != nil || !hang.Stop() {
			t.Fatal("alice's are not sealed")
		}
		hang.Reset(time.Minute)
	}
	open()
	w.run.sealing.running.Wait()
	for i, hash := range hashes {
		if !w.state(hash).Sealed {
			t.Errorf("transaction %d is not sealed", i)
		}
	}
}

// A process that ends before a block's receipts are all recorded leaves the block to the next one.
func TestBlockWithReceiptsLeftIsReadAgain(t *testing.T) {
	w := newWorld(t, 100)
	w.step()
	raw, hash := w.accept(sender(1))
	at := w.mine(raw)
	w.log.Store = &laboring{Store: w.log.Store, at: map[eventlog.Stream]time.Time{}}
	broken := w.log.Store.(*laboring)
	broken.fails.Store(true)
	if err := w.run.step(t.Context()); err == nil || w.run.tip().Number != at.Number {
		t.Errorf("at block %d: %v", w.run.tip().Number, err)
	}
	w.mine()
	if err := w.run.step(t.Context()); err == nil {
		t.Error("no step tells of the receipt")
	}
	blocks, err := w.Board.Blocks(t.Context(), moderato)
	must(t, err)
	if last := blocks[len(blocks)-1]; last.Number != at.Number-1 {
		t.Errorf("block %d is remembered", last.Number)
	}
	broken.fails.Store(false)
	w.restart()
	w.step()
	if s := w.state(hash); s.Status != tx.StatusExecuted {
		t.Errorf("it is %s", s.Status)
	}
	w.truthful()
}
