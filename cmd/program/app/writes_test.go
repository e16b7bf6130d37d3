package app

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/tempo-watchtower/watchtower/eventlog"
)

// /health reports the same about writing as clients' write requests.
func TestWrites(t *testing.T) {
	full, other := errors.New("the disk is full"), errors.New("a refusal")
	now := time.Unix(1000, 0)
	var probed int
	var probes error
	w := &writes{
		transient: func(err error) bool { return errors.Is(err, full) },
		now:       func() time.Time { return now },
		probe:     func(context.Context) error { probed++; return probes },
	}
	says := func(when string, want error, wantProbed int) {
		t.Helper()
		probed = 0
		if got := w.check(t.Context()); !errors.Is(got, want) || (got == nil) != (want == nil) || probed != wantProbed {
			t.Errorf("%s: %v after %d probes, want %v after %d", when, got, probed, want, wantProbed)
		}
	}
	says("at first", nil, 0)
	for _, err := range []error{other, context.Canceled, fmt.Errorf("%w: %w", eventlog.ErrUnknown, context.DeadlineExceeded), &eventlog.ConflictError{}} {
		w.note(err)
		says(fmt.Sprint("after ", err), nil, 0)
	}
	w.note(full)
	says("one failure, and the probe stands", nil, 1)
	says("which settles it", nil, 0)
	w.note(full)
	probes = full
	says("one failure, and the probe fails too", full, 1)
	w.note(full)
	w.note(fmt.Errorf("%w: commit: %w", eventlog.ErrUnknown, full))
	probes = nil
	says("failures go on, whatever a probe would say", full, 0)
	now = now.Add(refusedFor)
	says("nobody tries any more, and the probe stands", nil, 1)
	for range refusedMost {
		w.note(full)
	}
	w.note(nil)
	says("a write stands", nil, 0)
	w.note(full)
	w.probe = func(context.Context) error { w.note(full); return nil }
	says("a failure beside the probe", full, 0)
	w.probe = nil
	says("no probe", full, 0)
}
