package fair

import (
	"slices"
	"sync"
)

// Line gives clients' items to one consumer, by turns and in rounds. In a round a client gets items
// of the weight of its share at most, or one item that weighs more. So the wait for a client's next
// item does not depend on how much of other clients' waits. A client's items keep their order. It
// is safe for concurrent use.
type Line[T comparable] struct {
	share int

	mu     sync.Mutex
	filled sync.Cond
	closed bool
	count  int
	items  map[string][]weighed[T] // no empty lists
	turns  []string                // clients with items that may get one in this round, in the order of their turns
	rested []string                // clients with items that get no more in this round
	given  map[string]int          // the weight of a client's items of this round
}

// weighed is an item and its weight, which is above 0.
type weighed[T any] struct {
	item   T
	weight int
}

// NewLine returns an empty line. share is the weight that a client gets in a round.
func NewLine[T comparable](share int) *Line[T] {
	l := &Line[T]{share: share, items: map[string][]weighed[T]{}, given: map[string]int{}}
	l.filled.L = &l.mu
	return l
}

// Add adds an item of a client. It reports false, and adds nothing, once the line is closed.
func (l *Line[T]) Add(client string, item T, weight int) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return false
	}
	if len(l.items[client]) == 0 {
		l.turns = append(l.turns, client)
	}
	l.items[client] = append(l.items[client], weighed[T]{item, max(weight, 1)})
	l.count++
	l.filled.Signal()
	return true
}

// Remove removes an item of a client if it still waits.
func (l *Line[T]) Remove(client string, item T) {
	l.mu.Lock()
	defer l.mu.Unlock()
	of := func(w weighed[T]) bool { return w.item == item }
	at := slices.IndexFunc(l.items[client], of)
	if at < 0 {
		return
	}
	l.count--
	if l.items[client] = slices.Delete(l.items[client], at, at+1); len(l.items[client]) > 0 {
		return
	}
	delete(l.items, client)
	other := func(c string) bool { return c == client }
	l.turns, l.rested = slices.DeleteFunc(l.turns, other), slices.DeleteFunc(l.rested, other)
}

// Begin waits until an item waits, and begins a round. Clients whose turn did not come in the last
// round are first. It reports false once the line is closed and empty.
func (l *Line[T]) Begin() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for l.count == 0 && !l.closed {
		l.filled.Wait()
	}
	l.turns, l.rested = append(l.turns, l.rested...), nil
	clear(l.given)
	return l.count > 0
}

// Next removes the first item of the client whose turn it is. ok is false if no client gets
// another item in this round.
func (l *Line[T]) Next() (item T, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for len(l.turns) > 0 {
		client := l.turns[0]
		l.turns = l.turns[1:]
		first := l.items[client][0]
		if given := l.given[client]; given > 0 && given+first.weight > l.share {
			l.rested = append(l.rested, client)
			continue
		}
		l.given[client] += first.weight
		l.count--
		if l.items[client] = l.items[client][1:]; len(l.items[client]) > 0 {
			l.turns = append(l.turns, client)
		} else {
			delete(l.items, client)
		}
		return first.item, true
	}
	return item, false
}

// Close ends the line: it accepts no more items, and gives out those that wait.
func (l *Line[T]) Close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	l.filled.Broadcast()
}

// Len returns the number of items that wait.
func (l *Line[T]) Len() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.count
}
