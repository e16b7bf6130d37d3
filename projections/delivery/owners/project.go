// Package owners is the read model of transactions' owners: which clients submitted a
// transaction, whether it belongs to its sender, and which senders are only claimed. Lists for one client join it. It is a
// separate read model with its own checkpoint, so that a replica of an older version that still
// projects transactions leaves no gap in it.
package owners

import (
	"context"
	"database/sql"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/tempo-watchtower/watchtower/domain/access"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
	"github.com/tempo-watchtower/watchtower/eventlog"
	"github.com/tempo-watchtower/watchtower/projections"
)

// Name is the name of the projection's checkpoint and lease.
const Name = "ownership"

// Filter selects the events that the projection reads.
func Filter() eventlog.Filter {
	return eventlog.Filter{Names: []string{"tx.accepted.", "tx.resubmitted.", "tx.group_confirmed.", "tx.retired."}}
}

// Projection folds events into the tables.
type Projection struct {
	Codec eventlog.Codec[tx.Event]
	// Prefix begins the tables' names; empty for the serving tables.
	Prefix string
}

// The tables and their columns in order. The primary key is the first three columns of owners,
// and the first two of claims.
const (
	ownersTable = "ownership"
	claimsTable = "ownership_claims"
	ownersKey   = 3
	claimsKey   = 2
)

var ( //nolint:gochecknoglobals // tables
	ownerColumns = []string{"hash", "chain", "owner", "position", "sender", "group_id"}
	claimColumns = []string{"hash", "chain", "position"}
)

// key identifies a transaction.
type key struct {
	chain chain.ID
	hash  chain.Hash
}

// place holds the columns that all owners of one transaction share.
type place struct {
	position eventlog.Position // of its Accepted
	sender   chain.Address
	group    []byte // the group that it claims or has joined; nil if none
}

// change is the combined effect of some events.
type change struct {
	places    map[key]place    // of transactions accepted among these events
	owners    map[key][]string // each client once
	claims    map[key]eventlog.Position
	confirmed map[key]bool // no longer claims
	retired   map[key]bool
}

func newChange() change {
	return change{map[key]place{}, map[key][]string{}, map[key]eventlog.Position{}, map[key]bool{}, map[key]bool{}}
}

// gather adds one event.
func (c *change) gather(r eventlog.Recorded, codec eventlog.Codec[tx.Event]) error {
	id, hash, err := tx.ParseStream(r.Stream)
	if err != nil {
		return err
	}
	e, err := codec.Decode(r.Name, r.Data)
	if err != nil {
		return err
	}
	k := key{id, hash}
	switch e := e.(type) {
	case tx.Accepted:
		p := place{position: r.Position, sender: e.Sender}
		if e.Group != nil {
			p.group = slices.Clone(e.Group[:])
		}
		c.places[k] = p
		c.own(k, access.ClientOf(e.Client, r.Meta.Actor))
		if e.Claims() {
			c.claims[k] = r.Position
		} else {
			c.own(k, senderName(e.Sender))
		}
	case tx.Resubmitted:
		c.own(k, access.ClientOf(e.Client, r.Meta.Actor))
	case tx.GroupConfirmed:
		delete(c.claims, k)
		c.confirmed[k] = true
		if p, known := c.places[k]; known {
			c.found(k, p)
		}
	case tx.Retired:
		delete(c.claims, k)
		delete(c.confirmed, k)
		delete(c.owners, k)
		c.retired[k] = true
	default: // the other events change no owner
	}
	return nil
}

// senderName is the owner of the row that a transaction has for its sender: the bytes of the address.
// No client's name is one, as names are words.
func senderName(a chain.Address) string { return string(a[:]) }

// found sets the place of a transaction. A transaction whose sender is confirmed belongs to it.
func (c *change) found(k key, p place) {
	c.places[k] = p
	if c.confirmed[k] {
		c.own(k, senderName(p.sender))
	}
}

func (c *change) own(k key, client string) {
	if !slices.Contains(c.owners[k], client) {
		c.owners[k] = append(c.owners[k], client)
	}
}

// strangers returns the transactions that have new owners and were accepted before these
// events. The sender of a confirmed one is a new owner.
func (c *change) strangers() (all []key) {
	changed := maps.Clone(c.confirmed)
	for k := range c.owners {
		changed[k] = true
	}
	for _, k := range sorted(changed) {
		if _, known := c.places[k]; !known {
			all = append(all, k)
		}
	}
	return all
}

