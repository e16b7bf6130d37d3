package eventstoredb

import (
	"context"
	"log/slog"

	"github.com/tempo-watchtower/watchtower/eventlog"
)

// Inspection is the log as it was at one moment. Nothing is ever taken out of it, so a
// service may be at work on it.
type Inspection struct {
	log  *Log
	head eventlog.Position
}

// Inspect opens the log of a URL for reading, as it is now.
func Inspect(ctx context.Context, url string, logger *slog.Logger) (*Inspection, error) {
	l, err := Open(ctx, url, Options{Logger: logger})
	if err != nil {
		return nil, err
	}
	head, err := l.Head(ctx)
	if err != nil {
		l.Close(ctx) //nolint:errcheck,gosec // the first error is told
		return nil, err
	}
	return &Inspection{log: l, head: head}, nil
}

// Close ends the inspection.
func (i *Inspection) Close() error { return i.log.Close(context.Background()) }

// Head is the position of the last event.
func (i *Inspection) Head(context.Context) (eventlog.Position, error) { return i.head, nil }

// Page returns the log's next events, up to most; none at the inspection's head.
func (i *Inspection) Page(ctx context.Context, after eventlog.Position, most int) ([]eventlog.Recorded, error) {
	if after >= i.head {
		return nil, nil
	}
	for b, err := range i.log.ReadAll(ctx, after, eventlog.Filter{}, most) {
		if err != nil {
			return nil, err
		}
		if len(b.Events) > 0 {
			return i.then(b.Events), nil
		}
	}
	return nil, nil
}

// then drops the events after the inspection's head.
func (i *Inspection) then(events []eventlog.Recorded) []eventlog.Recorded {
	for n, e := range events {
		if e.Position > i.head {
			return events[:n]
		}
	}
	return events
}

// Names lists streams by prefix, up to most after the cursor that an earlier call returned
// as next. They come in the order of their first events, which the server searches for.
func (i *Inspection) Names(ctx context.Context, prefix string, after int64, most int) (names []eventlog.Stream, next int64, err error) {
	next = after
	for b, err := range i.log.ReadAll(ctx, eventlog.Position(after), eventlog.Filter{Streams: []string{prefix}}, pageMost) {
		if err != nil {
			return nil, after, err
		}
		for _, e := range i.then(b.Events) {
			if e.Version != 1 {
				continue
			}
			names, next = append(names, e.Stream), int64(e.Position)
			if len(names) == most {
				return names, next, nil
			}
		}
		if b.Next >= i.head {
			break
		}
	}
	return names, next, nil
}

// Stream returns a stream's events after a version, up to most.
func (i *Inspection) Stream(ctx context.Context, stream eventlog.Stream, after eventlog.Version, most int) (page []eventlog.Recorded, err error) {
	for e, err := range i.log.ReadStream(ctx, stream, after) {
		if err != nil {
			return nil, err
		}
		if e.Position > i.head || len(page) == most {
			break
		}
		page = append(page, e)
	}
	return page, nil
}

// Streams is all events of some streams, each stream's in order.
func (i *Inspection) Streams(ctx context.Context, names []eventlog.Stream) (map[eventlog.Stream][]eventlog.Recorded, error) {
	all := make(map[eventlog.Stream][]eventlog.Recorded, len(names))
	for _, name := range names {
		events, err := i.Stream(ctx, name, 0, maxVersion)
		if err != nil {
			return nil, err
		}
		if len(events) > 0 {
			all[name] = events
		}
	}
	return all, nil
}

// Known tells which of some streams there are.
func (i *Inspection) Known(ctx context.Context, names []eventlog.Stream) (map[eventlog.Stream]bool, error) {
	known := make(map[eventlog.Stream]bool, len(names))
	for _, name := range names {
		first, err := i.Stream(ctx, name, 0, 1)
		if err != nil {
			return nil, err
		}
		if len(first) > 0 {
			known[name] = true
		}
	}
	return known, nil
}
