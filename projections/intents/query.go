package intents

import (
	"context"
	"database/sql"
	"fmt"
	"slices"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/event"
	"github.com/tempo-watchtower/watchtower/domain/intent"
	"github.com/tempo-watchtower/watchtower/projections"
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
	rows, err := projections.Documents[Row](ctx, q.DB, Name, `SELECT data FROM intents WHERE intent = $1`, id[:])
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
	return projections.Documents[Row](ctx, q.DB, Name, `SELECT i.data FROM intents i JOIN intent_attempts a ON a.intent = i.intent
		WHERE a.hash = $1 ORDER BY i.position DESC`, hash[:])
}

// List returns at most limit rows requested before a position (0: from the newest
// on), newest first.
func (q Query) List(ctx context.Context, f Filters, before event.Position, limit int) ([]Row, error) {
	text, args := list(f, before, limit)
	return projections.Documents[Row](ctx, q.DB, Name, text, args...)
}

// Waiting returns at most limit rows of a chain's intents that have no nonce, and are for
// any of these by [intent.From.Name], oldest first.
func Waiting(ctx context.Context, db projections.Querier, on chain.ID, from []string, limit int) ([]Row, error) {
	var where projections.Where
	where.And("chain = %s", int64(on))
	where.And("status = %s", string(intent.StatusWaiting))
	projections.AndIn(&where, "wants", from)
	return projections.Documents[Row](ctx, db, Name, fmt.Sprintf("SELECT data FROM intents%s ORDER BY position LIMIT %d", &where, limit), where.Args...)
}

// list is the statement that answers List.
func list(f Filters, before event.Position, limit int) (text string, args []any) {
	var where projections.Where
	if f.Client != nil {
		where.And("client = %s", *f.Client)
	}
	if f.Chain != 0 {
		where.And("chain = %s", int64(f.Chain))
	}
	if f.From != nil {
		where.And("wants = %s", f.From.Name())
	}
	if f.Signer != nil {
		where.And("signer = %s", f.Signer[:])
	}
	if f.Key != "" {
		where.And("wish = %s", f.Key)
	}
	if f.Hash != nil {
		where.And("intent IN (SELECT intent FROM intent_attempts WHERE hash = %s)", f.Hash[:])
	}
	if f.Subject != "" {
		where.And("subject = %s", f.Subject)
	}
	projections.AndIn(&where, "status", f.Statuses)
	if before != 0 {
		where.And("position < %s", int64(before))
	}
	return fmt.Sprintf("SELECT data FROM intents%s ORDER BY position DESC LIMIT %d", &where, limit), where.Args
}
