// Package groups is the read model behind /v1/senders/{sender}/groups: which transactions are
// members of which group, and which only claim to be.
//
// A member's status is not stored here. It is in the read model of transactions, and queries
// that need both join them.
package groups

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strings"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/delivery/group"
	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
	"github.com/tempo-watchtower/watchtower/eventlog"
	"github.com/tempo-watchtower/watchtower/projections"
)

// Name is the name of the projection's checkpoint and lease.
const Name = "groups"

// Filter selects the events that the projection reads.
func Filter() eventlog.Filter {
	return eventlog.Filter{Names: []string{
		"group.joined.", "tx.accepted.", "tx.group_confirmed.", "tx.canceled_locally.", "tx.finalized.", "tx.retired.",
	}}
}

// Projection folds events into the tables.
type Projection struct {
	Groups       eventlog.Codec[group.Event]
	Transactions eventlog.Codec[tx.Event]
	// Prefix begins the tables' names; empty for the serving tables.
	Prefix string
}

// member is a transaction that joined, and the position of its Joined.
type member struct {
	group.Joined
	position eventlog.Position
}

// change is the combined effect of some events.
type change struct {
	joined  map[chain.Hash]member
	claims  map[chain.Hash]tx.Claim
	settled map[chain.Hash]bool // no longer claims
	retired map[chain.Hash]bool // no longer members
}

func newChange() change {
	return change{map[chain.Hash]member{}, map[chain.Hash]tx.Claim{}, map[chain.Hash]bool{}, map[chain.Hash]bool{}}
}

// Fold adds events to the tables. The rows do not depend on how the events were split into
// batches.
func (p Projection) Fold(ctx context.Context, dbtx *sql.Tx, events []eventlog.Recorded) error {
	c := newChange()
	for _, e := range events {
		if err := p.gather(&c, e); err != nil {
			return &eventlog.Stuck{At: e.Position, Err: err}
		}
	}
	touched, err := p.groupsOf(ctx, dbtx, keys(c.retired))
	if err != nil {
		return err
	}
	for _, m := range c.joined {
		touched[group.ID{Chain: m.Chain, Sender: m.Sender, Group: m.Group}] = m.NonceKey
	}
	if err := remove(ctx, dbtx, p.Prefix+claimsTable, keys(c.settled)); err != nil {
		return err
	}
	if err := insert(ctx, dbtx, p.Prefix+claimsTable, claimColumns, keys(c.claims), c.claim); err != nil {
		return err
	}
	if err := remove(ctx, dbtx, p.Prefix+membersTable, keys(c.retired)); err != nil {
		return err
	}
	if err := insert(ctx, dbtx, p.Prefix+membersTable, memberColumns, keys(c.joined), c.member); err != nil {
		return err
	}
	return p.summarise(ctx, dbtx, touched)
}

func (p Projection) gather(c *change, r eventlog.Recorded) error {
	if strings.HasPrefix(string(r.Stream), group.StreamPrefix) {
		e, err := p.Groups.Decode(r.Name, r.Data)
		if err != nil {
			return err
		}
		if j, ok := e.(group.Joined); ok {
			c.joined[j.Hash] = member{j, r.Position}
		}
		return nil
	}
	_, hash, err := tx.ParseStream(r.Stream)
	if err != nil {
		return err
	}
	e, err := p.Transactions.Decode(r.Name, r.Data)
	if err != nil {
		return err
	}
	switch e := e.(type) {
	case tx.Accepted:
		if e.Claims() && e.AccessKey != nil {
			c.claims[hash] = tx.Claim{Chain: e.Chain, Hash: hash, Key: chain.AccessKey{Account: e.Sender, Key: *e.AccessKey}, Position: r.Position}
		}
	case tx.GroupConfirmed, tx.CanceledLocally:
		c.settle(hash)
	case tx.Finalized:
		if e.Verdict != tx.StatusExecuted { // an executed one can still be confirmed
			c.settle(hash)
		}
	case tx.Retired:
		c.settle(hash)
		delete(c.joined, hash)
		c.retired[hash] = true
	default: // the other events change neither members nor claims
	}
	return nil
}

func (c *change) settle(hash chain.Hash) {
	delete(c.claims, hash)
	c.settled[hash] = true
}

// keys returns a map's keys in a fixed order, so that two overlapping projectors do not
// deadlock.
func keys[V any](m map[chain.Hash]V) [][]byte {
	all := make([][]byte, 0, len(m))
	for k := range m {
		all = append(all, slices.Clone(k[:]))
	}
	slices.SortFunc(all, slices.Compare)
	return all
}

// rowsPerStatement is small because SQLite compares each parameter's name with all names before
// it.
const rowsPerStatement = 32

