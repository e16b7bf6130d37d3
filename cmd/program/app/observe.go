package app

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"time"

	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
	"github.com/tempo-watchtower/watchtower/eventlog"
	"github.com/tempo-watchtower/watchtower/eventlog/handler"
	"github.com/tempo-watchtower/watchtower/eventlog/pause"
)

// observer returns the hook that counts, traces and logs every recorded event.
func (a *App) observer() func(handler.Told[tx.State, tx.Event]) {
	codec := tx.Codec()
	return func(t handler.Told[tx.State, tx.Event]) {
		a.Ports.Metrics.Transaction(t.Before, t.After, t.Facts)
		a.Ports.Tracing.Transaction(t.Before, t.After, t.Facts, t.Meta)
		for _, fact := range t.Facts {
			level := importance(fact)
			if a.Settings.LogFacts {
				level = max(level, slog.LevelInfo)
			}
			if !a.Ports.Log.Enabled(context.Background(), level) {
				continue
			}
			name, _, err := codec.Encode(fact)
			if err != nil {
				continue // cannot fail: it was encoded a moment ago
			}
			a.Ports.Log.LogAttrs(context.Background(), level, "recorded", append([]slog.Attr{
				slog.String("tx", t.After.Accepted.Hash.String()), slog.String("chain", t.After.Accepted.Chain.String()),
				slog.String("event", name), slog.String("status", string(t.After.Status)), slog.String("actor", t.Meta.Actor),
			}, factAttrs(fact, t.Meta)...)...)
		}
	}
}

// factAttrs names the nodes that an attempt reached with their answers, and the request and trace that
// caused a fact.
func factAttrs(fact tx.Event, meta eventlog.Meta) (attrs []slog.Attr) {
	answered := func(attempt int, answers []tx.Answer) {
		nodes := make([]string, len(answers))
		for i, a := range answers {
			nodes[i] = a.Endpoint + ": " + string(a.Class)
		}
		attrs = append(attrs, slog.Int("attempt", attempt), slog.Any("node", nodes))
	}
	switch e := fact.(type) {
	case tx.Broadcast:
		answered(e.Attempt, e.Answers)
	case tx.Rejected:
		answered(e.Attempt, e.Answers)
	default: // it concerns no attempt
	}
	if !meta.Correlation.IsZero() {
		attrs = append(attrs, slog.String("request", meta.Correlation.String()))
	}
	if meta.Trace != "" {
		attrs = append(attrs, slog.String("trace", meta.Trace))
	}
	return attrs
}

// importance is the level at which an event is logged. The ordinary course of a transaction is
// logged at debug level.
func importance(fact tx.Event) slog.Level {
	switch e := fact.(type) {
	case tx.FinalityViolated:
		return slog.LevelError
	case tx.Reorged:
		return slog.LevelWarn
	case tx.StaleByNonce, tx.Expired, tx.CanceledLocally:
		return slog.LevelInfo
	case tx.Rejected:
		if e.Permanent {
			return slog.LevelInfo
		}
	default: // the ordinary course
	}
	return slog.LevelDebug
}

const (
	lagEvery = 5 * time.Second // the pause between two reads of the log's head
	// Counting the due queue reads all of it. The pause is at least depthEvery, and long enough
	// that counting takes at most 1/depthShare of the time.
	depthEvery = 10 * time.Second
	depthShare = 200
)

// reader runs a reader of the log. When it ends it forgets the reader's position and metrics:
// another replica has the lease then. An event that the reader cannot get past is reported in
// the log, in /health and as a metric.
func (a *App) reader(name string, work func(context.Context) error) func(context.Context) error {
	short := strings.TrimPrefix(name, projectionPrefix)
	return func(ctx context.Context) error {
		defer func() {
			a.served.noReader(short)
			a.Ports.Metrics.NotReader(short)
		}()
		err := work(ctx)
		var stuck *eventlog.Stuck
		if ctx.Err() != nil || !errors.As(err, &stuck) || a.passes(err) {
			return err
		}
		if a.served.stuck(short, stuck, a.Ports.Now()) {
			a.Ports.Log.Error("a reader of the log is stuck at an event", "reader", short, "position", stuck.At, "err", err)
		}
		a.Ports.Metrics.Stuck(short, uint64(stuck.At))
		return nil // the owner retries, as after every end
	}
}

// passes reports whether an error is not the fault of the event at which it occurred: the store
// had trouble, or the outcome of a write is unknown.
func (a *App) passes(err error) bool {
	return errors.Is(err, eventlog.ErrUnknown) || errors.Is(err, context.DeadlineExceeded) || a.Ports.Storage.Transient(err)
}

// watchLag updates the metrics of how far this process's readers are behind.
func (a *App) watchLag(ctx context.Context) {
	for pause.For(ctx, lagEvery) == nil {
		for _, name := range a.served.unstuck(a.Ports.Now()) {
			a.Ports.Metrics.NotStuck(name)
		}
		readers, err := a.readers(ctx)
		if err != nil {
			a.Ports.Log.Debug("the lag could not be read", "err", err)
			continue
		}
		for _, r := range readers {
			a.Ports.Metrics.Lag(r.Name, r.Lag)
		}
	}
}

// watchDepth updates the metrics of the due queue, on one replica at a time.
func (a *App) watchDepth(ctx context.Context) error {
	defer a.Ports.Metrics.NoQueue()
	for next := depthEvery; pause.For(ctx, next) == nil; {
		began := a.Ports.Now()
		for _, c := range a.Ports.Chains {
			depth, err := a.Ports.Storage.Queue.Depth(ctx, c.ID)
			if err != nil {
				a.Ports.Log.Debug("the queue's depth could not be read", "chain", c.ID, "err", err)
				continue
			}
			a.Ports.Metrics.Queue(c.ID.String(), depth)
		}
		next = max(depthEvery, depthShare*a.Ports.Now().Sub(began))
	}
	return ctx.Err()
}

// moved records a reader's checkpoint.
func (a *App) moved(reader string, at eventlog.Position) {
	if a.served.reader(reader, at) {
		a.Ports.Log.Info("a reader of the log is no longer stuck", "reader", reader, "position", at)
		a.Ports.Metrics.NotStuck(reader)
	}
	a.Ports.Metrics.Reader(reader, uint64(at))
}
