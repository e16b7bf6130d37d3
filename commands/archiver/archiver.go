// Package archiver is the process manager that moves old events out of the store into
// segments of the archive.
//
// A segment is written and verified, then recorded, then listed; only then the store drops
// its events. A restore goes the other way: the store holds the events again, then that is
// recorded. Each step may be repeated, so the next pass repairs a crash between any two of
// them.
package archiver

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"log/slog"
	"time"

	"github.com/tempo-watchtower/watchtower/domain/archive"
	"github.com/tempo-watchtower/watchtower/domain/delivery/group"
	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
	"github.com/tempo-watchtower/watchtower/eventlog"
	"github.com/tempo-watchtower/watchtower/eventlog/handler"
	"github.com/tempo-watchtower/watchtower/eventlog/lease"
	"github.com/tempo-watchtower/watchtower/eventlog/pause"
	"github.com/tempo-watchtower/watchtower/eventlog/port"
)

// Store drops the beginning of its log.
type Store interface {
	// Begins returns the position from which the log is complete.
	Begins(ctx context.Context) (eventlog.Position, error)
	// Segments lists the segments in which readers find dropped events; KeepSegment adds
	// one.
	Segments(ctx context.Context) ([]archive.Segment, error)
	KeepSegment(ctx context.Context, s archive.Segment) error
	// Drop drops events of the log below a position, all of which are in listed segments.
	// It keeps the events of streams that are not settled. It returns the position where
	// the log then begins. After any error it may be called again.
	Drop(ctx context.Context, below eventlog.Position, rule archive.Rule) (eventlog.Position, error)
	// Restore puts dropped events back, from a position up to the log's beginning.
	Restore(ctx context.Context, from eventlog.Position, events iter.Seq2[eventlog.Batch, error]) error
}

// Files stores the segments.
type Files interface {
	// Write makes the segment of a range; it is durable and verified when Write returns.
	Write(ctx context.Context, store eventlog.ID, first, past eventlog.Position, events iter.Seq2[eventlog.Batch, error]) (archive.Segment, error)
	// Verify reads a whole segment; its errors name it.
	Verify(ctx context.Context, s archive.Segment) error
}

// Settings set the age and size of segments.
type Settings struct {
	After   time.Duration // minimum age of a segment's youngest event
	Segment int           // positions per segment
}

// Lease is the name of the lease for archiving and restoring: two at once would repeat or
// undo each other's work.
const Lease = "archive"

// Archiver moves events.
type Archiver struct {
	Owner    lease.Owner // of the lease
	Log      port.Store  // all of it, segments included
	Store    Store
	Files    Files
	Settings Settings
	Now      func() time.Time
	Random   io.Reader
	Logger   *slog.Logger
	Actor    eventlog.Meta
	// OnRead is called while events are read for a segment, or restored: the range begins with first,
	// and has been read up to at, of past. It may be nil.
	OnRead func(first, at, past eventlog.Position)
	// Told is called after each pass of Run with the archive's state, Failed with the error
	// of a failed pass. Both may be nil.
	Told   func(Standing)
	Failed func(error)
	// Crash is called at the points of [CrashPoints] and [RestoreCrashPoints]; nil does nothing.
	Crash func(point string)

	verified map[archive.Digest]bool // segments verified by this process
	dropped  eventlog.Position       // position below which this process has dropped all that it could
}

// CrashPoints lists the places at which a test may end the process.
func CrashPoints() []string { return []string{"archive.stored", "archive.listed", "archive.recorded"} }

// RestoreCrashPoints lists the places in [Archiver.Restore] at which a test may end the process.
func RestoreCrashPoints() []string { return []string{"restore.returned", "restore.recorded"} }

// Rule selects the streams that are unlikely to be needed soon: transactions whose last
// event settles them, and groups without recent members.
func Rule() archive.Rule {
	return archive.Rule{
		{Prefix: tx.StreamPrefix, Names: []string{"tx.finalized.", "tx.payload_erased.", "tx.retired."}},
		{Prefix: group.StreamPrefix},
	}
}

// pause is between two passes.
const between = time.Minute

// Run archives events that become old enough, until ctx ends. It takes the lease anew for
// each pass, so that an operator's command can run in between.
func (a *Archiver) Run(ctx context.Context) {
	for ctx.Err() == nil {
		_, err := a.Owner.Once(ctx, Lease, func(ctx context.Context) error {
			_, err := a.Pass(ctx, false)
			return errors.Join(err, a.tell(ctx))
		})
		if err != nil && ctx.Err() == nil {
			a.Logger.Warn("events could not be archived, retrying later", "pause", between, "err", err)
			if a.Failed != nil {
				a.Failed(err)
			}
		}
		_ = pause.For(ctx, between) // the loop checks ctx
	}
}

