package notice

import "time"

// Depth counts the notices of a queue and the endpoints.
type Depth struct {
	Queued     int // and not leased
	Delivering int
	Dead       int
	// Due counts the queued notices that may be sent now and wait only for a worker, or for their
	// share of a working endpoint. OldestDue is how long the first of them has waited.
	Due       int
	OldestDue time.Duration
	// Endpoints: Working ones work or were never tried, Failing ones failed at the last attempt,
	// Disabled ones get nothing any more.
	Working, Failing, Disabled int
}
