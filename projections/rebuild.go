package projections

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/tempo-watchtower/watchtower/domain/bulk"
	"github.com/tempo-watchtower/watchtower/domain/event"
)

// Limits of a rebuild.
const (
	rebuildRead = 2000   // events in one read
	rebuildRows = 16_384 // rows that are written together
	// rebuildEvents is after how many events the checkpoint moves on, whatever has
	// become of rows: a rebuild that is killed repeats no more than that.
	rebuildEvents = 200_000
	// catchUpNear is how near to the head of the log the shadow is swapped in: what is
	// left is folded while the serving checkpoint is held.
	catchUpNear = 500
	// catchUpRounds bounds how often that is tried, so that a rebuild on a log that
	// grows faster than it reads comes to an end.
	catchUpRounds = 20
)

// The steps of a rebuild.
const (
	StepLoad  = "load"  // events are folded in memory, and rows written in heaps
	StepIndex = "index" // indexes and sums are made
	StepCatch = "catch up"
	StepSwap  = "swap"
	StepHold  = "compare" // of a verification
)

// Progress is how far a rebuild is.
type Progress struct {
	Model string
	Step  string
	// Began is where this run began: an earlier one may have left a shadow behind.
	Began, Position, Head event.Position
	Events, Rows          uint64 // folded and written by this run
}

// Rebuild makes a read model anew beside the one that serves. It may be killed at any
// moment: the next one goes on from the shadow's checkpoint.
type Rebuild struct {
	Model  Model
	Log    Source
	Shadow Shadow
	// Fresh throws away what an earlier rebuild has left.
	Fresh bool
	// Heap is how many rows are written together; 0 is 16,384.
	Heap int
	// Told is called as it goes on; nil is not.
	Told func(Progress)
	// Crash is called at points where a test ends the process; nil is not.
	Crash func(point string)

	at Progress
}

// The points where a test may end the process.
const (
	crashLoaded  = "rebuild.loaded"      // rows and the shadow's checkpoint are written
	crashIndexed = "rebuild.indexed"     // it is whole, and not caught up
	crashSwap    = "rebuild.before-swap" // it has caught up
)

// RebuildCrashPoints lists the names that Rebuild.Crash is called with.
func RebuildCrashPoints() []string { return []string{crashLoaded, crashIndexed, crashSwap} }

// Run rebuilds, and swaps in what it made. The error of an event that cannot be folded
// is event.Stuck; the shadow is kept then, and the old tables serve.
func (r *Rebuild) Run(ctx context.Context) (Progress, error) {
	if err := r.prepare(ctx); err != nil {
		return r.at, err
	}
	head, err := r.Log.Head(ctx)
	if err == nil {
		err = r.make(ctx, head)
	}
	if err != nil {
		return r.at, err
	}
	if err := r.catchUp(ctx); err != nil {
		return r.at, err
	}
	r.crash(crashSwap)
	r.tell(StepSwap)
	err = r.Shadow.Swap(ctx, func(dbtx *sql.Tx, own, live event.Position) (event.Position, error) {
		if own >= live { // who serves is behind, and goes on from where this one is
			return own, nil
		}
		r.at.Position = live
		return live, r.fold(ctx, dbtx, own, live)
	})
	if err != nil {
		return r.at, fmt.Errorf("%s: swap: %w", r.Model.Name, err)
	}
	r.tell(StepSwap)
	return r.at, nil
}

// prepare makes the shadow, or finds where an earlier run has left it.
func (r *Rebuild) prepare(ctx context.Context) error {
	if r.Told == nil {
		r.Told = func(Progress) {}
	}
	if r.Heap == 0 {
		r.Heap = rebuildRows
	}
	r.at = Progress{Model: r.Model.Name}
	err := r.Shadow.Prepare(ctx, r.Fresh)
	if err == nil {
		r.at.Position, err = r.checkpoint(ctx)
	}
	r.at.Began = r.at.Position
	if err != nil {
		return fmt.Errorf("%s: prepare: %w", r.Model.Name, err)
	}
	return nil
}

func (r *Rebuild) checkpoint(ctx context.Context) (event.Position, error) {
	return position(ctx, r.Shadow.DB(), r.Shadow.Prefix(), r.Model.Name)
}

// make loads the shadow up to a position and makes what follows from its rows.
func (r *Rebuild) make(ctx context.Context, upto event.Position) error {
	if r.at.Position > upto {
		return fmt.Errorf("%s: what an earlier rebuild has left is at position %d, past %d: begin afresh", r.Model.Name, r.at.Position, upto)
	}
	if r.at.Head = upto; r.at.Position < upto {
		if err := r.load(ctx, upto); err != nil {
			return err
		}
	}
	r.tell(StepIndex)
	if err := r.Shadow.Index(ctx); err != nil {
		return fmt.Errorf("%s: index: %w", r.Model.Name, err)
	}
	if r.Model.Finish != nil {
		err := inTx(ctx, r.Shadow.DB(), func(dbtx *sql.Tx) error { return r.Model.Finish(ctx, dbtx, r.Shadow.Prefix()) })
		if err != nil {
			return fmt.Errorf("%s: sum up: %w", r.Model.Name, err)
		}
	}
	r.crash(crashIndexed)
	return nil
}

