package intents

import (
	"context"
	"database/sql"
	"fmt"
	"slices"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/relay/intent"
	"github.com/tempo-watchtower/watchtower/eventlog"
	"github.com/tempo-watchtower/watchtower/projections"
)

// Query reads intents.
type Query struct {
	DB *sql.DB
}

// Filters restrict a list; the zero value lists everything.
type Filters struct {
	Client   *string // owner of the intents; nil means every client
	Chain    chain.ID
	From     *intent.From   // the requested signer or pool
	Signer   *chain.Address // the signer, see [Row.Signer]
	Key      string         // the idempotency key
	Hash     *chain.Hash    // of any attempt
	Subject  string
	Statuses []intent.Status // any of these
}

// Fits reports whether a row matches the filters.
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

// Find returns an intent's row; ok is false if there is none.
func (q Query) Find(ctx context.Context, id chain.IntentID) (row Row, ok bool, err error) {
	rows, err := projections.Documents[Row](ctx, q.DB, Name, `SELECT data FROM intents WHERE intent = $1`, id[:])
	if err != nil || len(rows) == 0 {
		return Row{}, false, err
	}
	return rows[0], true, nil
}

// ByKey returns the row of a client's request; ok is false if there is none.
func (q Query) ByKey(ctx context.Context, client string, from intent.From, key string) (row Row, ok bool, err error) {
	return q.Find(ctx, intent.ID(client, from, key))
}

// ByHash returns the rows of the intents that have an attempt with a hash, newest first.
func (q Query) ByHash(ctx context.Context, hash chain.Hash) ([]Row, error) {
	return projections.Documents[Row](ctx, q.DB, Name, byHash, hash[:])
}

const byHash = `SELECT i.data FROM intent_attempts a CROSS JOIN intents i
	WHERE a.hash = $1 AND i.intent = a.intent ORDER BY i.position DESC`

// Step reads one step of a list: see [projections.Walk]. A list by the hash of an attempt
// has one step, for few intents share an attempt.
func (q Query) Step(ctx context.Context, f Filters, before eventlog.Position, limit int) (rows []Row, rest eventlog.Position, err error) {
	if f.Hash == nil {
		return f.walk().Step(ctx, q.DB, before, limit)
	}
	if rows, err = q.ByHash(ctx, *f.Hash); err != nil {
		return nil, 0, err
	}
	rows = slices.DeleteFunc(rows, func(r Row) bool { return !f.Fits(r) || before != 0 && r.Position >= before })
	if len(rows) > limit {
		return rows[:limit], rows[limit-1].Position, nil
	}
	return rows, 0, nil
}

// walk is along the index that leads to the fewest rows which the filters exclude.
func (f Filters) walk() projections.Walk[Row] {
	w := projections.Walk[Row]{
		Model: Name, Table: "intents", Position: "position", Keys: []string{"intent"},
		Rows: "intents", Where: f.where(), At: func(r Row) eventlog.Position { return r.Position },
	}
	equal := func(column string, values ...any) {
		w.Equal = append(w.Equal, projections.Equal{Column: column, Values: values})
	}
	if f.Client != nil {
		equal("client", *f.Client)
	}
	switch {
	case f.Client != nil && f.Key != "":
		equal("wish", f.Key)
	case f.Client != nil && f.Subject != "":
		equal("subject", f.Subject)
	case f.Signer != nil:
		equal("signer", f.Signer[:])
	case len(f.Statuses) > 0:
		equal("status", projections.Texts(f.Statuses)...)
	}
	return w
}

// where has all filters but the client, which the walk is along, and the hash.
func (f Filters) where() (where projections.Where) {
	if f.Chain != 0 {
		where.And("t.chain = %s", int64(f.Chain))
	}
	if f.From != nil {
		where.And("t.wants = %s", f.From.Name())
	}
	if f.Signer != nil {
		where.And("t.signer = %s", f.Signer[:])
	}
	if f.Key != "" {
		where.And("t.wish = %s", f.Key)
	}
	if f.Subject != "" {
		where.And("t.subject = %s", f.Subject)
	}
	projections.AndIn(&where, "t.status", f.Statuses)
	return where
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
