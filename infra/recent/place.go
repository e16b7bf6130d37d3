package recent

import (
	"context"
	"time"

	"github.com/tempo-watchtower/watchtower/eventlog"
)

// ReportEvery bounds how often a subscription reports growth that its filter does not
// pass: such a batch only moves a checkpoint.
const ReportEvery = 100 * time.Millisecond

// Place is how far a subscription has read and reported.
type Place struct {
	At       eventlog.Position // read up to
	CaughtUp bool              // a Live batch was reported

	reported eventlog.Position
	since    time.Time // of the last report
}

// Start returns the place of a subscription that begins after a position.
func Start(after eventlog.Position) Place { return Place{At: after, reported: after} }

// Advance moves to the end of a batch, and reports whether the reader gets the batch.
func (p *Place) Advance(b eventlog.Batch, now time.Time) bool {
	empty := p.CaughtUp && b.Live && len(b.Events) == 0
	p.At = b.Next
	switch {
	case b.Next == p.reported && (!b.Live || p.CaughtUp):
		return false // nothing at all
	case empty && now.Sub(p.since) < ReportEvery:
		return false // reported with the next events, or soon
	}
	p.reported, p.since, p.CaughtUp = b.Next, now, p.CaughtUp || b.Live
	return true
}

// Patience is how long the subscription may wait, at most, before it reads again.
func (p *Place) Patience(most time.Duration) time.Duration {
	if p.At > p.reported {
		return min(most, ReportEvery)
	}
	return most
}

// Await waits for a ring, and reports whether it came before the limit and ctx's end.
func Await(ctx context.Context, rung <-chan struct{}, limit time.Duration) bool {
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-rung:
		return true
	case <-timer.C:
	case <-ctx.Done():
	}
	return false
}
