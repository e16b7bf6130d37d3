package jsonrpc

import "sync"

// budget is how many bytes may still be taken.
type budget struct {
	mu   sync.Mutex
	left int64
}

func (b *budget) rest() int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.left
}

// take reports whether there was room for n bytes more.
func (b *budget) take(n int64) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if n > b.left {
		return false
	}
	b.left -= n
	return true
}

func (b *budget) give(n int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.left += n
}

// shares are how many clients can each hold as much of a budget as one may: one that is
// slow to take its answers keeps the others' off until then, but for its own share alone.
const shares = 4

// budgets deal one budget to clients: each may hold a share of it, as long as there is room.
type budgets struct {
	all   *budget
	share int64

	mu      sync.Mutex
	clients map[string]*clientBudget // of those with requests under way
}

// clientBudget is the share of one client, whose requests hold it.
type clientBudget struct {
	budget
	requests int
}

func newBudgets(bytes int64) *budgets {
	return &budgets{all: &budget{left: bytes}, share: max(bytes/shares, 1), clients: map[string]*clientBudget{}}
}

// hold is for one request of a client, which must release it. Requests of no named client
// share the whole: where nobody has a key all are one client's.
func (b *budgets) hold(client string) *holding {
	h := &holding{of: b.all, client: client}
	if client == "" {
		return h
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	c := b.clients[client]
	if c == nil {
		c = &clientBudget{budget: budget{left: b.share}}
		b.clients[client] = c
	}
	c.requests++
	h.share, h.from = &c.budget, b
	return h
}

// leave forgets a client without requests.
func (b *budgets) leave(client string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	c := b.clients[client]
	if c.requests--; c.requests == 0 {
		delete(b.clients, client)
	}
}

// smallAnswer is how many bytes of results each request may hold whatever the others
// do: who asks for little is not kept out by those who ask for much and take it slowly.
const smallAnswer = 64 << 10

// holding is what one request has taken of a budget that all share.
type holding struct {
	of     *budget
	share  *budget // the client's, which bounds what it takes of the other; or nil
	from   *budgets
	client string

	mu           sync.Mutex
	total, taken int64
	released     bool
}

// take reports whether the request may hold n bytes more.
func (h *holding) take(n int64) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	more := max(h.total+n-smallAnswer, 0) - h.taken
	if h.released || h.share != nil && !h.share.take(more) {
		return false
	}
	if !h.of.take(more) {
		if h.share != nil {
			h.share.give(more)
		}
		return false
	}
	h.total += n
	h.taken += more
	return true
}

// release gives all of it back.
func (h *holding) release() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.of.give(h.taken)
	if h.share != nil && !h.released {
		h.share.give(h.taken)
		h.from.leave(h.client)
	}
	h.taken, h.released = 0, true
}
