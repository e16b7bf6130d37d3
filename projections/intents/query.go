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
	return projections.Documents[Row](ctx, q.DB, Name, `SELECT i.data FROM intents i JOIN intent_attempts a ON a.intent = i.intent
		WHERE a.hash = $1 ORDER BY i.position DESC`, hash[:])
}

// List returns at most limit rows requested before a position (0: from the newest), newest
// first.
func (q Query) List(ctx context.Context, f Filters, before event.Position, limit int) ([]Row, error) {
	text, args := list(f, 0, before, limit)
	return projections.Documents[Row](ctx, q.DB, Name, text, args...)
}

// Step reads one step of a list, newest first: at most limit rows from the next
// [projections.StepRows] entries of its index. rest is the position before which the next
// step begins; 0 means that the list has ended.
func (q Query) Step(ctx context.Context, f Filters, before event.Position, limit int) (rows []Row, rest event.Position, err error) {
	var floor event.Position
	if f.Hash == nil { // few intents have an attempt with the same hash
		if floor, err = f.walk().Floor(ctx, q.DB, before); err != nil {
			return nil, 0, err
		}
	}
	text, args := list(f, floor, before, limit)
	if rows, err = projections.Documents[Row](ctx, q.DB, Name, text, args...); err != nil || len(rows) == 0 {
		return nil, floor, err
	}
	return rows, projections.Next(len(rows), limit, rows[len(rows)-1].Position, floor), nil
}

// walk chooses the index with the fewest entries that do not match the filters.
func (f Filters) walk() projections.Walk {
	w := projections.Walk{Table: "intents", Position: "position"}
	equal := func(column string, values ...any) {
		w.Equal = append(w.Equal, projections.Equal{Column: column, Values: values})
	}
	conditions := 0
	for _, given := range []bool{f.Chain != 0, f.From != nil, f.Signer != nil, f.Key != "", f.Subject != "", len(f.Statuses) > 0} {
		if given {
			conditions++
		}
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
	default:
		conditions++ // no index has the columns of these filters
	}
	w.Filtered = conditions > 1
	return w
}

// Waiting returns at most limit rows of a chain's intents without a nonce, oldest first. from
// are the requested signers or pools, as of [intent.From.Name].
func Waiting(ctx context.Context, db projections.Querier, on chain.ID, from []string, limit int) ([]Row, error) {
	var where projections.Where
	where.And("chain = %s", int64(on))
	where.And("status = %s", string(intent.StatusWaiting))
	projections.AndIn(&where, "wants", from)
	return projections.Documents[Row](ctx, db, Name, fmt.Sprintf("SELECT data FROM intents%s ORDER BY position LIMIT %d", &where, limit), where.Args...)
}

// list returns the statement behind List, for rows at or after the position from (0: from the
// oldest).
func list(f Filters, from, before event.Position, limit int) (text string, args []any) {
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
	projections.AndWithin(&where, "position", from, before)
	return fmt.Sprintf("SELECT data FROM intents%s ORDER BY position DESC LIMIT %d", &where, limit), where.Args
}
