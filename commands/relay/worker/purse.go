package worker

import (
	"sync"
	"time"

	"github.com/tempo-watchtower/watchtower/domain/chain"
)

// A signer's balance pays for all of its lanes. Each lane of this process tells the others
// how much its transactions in flight may cost, and which of its intents wait for funds.
// The oldest waiting intent goes first: intents of other clients have to leave room for it.
// So a high gas limit, which a transaction seldom uses up, keeps no other client's intent
// waiting for long.

// Purses holds the costs of the transactions in flight in the lanes of this process, by
// signer. The zero value is ready, and safe for concurrent use.
type Purses struct {
	mu  sync.Mutex
	all map[chain.Address]*purse
}

// purse is the in-flight cost and the waiting intents of one signer.
type purse struct {
	lanes map[chain.NonceKey]spending
	waits map[string]wait // by client
}

// spending is the cost of a lane's transactions in flight, by client, and of no-ops at nonces
// that no intent holds.
type spending struct {
	clients map[string]chain.Amount
	noOps   chain.Amount
}

// wait is a client's intent that waits for funds.
type wait struct {
	id          chain.IntentID
	cost        chain.Amount
	since, last time.Time // first and last time it was found to wait
}

// of returns a signer's purse; the caller holds the lock.
func (p *Purses) of(signer chain.Address) *purse {
	if p.all == nil {
		p.all = map[chain.Address]*purse{}
	}
	if p.all[signer] == nil {
		p.all[signer] = &purse{map[chain.NonceKey]spending{}, map[string]wait{}}
	}
	return p.all[signer]
}

// put replaces the spending of a lane.
func (p *Purses) put(id chain.Sequence, s spending) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.of(id.Sender).lanes[id.Key] = s
}

// drop forgets a lane that this process no longer works on.
func (p *Purses) drop(id chain.Sequence) {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	one := p.of(id.Sender)
	if delete(one.lanes, id.Key); len(one.lanes) == 0 {
		delete(p.all, id.Sender)
	}
}

// spent sums up all lanes, by client and altogether.
func (p *purse) spent() (clients map[string]chain.Amount, total chain.Amount) {
	clients = map[string]chain.Amount{}
	for _, lane := range p.lanes {
		total = total.Plus(lane.noOps)
		for client, sum := range lane.clients {
			clients[client], total = clients[client].Plus(sum), total.Plus(sum)
		}
	}
	return clients, total
}

// oldest returns the client whose intent has waited longest, of the intents that cost at most
// half of the balance and were found to wait after a time. A more expensive intent gets no
// room: it would keep too much from others.
func (p *purse) oldest(balance chain.Amount, after time.Time) (client string, oldest wait) {
	for of, one := range p.waits {
		if !one.last.After(after) {
			delete(p.waits, of)
			continue
		}
		if one.cost.Plus(one.cost).Cmp(balance) > 0 {
			continue
		}
		if oldest.id.IsZero() || one.since.Before(oldest.since) || one.since.Equal(oldest.since) && of < client {
			client, oldest = of, one
		}
	}
	return client, oldest
}

// waiting notes that a client's intent waits for funds. Of several intents the first
// counts, until it continues.
func (p *purse) waiting(client string, id chain.IntentID, cost chain.Amount, now time.Time) {
	one, known := p.waits[client]
	if known && one.id != id {
		return
	}
	if !known {
		one.id, one.since = id, now
	}
	one.cost, one.last = cost, now
	p.waits[client] = one
}

// goesOn notes that a client's intent does not wait for funds.
func (p *purse) goesOn(client string, id chain.IntentID) {
	if p.waits[client].id == id {
		delete(p.waits, client)
	}
}
