package metrics

import (
	"context"
	"iter"
	"time"

	"github.com/tempo-watchtower/watchtower/eventlog"
)

// Log is the event store's port.
type Log interface {
	Append(ctx context.Context, stream eventlog.Stream, expected eventlog.Version, events ...eventlog.Event) (eventlog.Appended, error)
	ReadStream(ctx context.Context, stream eventlog.Stream, after eventlog.Version) iter.Seq2[eventlog.Recorded, error]
	Version(ctx context.Context, stream eventlog.Stream) (eventlog.Version, error)
	ReadAll(ctx context.Context, after eventlog.Position, f eventlog.Filter, max int) iter.Seq2[eventlog.Batch, error]
	Subscribe(ctx context.Context, after eventlog.Position, f eventlog.Filter, max int) iter.Seq2[eventlog.Batch, error]
	Head(ctx context.Context) (eventlog.Position, error)
}

// Store is an event store whose appends are counted.
type Store struct {
	Log
	metrics *Metrics
}

// Store wraps an event store.
func (m *Metrics) Store(log Log) Store { return Store{log, m} }

// Append appends, and counts the stored events.
func (s Store) Append(ctx context.Context, stream eventlog.Stream, expected eventlog.Version, events ...eventlog.Event) (eventlog.Appended, error) {
	began := time.Now()
	appended, err := s.Log.Append(ctx, stream, expected, events...)
	if err == nil && !appended.Repeated {
		s.metrics.appendTime.Observe(time.Since(began).Seconds())
		s.metrics.head.Set(float64(appended.Position))
		for _, e := range events {
			s.metrics.appends.WithLabelValues(e.Name).Inc()
		}
	}
	return appended, err
}
