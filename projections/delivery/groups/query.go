package groups

import (
	"cmp"
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

// Query reads groups.
type Query struct {
	DB *sql.DB
}

// Group is the present state of one group of a sender.
type Group struct {
	group.ID
	NonceKey chain.NonceKey
	// StartAt and EndAt are the smallest and largest EligibleAt of the members. Next is the
	// smallest EligibleAt of the members that have not ended; nil if all have.
	StartAt, EndAt uint64
	Next           *uint64
	Position       eventlog.Position // of the first member's Joined
}

// Filters restrict a list of groups.
type Filters struct {
	Chain chain.ID // 0 means every chain
	// EndAfter selects groups with a later EndAt; nil selects all.
	EndAfter *uint64
	// Owners, if not empty, restrict each group to the members that a client with these names
	// owns. A group without such a member is left out.
	Owners []string
}

// columns select the fields of a Group. The next payment is searched in order of eligibility,
// skipping members that have ended.
const columns = `g.chain, g.sender, g.group_id, g.nonce_key, g.end_at, g.position,
	(SELECT min(m.eligible_at) FROM group_members m WHERE m.sender = g.sender AND m.group_id = g.group_id AND m.chain = g.chain),
	(SELECT m.eligible_at FROM group_members m JOIN transactions t ON t.chain = m.chain AND t.hash = m.hash
		WHERE m.sender = g.sender AND m.group_id = g.group_id AND m.chain = g.chain AND t.status IN ('queued', 'broadcasting', 'retry_scheduled')
		ORDER BY m.eligible_at LIMIT 1)`

// List returns at most limit groups of a sender, newest first, whose first member joined before
// a position (0: from the newest).
func (q Query) List(ctx context.Context, sender chain.Address, f Filters, before eventlog.Position, limit int) ([]Group, error) {
	if len(f.Owners) > 0 {
		return q.owned(ctx, sender, nil, f, before, limit)
	}
	where, args := []string{"sender = $1"}, []any{sender[:]}
	and := func(condition string, value any) {
		args = append(args, value)
		where = append(where, fmt.Sprintf(condition, len(args)))
	}
	if f.Chain != 0 {
		and("chain = $%d", int64(f.Chain))
	}
	if f.EndAfter != nil {
		and("end_at > $%d", ordered(*f.EndAfter))
	}
	if before != 0 {
		and("position < $%d", int64(before))
	}
	// First select the page, then read the details of its groups.
	return q.groups(ctx, fmt.Sprintf(`SELECT `+columns+` FROM (
		SELECT * FROM groups WHERE %s ORDER BY position DESC LIMIT %d) g ORDER BY g.position DESC`, strings.Join(where, " AND "), limit), args...)
}

// owned lists groups with only the members that one client owns. Its cost grows only with these
// members.
func (q Query) owned(ctx context.Context, sender chain.Address, groupID *chain.GroupID, f Filters, before eventlog.Position, limit int) ([]Group, error) {
	var where, having projections.Where
	where.And("o.owner IN (%s)", projections.Names(f.Owners)...)
	where.And("o.sender = %s", sender[:])
	if groupID != nil {
		where.And("o.group_id = %s", groupID[:])
	}
	if f.Chain != 0 {
		where.And("o.chain = %s", int64(f.Chain))
	}
	having.Args = where.Args
	if f.EndAfter != nil {
		having.And("max(m.eligible_at) > %s", ordered(*f.EndAfter))
	}
	if before != 0 {
		having.And("min(m.position) < %s", int64(before))
	}
	return q.groups(ctx, fmt.Sprintf(`SELECT m.chain, m.sender, m.group_id, m.nonce_key, max(m.eligible_at), min(m.position), min(m.eligible_at),
		min(CASE WHEN t.status IN ('queued', 'broadcasting', 'retry_scheduled') THEN m.eligible_at END)
		FROM ownership o JOIN group_members m ON m.hash = o.hash AND m.chain = o.chain
		LEFT JOIN transactions t ON t.chain = m.chain AND t.hash = m.hash%s
		GROUP BY m.chain, m.sender, m.group_id, m.nonce_key%s ORDER BY min(m.position) DESC LIMIT %d`,
		&where, strings.Replace(having.String(), "WHERE", "HAVING", 1), limit), having.Args...)
}

// Find returns a sender's groups with an id, in order of chain; chain 0 means every chain. Only
// the owners of the filters apply.
func (q Query) Find(ctx context.Context, id chain.ID, sender chain.Address, groupID chain.GroupID, f Filters) ([]Group, error) {
	if len(f.Owners) > 0 {
		found, err := q.owned(ctx, sender, &groupID, Filters{Chain: id, Owners: f.Owners}, 0, chainsMax)
		slices.SortFunc(found, func(a, b Group) int { return cmp.Compare(a.Chain, b.Chain) })
		return found, err
	}
	text, args := `SELECT `+columns+` FROM groups g WHERE g.sender = $1 AND g.group_id = $2`, []any{sender[:], groupID[:]}
	if id != 0 {
		text, args = text+` AND g.chain = $3`, append(args, int64(id))
	}
	return q.groups(ctx, text+` ORDER BY g.chain`, args...)
}

// chainsMax is the most chains on which a sender's group id is looked up.
const chainsMax = 1000

func (q Query) groups(ctx context.Context, text string, args ...any) ([]Group, error) {
	rows, err := q.DB.QueryContext(ctx, text, args...)
	if err != nil {
		return nil, fmt.Errorf("groups: %w", err)
	}
	var all []Group
	err = scan(rows, func() error {
		var id, end, position, start int64
		var next sql.NullInt64
		var sender, groupID, key []byte
		if err := rows.Scan(&id, &sender, &groupID, &key, &end, &position, &start, &next); err != nil {
			return err
		}
		g := Group{
			ID: idOf(id, sender, groupID), NonceKey: chain.NonceKey(key),
			StartAt: unordered(start), EndAt: unordered(end), Position: eventlog.Position(position),
		}
		if next.Valid {
			at := unordered(next.Int64)
			g.Next = &at
		}
		all = append(all, g)
		return nil
	})
	return all, err
}

// Member is a transaction of a group.
type Member struct {
	Hash     chain.Hash
	Nonce    uint64
	Position eventlog.Position // of its Joined
}

// Members returns at most limit members after the given one (nil: from the first), in order of
// nonce; members with the same nonce are in order of joining. owners, if not empty, are the
// names of the client whose members are returned.
func (q Query) Members(ctx context.Context, id group.ID, owners []string, after *Member, limit int) ([]Member, error) {
	from, args := membersOf(id, owners)
	text := `SELECT m.hash, m.nonce, m.position ` + from
	if after != nil {
		text += fmt.Sprintf(` AND (m.nonce, m.position) > ($%d, $%d)`, len(args)+1, len(args)+2)
		args = append(args, ordered(after.Nonce), int64(after.Position))
	}
	rows, err := q.DB.QueryContext(ctx, fmt.Sprintf(`%s ORDER BY m.nonce, m.position LIMIT %d`, text, limit), args...)
	if err != nil {
		return nil, fmt.Errorf("members: %w", err)
	}
	var all []Member
	err = scan(rows, func() error {
		var hash []byte
		var nonce, position int64
		if err := rows.Scan(&hash, &nonce, &position); err != nil {
			return err
		}
		all = append(all, Member{chain.Hash(hash), unordered(nonce), eventlog.Position(position)})
		return nil
	})
	return all, err
}

// membersOf returns the clauses that select a group's members m, or only the members that a
// client with these names owns. These start at the client's own rows, so the cost does not grow
// with other clients' members.
func membersOf(id group.ID, owners []string) (text string, args []any) {
	args = []any{id.Sender[:], id.Group[:], int64(id.Chain)}
	if len(owners) == 0 {
		return `FROM group_members m WHERE m.sender = $1 AND m.group_id = $2 AND m.chain = $3`, args
	}
	return `FROM (SELECT DISTINCT chain, hash FROM ownership WHERE sender = $1 AND group_id = $2 AND chain = $3 AND owner IN (` +
		projections.Places(4, len(owners)) + `)) o JOIN group_members m ON m.hash = o.hash AND m.chain = o.chain
		WHERE m.sender = $1 AND m.group_id = $2`, append(args, projections.Names(owners)...)
}

// Owned counts the transactions of a sender's groups, or of one of them, that a client with
// these names owns; without names it counts all members. It counts up to limit.
func (q Query) Owned(ctx context.Context, sender chain.Address, groupID *chain.GroupID, owners []string, limit int) (n int, err error) {
	var where projections.Where
	table := "group_members"
	if len(owners) > 0 {
		table = "ownership"
		where.And("owner IN (%s)", projections.Names(owners)...)
		where.And("group_id IS NOT NULL")
	}
	where.And("sender = %s", sender[:])
	if groupID != nil {
		where.And("group_id = %s", groupID[:])
	}
	err = q.DB.QueryRowContext(ctx, fmt.Sprintf(`SELECT count(*) FROM (SELECT 1 FROM %s%s LIMIT %d) o`, table, &where, limit), where.Args...).Scan(&n)
	if err != nil {
		return 0, fmt.Errorf("members that a client owns: %w", err)
	}
	return n, nil
}

// Nonces returns the members' distinct nonces, highest first, at most limit. With owners it
// returns only nonces of members that the client owns.
func (q Query) Nonces(ctx context.Context, id group.ID, owners []string, limit int) ([]uint64, error) {
	from, args := membersOf(id, owners)
	//nolint:sqlclosecheck // scan closes them
	rows, err := q.DB.QueryContext(ctx, fmt.Sprintf(`SELECT DISTINCT m.nonce %s ORDER BY m.nonce DESC LIMIT %d`, from, limit), args...)
	if err != nil {
		return nil, fmt.Errorf("nonces: %w", err)
	}
	var all []uint64
	err = scan(rows, func() error {
		var nonce int64
		err := rows.Scan(&nonce)
		all = append(all, unordered(nonce))
		return err
	})
	return all, err
}

// Claims returns at most limit of a chain's transactions with an unconfirmed sender, in order
// of acceptance, after a position.
func (q Query) Claims(ctx context.Context, id chain.ID, after eventlog.Position, limit int) ([]tx.Claim, error) {
	rows, err := q.DB.QueryContext(ctx, fmt.Sprintf(`SELECT hash, sender, access_key, position FROM group_claims
		WHERE chain = $1 AND position > $2 ORDER BY position LIMIT %d`, limit), int64(id), int64(after))
	if err != nil {
		return nil, fmt.Errorf("claims: %w", err)
	}
	var all []tx.Claim
	err = scan(rows, func() error {
		var hash, sender, key []byte
		var position int64
		if err := rows.Scan(&hash, &sender, &key, &position); err != nil {
			return err
		}
		all = append(all, tx.Claim{
			Chain: id, Hash: chain.Hash(hash), Position: eventlog.Position(position),
			Key: chain.AccessKey{Account: chain.Address(sender), Key: chain.Address(key)},
		})
		return nil
	})
	return all, err
}

// scan calls row for each row.
func scan(rows *sql.Rows, row func() error) error {
	defer rows.Close() //nolint:errcheck // reading is over; Err below tells
	for rows.Next() {
		if err := row(); err != nil {
			return err
		}
	}
	return rows.Err()
}

// ordered maps an unsigned number to a signed one with the same order; unordered is its
// inverse.
func ordered(n uint64) int64   { return int64(n ^ 1<<63) }
func unordered(n int64) uint64 { return uint64(n) ^ 1<<63 }

func idOf(id int64, sender, groupID []byte) group.ID {
	return group.ID{Chain: chain.ID(id), Sender: chain.Address(sender), Group: chain.GroupID(groupID)}
}

func anys(hashes [][]byte) []any {
	all := make([]any, len(hashes))
	for i, h := range hashes {
		all[i] = h
	}
	return all
}