// groupsOf returns the groups of members that are about to be removed.
func (p Projection) groupsOf(ctx context.Context, dbtx *sql.Tx, hashes [][]byte) (map[group.ID]chain.NonceKey, error) {
	found := map[group.ID]chain.NonceKey{}
	for some := range slices.Chunk(hashes, rowsPerStatement) {
		//nolint:sqlclosecheck // scan closes them
		rows, err := dbtx.QueryContext(ctx, `SELECT chain, sender, group_id, nonce_key FROM `+p.Prefix+membersTable+`
			WHERE hash IN (`+projections.Places(1, len(some))+`)`, anys(some)...)
		if err != nil {
			return nil, err
		}
		err = scan(rows, func() error {
			var id int64
			var sender, groupID, key []byte
			err := rows.Scan(&id, &sender, &groupID, &key)
			if err == nil {
				found[idOf(id, sender, groupID)] = chain.NonceKey(key)
			}
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	return found, nil
}

func remove(ctx context.Context, dbtx *sql.Tx, table string, hashes [][]byte) error {
	for some := range slices.Chunk(hashes, rowsPerStatement) {
		_, err := dbtx.ExecContext(ctx, `DELETE FROM `+table+` WHERE hash IN (`+projections.Places(1, len(some))+`)`, anys(some)...)
		if err != nil {
			return fmt.Errorf("remove from %s: %w", table, err)
		}
	}
	return nil
}

// The tables and their columns in order. The first column of members and of claims is the
// primary key.
const (
	groupsTable  = "groups"
	membersTable = "group_members"
	claimsTable  = "group_claims"
)

var ( //nolint:gochecknoglobals // tables
	memberColumns = []string{"hash", "chain", "sender", "group_id", "nonce_key", "nonce", "eligible_at", "position"}
	claimColumns  = []string{"hash", "chain", "sender", "access_key", "position"}
)

// claim and member return rows of the tables.
func (c *change) claim(hash chain.Hash) []any {
	found := c.claims[hash]
	return []any{hash[:], int64(found.Chain), found.Key.Account[:], found.Key.Key[:], int64(found.Position)}
}

func (c *change) member(hash chain.Hash) []any {
	m := c.joined[hash]
	return []any{
		hash[:], int64(m.Chain), m.Sender[:], m.Group[:], m.NonceKey[:], ordered(m.Nonce), ordered(m.EligibleAt), int64(m.position),
	}
}

// insert writes one row for each hash; an existing row stays.
func insert(ctx context.Context, dbtx *sql.Tx, into string, columns []string, hashes [][]byte, row func(chain.Hash) []any) error {
	for some := range slices.Chunk(hashes, rowsPerStatement) {
		var values []string
		var args []any
		for _, hash := range some {
			r := row(chain.Hash(hash))
			values = append(values, "("+projections.Places(len(args)+1, len(r))+")")
			args = append(args, r...)
		}
		_, err := dbtx.ExecContext(ctx, `INSERT INTO `+into+` (`+strings.Join(columns, ", ")+`) VALUES `+strings.Join(values, ", ")+` ON CONFLICT (hash) DO NOTHING`, args...)
		if err != nil {
			return fmt.Errorf("insert %d rows: %w", len(some), err)
		}
	}
	return nil
}

const whereGroup = ` WHERE sender = $1 AND group_id = $2 AND chain = $3`

// summarise writes the rows of groups from their members. The lowest position and the largest
// eligible_at are found in an index, however large the group is.
func (p Projection) summarise(ctx context.Context, dbtx *sql.Tx, touched map[group.ID]chain.NonceKey) error {
	ofGroup := `FROM ` + p.Prefix + membersTable + whereGroup
	for _, id := range group.InOrder(touched) {
		args := []any{id.Sender[:], id.Group[:], int64(id.Chain)}
		var first, end sql.NullInt64
		err := dbtx.QueryRowContext(ctx, `SELECT (SELECT min(position) `+ofGroup+`), (SELECT max(eligible_at) `+ofGroup+`)`, args...).Scan(&first, &end)
		if err != nil {
			return fmt.Errorf("group %s: %w", id.Group, err)
		}
		if !first.Valid {
			_, err = dbtx.ExecContext(ctx, `DELETE FROM `+p.Prefix+groupsTable+whereGroup, args...)
		} else {
			key := touched[id]
			_, err = dbtx.ExecContext(ctx, `INSERT INTO `+p.Prefix+groupsTable+` (sender, group_id, chain, nonce_key, position, end_at)
				VALUES ($1, $2, $3, $4, $5, $6)
				ON CONFLICT (sender, group_id, chain) DO UPDATE SET position = excluded.position, end_at = excluded.end_at`,
				append(args, key[:], first.Int64, end.Int64)...)
		}
		if err != nil {
			return fmt.Errorf("group %s: %w", id.Group, err)
		}
	}
	return nil
}
