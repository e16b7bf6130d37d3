package verify

import (
	"context"

	"github.com/tempo-watchtower/watchtower/domain/payload"
	"github.com/tempo-watchtower/watchtower/eventlog"
	"github.com/tempo-watchtower/watchtower/proof/promises"
)

// suspect is a transaction whose signed bytes disagree with its events.
type suspect struct {
	payload.Ref
	stream eventlog.Stream
	needed bool // false: they should be erased
}

// suspectsMax limits the number of suspects that are checked again; more are no coincidence.
const suspectsMax = 10_000

// payloads compares the signed bytes with the log: present while they may be sent, gone after
// they were erased. It skips transactions with events since the verification began.
func (r *run) payloads(ctx context.Context, some []folded) error {
	var asked []folded
	var refs []payload.Ref
	for _, f := range some {
		needed := !f.now.Sealed && !f.now.Violated && !f.now.Canceled && !f.now.Refused
		if f.broken || !f.last.Before(r.Began) || !needed && !f.now.Erased {
			continue
		}
		asked, refs = append(asked, f), append(refs, f.Ref)
	}
	bytes, keys, err := r.Log.Payloads(ctx, refs)
	if err != nil {
		return err
	}
	for _, f := range asked {
		if f.now.Erased {
			r.report.Payloads.Erased++
		} else {
			r.report.Payloads.Needed++
		}
		r.suspect(suspect{f.Ref, f.stream, !f.now.Erased}, bytes[f.Ref], keys[f.Ref])
	}
	return nil
}

// wrong returns the promise that the bytes of a transaction break, and why; empty if none.
func (s suspect) wrong(bytes, key bool) (n promises.Number, why string) {
	switch {
	case s.needed && !bytes:
		return promises.P2, "it may have to be sent, but its signed bytes are missing"
	case s.needed && !key:
		return promises.P2, "it may have to be sent, but the data key of its signed bytes is missing"
	case !s.needed && bytes:
		return promises.P23, "its signed bytes should be erased, but still exist"
	case !s.needed && key:
		return promises.P23, "its signed bytes were erased, but their data key still exists"
	}
	return 0, ""
}

func (r *run) suspect(s suspect, bytes, key bool) {
	n, why := s.wrong(bytes, key)
	if why == "" {
		return
	}
	if r.Again != nil && len(r.suspects) < suspectsMax {
		r.suspects = append(r.suspects, s)
		return
	}
	r.guilty(s, n, why)
}

func (r *run) guilty(s suspect, n promises.Number, why string) {
	if s.needed {
		r.report.Payloads.Missing++
	} else {
		r.report.Payloads.Kept++
	}
	r.broken(promises.Violation{Promise: n, Stream: s.stream, Evidence: why})
}

// recheck reads the suspects again. Files and tables are read one after the other, and a running
// service may have changed one between two reads.
func (r *run) recheck(ctx context.Context) error {
	if len(r.suspects) == 0 {
		return nil
	}
	store, err := r.Again(ctx)
	if err != nil {
		return err
	}
	defer store.Close() //nolint:errcheck // it was only read
	for _, s := range r.suspects {
		bytes, keys, err := store.Payloads(ctx, []payload.Ref{s.Ref})
		if err != nil {
			return err
		}
		n, why := s.wrong(bytes[s.Ref], keys[s.Ref])
		if why == "" {
			continue
		}
		if same, err := r.unchanged(ctx, store, s); err != nil || !same {
			if err != nil {
				return err
			}
			continue
		}
		r.guilty(s, n, why)
	}
	return nil
}

// unchanged reports whether a transaction has no new events since it was folded.
func (r *run) unchanged(ctx context.Context, store Store, s suspect) (bool, error) {
	before, err := r.Log.Streams(ctx, []eventlog.Stream{s.stream})
	if err != nil {
		return false, err
	}
	now, err := store.Streams(ctx, []eventlog.Stream{s.stream})
	return len(before[s.stream]) == len(now[s.stream]), err
}
