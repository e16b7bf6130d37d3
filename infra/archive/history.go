package archive

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/tempo-watchtower/watchtower/domain/archive"
	"github.com/tempo-watchtower/watchtower/domain/event"
)

// History is what a store had dropped at one moment, for whoever reads the rest of it
// without [Store].
type History struct {
	files    *Files
	segments []archive.Segment
	begins   event.Position
}

// NewHistory is what lies below a position.
func NewHistory(files *Files, segments []archive.Segment, begins event.Position) *History {
	return &History{files, segments, begins}
}

// Page is the next events after a position, at most so many; none where the history ends.
func (h *History) Page(ctx context.Context, after event.Position, most int) (page []event.Recorded, err error) {
	if after >= h.begins-1 {
		return nil, nil
	}
	for _, s := range h.segments {
		if after+1 < s.First || after+1 >= s.Past {
			continue
		}
		for events, err := range h.files.Read(ctx, s, after) {
			if err != nil && len(page) > 0 {
				break // whoever goes on from there is told
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
	return nil, fmt.Errorf("archive: %w: no segment is listed that has position %d", archive.ErrMissing, after+1)
}

// Lacks reports whether some of a stream's events after a version may be in the archive,
// of which some are given.
func (h *History) Lacks(given []event.Recorded, after event.Version) bool {
	return len(given) == 0 || !whole(given, after)
}

// Complete is a stream's events after a version, of which some are given already. The
// others are looked for in its extent.
func (h *History) Complete(ctx context.Context, stream event.Stream, after event.Version, given []event.Recorded, in archive.Extent) ([]event.Recorded, error) {
	if !h.Lacks(given, after) {
		return given, nil
	}
	known := map[event.Version]bool{}
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
	slices.SortFunc(all, func(a, b event.Recorded) int { return cmp.Compare(a.Version, b.Version) })
	if !whole(all, after) {
		return nil, fmt.Errorf("archive: %s: %w: some of its events are neither in the store nor in a segment", stream, archive.ErrMissing)
	}
	return all, nil
}

// whole reports whether events follow a version without a gap.
func whole(events []event.Recorded, after event.Version) bool {
	for i, r := range events {
		if r.Version != after+event.Version(i)+1 {
			return false
		}
	}
	return true
}