// Alone does something with the lease. It waits for the lease's holder until ctx ends.
func (a *Archiver) Alone(ctx context.Context, do func(ctx context.Context) error) error {
	for waits := false; ; waits = true {
		held, err := a.Owner.Once(ctx, Lease, do)
		if held || err != nil {
			return err
		}
		if !waits {
			a.Logger.Info("another process uses the archive: waiting until it has finished")
		}
		if err := pause.For(ctx, a.Owner.Renew); err != nil {
			return err
		}
	}
}

// Standing is the state of the archive, for operators.
type Standing struct {
	Past     eventlog.Position // the first position in no segment
	Begins   eventlog.Position // where the store's log begins
	Segments int
	Bytes    uint64 // of their files
	Due      int    // segments that could be made now
}

// tell reports the archive's state to Told.
func (a *Archiver) tell(ctx context.Context) error {
	if a.Told == nil || ctx.Err() != nil {
		return nil
	}
	plan, err := a.Plan(ctx)
	if err != nil {
		return err
	}
	due, err := plan.Due(ctx)
	if err != nil {
		return err
	}
	state := plan.State
	now := Standing{Past: state.Past(), Begins: max(state.Begins, 1), Segments: len(state.Segments), Due: len(due)}
	for _, s := range state.Segments {
		now.Bytes += s.Bytes
	}
	a.Told(now)
	return nil
}

// Report is the result of a pass, actual or planned.
type Report struct {
	Stored []archive.Segment
	Begins eventlog.Position // of the store's log now
	Held   bool              // restored events stay until an operator drops them
}

func (a *Archiver) handler() handler.Handler[archive.State, archive.Command, archive.Event] {
	return handler.Handler[archive.State, archive.Command, archive.Event]{Store: a.Log, Codec: archive.Codec(), Random: a.Random}
}

func (a *Archiver) handle(ctx context.Context, c archive.Command) (archive.State, error) {
	r, err := a.handler().Do(ctx, archive.Stream, c, a.Actor)
	return r.State, err
}

// Pass stores every segment that is due, and drops stored events. It drops restored events
// only if again is set.
func (a *Archiver) Pass(ctx context.Context, again bool) (report Report, err error) {
	state, err := a.State(ctx)
	if err != nil {
		return report, err
	}
	if state, err = a.catchUp(ctx, state); err != nil {
		return report, err
	}
	for {
		plan, err := a.plan(ctx, state)
		if err != nil {
			return report, err
		}
		first, past, err := plan.next(ctx)
		if err != nil {
			return report, err
		}
		if past == 0 {
			break
		}
		if state, err = a.store(ctx, plan, first, past); err != nil {
			return report, err
		}
		report.Stored = append(report.Stored, state.Segments[len(state.Segments)-1])
	}
	if err := a.list(ctx, state); err != nil {
		return report, err
	}
	if state, err = a.drop(ctx, state, again); err != nil {
		return report, err
	}
	report.Begins, report.Held = max(state.Begins, 1), state.Held
	return report, nil
}

// State returns the recorded state of the archive.
func (a *Archiver) State(ctx context.Context) (archive.State, error) {
	r, err := a.handler().Load(ctx, archive.Stream)
	return r.State, err
}

// Plan returns the plan of a pass that would run now.
func (a *Archiver) Plan(ctx context.Context) (Plan, error) {
	state, err := a.State(ctx)
	if err != nil {
		return Plan{}, err
	}
	return a.plan(ctx, state)
}

func (a *Archiver) plan(ctx context.Context, state archive.State) (Plan, error) {
	head, err := a.Log.Head(ctx)
	if err != nil {
		return Plan{}, err
	}
	begins, err := a.Store.Begins(ctx)
	return Plan{State: state, Begins: begins, Head: head, Settings: a.Settings, Now: a.Now(), Page: a.page}, err
}

func (a *Archiver) page(ctx context.Context, after eventlog.Position, most int) ([]eventlog.Recorded, error) {
	for batch, err := range a.Log.ReadAll(ctx, after, eventlog.Filter{}, most) {
		return batch.Events, err
	}
	return nil, nil
}

// readMax is how many events are read at once for a segment.
const readMax = 1000

// reading reads the log from a position on, and reports the progress up to past.
func (a *Archiver) reading(ctx context.Context, first, past eventlog.Position) iter.Seq2[eventlog.Batch, error] {
	all := a.Log.ReadAll(ctx, first-1, eventlog.Filter{}, readMax)
	if a.OnRead == nil {
		return all
	}
	return func(yield func(eventlog.Batch, error) bool) {
		for batch, err := range all {
			if n := len(batch.Events); n > 0 {
				a.OnRead(first, min(batch.Events[n-1].Position+1, past), past)
			}
			if !yield(batch, err) {
				return
			}
		}
	}
}

