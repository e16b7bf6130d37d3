package simulation

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"iter"
	"strings"

	"github.com/tempo-watchtower/watchtower/commands/notary"
	"github.com/tempo-watchtower/watchtower/domain/delivery/group"
	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
	"github.com/tempo-watchtower/watchtower/domain/relay/intent"
	"github.com/tempo-watchtower/watchtower/domain/relay/lane"
	"github.com/tempo-watchtower/watchtower/eventlog"
	"github.com/tempo-watchtower/watchtower/eventlog/port"
	"github.com/tempo-watchtower/watchtower/eventlog/projector"
	"github.com/tempo-watchtower/watchtower/projections/delivery/groups"
	"github.com/tempo-watchtower/watchtower/projections/delivery/owners"
	"github.com/tempo-watchtower/watchtower/projections/delivery/transactions"
	"github.com/tempo-watchtower/watchtower/projections/relay/intents"
	"github.com/tempo-watchtower/watchtower/projections/relay/lanes"
	"github.com/tempo-watchtower/watchtower/proof/promises"
)

// projectors are the service's projectors, on a database without faults.
func (w *world) projectors(db *sql.DB, log projector.Log) []*projector.Projector {
	all := []*projector.Projector{
		{Name: transactions.Name, DB: db, Log: log, Filter: transactions.Filter(), Fold: transactions.Projection{Codec: tx.Codec()}.Fold},
		{Name: owners.Name, DB: db, Log: log, Filter: owners.Filter(), Fold: owners.Projection{Codec: tx.Codec()}.Fold},
		{Name: groups.Name, DB: db, Log: log, Filter: groups.Filter(), Fold: groups.Projection{Groups: group.Codec(), Transactions: tx.Codec()}.Fold},
	}
	if w.relayed() {
		all = append(all,
			&projector.Projector{Name: intents.Name, DB: db, Log: log, Filter: intents.Filter(), Fold: intents.Projection{Codec: intent.Codec()}.Fold},
			&projector.Projector{Name: lanes.Name, DB: db, Log: log, Filter: lanes.Filter(), Fold: lanes.Projection{Codec: lane.Codec()}.Fold},
			&projector.Projector{Name: intents.TermsName, DB: db, Log: log, Filter: intents.TermsFilter(), Fold: intents.Terms{Codec: intent.Codec()}.Fold})
	}
	return all
}

// behind lists the readers that have not reached the end of the log.
func (j *judge) behind() (late []string) {
	db := j.world.views.DB()
	defer db.Close() //nolint:errcheck // it closes nothing
	for _, p := range j.world.projectors(db, j.world.store) {
		if at, err := p.Checkpoint(context.Background()); err != nil || at < j.world.head() {
			late = append(late, fmt.Sprintf("%s at %d of %d (%v)", p.Name, at, j.world.head(), err))
		}
	}
	if j.seals.late() {
		late = append(late, fmt.Sprintf("%s at %d of %d", notary.Name, j.seals.last.Through, j.seals.owed))
	}
	return late
}

// views compares the read models with a rebuild from the log.
func (j *judge) views(ctx context.Context) {
	fresh, err := openViews(ctx)
	if err != nil {
		j.fail("P19", "%v", err)
		return
	}
	defer fresh.close() //nolint:errcheck // it is thrown away
	live, rebuilt := j.world.views.DB(), fresh.DB()
	defer live.Close()    //nolint:errcheck // it closes nothing
	defer rebuilt.Close() //nolint:errcheck // likewise
	for _, p := range j.world.projectors(rebuilt, once{j.world.store}) {
		if err := p.Run(ctx); err != nil {
			j.fail("P19", "rebuild of %s: %v", p.Name, err)
		}
	}
	tables, err := tablesOf(rebuilt)
	if err != nil {
		j.fail("P19", "%v", err)
	}
	for _, table := range tables {
		var failed error
		drift := promises.Compare(rowsOf(rebuilt, table, &failed), j.world.hooks.watched(rowsOf(live, table, &failed)))
		if failed != nil || drift.Total() > 0 {
			j.fail("P19", "table %s: %v; %d missing, %d extra, %d different: %v", table, failed, drift.Missing, drift.Extra, drift.Different, drift.First)
		}
		j.cases[promises.P19] += drift.Rows
	}
}

// once is a log that ends at its head.
type once struct{ port.Store }

func (o once) Subscribe(ctx context.Context, after eventlog.Position, f eventlog.Filter, most int) iter.Seq2[eventlog.Batch, error] {
	return o.ReadAll(ctx, after, f, most)
}

func tablesOf(db *sql.DB) (tables []string, err error) {
	rows, err := db.Query(`SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%' ORDER BY name`) //nolint:noctx // in memory
	if err != nil {
		return nil, err
	}
	defer rows.Close() //nolint:errcheck // Err tells
	for rows.Next() {
		var name string
		if err := rows.Scan(&name); err != nil {
			return nil, err
		}
		tables = append(tables, name)
	}
	return tables, rows.Err()
}

// rowsOf are a table's rows, ordered by content.
func rowsOf(db *sql.DB, table string, failed *error) iter.Seq2[string, []byte] {
	return func(yield func(string, []byte) bool) {
		rows, err := db.Query(`SELECT * FROM ` + table) //nolint:noctx,gosec // in memory; the name is of our own schema
		if err != nil {
			*failed = errors.Join(*failed, err)
			return
		}
		defer rows.Close() //nolint:errcheck // Err tells
		columns, err := rows.Columns()
		if err != nil {
			*failed = errors.Join(*failed, err)
			return
		}
		var all []string
		for rows.Next() {
			values := make([]any, len(columns))
			into := make([]any, len(columns))
			for i := range values {
				into[i] = &values[i]
			}
			if err := rows.Scan(into...); err != nil {
				*failed = errors.Join(*failed, err)
				return
			}
			var text strings.Builder
			for i, v := range values {
				fmt.Fprintf(&text, "%s=%x ", columns[i], v)
			}
			all = append(all, text.String())
		}
		*failed = errors.Join(*failed, rows.Err())
		for _, row := range sorted(all) {
			if !yield(row, []byte(row)) {
				return
			}
		}
	}
}
