package tx

// Status is the transaction's status as reported to its owners.
type Status string

const (
	StatusAbsent       Status = "" // no such transaction
	StatusQueued       Status = "queued"
	StatusBroadcasting Status = "broadcasting"
	StatusRetry        Status = "retry_scheduled"
	StatusExecuted     Status = "executed"
	StatusStale        Status = "stale_by_nonce"
	StatusExpired      Status = "expired"
	StatusInvalid      Status = "invalid"
	StatusCanceled     Status = "canceled_locally"
)

// Statuses returns every status of an existing transaction, in the order of its life.
func Statuses() []Status {
	return []Status{
		StatusQueued, StatusBroadcasting, StatusRetry, StatusExecuted,
		StatusStale, StatusExpired, StatusInvalid, StatusCanceled,
	}
}
