package rest

import "sync"

// recentMax is the most entries that a [Recent] holds.
const recentMax = 1 << 14

// Recent is a cache of recently used entries. A client that touches many entries once does not
// evict the entries that others use all the time. The zero Recent is empty and ready.
type Recent[K comparable, V any] struct {
	mu sync.Mutex
	// When young is full it becomes old, and the previous old is dropped: an entry that was not
	// used meanwhile is gone.
	young, old map[K]V
}

// Recall returns the value stored for a key.
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

// Remember stores a value if the key has none, or if replaces reports that it replaces the
// stored value. With a nil replaces it always stores.
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
