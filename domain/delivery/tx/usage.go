package tx

// Usage is a client's share of the due queue.
type Usage struct {
	// Transactions counts rows in phase open or watched, and open rows of which the client is a
	// further owner: each of these is due in the client's turn too.
	Transactions int64
	Bytes        int64 // of the open rows, as received
}

// Add returns u plus n times other.
func (u Usage) Add(other Usage, n int64) Usage {
	return Usage{u.Transactions + n*other.Transactions, u.Bytes + n*other.Bytes}
}

// usage returns the row's usage of its client's quota.
func (w Work) usage() Usage {
	switch w.Phase {
	case Open:
		return Usage{1, int64(w.Bytes)}
	case Watched:
		return Usage{1, 0}
	}
	return Usage{}
}
