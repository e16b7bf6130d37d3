// Package outward shows the log of a relay as its clients see it: of all that is recorded,
// what they are told of their intents, in the shape in which webhooks are told it. It
// stands between a log and those who read it, such as package infra/feed: so a broker
// gets what webhooks get, with all that the feed promises.
package outward

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"

	"github.com/tempo-watchtower/watchtower/domain/event"
	"github.com/tempo-watchtower/watchtower/domain/intent"
)

// Source is the log as it is recorded.
type Source interface {
	ReadStream(ctx context.Context, stream event.Stream, after event.Version) iter.Seq2[event.Recorded, error]
	Subscribe(ctx context.Context, after event.Position, f event.Filter, max int) iter.Seq2[event.Batch, error]
	Head(ctx context.Context) (event.Position, error)
}

// Log is a log of what clients are told. An event keeps its id, stream, version and
// position; its name is the type of what is told, such as TxConfirmed, and its data what a
// webhook's body is, with the sequence that has no gap. Of a stream some versions are
// missing: those of which nobody is told.
type Log struct {
	source Source
	codec  event.Codec[intent.Event]
}

// New shows a log as clients see it.
func New(source Source) Log { return Log{source, intent.Codec()} }

// Head is the position of the last event that is recorded, told or not.
func (l Log) Head(ctx context.Context) (event.Position, error) { return l.source.Head(ctx) }

// ReadStream yields what of an intent's stream is told.
func (l Log) ReadStream(ctx context.Context, stream event.Stream, after event.Version) iter.Seq2[event.Recorded, error] {
	return func(yield func(event.Recorded, error) bool) {
		for r, err := range l.source.ReadStream(ctx, stream, after) {
			told := err == nil
			if told {
				r, told, err = l.tell(r)
			}
			if (told || err != nil) && !yield(r, err) || err != nil {
				return
			}
		}
	}
}

// Subscribe yields what is told of all intents, as it passes a filter: by names as they
// are told. An event that cannot be read ends it, once what stands before was given.
func (l Log) Subscribe(ctx context.Context, after event.Position, f event.Filter, most int) iter.Seq2[event.Batch, error] {
	return func(yield func(event.Batch, error) bool) {
		for batch, err := range l.source.Subscribe(ctx, after, event.Filter{Streams: []string{intent.StreamPrefix}}, most) {
			if err != nil {
				yield(event.Batch{}, err)
				return
			}
			told, stuck := l.tellAll(batch, f)
			if stuck == nil {
				if !yield(told, nil) {
					return
				}
				continue
			}
			if head, ok := batch.Before(stuck); !ok || yield(event.Batch{Events: told.Events, Next: head.Next}, nil) {
				yield(event.Batch{}, stuck)
			}
			return
		}
	}
}

// tellAll is what of a batch is told and passes; up to the first event that cannot be
// read, if there is one.
func (l Log) tellAll(batch event.Batch, f event.Filter) (event.Batch, error) {
	told := event.Batch{Next: batch.Next, Live: batch.Live}
	for _, r := range batch.Events {
		shown, ok, err := l.tell(r)
		if err != nil {
			return told, &event.Stuck{At: r.Position, Err: err}
		}
		if ok && f.Passes(shown.Stream, shown.Name) {
			told.Events = append(told.Events, shown)
		}
	}
	return told, nil
}

// tell is a recorded event as it is told, if it is.
func (l Log) tell(r event.Recorded) (event.Recorded, bool, error) {
	id, err := intent.ParseStream(r.Stream)
	if err != nil {
		return r, false, err
	}
	e, err := l.codec.Decode(r.Name, r.Data)
	if err != nil {
		return r, false, err
	}
	said, ok := intent.Tell(id, e)
	if !ok {
		return r, false, nil
	}
	var named struct {
		Type string `json:"type"`
	}
	if r.Data, err = json.Marshal(said); err == nil {
		err = json.Unmarshal(r.Data, &named)
	}
	if err != nil {
		return r, false, fmt.Errorf("tell %s: %w", r.Name, err)
	}
	r.Name = named.Type
	return r, true, nil
}
