package notice

import "time"

// Depth is how a queue of notices stands.
type Depth struct {
	Queued     int // and nobody sends them
	Delivering int
	Dead       int
	// Due is how many of those queued may be sent now and wait for nothing but a worker,
	// or for their share of an endpoint that does not fail, and OldestDue how long the
	// first of them has waited.
	Due       int
	OldestDue time.Duration
	// Of the endpoints: those that work, or were never tried; those whose last attempt
	// failed; and those to which nothing is sent any more.
	Working, Failing, Disabled int
}