// load folds in memory while the log is read and the rows before are written.
func (r *Rebuild) load(ctx context.Context, upto event.Position) error {
	loader := r.Model.Load(r.Shadow.Prefix())
	w := &loading{rebuild: r, at: r.at.Position}
	written, since := r.at.Position, 0
	flush := func() error {
		if written == r.at.Position {
			return nil
		}
		if err := w.wait(); err != nil { // first: Take lets go of rows that were taken before
			return err
		}
		changes, err := loader.Take()
		if err != nil {
			return err
		}
		w.start(ctx, r.at.Position, changes)
		written, since = r.at.Position, 0
		return nil
	}
	err := Replay(ctx, r.Log, r.at.Position, upto, r.Model.Filter, rebuildRead, func(batch event.Batch) error {
		if err := loader.Add(ctx, r.Shadow.DB(), batch.Events); err != nil {
			return err
		}
		r.at.Position = batch.Next
		r.at.Events += uint64(len(batch.Events))
		since += len(batch.Events)
		r.tell(StepLoad)
		if loader.Pending() < r.Heap && since < rebuildEvents {
			return nil
		}
		return flush()
	})
	if err == nil {
		err = flush()
	}
	if waited := w.wait(); err == nil {
		err = waited
	}
	if err != nil {
		return fmt.Errorf("%s: load after position %d: %w", r.Model.Name, written, err)
	}
	return nil
}

// loading writes in the background what was folded, one heap at a time.
type loading struct {
	rebuild *Rebuild
	at      event.Position // of the shadow's checkpoint
	under   chan error     // way; nil when nothing is
}

func (w *loading) start(ctx context.Context, to event.Position, changes []bulk.Change) {
	from := w.at
	w.at, w.under = to, make(chan error, 1)
	for _, c := range changes {
		w.rebuild.at.Rows += uint64(len(c.New) + len(c.Changed))
	}
	go func(under chan error) {
		under <- w.rebuild.Shadow.Load(ctx, from, to, changes)
	}(w.under)
}

// wait ends when what was started is written.
func (w *loading) wait() error {
	if w.under == nil {
		return nil
	}
	err := <-w.under
	w.under = nil
	if err == nil {
		w.rebuild.crash(crashLoaded)
	}
	return err
}

// catchUp folds as the projector does, until the shadow is near to the head.
func (r *Rebuild) catchUp(ctx context.Context) error {
	for range catchUpRounds {
		head, err := r.Log.Head(ctx)
		if err != nil {
			return err
		}
		r.at.Head = max(head, r.at.Position)
		r.tell(StepCatch)
		if head <= r.at.Position+catchUpNear {
			return nil
		}
		if err := r.foldUpTo(ctx, head); err != nil {
			return err
		}
	}
	return nil
}

// foldUpTo brings the shadow to a position, in database transactions of their own.
func (r *Rebuild) foldUpTo(ctx context.Context, upto event.Position) error {
	if upto <= r.at.Position {
		return nil
	}
	fold := r.Model.Fold(r.Shadow.Prefix())
	err := Replay(ctx, r.Log, r.at.Position, upto, r.Model.Filter, rebuildRead, func(batch event.Batch) error {
		err := inTx(ctx, r.Shadow.DB(), func(dbtx *sql.Tx) error {
			if err := move(ctx, dbtx, r.Shadow.Prefix(), r.Model.Name, r.at.Position, batch.Next); err != nil || len(batch.Events) == 0 {
				return err
			}
			return fold(ctx, dbtx, batch.Events)
		})
		if err != nil {
			return err
		}
		r.at.Position = batch.Next
		r.at.Events += uint64(len(batch.Events))
		r.tell(StepCatch)
		return nil
	})
	if err != nil {
		return fmt.Errorf("%s: catch up after position %d: %w", r.Model.Name, r.at.Position, err)
	}
	return nil
}

// fold brings the shadow to a position inside a database transaction.
func (r *Rebuild) fold(ctx context.Context, dbtx *sql.Tx, from, upto event.Position) error {
	fold := r.Model.Fold(r.Shadow.Prefix())
	return Replay(ctx, r.Log, from, upto, r.Model.Filter, rebuildRead, func(batch event.Batch) error {
		if len(batch.Events) == 0 {
			return nil
		}
		return fold(ctx, dbtx, batch.Events)
	})
}

func (r *Rebuild) tell(step string) {
	r.at.Step = step
	r.Told(r.at)
}

func (r *Rebuild) crash(point string) {
	if r.Crash != nil {
		r.Crash(point)
	}
}

func inTx(ctx context.Context, db *sql.DB, do func(dbtx *sql.Tx) error) error {
	dbtx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer dbtx.Rollback() //nolint:errcheck // after a commit it does nothing
	if err := do(dbtx); err != nil {
		return err
	}
	return dbtx.Commit()
}
