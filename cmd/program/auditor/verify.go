package auditor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"

	"github.com/tempo-watchtower/watchtower/domain/archive"
	"github.com/tempo-watchtower/watchtower/domain/audit"
	"github.com/tempo-watchtower/watchtower/eventlog"
)

// Options are the keys and seals against which a log is checked.
type Options struct {
	// Keys are the trusted keys; if empty, seals by any key count, and the report names their
	// keys.
	Keys []audit.Key
	// Kept are seals that were kept outside the log.
	Kept []audit.Sealed
	// Progress is called with the progress; may be nil.
	Progress func(step string, done, of uint64)
}

// FaultsMax limits the number of faults listed.
const FaultsMax = 100

// Report is the result of a verification.
type Report struct {
	Clean bool `json:"clean"`
	// Faults are the first faults by position, at most [FaultsMax]; Found counts all.
	Faults []audit.Fault `json:"faults"`
	Found  int           `json:"found"`
	// Unchecked lists the parts that could not be checked.
	Unchecked []string `json:"unchecked,omitempty"`

	Events   uint64            `json:"events"`
	Unlinked uint64            `json:"unlinked"` // events recorded before links existed
	Head     eventlog.Position `json:"head"`
	Seals    map[string]int    `json:"seals"`  // number of seals, by the key that signed them
	Sealed   eventlog.Position `json:"sealed"` // last position that a seal covers
	Rest     uint64            `json:"rest"`   // events after that, which only links protect
}

// verification is one verification in progress.
type verification struct {
	Options
	source Source
	check  *audit.Check
	met    int // events among the seals, also the events that do not count
	report Report
}

// Verify checks a log against its links, its seals and seals that were kept elsewhere. An error
// means that it could not finish; the report then has the findings up to that point.
func Verify(ctx context.Context, s Source, o Options) (Report, error) {
	v := &verification{Options: o, source: s, report: Report{Faults: []audit.Fault{}, Seals: map[string]int{}}}
	if v.Progress == nil {
		v.Progress = func(string, uint64, uint64) {}
	}
	for _, k := range o.Kept {
		if !k.Genuine() || !v.trusts(k.Key) {
			return v.report, fmt.Errorf("the kept seal up to position %d is not signed by a given key", k.Through)
		}
	}
	err := v.run(ctx)
	slices.SortStableFunc(v.report.Faults, func(a, b audit.Fault) int { return cmp.Compare(a.Position, b.Position) })
	if err == nil && len(o.Keys) > 0 && v.report.Events > 0 && v.met == 0 && len(o.Kept) == 0 {
		v.report.Unchecked = append(v.report.Unchecked, "the log has no seal yet")
	}
	v.report.Clean = err == nil && v.report.Found == 0 && len(v.report.Unchecked) == 0
	return v.report, err
}

func (v *verification) trusts(k audit.Key) bool {
	return len(v.Keys) == 0 || slices.Contains(v.Keys, k)
}

func (v *verification) found(faults ...audit.Fault) {
	v.report.Found += len(faults)
	v.report.Faults = append(v.report.Faults, faults[:min(len(faults), FaultsMax-len(v.report.Faults))]...)
}

func (v *verification) run(ctx context.Context) (err error) {
	if v.report.Head, err = v.source.Head(ctx); err != nil {
		return err
	}
	pull, stop := iter.Pull2(v.seals(ctx))
	defer stop()
	v.check = audit.NewCheck(func() (audit.Sealed, bool) {
		s, sealErr, ok := pull()
		err = errors.Join(err, sealErr)
		return s, ok && sealErr == nil
	}, v.Kept...)
	last := eventlog.Position(0)
	for r, readErr := range all(ctx, v.source, 0) {
		if damage := new(archive.DamagedError); errors.As(readErr, &damage) {
			return errors.Join(err, v.damaged(ctx, damage, last))
		}
		if readErr != nil {
			return readErr
		}
		v.found(v.check.Event(r)...)
		if err != nil {
			return err
		}
		v.report.Events++
		if v.report.Rest++; v.check.Sealed() == r.Position {
			v.report.Rest = 0
		}
		if last = max(last, r.Position); v.report.Events%pageMost == 0 {
			v.Progress("events", uint64(last), uint64(v.report.Head))
		}
	}
	v.found(v.check.End()...)
	if last < v.report.Head {
		v.found(audit.Fault{Position: last + 1, What: fmt.Sprintf("the log ends at position %d, but its store's last position is %d: the end was cut off", last, v.report.Head)})
	}
	v.report.Sealed, v.report.Unlinked = v.check.Sealed(), v.check.Unlinked
	return nil
}

