package projections

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/tempo-watchtower/watchtower/domain/bulk"
	"github.com/tempo-watchtower/watchtower/eventlog"
)

// Limits of a rebuild.
const (
	rebuildRead = 2000   // events in one read
	rebuildRows = 16_384 // rows that are written together
	// rebuildEvents is the number of events after which the checkpoint moves, however few rows
	// changed. A rebuild that is killed repeats at most so much work.
	rebuildEvents = 200_000
	// catchUpNear is the distance to the head of the log, in positions, at which the shadow is
	// swapped in. The remaining events are folded while the serving checkpoint is locked.
	catchUpNear = 500
	// catchUpRounds bounds the attempts to get that near, so a rebuild ends even if the log
	// grows faster than it is read.
	catchUpRounds = 20
)

// The steps of a rebuild.
const (
	StepLoad  = "load"  // events are folded in memory, and rows written in batches
	StepIndex = "index" // indexes and sums are built
	StepCatch = "catch up"
	StepSwap  = "swap"
	StepHold  = "compare" // of a verification
)

// Progress is the progress of a rebuild.
type Progress struct {
	Model string
	Step  string
	// Began is the position where this run began: it may have resumed an earlier run's shadow.
	Began, Position, Head eventlog.Position
	Events, Rows          uint64 // folded and written by this run
}

// Rebuild rebuilds a read model in a shadow beside the serving tables. It may be killed at any
// time: the next run resumes at the shadow's checkpoint.
type Rebuild struct {
	Model  Model
	Log    Source
	Shadow Shadow
	// Fresh discards the shadow of an earlier run.
	Fresh bool
	// Heap is the number of rows written together; 0 means 16,384.
	Heap int
	// Told, if set, is called with the progress.
	Told func(Progress)
	// Crash, if set, is called at points where a test may end the process.
	Crash func(point string)

	at Progress
}

// The points where a test may end the process.
const (
	crashLoaded  = "rebuild.loaded"      // rows and the shadow's checkpoint are written
	crashIndexed = "rebuild.indexed"     // the shadow is complete, but has not caught up
	crashSwap    = "rebuild.before-swap" // the shadow has caught up
)

// RebuildCrashPoints lists the arguments of Rebuild.Crash.
func RebuildCrashPoints() []string { return []string{crashLoaded, crashIndexed, crashSwap} }

// Run rebuilds the tables and swaps them in. If an event cannot be folded, the error is
// eventlog.Stuck; then the shadow is kept and the old tables go on serving.
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
	err = r.Shadow.Swap(ctx, func(dbtx *sql.Tx, own, live eventlog.Position) (eventlog.Position, error) {
		if own >= live { // the serving projector is behind, and resumes at the shadow's checkpoint
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

// prepare creates the shadow, or finds the checkpoint of an earlier run.
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

func (r *Rebuild) checkpoint(ctx context.Context) (eventlog.Position, error) {
	return position(ctx, r.Shadow.DB(), r.Shadow.Prefix(), r.Model.Name)
}

// make loads the shadow up to a position, and builds its indexes and sums.
func (r *Rebuild) make(ctx context.Context, upto eventlog.Position) error {
	if r.at.Position > upto {
		return fmt.Errorf("%s: an unfinished rebuild is at position %d, past %d: discard it", r.Model.Name, r.at.Position, upto)
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

// load folds events in memory while the log is read and earlier rows are written.
func (r *Rebuild) load(ctx context.Context, upto eventlog.Position) error {
	loader := r.Model.Load(r.Shadow.Prefix())
	w := &loading{rebuild: r, at: r.at.Position}
	written, since := r.at.Position, 0
	flush := func() error {
		if written == r.at.Position {
			return nil
		}
		if err := w.wait(); err != nil { // first, as Take evicts rows taken before, which must be written by then
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
	err := Replay(ctx, r.Log, r.at.Position, upto, r.Model.Filter, rebuildRead, func(batch eventlog.Batch) error {
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

// loading writes rows in the background, one batch at a time.
type loading struct {
	rebuild *Rebuild
	at      eventlog.Position // the shadow's checkpoint
	under   chan error        // result of the running write; nil if there is none
}

func (w *loading) start(ctx context.Context, to eventlog.Position, changes []bulk.Change) {
	from := w.at
	w.at, w.under = to, make(chan error, 1)
	for _, c := range changes {
		w.rebuild.at.Rows += uint64(len(c.New) + len(c.Changed))
	}
	go func(under chan error) {
		under <- w.rebuild.Shadow.Load(ctx, from, to, changes)
	}(w.under)
}

// wait waits for the running write.
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

// catchUp folds like the projector, until the shadow is near the head.
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

// foldUpTo brings the shadow to a position, with one database transaction per batch.
func (r *Rebuild) foldUpTo(ctx context.Context, upto eventlog.Position) error {
	if upto <= r.at.Position {
		return nil
	}
	fold := r.Model.Fold(r.Shadow.Prefix())
	err := Replay(ctx, r.Log, r.at.Position, upto, r.Model.Filter, rebuildRead, func(batch eventlog.Batch) error {
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

// fold brings the shadow to a position inside one database transaction.
func (r *Rebuild) fold(ctx context.Context, dbtx *sql.Tx, from, upto eventlog.Position) error {
	fold := r.Model.Fold(r.Shadow.Prefix())
	return Replay(ctx, r.Log, from, upto, r.Model.Filter, rebuildRead, func(batch eventlog.Batch) error {
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
