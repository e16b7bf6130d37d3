// Package outward is a view of a relay's log for its clients. It has only the public events of
// their intents, in the form of webhook bodies. It is used between a log and its readers, such
// as package infra/feed: so a broker gets the same events as webhooks, with all guarantees of
// the feed.
package outward

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"

	"github.com/tempo-watchtower/watchtower/domain/relay/intent"
	"github.com/tempo-watchtower/watchtower/eventlog"
	"github.com/tempo-watchtower/watchtower/eventlog/states"
)

// Source is the recorded log.
type Source interface {
	ReadStream(ctx context.Context, stream eventlog.Stream, after eventlog.Version) iter.Seq2[eventlog.Recorded, error]
	Subscribe(ctx context.Context, after eventlog.Position, f eventlog.Filter, max int) iter.Seq2[eventlog.Batch, error]
	Head(ctx context.Context) (eventlog.Position, error)
}

// Log is a log of public events. An event keeps its id, stream, version and position. Its name
// is the public type, such as TxConfirmed, and its data is a webhook's body, with the gapless
// sequence. Versions of events without a public form are missing from a stream.
type Log struct {
	source  Source
	stories *states.States[intent.Story]
}

// storiesMost bounds the memory for the states of intents.
const storiesMost = 64 << 20

// New returns the clients' view of a log. Inputs of an intent's calls are in it if they have at
// most data bytes together, from the event on with which a block contains the calls.
func New(source Source, data int) Log {
	codec := intent.Codec()
	return Log{source, &states.States[intent.Story]{
		Store: source, Most: storiesMost, Size: intent.Story.Size,
		Fold: func(s intent.Story, r eventlog.Recorded) (intent.Story, error) {
			id, err := intent.ParseStream(r.Stream)
			if err != nil {
				return s, err
			}
			e, err := codec.Decode(r.Name, r.Data)
			if err != nil {
				return s, err
			}
			return s.After(id, e, data), nil
		},
	}}
}

// Head is the position of the last recorded event, public or not.
func (l Log) Head(ctx context.Context) (eventlog.Position, error) { return l.source.Head(ctx) }

// ReadStream yields the public events of an intent's stream.
func (l Log) ReadStream(ctx context.Context, stream eventlog.Stream, after eventlog.Version) iter.Seq2[eventlog.Recorded, error] {
	return func(yield func(eventlog.Recorded, error) bool) {
		for r, err := range l.source.ReadStream(ctx, stream, after) {
			told := err == nil
			if told {
				r, told, err = l.tell(ctx, r)
			}
			if (told || err != nil) && !yield(r, err) || err != nil {
				return
			}
		}
	}
}

// Subscribe yields the public events of all intents that pass a filter, by their public names.
// An unreadable event ends it, after the events before it were yielded.
func (l Log) Subscribe(ctx context.Context, after eventlog.Position, f eventlog.Filter, most int) iter.Seq2[eventlog.Batch, error] {
	return func(yield func(eventlog.Batch, error) bool) {
		for batch, err := range l.source.Subscribe(ctx, after, eventlog.Filter{Streams: []string{intent.StreamPrefix}}, most) {
			if err != nil {
				yield(eventlog.Batch{}, err)
				return
			}
			told, stuck := l.tellAll(ctx, batch, f)
			if stuck == nil {
				if !yield(told, nil) {
					return
				}
				continue
			}
			if head, ok := batch.Before(stuck); !ok || yield(eventlog.Batch{Events: told.Events, Next: head.Next}, nil) {
				yield(eventlog.Batch{}, stuck)
			}
			return
		}
	}
}

// tellAll returns a batch's public events that pass, up to the first unreadable event, if there
// is one.
func (l Log) tellAll(ctx context.Context, batch eventlog.Batch, f eventlog.Filter) (eventlog.Batch, error) {
	told := eventlog.Batch{Next: batch.Next, Live: batch.Live}
	for _, r := range batch.Events {
		shown, ok, err := l.tell(ctx, r)
		if err != nil {
			return told, &eventlog.Stuck{At: r.Position, Err: err}
		}
		if ok && f.Passes(shown.Stream, shown.Name) {
			told.Events = append(told.Events, shown)
		}
	}
	return told, nil
}

// tell converts a recorded event to its public form, if it has one.
func (l Log) tell(ctx context.Context, r eventlog.Recorded) (eventlog.Recorded, bool, error) {
	story, err := l.stories.After(ctx, r)
	if err != nil {
		return r, false, err
	}
	said, ok := story.Message(intent.Others)
	if !ok {
		return r, false, nil
	}
	data, err := json.Marshal(said)
	if err != nil {
		return r, false, fmt.Errorf("tell %s: %w", r.Name, err)
	}
	r.Name, r.Data = said.Type(), data
	return r, true, nil
}
