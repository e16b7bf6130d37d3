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
		"How many requests with an `Idempotency-Key` are remembered for one client; beyond that its own oldest requests are forgotten, except requests in progress. All requests without an API key count as one client's.")
	requests.standard = ""
	requests.absent = "a quarter of `idempotency.max-requests`"
	return []*setting{
		numbers("quota.transactions", &d.Quotas.Transactions, 100_000, 1, 100_000_000,
			"How many transactions of one client may wait: accepted, but not in a block, not expired, and with a nonce that no other transaction has used. A canceled transaction counts until its nonce is used or its window closes. A further transaction is refused with `quota-exceeded`; a transaction that the client submitted before is still answered. All replicas count in the database."),
		numbers("quota.bytes", &d.Quotas.Bytes, 256<<20, 1<<10, 1<<40,
			"How many bytes the waiting transactions of one client may have together; canceled transactions count as none."),
		numbers("quota.streams", &d.Quotas.Streams, 64, 1, 10_000,
			"How many event streams one client may have open at one process. Without an API key each address is a client. Addresses without a rate limit have no quota; only the limit of all streams applies to them."),
		requests,
	}
}
