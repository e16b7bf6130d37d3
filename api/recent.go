package api

import "sync"

// recentMax bounds how many things a [Recent] remembers.
const recentMax = 1 << 14

// Recent remembers what was used last: who passes many things that are used once has it
// forget none that others use all the time. The zero Recent remembers nothing yet.
type Recent[K comparable, V any] struct {
	mu sync.Mutex
	// What is not used while one half fills is forgotten with the other.
	young, old map[K]V
}

// Recall returns what is remembered of a key.
func (r *Recent[K, V]) Recall(k K) (v V, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.recall(k)
}

func (r *Recent[K, V]) recall(k K) (v V, ok bool) {
	if v, ok = r.young[k]; ok {
		return v, true
	}
	if v, ok = r.old[k]; ok {
		r.put(k, v)
	}
	return v, ok
}

// Remember puts a value in place of the one that is remembered, if it replaces that; nil
// always does.
func (r *Recent[K, V]) Remember(k K, v V, replaces func(known V) bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if known, ok := r.recall(k); !ok || replaces == nil || replaces(known) {
		r.put(k, v)
	}
}

func (r *Recent[K, V]) put(k K, v V) {
	if _, known := r.young[k]; r.young == nil || !known && len(r.young) >= recentMax/2 {
		r.young, r.old = map[K]V{}, r.young
	}
	r.young[k] = v
}
