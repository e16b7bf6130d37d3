package rest

import "testing"

// Entries in constant use are kept while others come and go, and the cache is bounded.
func TestRecent(t *testing.T) {
	var r Recent[int, int]
	r.Remember(-1, 7, nil)
	for i := range 3 * recentMax {
		r.Remember(i, i, nil)
		if got, known := r.Recall(-1); !known || got != 7 {
			t.Fatalf("after %d others: %d, %v", i+1, got, known)
		}
		if n := len(r.young) + len(r.old); n > recentMax {
			t.Fatalf("%d are remembered", n)
		}
	}
	if _, known := r.Recall(0); known {
		t.Error("what nobody uses is remembered for ever")
	}
	r.Remember(-1, 6, func(known int) bool { return 6 > known })
	if got, _ := r.Recall(-1); got != 7 {
		t.Errorf("%d took the place of 7", got)
	}
	r.Remember(-1, 8, func(known int) bool { return 8 > known })
	if got, _ := r.Recall(-1); got != 8 {
		t.Errorf("%d, want 8", got)
	}
}
