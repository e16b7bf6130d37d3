package watcher

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
	"github.com/tempo-watchtower/watchtower/infra/chain/chaintest"
)

// behalf is the node in a client's name. Its reads wait for release if there is one.
type behalf struct {
	Lookup
	release <-chan struct{}
	reads   *tally
	client  string
}

// tally counts reads by client and method.
type tally struct {
	mu    sync.Mutex
	reads map[string]int
}

func (t *tally) add(client, method string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.reads == nil {
		t.reads = map[string]int{}
	}
	t.reads[client+" "+method]++
}

func (b behalf) wait(ctx context.Context, method string) error {
	b.reads.add(b.client, method)
	if b.release == nil {
		return nil
	}
	select {
	case <-b.release:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (b behalf) SureNonces(ctx context.Context, at chain.Block, s []chain.Sequence) ([]uint64, error) {
	if err := b.wait(ctx, "nonces"); err != nil {
		return nil, err
	}
	return b.Lookup.SureNonces(ctx, at, s)
}

func (b behalf) FindReceipt(ctx context.Context, hash chain.Hash, at chain.Block) (*chain.Receipt, error) {
	if err := b.wait(ctx, "receipt"); err != nil {
		return nil, err
	}
	return b.Lookup.FindReceipt(ctx, hash, at)
}

// Transactions behind a nonce gap that expire together cost a question for their sequence's nonce,
// and none for their receipts, also when their expiry is sealed.
func TestExpiryBehindAGapLooksForNoReceipt(t *testing.T) {
	const n = 200
	w := newWorld(t, 2)
	w.step()
	var hashes []chain.Hash
	for i := range uint64(n) {
		s := w.windowed(0, 60)
		s.Nonce = 1 + i
		hashes = append(hashes, w.submit("mallory", s))
	}
	w.feed()
	asked := map[string]int{}
	next := func() {
		w.mineAt(uint64(w.clock.now().Unix()) + 100)
		for method, count := range w.ask() {
			asked[method] += count
		}
		w.feed()
	}
	for range 4 {
		next()
	}
	for _, hash := range hashes {
		if s := w.state(hash); s.Status != tx.StatusExpired || !s.Sealed {
			t.Fatalf("one is %s, sealed %v", s.Status, s.Sealed)
		}
	}
	if asked["eth_getTransactionReceipt"] != 0 || asked["eth_call"] > 10 {
		t.Errorf("asked %v", asked)
	}
}

// A nonce that was used means that a block may hold the expired transaction: its receipt is looked
// for, after the nonce.
func TestExpiryOfAUsedNonceLooksForTheReceipt(t *testing.T) {
	w := newWorld(t, 100)
	w.step()
	expired := w.windowed(0, 60)
	raw := chaintest.EncodePlain(expired)
	w.mine(raw)
	w.step() // before it is accepted: the block's transactions are not ours
	hash := w.submit("alice", expired)
	w.feed()
	w.mineAt(uint64(w.clock.now().Unix()) + 100)
	w.step()
	if s := w.state(hash); s.Status != tx.StatusExecuted {
		t.Errorf("it is %s", s.Status)
	}
}

// The reads that settle a client's transactions are made in its name. A client whose reads wait
// delays neither the blocks nor the expiry, the rivals and the sealing of another's transactions.
func TestSettlingIsInTheClientsName(t *testing.T) {
	w := newWorld(t, 2)
	w.apart = true
	w.step()
	var reads tally
	release := make(chan struct{})
	w.run.For = func(client string) Lookup {
		b := behalf{Lookup: w.lens.Node, reads: &reads, client: client}
		if client == "mallory" {
			b.release = release
		}
		return b
	}
	w.lens.failing = func(call string) error { // the service's own reads
		if call == "FindReceipt" || call == "SureNonces" {
			return fmt.Errorf("%s: %w", call, errTrouble)
		}
		return nil
	}
	hashes, rivals := map[string][]chain.Hash{}, [][]byte{}
	for i, client := range []string{"mallory", "alice", "bob"} {
		late := w.windowed(0, 60)
		late.Sender, late.Nonce = chain.Address{1, byte(i)}, 7
		stale := plain(0)
		stale.Sender = chain.Address{2, byte(i)}
		hashes[client] = []chain.Hash{w.submit(client, late), w.submit(client, stale)}
		rivals = append(rivals, rivalOf(stale))
	}
	w.feed()
	w.mine(rivals...)
	w.step()
	w.feed()
	for range 4 {
		w.mineAt(uint64(w.clock.now().Unix()) + 100)
		w.step()
		w.feed()
	}
	want := map[string]string{"mallory": "queued queued", "alice": "expired stale_by_nonce", "bob": "expired stale_by_nonce"}
	for client, hashes := range hashes {
		late, stale := w.state(hashes[0]), w.state(hashes[1])
		if got := fmt.Sprint(late.Status, " ", stale.Status); got != want[client] {
			t.Errorf("%s's transactions are %s", client, got)
		}
		if client != "mallory" && !(late.Sealed && stale.Sealed) {
			t.Errorf("%s's verdicts are not sealed", client)
		}
	}
	reads.mu.Lock()
	if reads.reads["mallory nonces"] != 1 || reads.reads["mallory receipt"] != 1 {
		t.Errorf("each of mallory's reads is made once at a time: %v", reads.reads)
	}
	reads.mu.Unlock()
	close(release)
	w.run.settlers.running.Wait()
	for range 4 {
		w.feed()
		w.mineAt(uint64(w.clock.now().Unix()) + 100)
		w.step()
	}
	for _, hash := range hashes["mallory"] {
		if s := w.state(hash); !s.Settled() {
			t.Errorf("when its reads go on, it is %s", s.Status)
		}
	}
}

// A client's expired transactions, more than a settler settles, and all unsettled, hide none of
// another's.
func TestExpiryOfOneHidesNoOthers(t *testing.T) {
	w := newWorld(t, 100)
	w.step()
	var reads tally
	w.run.For = func(client string) Lookup {
		if client == "mallory" {
			return &lens{Node: w.lens.Node, failing: func(string) error { return errTrouble }}
		}
		return behalf{Lookup: w.lens.Node, reads: &reads, client: client}
	}
	s := w.windowed(0, 60)
	for i := range rowsMax + 1 {
		s.Sender, s.Nonce = chain.Address{9}, uint64(1+i)
		w.submit("mallory", s)
	}
	s = w.windowed(0, 90)
	hash := w.submit("alice", s)
	w.feed()
	w.mineAt(uint64(w.clock.now().Unix()) + 100)
	w.step()
	if s := w.state(hash); s.Status != tx.StatusExpired {
		t.Errorf("it is %s", s.Status)
	}
}
