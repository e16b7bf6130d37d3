package tx

// Status is what the owner of a transaction is told.
type Status string

const (
	Absent          Status = "" // no such transaction
	Queued          Status = "queued"
	Broadcasting    Status = "broadcasting"
	RetryScheduled  Status = "retry_scheduled"
	Executed        Status = "executed"
	StaleByNonce    Status = "stale_by_nonce"
	Expired         Status = "expired"
	Invalid         Status = "invalid"
	CanceledLocally Status = "canceled_locally"
)

// Statuses lists every status a transaction can have, in the order of its life.
func Statuses() []Status {
	return []Status{Queued, Broadcasting, RetryScheduled, Executed, StaleByNonce, Expired, Invalid, CanceledLocally}
}