// damaged finds the first event in a damaged part of the archive that is not as recorded, as far
// as that can be determined. It stops there: the stream versions after the lost events are
// unknown.
func (v *verification) damaged(ctx context.Context, d *archive.DamagedError, last eventlog.Position) error {
	fault := audit.Fault{Position: max(d.First, last+1), What: d.Error()}
	for _, r := range d.Remains {
		if r.Position <= last {
			continue
		}
		follows := v.check.Follows(r)
		if found := v.check.Event(r); len(found) > 0 {
			known, err := v.source.Known(ctx, []eventlog.Stream{r.Stream})
			if err != nil {
				return err
			}
			if fault.Position = r.Position; follows && known[r.Stream] {
				fault.Stream, fault.Version = r.Stream, r.Version
			}
			break
		}
		fault.Position = r.Position + 1
	}
	if fault.Position > d.Last { // the change affects none of the events
		fault.Position = max(d.First, last+1)
	}
	v.found(fault)
	v.report.Sealed, v.report.Unlinked = v.check.Sealed(), v.check.Unlinked
	v.report.Unchecked = append(v.report.Unchecked, fmt.Sprintf("events after position %d", fault.Position))
	return nil
}

// seals yields the genuine seals of the log. A seal that is not genuine is a fault, and proves
// nothing.
func (v *verification) seals(ctx context.Context) iter.Seq2[audit.Sealed, error] {
	return func(yield func(audit.Sealed, error) bool) {
		codec := audit.Codec()
		for r, err := range stream(ctx, v.source, audit.Stream) {
			if err != nil {
				yield(audit.Sealed{}, err)
				return
			}
			v.met++
			e, err := codec.Decode(r.Name, r.Data)
			if err != nil {
				v.found(faultAt(r, "the seal cannot be read: %v", err))
				continue
			}
			s, ok := e.(audit.Sealed)
			switch {
			case !ok:
				continue
			case !s.Genuine():
				v.found(faultAt(r, "the seal's signature is wrong: the seal was altered"))
				continue
			case !v.trusts(s.Key):
				v.found(faultAt(r, "the seal is signed by another key: %s", s.Key))
				continue
			case s.Through >= r.Position:
				v.found(faultAt(r, "the seal covers positions up to %d, which come after the seal", s.Through))
				continue
			}
			v.report.Seals[s.Key.String()]++
			if !yield(s, nil) {
				return
			}
		}
	}
}

func faultAt(r eventlog.Recorded, format string, args ...any) audit.Fault {
	return audit.Fault{Position: r.Position, Stream: r.Stream, Version: r.Version, What: fmt.Sprintf(format, args...)}
}

// LastSeal returns the newest seal of a log.
func LastSeal(ctx context.Context, s Source) (last audit.Sealed, err error) {
	codec := audit.Codec()
	for r, err := range stream(ctx, s, audit.Stream) {
		if err != nil {
			return last, err
		}
		e, err := codec.Decode(r.Name, r.Data)
		if err != nil {
			return last, fmt.Errorf("%s version %d: %w", r.Stream, r.Version, err)
		}
		if sealed, ok := e.(audit.Sealed); ok {
			last = sealed
		}
	}
	if last.Through == 0 {
		return last, notYetf("the log has no seal yet")
	}
	return last, nil
}