// store writes one segment, and records it.
func (a *Archiver) store(ctx context.Context, plan Plan, first, past eventlog.Position) (archive.State, error) {
	state := plan.State
	one, err := plan.at(ctx, 1)
	if err != nil {
		return state, err
	}
	segment, err := a.Files.Write(ctx, one.ID, first, past, a.reading(ctx, first, past))
	if err != nil {
		return state, err
	}
	a.read(segment)
	if state, err = a.handle(ctx, archive.Store{Segment: segment, At: a.Now()}); err != nil {
		return state, err
	}
	a.Logger.Info("events archived", "segment", segment.Name, "events", segment.Events, "bytes", segment.Bytes)
	a.crash("archive.stored")
	return state, nil
}

// list makes every recorded segment available to readers.
func (a *Archiver) list(ctx context.Context, state archive.State) error {
	listed, err := a.Store.Segments(ctx)
	if err != nil {
		return err
	}
	known := map[eventlog.Position]archive.Digest{}
	for _, s := range listed {
		known[s.First] = s.Hash
	}
	for _, s := range state.Segments {
		switch hash, ok := known[s.First]; {
		case !ok:
			if err := a.Store.KeepSegment(ctx, s); err != nil {
				return err
			}
			a.crash("archive.listed")
		case hash != s.Hash:
			return fmt.Errorf("archive segment %s: listed with the hash %s, recorded with %s", s.Name, hash, s.Hash)
		}
	}
	return nil
}

// drop makes the store drop the recorded and verified events, and records where its log
// begins.
func (a *Archiver) drop(ctx context.Context, state archive.State, again bool) (archive.State, error) {
	below := state.Past()
	if !again && (state.Held || below <= a.dropped) {
		return state, nil
	}
	begins, err := a.Store.Begins(ctx)
	if err != nil {
		return state, err
	}
	for _, s := range state.Segments {
		if s.Past <= begins || a.verified[s.Hash] {
			continue
		}
		if err := a.Files.Verify(ctx, s); err != nil {
			return state, err
		}
		a.read(s)
	}
	if begins, err = a.Store.Drop(ctx, below, Rule()); err != nil {
		return state, err
	}
	a.dropped = below
	if begins <= 1 {
		return state, nil
	}
	if state, err = a.handle(ctx, archive.Drop{Below: begins, At: a.Now()}); err != nil {
		return state, err
	}
	a.crash("archive.recorded")
	return state, nil
}

func (a *Archiver) read(s archive.Segment) {
	if a.verified == nil {
		a.verified = map[archive.Digest]bool{}
	}
	a.verified[s.Hash] = true
}

// catchUp records where the store's log begins, if an error or a crash has prevented that. After
// a restore the restored events are held. A restore that was recorded, but whose events the
// store does not hold, no longer holds anything.
func (a *Archiver) catchUp(ctx context.Context, state archive.State) (archive.State, error) {
	begins, err := a.Store.Begins(ctx)
	switch {
	case err != nil:
	case begins < state.Begins:
		state, err = a.handle(ctx, archive.Restore{From: begins, At: a.Now()})
	case begins > max(state.Begins, 1):
		state, err = a.handle(ctx, archive.Drop{Below: begins, At: a.Now()})
	}
	return state, err
}

// Restore makes the store hold the events from a position on again, starting with its
// segment. It returns the restored range, up to the log's former beginning. The events stay
// until an operator drops them again.
//
// It is recorded last: if the store's restore fails, the archive is as before. After a crash
// between the two, or if the store's answer was lost, the next pass records it.
func (a *Archiver) Restore(ctx context.Context, position eventlog.Position) (from, past eventlog.Position, err error) {
	state, err := a.State(ctx)
	if err != nil {
		return 0, 0, err
	}
	if state, err = a.catchUp(ctx, state); err != nil {
		return 0, 0, err
	}
	plan, err := a.plan(ctx, state)
	if err != nil {
		return 0, 0, err
	}
	if from, err = plan.Restorable(position); err != nil {
		return 0, 0, err
	}
	past = plan.Begins
	if err := a.Store.Restore(ctx, from, a.reading(ctx, from, past)); err != nil {
		return from, past, err
	}
	a.crash("restore.returned")
	if _, err := a.handle(ctx, archive.Restore{From: from, At: a.Now()}); err != nil {
		return from, past, fmt.Errorf("positions %d to %d are in the store again; the next pass records it: %w", from, past-1, err)
	}
	a.crash("restore.recorded")
	return from, past, nil
}

func (a *Archiver) crash(point string) {
	if a.Crash != nil {
		a.Crash(point)
	}
}
