package redis

import (
	"sync"
	"time"
)

const (
	tripAfter = 3 // failures in a row
	coolFirst = 250 * time.Millisecond
	coolLast  = 5 * time.Second
)

// breaker limits calls to a Redis that is away or slow.
type breaker struct {
	now func() time.Time

	mu       sync.Mutex
	failures int
	cool     time.Duration
	until    time.Time
}

// allows reports whether Redis may be called now.
func (b *breaker) allows() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.failures < tripAfter || !b.now().Before(b.until)
}

func (b *breaker) closed() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.failures < tripAfter
}

// fail counts a failure, and reports whether it opened the breaker.
func (b *breaker) fail() (opened bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.failures++
	if b.failures < tripAfter {
		return false
	}
	if opened = b.failures == tripAfter; opened {
		b.cool = coolFirst
	} else if b.now().After(b.until) {
		b.cool = min(2*b.cool, coolLast)
	}
	b.until = b.now().Add(b.cool)
	return opened
}

// succeed closes the breaker, and reports whether it was open.
func (b *breaker) succeed() (closed bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	closed = b.failures >= tripAfter
	b.failures = 0
	return closed
}
