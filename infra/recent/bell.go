package recent

import "sync"

// Bell wakes the readers that wait for the log to grow. A reader takes Wait's channel
// first, then reads, then waits on the channel: it misses no ring.
type Bell struct {
	mu   sync.Mutex
	head int64 // highest position rung for
	rung chan struct{}
}

// NewBell returns a bell that has not rung.
func NewBell() *Bell { return &Bell{rung: make(chan struct{})} }

// Wait returns a channel that is closed at the next ring.
func (b *Bell) Wait() <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.rung
}

// Ring rings when head is above every head rung for: a committer and its own
// notification both call it, and readers wake once.
func (b *Bell) Ring(head int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if head > b.head {
		b.head = head
		b.strike()
	}
}

// Again rings in any case: something may have been missed.
func (b *Bell) Again() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.strike()
}

func (b *Bell) strike() {
	close(b.rung)
	b.rung = make(chan struct{})
}