// ownerRows and claimRows return the rows to write.
func (c *change) ownerRows() (rows [][]any) {
	for _, k := range sorted(c.owners) {
		p := c.places[k]
		for _, client := range c.owners[k] {
			rows = append(rows, []any{k.hash[:], int64(k.chain), []byte(client), int64(p.position), p.sender[:], p.group})
		}
	}
	return rows
}

func (c *change) claimRows() (rows [][]any) {
	for _, k := range sorted(c.claims) {
		rows = append(rows, []any{k.hash[:], int64(k.chain), int64(c.claims[k])})
	}
	return rows
}

// Fold adds events to the tables. The rows do not depend on how the events were split into
// batches.
func (p Projection) Fold(ctx context.Context, dbtx *sql.Tx, events []eventlog.Recorded) error {
	c := newChange()
	for _, e := range events {
		if err := c.gather(e, p.Codec); err != nil {
			return &eventlog.Stuck{At: e.Position, Err: err}
		}
	}
	if err := p.read(ctx, dbtx, &c, c.strangers()); err != nil {
		return err
	}
	gone := sorted(c.retired)
	if err := p.remove(ctx, dbtx, ownersTable, gone); err != nil {
		return err
	}
	if err := p.remove(ctx, dbtx, claimsTable, append(gone, sorted(c.confirmed)...)); err != nil {
		return err
	}
	if err := p.insert(ctx, dbtx, ownersTable, ownerColumns, c.ownerRows()); err != nil {
		return err
	}
	return p.insert(ctx, dbtx, claimsTable, claimColumns, c.claimRows())
}

// rowsPerStatement is small because SQLite compares each parameter's name with all names before
// it.
const rowsPerStatement = 32

// read adds to a change the places of transactions that the table has. An owner of a
// transaction that the table does not have is dropped: the transaction was retired.
func (p Projection) read(ctx context.Context, db projections.Querier, c *change, keys []key) error {
	for _, k := range keys {
		var position int64
		var sender, group []byte
		err := db.QueryRowContext(ctx, `SELECT position, sender, group_id FROM `+p.Prefix+ownersTable+`
			WHERE chain = $1 AND hash = $2 LIMIT 1`, int64(k.chain), k.hash[:]).Scan(&position, &sender, &group)
		switch {
		case err == sql.ErrNoRows: //nolint:errorlint // Scan returns it as it is
			delete(c.owners, k)
		case err != nil:
			return fmt.Errorf("owners of %s: %w", tx.Stream(k.chain, k.hash), err)
		default:
			c.found(k, place{eventlog.Position(position), chain.Address(sender), group})
		}
	}
	return nil
}

func (p Projection) remove(ctx context.Context, dbtx *sql.Tx, table string, keys []key) error {
	for _, k := range keys {
		if _, err := dbtx.ExecContext(ctx, `DELETE FROM `+p.Prefix+table+` WHERE chain = $1 AND hash = $2`, int64(k.chain), k.hash[:]); err != nil {
			return fmt.Errorf("remove from %s: %w", table, err)
		}
	}
	return nil
}

// insert writes rows; an existing row stays.
func (p Projection) insert(ctx context.Context, dbtx *sql.Tx, table string, columns []string, rows [][]any) error {
	for some := range slices.Chunk(rows, rowsPerStatement) {
		var values []string
		var args []any
		for _, row := range some {
			values = append(values, "("+projections.Places(len(args)+1, len(row))+")")
			args = append(args, row...)
		}
		_, err := dbtx.ExecContext(ctx, `INSERT INTO `+p.Prefix+table+` (`+strings.Join(columns, ", ")+`)
			VALUES `+strings.Join(values, ", ")+` ON CONFLICT DO NOTHING`, args...)
		if err != nil {
			return fmt.Errorf("insert %d rows into %s: %w", len(some), table, err)
		}
	}
	return nil
}

// sorted returns a map's keys in a fixed order, so that two overlapping projectors do not
// deadlock.
func sorted[V any](m map[key]V) []key {
	all := make([]key, 0, len(m))
	for k := range m {
		all = append(all, k)
	}
	slices.SortFunc(all, func(a, b key) int { return slices.Compare(a.hash[:], b.hash[:]) })
	return all
}
