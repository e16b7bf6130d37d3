package metrics

import (
	"context"
	"iter"
	"time"

	"github.com/tempo-watchtower/watchtower/domain/event"
)

// Log is the event store's port.
type Log interface {
	Append(ctx context.Context, stream event.Stream, expected event.Version, events ...event.Event) (event.Appended, error)
	ReadStream(ctx context.Context, stream event.Stream, after event.Version) iter.Seq2[event.Recorded, error]
	Version(ctx context.Context, stream event.Stream) (event.Version, error)
	ReadAll(ctx context.Context, after event.Position, f event.Filter, max int) iter.Seq2[event.Batch, error]
	Subscribe(ctx context.Context, after event.Position, f event.Filter, max int) iter.Seq2[event.Batch, error]
	Head(ctx context.Context) (event.Position, error)
}

// Store is an event store whose appends are counted.
type Store struct {
	Log
	metrics *Metrics
}

// Store wraps an event store.
func (m *Metrics) Store(log Log) Store { return Store{log, m} }

// Append appends, and counts the stored events.
func (s Store) Append(ctx context.Context, stream event.Stream, expected event.Version, events ...event.Event) (event.Appended, error) {
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
