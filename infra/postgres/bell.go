package postgres

import "sync"

// bell wakes whoever waits for the log to grow. Take wait's channel first, then
// read, then wait on it: no ring is missed.
type bell struct {
	mu   sync.Mutex
	head int64 // rung for already
	rung chan struct{}
}

func newBell() *bell { return &bell{rung: make(chan struct{})} }

// wait returns a channel that is closed at the next ring.
func (b *bell) wait() <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.rung
}

// ring says that the log's head is at a position. Saying it twice, as the committer
// and its own notification do, rings once.
func (b *bell) ring(head int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if head > b.head {
		b.head = head
		b.strike()
	}
}

// again rings in any case: something may have been missed.
func (b *bell) again() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.strike()
}

func (b *bell) strike() {
	close(b.rung)
	b.rung = make(chan struct{})
}
