package worker

import (
	"context"
	"log/slog"
	"slices"
	"sync"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
	"github.com/tempo-watchtower/watchtower/domain/relay/intent"
	"github.com/tempo-watchtower/watchtower/eventlog"
	"github.com/tempo-watchtower/watchtower/eventlog/port"
)

// News tells the lanes of a chain which of their transactions and intents have new events;
// the lanes then read them. A process has one News per chain.
type News struct {
	Chain chain.ID
	Store port.Store
	Log   *slog.Logger

	once  sync.Once
	ready chan struct{}
	mu    sync.Mutex
	boxes []*inbox // in the order of opening; their parts are guarded by n.mu too
	first int      // index at which the search among equally loaded lanes begins
}

// inbox is the news that a lane has not read yet.
type inbox struct {
	wake chan struct{}
	part part // the lane's load

	mu      sync.Mutex
	txs     map[chain.Hash]uint64 // followed transactions, with their nonces
	intents map[chain.IntentID]uint64
	unread
	claim    bool // there may be intents to claim
	measured bool // the estimate of a claimed intent has arrived
}

// unread are the nonces with news: sent of their transactions, wanted of their intents,
// which is rarer. all stands for everything.
type unread struct {
	sent, wanted map[uint64]bool
	all          bool
}

func noNews() unread { return unread{sent: map[uint64]bool{}, wanted: map[uint64]bool{}} }

// toldOf selects the events that matter to a lane. Events that the lane itself records with
// an intent are not among them.
var toldOf = eventlog.Filter{Names: []string{
	"tx.mined.", "tx.stale_by_nonce.", "tx.expired.", "tx.reorged.", "tx.finalized.", "tx.finality_violated.",
	"tx.canceled_locally.", "tx.rejected.",
	"intent.cancel_requested.", "intent.speed_up_requested.", "intent.yield_requested.", "intent.give_way_requested.",
}}

const newsMax = 1000 // events per batch

func (n *News) init() {
	n.once.Do(func() { n.ready = make(chan struct{}) })
}

// Run passes on news until ctx ends or the store fails. After a failure it may be run
// again, and all lanes then read everything.
func (n *News) Run(ctx context.Context) error {
	n.init()
	head, err := n.Store.Head(ctx)
	if err != nil {
		return err
	}
	select {
	case <-n.ready:
		n.each(func(b *inbox) { b.all = true })
	default:
		close(n.ready)
	}
	for batch, err := range n.Store.Subscribe(ctx, head, toldOf, newsMax) {
		if err != nil {
			return err
		}
		n.tell(batch.Events)
	}
	return ctx.Err()
}

// begun waits for Run to have begun: no event after that is missed.
func (n *News) begun(ctx context.Context) error {
	n.init()
	select {
	case <-n.ready:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (n *News) open() *inbox {
	n.init()
	b := &inbox{
		wake: make(chan struct{}, 1), claim: true,
		txs: map[chain.Hash]uint64{}, intents: map[chain.IntentID]uint64{}, unread: noNews(),
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.boxes = append(n.boxes, b)
	return b
}

func (n *News) close(b *inbox) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.boxes = slices.DeleteFunc(n.boxes, func(open *inbox) bool { return open == b })
}

// each changes every lane's inbox and wakes the lane.
func (n *News) each(change func(*inbox)) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, b := range n.boxes {
		b.mu.Lock()
		change(b)
		b.mu.Unlock()
		b.ring()
	}
}

// subjects are the transactions and intents that events are about.
type subjects struct {
	txs     []chain.Hash
	intents []chain.IntentID
}

// subjectsOf reads the streams' names once: there may be hundreds of lanes.
func subjectsOf(events []eventlog.Recorded, on chain.ID) (all subjects) {
	for _, r := range events {
		if id, hash, err := tx.ParseStream(r.Stream); err == nil {
			if id == on {
				all.txs = append(all.txs, hash)
			}
		} else if id, err := intent.ParseStream(r.Stream); err == nil {
			all.intents = append(all.intents, id)
		}
	}
	return all
}

func (n *News) tell(events []eventlog.Recorded) {
	about := subjectsOf(events, n.Chain)
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, b := range n.boxes {
		if b.take(about) {
			b.ring()
		}
	}
}

func (b *inbox) ring() {
	select {
	case b.wake <- struct{}{}:
	default:
	}
}

// take notes the nonces with news, and reports whether there are any.
func (b *inbox) take(about subjects) (news bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, hash := range about.txs {
		if nonce, ours := b.txs[hash]; ours {
			b.sent[nonce], news = true, true
		}
	}
	for _, id := range about.intents {
		if nonce, ours := b.intents[id]; ours {
			b.wanted[nonce], news = true, true
		}
	}
	return news
}

func has[K comparable, V any](m map[K]V, k K) bool {
	_, ok := m[k]
	return ok
}

// empty returns the news and clears the inbox.
func (b *inbox) empty() (news unread, claim, measured bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	news, claim, measured = b.unread, b.claim, b.measured
	b.unread, b.claim, b.measured = noNews(), false, false
	return news, claim, measured
}

// follow asks for news of a nonce's transactions, and of its intent unless id is zero.
func (b *inbox) follow(nonce uint64, id chain.IntentID, hashes ...chain.Hash) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !id.IsZero() {
		b.intents[id] = nonce
	}
	for _, hash := range hashes {
		b.txs[hash] = nonce
	}
}

// unfollow ends the news of an intent and of transactions.
func (b *inbox) unfollow(id chain.IntentID, hashes ...chain.Hash) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.intents, id)
	for _, hash := range hashes {
		delete(b.txs, hash)
	}
}
