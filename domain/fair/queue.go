package fair

import "slices"

// Queue holds clients' items and gives them out by turns: one of each client before a second of
// any. A client's items keep their order. The zero Queue is empty. It is not safe for concurrent
// use.
type Queue[T any] struct {
	items  map[string][]T // no empty lists
	turns  []string       // the clients with items, in the order of their turns
	served string         // the client that had the last turn
}

// Add adds an item of a client.
func (q *Queue[T]) Add(client string, item T) {
	if q.items == nil {
		q.items = map[string][]T{}
	}
	if len(q.items[client]) == 0 {
		q.turns = append(q.turns, client)
		if len(q.turns) == 2 && q.turns[0] == q.served { // it was alone, and has had its turn
			slices.Reverse(q.turns)
		}
	}
	q.items[client] = append(q.items[client], item)
}

// Next removes the first item of the client whose turn it is. ok is false if there is none.
func (q *Queue[T]) Next() (item T, ok bool) {
	if len(q.turns) == 0 {
		return item, false
	}
	client := q.turns[0]
	q.turns, q.served = q.turns[1:], client
	item = q.items[client][0]
	if q.items[client] = q.items[client][1:]; len(q.items[client]) > 0 {
		q.turns = append(q.turns, client)
	} else {
		delete(q.items, client)
	}
	return item, true
}

// Keep removes the items that do not stay. The turns keep their order.
func (q *Queue[T]) Keep(stays func(T) bool) {
	turns := q.turns
	q.turns = nil
	for _, client := range turns {
		var some []T
		for _, item := range q.items[client] {
			if stays(item) {
				some = append(some, item)
			}
		}
		if q.items[client] = some; len(some) > 0 {
			q.turns = append(q.turns, client)
		} else {
			delete(q.items, client)
		}
	}
}

// Empty reports whether there is no item.
func (q *Queue[T]) Empty() bool { return len(q.turns) == 0 }
