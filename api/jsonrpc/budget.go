package jsonrpc

import "sync"

// budget is the number of bytes that may still be taken.
type budget struct {
	mu   sync.Mutex
	left int64
}

func (b *budget) rest() int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.left
}

// take takes n bytes, and reports whether they were left.
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

// shares divides the budget: one client may hold 1/shares of it. A client that reads its
// answers slowly holds only its own share for that time.
const shares = 4

// budgets splits one budget between clients. Each may hold its share, as long as the whole has
// bytes left.
type budgets struct {
	all   *budget
	share int64

	mu      sync.Mutex
	clients map[string]*clientBudget // clients with requests in progress
}

// clientBudget is the share of one client, used by all its requests.
type clientBudget struct {
	budget
	requests int
}

func newBudgets(bytes int64) *budgets {
	return &budgets{all: &budget{left: bytes}, share: max(bytes/shares, 1), clients: map[string]*clientBudget{}}
}

// hold returns the holding of one request of a client, which must release it. Requests without
// a client name have no share and only the whole bounds them: if there are no keys, all
// requests belong to one client.
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

// leave ends a request of a client, and forgets the client after its last one.
func (b *budgets) leave(client string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	c := b.clients[client]
	if c.requests--; c.requests == 0 {
		delete(b.clients, client)
	}
}

// smallAnswer is the number of result bytes that each request may hold outside the budget. So
// small requests succeed even if large, slowly read answers use up the budget.
const smallAnswer = 64 << 10

// holding is the part of the shared budget that one request has taken.
type holding struct {
	of     *budget
	share  *budget // the client's share, which bounds taken; or nil
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

// release returns all bytes to the budget.
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
