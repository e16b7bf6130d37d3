package app

import (
	"context"
	"fmt"
	"log/slog"

	library "github.com/redis/go-redis/v9"

	"github.com/tempo-watchtower/watchtower/cmd/program/config"
	"github.com/tempo-watchtower/watchtower/commands/delivery/scheduler"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
	"github.com/tempo-watchtower/watchtower/eventlog"
	"github.com/tempo-watchtower/watchtower/infra/metrics"
	"github.com/tempo-watchtower/watchtower/infra/redis"
)

// Hints notifies the replicas' workers of due work sooner than polling the due queue does. It
// may lose, delay and invent notifications. Redis is one implementation; the simulation has
// another.
type Hints interface {
	// Applied and Done report changes of the due queue. They never block.
	Applied([]tx.Change)
	Done([]tx.Done)
	// Run wakes workers until ctx ends.
	Run(ctx context.Context, workers map[chain.ID]redis.Worker)
	// Rebuild refills the hints from the queue until ctx ends. One replica runs it at a time.
	Rebuild(ctx context.Context, soon func(ctx context.Context, id chain.ID, limit int) ([]tx.Work, error)) error
	Ping(ctx context.Context) error
	Stats() redis.Stats
}

// libraryLog writes the Redis library's messages at debug level: its callers report failures
// themselves.
type libraryLog struct{ log *slog.Logger }

func (l libraryLog) Printf(ctx context.Context, format string, args ...any) {
	l.log.DebugContext(ctx, "the redis library: "+fmt.Sprintf(format, args...))
}

// LogRedis sends the Redis library's messages to log. The setting is global to the process.
func LogRedis(log *slog.Logger) { library.SetLogger(libraryLog{log}) }

// openRedis prepares the Redis hints; nil when Redis is not configured.
func openRedis(c config.Config, ports Ports) (*redis.Hints, error) {
	if c.Redis.IsZero() {
		return nil, nil
	}
	LogRedis(ports.Log)
	o := redis.Options{URL: c.Redis.Reveal(), Now: ports.Now, Log: ports.Log}
	for _, served := range c.Chains {
		o.Chains = append(o.Chains, served.ID)
	}
	return redis.Open(o)
}

func closeRedis(h *redis.Hints, log *slog.Logger) {
	if err := h.Close(); err != nil {
		log.Warn("redis not closed", "err", err)
	}
}

// hinted is a due queue that passes its changes on to Redis, which may lose them.
type hinted struct {
	scheduler.Queue
	hints Hints
}

func (q hinted) Apply(ctx context.Context, reader string, from, to eventlog.Position, changes []tx.Change) error {
	err := q.Queue.Apply(ctx, reader, from, to, changes)
	if err == nil {
		q.hints.Applied(changes)
	}
	return err
}

func (q hinted) Done(ctx context.Context, holder string, done []tx.Done) error {
	err := q.Queue.Done(ctx, holder, done)
	if err == nil {
		q.hints.Done(done)
	}
	return err
}

// hear makes workers poll the queue when Redis reports due work.
func (a *App) hear(ctx context.Context) {
	workers := map[chain.ID]redis.Worker{}
	for _, w := range a.workers {
		workers[w.Chain] = w
	}
	a.Ports.Redis.Run(ctx, workers)
}

// rebuild keeps Redis filled from the queue.
func (a *App) rebuild(ctx context.Context) error {
	return a.Ports.Redis.Rebuild(ctx, a.Ports.Storage.Soon)
}

// exportRedis exports the state of the Redis hints as metrics.
func exportRedis(m *metrics.Metrics, h Hints) {
	m.Redis(func() metrics.RedisStatus { return metrics.RedisStatus(h.Stats()) })
}
