// Package auditor answers questions about the past from the log alone: the history of a
// transaction or group with reasons, its state at a time, the events between two points, and
// whether the log is still as it was recorded and sealed.
//
// It reads, and never writes.
package auditor

import (
	"context"
	"fmt"
	"iter"

	"github.com/tempo-watchtower/watchtower/eventlog"
)

// Source is a snapshot of a log.
type Source interface {
	// Head is the position of the last event.
	Head(ctx context.Context) (eventlog.Position, error)
	// Page is the next events of the log, up to most of them; none at its end. An event whose
	// stream has no row has no stream.
	Page(ctx context.Context, after eventlog.Position, most int) ([]eventlog.Recorded, error)
	// Stream is the events of a stream after a version, up to most of them; fewer at its end.
	Stream(ctx context.Context, stream eventlog.Stream, after eventlog.Version, most int) ([]eventlog.Recorded, error)
	// Known reports which of the named streams exist.
	Known(ctx context.Context, names []eventlog.Stream) (map[eventlog.Stream]bool, error)
}

// Events per read: of the log, and of a stream, whose events may be large.
const (
	pageMost   = 2000
	streamMost = 100
)

// all yields the events of a log after a position, by position.
func all(ctx context.Context, s Source, after eventlog.Position) iter.Seq2[eventlog.Recorded, error] {
	return func(yield func(eventlog.Recorded, error) bool) {
		for {
			page, err := s.Page(ctx, after, pageMost)
			if err != nil {
				yield(eventlog.Recorded{}, fmt.Errorf("read after position %d: %w", after, err))
				return
			}
			for _, r := range page {
				if !yield(r, nil) {
					return
				}
				after = max(after, r.Position)
			}
			if len(page) == 0 {
				return
			}
		}
	}
}

// stream yields the events of a stream, by version.
func stream(ctx context.Context, s Source, name eventlog.Stream) iter.Seq2[eventlog.Recorded, error] {
	return func(yield func(eventlog.Recorded, error) bool) {
		var after eventlog.Version
		for {
			page, err := s.Stream(ctx, name, after, streamMost)
			if err != nil {
				yield(eventlog.Recorded{}, fmt.Errorf("read %s: %w", name, err))
				return
			}
			for _, r := range page {
				if !yield(r, nil) {
					return
				}
				after = max(after, r.Version)
			}
			if len(page) < streamMost {
				return
			}
		}
	}
}
