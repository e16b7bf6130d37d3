// Package whole is a view of delivery's log in which each event of a transaction carries the
// transaction's state. It is used between a log and its readers, such as package infra/feed: a
// consumer of a broker then needs no look-up.
package whole

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"strings"

	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
	"github.com/tempo-watchtower/watchtower/eventlog"
	"github.com/tempo-watchtower/watchtower/eventlog/states"
)

// Source is the recorded log.
type Source interface {
	ReadStream(ctx context.Context, stream eventlog.Stream, after eventlog.Version) iter.Seq2[eventlog.Recorded, error]
	Subscribe(ctx context.Context, after eventlog.Position, f eventlog.Filter, max int) iter.Seq2[eventlog.Batch, error]
	Head(ctx context.Context) (eventlog.Position, error)
}

// Log is the log with [Event] as the data of each event of a transaction. Other events, and all
// names, ids, versions and positions, are as recorded.
type Log struct {
	source Source
	states *states.States[tx.State]
}

// Event is an event of a transaction with the transaction's state right after it.
type Event struct {
	Data        json.RawMessage `json:"data"` // as recorded
	Transaction tx.Shown        `json:"transaction"`
}

// statesMost bounds the memory for the states of transactions.
const statesMost = 64 << 20

// New returns the view of a log.
func New(source Source) Log {
	codec := tx.Codec()
	return Log{source, &states.States[tx.State]{
		Store: source, Most: statesMost, Size: tx.State.Size,
		Fold: func(s tx.State, r eventlog.Recorded) (tx.State, error) {
			e, err := codec.Decode(r.Name, r.Data)
			if err != nil {
				return s, err
			}
			return s.Evolve(e), nil
		},
	}}
}

// Head is the position of the last recorded event.
func (l Log) Head(ctx context.Context) (eventlog.Position, error) { return l.source.Head(ctx) }

// ReadStream yields the events of a stream.
func (l Log) ReadStream(ctx context.Context, stream eventlog.Stream, after eventlog.Version) iter.Seq2[eventlog.Recorded, error] {
	return func(yield func(eventlog.Recorded, error) bool) {
		for r, err := range l.source.ReadStream(ctx, stream, after) {
			if err == nil {
				r, err = l.complete(ctx, r)
			}
			if !yield(r, err) || err != nil {
				return
			}
		}
	}
}

// Subscribe yields the events that pass a filter. An unreadable event ends it, after the events
// before it were yielded.
func (l Log) Subscribe(ctx context.Context, after eventlog.Position, f eventlog.Filter, most int) iter.Seq2[eventlog.Batch, error] {
	return func(yield func(eventlog.Batch, error) bool) {
		for batch, err := range l.source.Subscribe(ctx, after, f, most) {
			if err != nil {
				yield(eventlog.Batch{}, err)
				return
			}
			shown, stuck := l.completeAll(ctx, batch)
			if stuck == nil {
				if !yield(shown, nil) {
					return
				}
				continue
			}
			if head, ok := batch.Before(stuck); !ok || yield(eventlog.Batch{Events: shown.Events, Next: head.Next}, nil) {
				yield(eventlog.Batch{}, stuck)
			}
			return
		}
	}
}

// completeAll returns a batch's events up to the first unreadable one, if there is one.
func (l Log) completeAll(ctx context.Context, batch eventlog.Batch) (eventlog.Batch, error) {
	shown := eventlog.Batch{Next: batch.Next, Live: batch.Live}
	for _, r := range batch.Events {
		full, err := l.complete(ctx, r)
		if err != nil {
			return shown, &eventlog.Stuck{At: r.Position, Err: err}
		}
		shown.Events = append(shown.Events, full)
	}
	return shown, nil
}

func (l Log) complete(ctx context.Context, r eventlog.Recorded) (eventlog.Recorded, error) {
	if !strings.HasPrefix(string(r.Stream), tx.StreamPrefix) {
		return r, nil
	}
	state, err := l.states.After(ctx, r)
	if err != nil {
		return r, err
	}
	if r.Data, err = json.Marshal(Event{r.Data, state.Shown()}); err != nil {
		return r, fmt.Errorf("complete %s: %w", r.Name, err)
	}
	return r, nil
}
