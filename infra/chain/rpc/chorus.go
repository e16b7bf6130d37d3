package rpc

import (
	"context"
	"sync"
)

// chorus lets concurrent callers with the same question share one answer. The question is asked
// after each of its callers has called. The zero value is ready.
type chorus[T any] struct {
	mu    sync.Mutex
	asked bool         // a question is running, or the right to ask the next one is granted
	next  *question[T] // the question of callers that came since
}

// question is asked once, by the caller that takes the turn.
type question[T any] struct {
	turn   chan struct{} // holds one value when the question may be asked
	done   chan struct{} // closed with the answer
	answer T
	err    error
	gaveUp bool // the asking caller stopped waiting; this means nothing to the others
}

// do returns the answer to a question that was asked after do was called, by ask here or by
// another caller.
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

// join returns the question that is asked next.
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

// put asks the question, then lets later callers ask the next one.
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
