package config

// Quotas limit the usage of one client. All keys of one client count together.
type Quotas struct {
	Transactions int // waiting transactions
	Bytes        int // bytes of waiting transactions
	Streams      int // open event streams, per process
	Requests     int // requests remembered by their Idempotency-Key
}

// requestsShare is the default share of remembered requests for one client: one in
// requestsShare.
const requestsShare = 4

func (d *draft) quotas() []*setting {
	requests := numbers("quota.requests", &d.Quotas.Requests, 0, 1, 10_000_000,
		"How many requests with an `Idempotency-Key` are remembered of one client, at most; beyond that its own oldest are forgotten. Requests without an API key are one client's.")
	requests.standard = ""
	requests.absent = "a quarter of `idempotency.max-requests`"
	return []*setting{
		numbers("quota.transactions", &d.Quotas.Transactions, 100_000, 1, 100_000_000,
			"How many transactions of one client may wait: accepted, and neither in a block nor expired nor outrun. A canceled one counts until its nonce is used or its window closes. One more is refused with `quota-exceeded`; what was accepted before is answered. All replicas count in the database."),
		numbers("quota.bytes", &d.Quotas.Bytes, 256<<20, 1<<10, 1<<40,
			"How many bytes the waiting transactions of one client may have together; canceled ones have none."),
		numbers("quota.streams", &d.Quotas.Streams, 64, 1, 10_000,
			"How many streams of events one client may have open at one process. Without an API key each address is a client; where addresses have no rate, all streams together are bounded."),
		requests,
	}
}
