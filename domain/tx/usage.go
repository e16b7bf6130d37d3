package tx

// Usage is what a client has waiting in the due queue.
type Usage struct {
	// Transactions that are open, or canceled or refused and still looked for in blocks.
	Transactions int64
	Bytes        int64 // of the open ones, as received
}

// Add returns the usage with another's added n times.
func (u Usage) Add(other Usage, n int64) Usage {
	return Usage{u.Transactions + n*other.Transactions, u.Bytes + n*other.Bytes}
}

// usage is what a row takes of its client's quota.
func (w Work) usage() Usage {
	switch w.Phase {
	case Open:
		return Usage{1, int64(w.Bytes)}
	case Watched:
		return Usage{1, 0}
	}
	return Usage{}
}
