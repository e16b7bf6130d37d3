package app

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"

	"github.com/tempo-watchtower/watchtower/cmd/program/auditor"
	"github.com/tempo-watchtower/watchtower/cmd/program/config"
	"github.com/tempo-watchtower/watchtower/cmd/program/verify"
	"github.com/tempo-watchtower/watchtower/commands/delivery/canceler"
	"github.com/tempo-watchtower/watchtower/commands/delivery/grouping"
	"github.com/tempo-watchtower/watchtower/commands/delivery/scheduler"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/eventlog"
	"github.com/tempo-watchtower/watchtower/infra/chain/rpc"
	"github.com/tempo-watchtower/watchtower/infra/embedded"
	"github.com/tempo-watchtower/watchtower/infra/eventstoredb"
	"github.com/tempo-watchtower/watchtower/infra/metrics"
	"github.com/tempo-watchtower/watchtower/infra/postgres"
	"github.com/tempo-watchtower/watchtower/projections"
)

// Inspection is the configured databases and chains, opened read-only.
type Inspection struct {
	Work, Log verify.Store
	Nodes     map[chain.ID]verify.Node
	// Again reopens the log.
	Again func(ctx context.Context) (verify.Store, error)
	// Sparse reports that the log's positions have gaps.
	Sparse bool

	pools []*rpc.Pool
}

// Inspect opens the configured databases and chains read-only. It opens data derived from the
// log before the log.
func Inspect(ctx context.Context, c config.Config, log *slog.Logger) (i Inspection, err error) {
	if i, err = InspectStores(ctx, c, log); err != nil {
		return i, err
	}
	i.Nodes = map[chain.ID]verify.Node{}
	for _, chainConfig := range c.Chains {
		pool, err := rpc.Open(ctx, PoolConfig(c, chainConfig, Ports{Log: log, Metrics: metrics.New("")}))
		if err != nil {
			return i, errors.Join(fmt.Errorf("chain %s: %w", chainConfig.ID, err), i.Close())
		}
		i.pools = append(i.pools, pool)
		i.Nodes[chainConfig.ID] = pool.Reader()
	}
	return i, nil
}

// InspectStores opens only the configured databases.
func InspectStores(ctx context.Context, c config.Config, log *slog.Logger) (i Inspection, err error) {
	defer func() {
		if err != nil {
			err = errors.Join(err, i.Close())
		}
	}()
	i.Again = func(ctx context.Context) (verify.Store, error) { return inspectWhole(ctx, c.Store, c.Archive) }
	if i.Sparse = c.Store.Engine == config.EventStoreDB; i.Sparse {
		i.Again = func(ctx context.Context) (verify.Store, error) { return inspectBeside(ctx, c, log) }
	}
	if i.Work, err = inspectWhole(ctx, c.Database, c.Archive); err != nil {
		return i, fmt.Errorf("database %s: %w", c.Database, err)
	}
	i.Log = i.Work
	if c.Database.String() != c.Store.String() || !c.Database.URL.Equal(c.Store.URL) {
		if i.Log, err = i.Again(ctx); err != nil {
			return i, fmt.Errorf("store %s: %w", c.Store, err)
		}
	}
	return i, nil
}

// Log is a snapshot of a log, including its archived events.
type Log interface {
	auditor.Source
	Close() error
}

// InspectLog opens the configured log read-only.
func InspectLog(ctx context.Context, c config.Config, log *slog.Logger) (found Log, err error) {
	if c.Store.Engine == config.EventStoreDB {
		found, err = eventstoredb.Inspect(ctx, c.Store.URL.Reveal(), log)
	} else {
		found, err = inspectWhole(ctx, c.Store, c.Archive)
	}
	if err != nil {
		return nil, fmt.Errorf("store %s: %w", c.Store, err)
	}
	return found, nil
}

func inspect(ctx context.Context, s config.Store) (verify.Store, error) {
	switch s.Engine {
	case config.Postgres:
		return orNone(postgres.Inspect(ctx, s.URL.Reveal()))
	case config.Embedded:
		return orNone(embedded.Inspect(ctx, s.Dir))
	case config.EventStoreDB:
		return nil, errors.New("an EventStoreDB has only the log")
	}
	return nil, errors.New("a store in memory is available only to its own service")
}

// orNone returns a nil interface for an error, so that a nil pointer is not taken for a store.
func orNone[S verify.Store](s S, err error) (verify.Store, error) {
	if err != nil {
		return nil, err
	}
	return s, nil
}

// LogReader is a reader of the log that one replica runs at a time.
type LogReader struct {
	Name  string // of its checkpoint
	Lease string
	Model bool // it folds a read model, and its checkpoint is beside its tables
}

// LogReaders are the readers of a program with these read models.
func LogReaders(models []projections.Model) []LogReader {
	all := []LogReader{
		{Name: scheduler.Reader, Lease: scheduler.Reader}, {Name: grouping.Reader, Lease: grouping.Reader},
		{Name: canceler.Reader, Lease: canceler.Reader},
	}
	for _, m := range models {
		all = append(all, LogReader{Name: m.Name, Lease: projectionPrefix + m.Name, Model: true})
	}
	return all
}

// Checkpoint is the position of a reader of the log.
func (i Inspection) Checkpoint(ctx context.Context, r LogReader) (eventlog.Position, error) {
	if !r.Model {
		return i.Work.Checkpoint(ctx, r.Name)
	}
	var at int64
	err := i.Work.View().QueryRowContext(ctx, `SELECT position FROM readers WHERE name = $1`, r.Name).Scan(&at)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return 0, fmt.Errorf("checkpoint of %s: %w", r.Name, err)
	}
	return eventlog.Position(at), nil //nolint:gosec // not negative
}

// Close closes the databases and pools.
func (i Inspection) Close() error {
	for _, p := range i.pools {
		p.Close()
	}
	var errs []error
	if i.Log != nil && i.Log != i.Work {
		errs = append(errs, i.Log.Close())
	}
	if i.Work != nil {
		errs = append(errs, i.Work.Close())
	}
	return errors.Join(errs...)
}
