package archiver

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/tempo-watchtower/watchtower/domain/archive"
	"github.com/tempo-watchtower/watchtower/eventlog"
)

// Plan computes the work on a log at one moment, without doing it.
type Plan struct {
	State    archive.State     // the recorded state of the archive
	Begins   eventlog.Position // where the store's log begins
	Head     eventlog.Position // where it ends
	Settings Settings
	Now      time.Time
	// Page reads up to most events after a position.
	Page func(ctx context.Context, after eventlog.Position, most int) ([]eventlog.Recorded, error)
}

// Due lists the ranges that a pass would store.
func (p Plan) Due(ctx context.Context) (ranges [][2]eventlog.Position, err error) {
	for {
		first, past, err := p.next(ctx)
		if err != nil || past == 0 {
			return ranges, err
		}
		ranges = append(ranges, [2]eventlog.Position{first, past})
		p.State = p.State.Evolve(archive.Stored{Segment: archive.Segment{First: first, Past: past}})
	}
}

// next returns the next range, if it is complete and old enough. A range never contains the
// log's last event, which marks the log's end.
func (p Plan) next(ctx context.Context) (first, past eventlog.Position, err error) {
	first = p.State.Past()
	past = first + eventlog.Position(p.Settings.Segment)
	if p.Head < past {
		return 0, 0, nil
	}
	last, err := p.at(ctx, past-1)
	if err != nil || p.Now.Sub(last.At) < p.Settings.After {
		return 0, 0, err
	}
	return first, past, nil
}

// at reads one event.
func (p Plan) at(ctx context.Context, position eventlog.Position) (eventlog.Recorded, error) {
	page, err := p.Page(ctx, position-1, 1)
	if err != nil {
		return eventlog.Recorded{}, err
	}
	if len(page) == 0 || page[0].Position != position {
		return eventlog.Recorded{}, fmt.Errorf("the log has no event at position %d: only a store without gaps can be archived", position)
	}
	return page[0], nil
}

// ErrNothing means that there is nothing to restore.
var ErrNothing = errors.New("the store already has these events")

// Restorable returns the position from which a restore would put events back, up to the
// store's log.
func (p Plan) Restorable(position eventlog.Position) (from eventlog.Position, err error) {
	if position > p.Head {
		return position, fmt.Errorf("position %d does not exist yet: the log ends at %d", position, p.Head)
	}
	if position >= p.Begins {
		return position, ErrNothing
	}
	for _, s := range p.State.Segments {
		if s.First <= position && position < s.Past {
			return s.First, nil
		}
	}
	return position, fmt.Errorf("position %d is in no segment", position)
}
