package intents

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/event"
	"github.com/tempo-watchtower/watchtower/domain/intent"
)

// Query answers questions about intents.
type Query struct {
	DB *sql.DB
}

// Filters narrow a list; the zero value lists everything.
type Filters struct {
	Client   *string // whose intents; nil is everybody's
	Chain    chain.ID
	From     *intent.From   // who was asked to sign: an account, or a pool
	Signer   *chain.Address // who signs, see [Row.Signer]
	Key      string         // the idempotency key
	Hash     *chain.Hash    // of any attempt
	Subject  string
	Statuses []intent.Status // any of these
}

// Fits reports whether a row is one that the filters leave.
func (f Filters) Fits(r Row) bool {
	asked, signer := r.Request(), r.Signer()
	switch {
	case f.Client != nil && *f.Client != asked.Client,
		f.Chain != 0 && f.Chain != asked.Chain,
		f.From != nil && f.From.Name() != asked.From.Name(),
		f.Signer != nil && (signer == nil || *f.Signer != *signer),
		f.Key != "" && f.Key != asked.Key,
		f.Subject != "" && f.Subject != asked.Subject,
		len(f.Statuses) > 0 && !slices.Contains(f.Statuses, r.State.Status()):
		return false
	}
	return f.Hash == nil || slices.ContainsFunc(r.State.Attempts, func(a intent.Attempted) bool { return a.Hash == *f.Hash })
}

// Find returns an intent's row; ok is false when there is none.
func (q Query) Find(ctx context.Context, id chain.IntentID) (row Row, ok bool, err error) {
	rows, err := query(ctx, q.DB, `SELECT data FROM intents WHERE intent = $1`, id[:])
	if err != nil || len(rows) == 0 {
		return Row{}, false, err
	}
	return rows[0], true, nil
}

// ByKey returns the row of a client's wish; ok is false when there is none.
func (q Query) ByKey(ctx context.Context, client string, from intent.From, key string) (row Row, ok bool, err error) {
	return q.Find(ctx, intent.ID(client, from, key))
}

// ByHash returns the rows of the intents that have an attempt with a hash, newest first.
func (q Query) ByHash(ctx context.Context, hash chain.Hash) ([]Row, error) {
	return query(ctx, q.DB, `SELECT i.data FROM intents i JOIN intent_attempts a ON a.intent = i.intent
		WHERE a.hash = $1 ORDER BY i.position DESC`, hash[:])
}

// List returns at most limit rows requested before a position (0: from the newest
// on), newest first.
func (q Query) List(ctx context.Context, f Filters, before event.Position, limit int) ([]Row, error) {
	text, args := list(f, before, limit)
	return query(ctx, q.DB, text, args...)
}

// list is the statement that answers List.
func list(f Filters, before event.Position, limit int) (text string, args []any) {
	var where []string
	and := func(condition string, values ...any) {
		where = append(where, fmt.Sprintf(condition, places(len(args)+1, len(values))))
		args = append(args, values...)
	}
	if f.Client != nil {
		and("client = %s", *f.Client)
	}
	if f.Chain != 0 {
		and("chain = %s", int64(f.Chain))
	}
	if f.From != nil {
		and("wants = %s", f.From.Name())
	}
	if f.Signer != nil {
		and("signer = %s", f.Signer[:])
	}
	if f.Key != "" {
		and("wish = %s", f.Key)
	}
	if f.Hash != nil {
		and("intent IN (SELECT intent FROM intent_attempts WHERE hash = %s)", f.Hash[:])
	}
	if f.Subject != "" {
		and("subject = %s", f.Subject)
	}
	if len(f.Statuses) > 0 {
		values := make([]any, len(f.Statuses))
		for i, s := range f.Statuses {
			values[i] = string(s)
		}
		and("status IN (%s)", values...)
	}
	if before != 0 {
		and("position < %s", int64(before))
	}
	text = "SELECT data FROM intents"
	if len(where) > 0 {
		text += " WHERE " + strings.Join(where, " AND ")
	}
	return text + fmt.Sprintf(" ORDER BY position DESC LIMIT %d", limit), args
}

// querier is a *sql.DB or a *sql.Tx.
type querier interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

func query(ctx context.Context, db querier, text string, args ...any) ([]Row, error) {
	found, err := db.QueryContext(ctx, text, args...)
	if err != nil {
		return nil, fmt.Errorf("intents: %w", err)
	}
	defer found.Close() //nolint:errcheck // reading is over; Err below tells
	var rows []Row
	for found.Next() {
		var data []byte
		if err := found.Scan(&data); err != nil {
			return nil, fmt.Errorf("intents: %w", err)
		}
		var row Row
		if err := json.Unmarshal(data, &row); err != nil {
			return nil, fmt.Errorf("intents: row: %w", err)
		}
		rows = append(rows, row)
	}
	return rows, found.Err()
}
