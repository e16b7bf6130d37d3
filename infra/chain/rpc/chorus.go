package rpc

import (
	"context"
	"sync"
)

// chorus gives callers who ask the same thing at the same time one answer: that of
// a question which was put after each of them had asked. The zero value is ready.
type chorus[T any] struct {
	mu    sync.Mutex
	asked bool         // a question is under way, or its right to be lies in next
	next  *question[T] // those who came since
}

// question is put once, by whoever takes the turn.
type question[T any] struct {
	turn   chan struct{} // holds one value when it may be put
	done   chan struct{} // closed with the answer
	answer T
	err    error
	gaveUp bool // whoever put it stopped waiting, which says nothing to the others
}

// do returns the answer to a question that was put after do was called: by ask
// here, or by another caller's.
func (s *chorus[T]) do(ctx context.Context, ask func(context.Context) (T, error)) (T, error) {
	for {
		q := s.join()
		select {
		case <-q.turn:
			s.put(ctx, q, ask)
			return q.answer, q.err
		case <-q.done:
			if q.gaveUp && ctx.Err() == nil {
				continue
			}
			return q.answer, q.err
		case <-ctx.Done():
			var none T
			return none, ctx.Err()
		}
	}
}

// join is the question that is put next.
func (s *chorus[T]) join() *question[T] {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.next == nil {
		s.next = &question[T]{turn: make(chan struct{}, 1), done: make(chan struct{})}
	}
	if !s.asked {
		s.asked = true
		s.next.turn <- struct{}{}
	}
	return s.next
}

// put asks, and lets those who came meanwhile ask next.
func (s *chorus[T]) put(ctx context.Context, q *question[T], ask func(context.Context) (T, error)) {
	s.mu.Lock()
	s.next = nil
	s.mu.Unlock()
	defer func() {
		close(q.done)
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.asked = s.next != nil; s.asked {
			s.next.turn <- struct{}{}
		}
	}()
	q.answer, q.err = ask(ctx)
	q.gaveUp = q.err != nil && ctx.Err() != nil
}
