package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/tempo-watchtower/watchtower/api/webguard"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/infra/chain/chaintest"
	"github.com/tempo-watchtower/watchtower/infra/chain/tempo"
	"github.com/tempo-watchtower/watchtower/proof/rig"
)

// node is a simulated Tempo chain in this process, behind some endpoints that count calls and
// record the times of sends.
type node struct {
	*chaintest.Chain
	doors   []*chaintest.Node
	urls    []string
	servers []*http.Server
	stop    context.CancelFunc
	parts   sync.WaitGroup

	mu     sync.Mutex
	known  map[chain.Hash]chain.Signed // transactions made here, whose signatures need no check
	made   map[uint64]time.Time        // time of each block
	blocks chan struct{}               // closed and replaced with each block
}

// startNode starts a chain with doors equal endpoints and a block at each interval.
func startNode(ctx context.Context, doors int, blockTime time.Duration) (*node, error) {
	n := &node{known: map[chain.Hash]chain.Signed{}, made: map[uint64]time.Time{}, blocks: make(chan struct{})}
	n.Chain = chaintest.New(chaintest.Options{
		Chain: rig.TempoChain, Decode: n.decode,
		Rules: chaintest.Rules{Keychain: true}, // as on the real chain
	})
	mining, stop := context.WithCancel(context.WithoutCancel(ctx))
	n.stop = stop
	for i := range doors {
		listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
		if err != nil {
			return nil, errors.Join(err, n.close())
		}
		door := n.Node(fmt.Sprintf("node-%d", i+1))
		server := &http.Server{Handler: webguard.Guard{}.Handler(door)} //nolint:gosec // our own, on loopback
		n.doors, n.urls, n.servers = append(n.doors, door), append(n.urls, "http://"+listener.Addr().String()), append(n.servers, server)
		n.parts.Go(func() { server.Serve(listener) }) //nolint:errcheck // always that it was closed
	}
	n.parts.Go(func() { n.mine(mining, blockTime) })
	return n, nil
}

// close stops everything that the node runs.
func (n *node) close() error {
	n.stop()
	n.Close()
	var errs []error
	for _, server := range n.servers {
		errs = append(errs, server.Close())
	}
	n.parts.Wait()
	return errors.Join(errs...)
}

// expect announces payments to the node, which then accepts their signatures.
func (n *node) expect(payments []rig.Payment) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, p := range payments {
		signed, err := tempo.Decode(p.Raw)
		if err != nil {
			return err
		}
		n.known[p.Hash] = signed
	}
	return nil
}

func (n *node) decode(raw []byte) (chain.Signed, error) {
	n.mu.Lock()
	signed, ok := n.known[chain.Keccak(raw)]
	n.mu.Unlock()
	if ok {
		return signed, nil
	}
	return tempo.Decode(raw)
}

func (n *node) mine(ctx context.Context, blockTime time.Duration) {
	tick := time.NewTicker(blockTime)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		// Before the block is made: no client can have seen it earlier.
		now := time.Now()
		b, err := n.Mine()
		if err != nil {
			panic(err) // only transactions from elsewhere can fail it
		}
		n.mu.Lock()
		n.made[b.Number] = now
		close(n.blocks)
		n.blocks = make(chan struct{})
		n.mu.Unlock()
	}
}

// block waits for the next block.
func (n *node) block(ctx context.Context) error {
	n.mu.Lock()
	next := n.blocks
	n.mu.Unlock()
	select {
	case <-next:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// minedAt is the time of a transaction's block.
func (n *node) minedAt(hash chain.Hash) (at time.Time, ok bool) {
	receipt, ok := n.Receipt(hash)
	if !ok {
		return at, false
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	at, ok = n.made[receipt.Block.Number]
	return at, ok
}

// stillness is how long blocks may come without any of the payments before they are reported as
// stuck.
const stillness = time.Minute

// mined waits until all payments are in blocks, and returns the time and number of the last
// block.
func (n *node) mined(ctx context.Context, payments []rig.Payment) (last time.Time, number uint64, err error) {
	open, still := payments, time.Now()
	for len(open) > 0 {
		var left []rig.Payment
		for _, p := range open {
			at, ok := n.minedAt(p.Hash)
			switch {
			case !ok:
				left = append(left, p)
			case at.After(last):
				last = at
			}
		}
		if len(left) < len(open) {
			still = time.Now()
		}
		if open = left; len(open) == 0 {
			break
		}
		if time.Since(still) > stillness {
			return last, 0, fmt.Errorf("%d of %d payments are not mined, %s for one", len(open), len(payments), open[0].Hash)
		}
		if err := n.block(ctx); err != nil {
			return last, 0, err
		}
	}
	return last, n.Head().Number, n.once(payments)
}

// lateness is each transaction's time from eligibility to its first send to the node. All must
// have been sent, and none early.
func (n *node) lateness(eligible map[chain.Hash]uint64) ([]time.Duration, error) {
	wanted := len(eligible)
	var late []time.Duration
	for _, d := range n.Received() {
		at, ok := eligible[d.Hash]
		if !ok {
			continue
		}
		delete(eligible, d.Hash)                               // the first send counts
		late = append(late, d.At.Sub(time.Unix(int64(at), 0))) //nolint:gosec // a time of today
	}
	if len(late) != wanted || slices.Min(late) < 0 {
		return nil, fmt.Errorf("%d of %d were sent, the first %v after its time", len(late), wanted, slices.Min(late))
	}
	return late, nil
}

// once checks that the chain executed each payment exactly once.
func (n *node) once(payments []rig.Payment) error {
	times := n.Executed()
	var errs []error
	for _, p := range payments {
		if times[p.Hash] != 1 {
			errs = append(errs, fmt.Errorf("%s was executed %d times", p.Hash, times[p.Hash]))
		}
	}
	return errors.Join(errs...)
}

// called is the number of calls by method so far, at all endpoints together.
func (n *node) called() map[string]int {
	all := map[string]int{}
	for _, door := range n.doors {
		for method, count := range door.Calls() {
			all[method] += count
		}
	}
	return all
}

// calls is the number of calls by method since an earlier count.
func (n *node) calls(since map[string]int) map[string]int {
	now := n.called()
	for method, count := range since {
		if now[method] -= count; now[method] == 0 {
			delete(now, method)
		}
	}
	return now
}
