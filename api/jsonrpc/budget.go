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

// smallAnswer is how many bytes of results each request may hold whatever the others
// do: who asks for little is not kept out by those who ask for much and take it slowly.
const smallAnswer = 64 << 10

// holding is what one request has taken of a budget that all share.
type holding struct {
	of *budget

	mu           sync.Mutex
	total, taken int64
	released     bool
}

// take reports whether the request may hold n bytes more.
func (h *holding) take(n int64) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	more := max(h.total+n-smallAnswer, 0) - h.taken
	if h.released || !h.of.take(more) {
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
	h.taken, h.released = 0, true
}
