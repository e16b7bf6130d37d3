package verify

import (
	"context"
	"fmt"
	"time"

	"github.com/tempo-watchtower/watchtower/eventlog"
	"github.com/tempo-watchtower/watchtower/proof/promises"
)

// idsMax limits the number of event ids compared in one pass over the log.
const idsMax = 8_000_000

// log reads the log from its beginning and passes it to the judges. The ids of a long log are
// compared in shares, with one pass over the log for each.
func (r *run) log(ctx context.Context) error {
	events := uint64(r.head)
	if r.Sparse {
		events /= sparseBytes
	}
	shares := min(events/idsMax+1, 256)
	of := func(share uint64) func(eventlog.ID) bool {
		return func(id eventlog.ID) bool { return uint64(id[15])%shares == share }
	}
	judge := promises.New(promises.Settings{Share: of(0)})
	last := eventlog.Position(0)
	var at time.Time
	err := r.pass(ctx, "the log", func(e eventlog.Recorded) {
		r.dense(last, e.Position)
		last, at = e.Position, e.At
		r.broken(judge.Event(e)...)
		for _, other := range r.Judges {
			r.broken(other.Event(e)...)
		}
	})
	if err != nil {
		return err
	}
	r.dense(last, r.head+1)
	r.broken(judge.Finish(promises.End{Now: at})...)
	for _, other := range r.Judges {
		r.broken(other.Finish()...)
	}
	r.report.Log = judge.Figures()
	for share := uint64(1); share < shares; share++ {
		ids := promises.Unique{Share: of(share)}
		err := r.pass(ctx, fmt.Sprintf("event ids, part %d of %d", share+1, shares), func(e eventlog.Recorded) { r.broken(ids.Event(e)...) })
		if err != nil {
			return err
		}
	}
	return nil
}

// sparseBytes is the minimum size of an event where positions are file offsets.
const sparseBytes = 300

// dense checks stores whose positions have no gaps: a missing position is a deleted event.
func (r *run) dense(last, next eventlog.Position) {
	if !r.Sparse && next > last+1 {
		r.broken(promises.Violation{Promise: promises.P25, Position: last + 1, Evidence: fmt.Sprintf("%d events are missing between positions %d and %d", next-last-1, last, next)})
	}
}

// pass calls each for every event up to the head as it was at the beginning.
func (r *run) pass(ctx context.Context, step string, each func(eventlog.Recorded)) error {
	for at := eventlog.Position(0); at < r.head; {
		page, err := r.Log.Page(ctx, at, 4*pageMost)
		if err != nil {
			return err
		}
		for _, e := range page {
			if e.Position <= r.head {
				each(e)
			}
		}
		if at = r.head; len(page) > 0 {
			at = min(page[len(page)-1].Position, r.head)
		}
		r.Progress(step, uint64(at), uint64(r.head))
	}
	return nil
}
