package groups

import (
	"context"
	"database/sql"
	"slices"

	"github.com/tempo-watchtower/watchtower/domain/bulk"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/delivery/group"
	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
	"github.com/tempo-watchtower/watchtower/eventlog"
	"github.com/tempo-watchtower/watchtower/projections"
)

// groupColumns are the columns of the groups table; the first three are its primary key.
var groupColumns = []string{"sender", "group_id", "chain", "nonce_key", "position", "end_at"} //nolint:gochecknoglobals // a table

// version is the version of the rows: see [projections.Model].
const version = 2

// Model describes this read model for a rebuild.
func Model(groups eventlog.Codec[group.Event], transactions eventlog.Codec[tx.Event]) projections.Model {
	kinds := map[string]projections.Kind{
		"chain": projections.Number, "position": projections.Number,
		"nonce": projections.Flipped, "eligible_at": projections.Flipped, "end_at": projections.Flipped,
	}
	shape := func(name string, key int, columns []string) projections.Table {
		return projections.Shape(name, key, columns, kinds, projections.Bytes)
	}
	return projections.Model{
		Name: Name, About: "the groups and their members, for /v1/senders/{sender}/groups", Filter: Filter(), Version: version,
		Tables: []projections.Table{shape(groupsTable, 3, groupColumns), shape(membersTable, 1, memberColumns), shape(claimsTable, 1, claimColumns)},
		Fold:   func(prefix string) projections.Fold { return Projection{groups, transactions, prefix}.Fold },
		Load: func(prefix string) projections.Loader {
			return &Loader{projection: Projection{groups, transactions, prefix}, change: newChange()}
		},
		Finish: finish,
	}
}

// Loader gathers members and claims in memory. The model's Finish computes the groups from the
// members.
type Loader struct {
	projection Projection
	change     change
}

// Add gathers events.
func (l *Loader) Add(_ context.Context, _ *sql.DB, events []eventlog.Recorded) error {
	for _, e := range events {
		if err := l.projection.gather(&l.change, e); err != nil {
			return &eventlog.Stuck{At: e.Position, Err: err}
		}
	}
	return nil
}

// Pending returns the number of rows that wait to be taken.
func (l *Loader) Pending() int {
	return len(l.change.joined) + len(l.change.claims) + len(l.change.settled)
}

// Take returns the changes of members and claims since the last Take.
func (l *Loader) Take() ([]bulk.Change, error) {
	c := l.change
	l.change = newChange()
	changes := []bulk.Change{
		{Table: membersTable, Columns: memberColumns, Key: 1, New: rowsOf(keys(c.joined), c.member), Gone: singles(keys(c.retired))},
		{Table: claimsTable, Columns: claimColumns, Key: 1, New: rowsOf(keys(c.claims), c.claim), Gone: singles(keys(c.settled))},
	}
	return slices.DeleteFunc(changes, bulk.Change.Empty), nil
}

func rowsOf(hashes [][]byte, row func(chain.Hash) []any) [][]any {
	all := make([][]any, len(hashes))
	for i, hash := range hashes {
		all[i] = row(chain.Hash(hash))
	}
	return all
}

// singles makes keys of one column.
func singles(hashes [][]byte) [][]any {
	all := make([][]any, len(hashes))
	for i, hash := range hashes {
		all[i] = []any{hash}
	}
	return all
}

// finish replaces the groups by groups computed from the members.
func finish(ctx context.Context, dbtx *sql.Tx, prefix string) error {
	if _, err := dbtx.ExecContext(ctx, `DELETE FROM `+prefix+groupsTable); err != nil {
		return err
	}
	_, err := dbtx.ExecContext(ctx, `INSERT INTO `+prefix+groupsTable+` (sender, group_id, chain, nonce_key, position, end_at)
		SELECT m.sender, m.group_id, m.chain, m.nonce_key, m.position, g.end_at FROM `+prefix+membersTable+` m JOIN (
			SELECT sender, group_id, chain, min(position) AS position, max(eligible_at) AS end_at
			FROM `+prefix+membersTable+` GROUP BY sender, group_id, chain
		) g ON m.sender = g.sender AND m.group_id = g.group_id AND m.chain = g.chain AND m.position = g.position`)
	return err
}
