package archive

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/tempo-watchtower/watchtower/domain/archive"
	"github.com/tempo-watchtower/watchtower/eventlog"
)

// History is the dropped part of a log as of one moment, for callers that read the rest without
// [Store].
type History struct {
	files    *Files
	segments []archive.Segment
	begins   eventlog.Position
}

// NewHistory returns the history below a position.
func NewHistory(files *Files, segments []archive.Segment, begins eventlog.Position) *History {
	return &History{files, segments, begins}
}

// Page returns up to most next events after a position; none at the end of the history.
func (h *History) Page(ctx context.Context, after eventlog.Position, most int) (page []eventlog.Recorded, err error) {
	if after >= h.begins-1 {
		return nil, nil
	}
	for _, s := range h.segments {
		if after+1 < s.First || after+1 >= s.Past {
			continue
		}
		for events, err := range h.files.Read(ctx, s, after) {
			if err != nil && len(page) > 0 {
				break // the next call returns the error
			}
			if err != nil {
				return nil, err
			}
			for _, r := range events {
				if len(page) < most && r.Position < h.begins {
					page = append(page, r)
				}
			}
			if len(page) >= most {
				break
			}
		}
		return page, nil
	}
	return nil, fmt.Errorf("archive: %w: the list has no segment with position %d", archive.ErrMissing, after+1)
}

// Lacks reports whether events of a stream after a version may be in the archive, in addition
// to the given ones.
func (h *History) Lacks(given []eventlog.Recorded, after eventlog.Version) bool {
	return len(given) == 0 || !whole(given, after)
}

// Complete returns a stream's events after a version. It adds those missing from given, which
// it searches in the segments of the stream's extent.
func (h *History) Complete(ctx context.Context, stream eventlog.Stream, after eventlog.Version, given []eventlog.Recorded, in archive.Extent) ([]eventlog.Recorded, error) {
	if !h.Lacks(given, after) {
		return given, nil
	}
	known := map[eventlog.Version]bool{}
	for _, r := range given {
		known[r.Version] = true
	}
	all := slices.Clone(given)
	for _, s := range h.segments {
		if s.First >= h.begins {
			break
		}
		if !in.Meets(s) {
			continue
		}
		events, err := h.files.Stream(ctx, s, stream, after)
		if err != nil {
			return nil, err
		}
		for _, r := range events {
			if !known[r.Version] && r.Position < h.begins {
				all = append(all, r)
			}
		}
	}
	slices.SortFunc(all, func(a, b eventlog.Recorded) int { return cmp.Compare(a.Version, b.Version) })
	if !whole(all, after) {
		return nil, fmt.Errorf("archive: %s: %w: some of its events are neither in the store nor in a segment", stream, archive.ErrMissing)
	}
	return all, nil
}

// whole reports whether events follow a version without a gap.
func whole(events []eventlog.Recorded, after eventlog.Version) bool {
	for i, r := range events {
		if r.Version != after+eventlog.Version(i)+1 {
			return false
		}
	}
	return true
}
