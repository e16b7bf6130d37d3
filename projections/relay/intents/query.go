package intents

import (
	"context"
	"database/sql"
	"fmt"
	"math"
	"slices"
	"time"

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

	Target   *chain.Address  // of any call
	Selector *chain.Selector // of any call
	Metadata *Entry
	// Nonce is the nonce that the intent has; Signer and, if it matters, NonceKey name its sequence.
	Nonce    *uint64
	NonceKey *chain.NonceKey
	// Since and Until bound the time of the request, both included; zero: no bound.
	Since, Until time.Time
	// Mined, with a Selector, leaves out intents without a receipt: until then, their input is known
	// to their clients alone.
	Mined bool
}

// Entry is an entry of an intent's metadata.
type Entry struct{ Name, Value string }

// Fits reports whether a row matches the filters, except for the selector: rows have no input.
func (f Filters) Fits(r Row) bool {
	asked, signer := r.Request(), r.Signer()
	if !f.placed(r) || !f.timely(r) {
		return false
	}
	if f.Target != nil && !slices.ContainsFunc(asked.Calls, func(c intent.Call) bool { return c.To != nil && *c.To == *f.Target }) {
		return false
	}
	if f.Metadata != nil {
		if value, has := asked.Metadata[f.Metadata.Name]; !has || value != f.Metadata.Value {
			return false
		}
	}
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

// placed reports whether an intent has the nonce and the key of the filters.
func (f Filters) placed(r Row) bool {
	p := r.State.Place
	switch {
	case f.Nonce == nil && f.NonceKey == nil:
		return true
	case p == nil:
		return false
	}
	return (f.Nonce == nil || *f.Nonce == p.Nonce) && (f.NonceKey == nil || *f.NonceKey == p.NonceKey)
}

// timely reports whether an intent was requested between the filters' times.
func (f Filters) timely(r Row) bool {
	at := r.State.Requested.At
	return (f.Since.IsZero() || !at.Before(f.Since)) && (f.Until.IsZero() || !at.After(f.Until))
}

// later leaves out the rows that the statements could not.
func (f Filters) later(rows []Row) []Row {
	return slices.DeleteFunc(rows, func(r Row) bool { return !f.placed(r) || !f.timely(r) || f.Mined && r.State.Receipt == nil })
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
	return q.byHash(ctx, hash, nil)
}

// Step reads one step of a list: see [projections.Walk]. A list by the hash of an attempt
// has one step, for few intents share an attempt.
func (q Query) Step(ctx context.Context, f Filters, before eventlog.Position, limit int) (rows []Row, rest eventlog.Position, err error) {
	if f.Hash == nil {
		if f.Since.IsZero() && f.Until.IsZero() {
			rows, rest, err = f.walk().Step(ctx, q.DB, before, limit)
			return f.later(rows), rest, err
		}
		return q.between(ctx, f, before, limit)
	}
	if rows, err = q.byHash(ctx, *f.Hash, f.terms()); err != nil {
		return nil, 0, err
	}
	rows = slices.DeleteFunc(f.later(rows), func(r Row) bool { return !f.Fits(r) || before != 0 && r.Position >= before })
	if len(rows) > limit {
		return rows[:limit], rows[limit-1].Position, nil
	}
	return rows, 0, nil
}

// between is a step of a list with times. Positions rise with the times of requests, but replicas'
// clocks differ: the list begins and ends with the positions of some requests around its times.
func (q Query) between(ctx context.Context, f Filters, before eventlog.Position, limit int) (rows []Row, rest eventlog.Position, err error) {
	first, last := int64(0), int64(math.MaxInt64)
	edge := func(into *int64, end, compare, order string, at time.Time) error {
		if at.IsZero() {
			return nil
		}
		var where projections.Where
		if f.Client != nil {
			where.And("client = %s", *f.Client)
		}
		where.And("requested_at "+compare+" %s", at.UnixMicro())
		var found sql.NullInt64
		err := q.DB.QueryRowContext(ctx, fmt.Sprintf("SELECT %s(position) FROM (SELECT position FROM %s%s ORDER BY requested_at %s LIMIT %d) e",
			end, timesTable, &where, order, aroundMost), where.Args...).Scan(&found)
		if err != nil {
			return fmt.Errorf("%s: %w", Name, err)
		}
		if *into = found.Int64; !found.Valid { // there is none on this side of the time
			first, last = 1, 0
		}
		return nil
	}
	if err := edge(&last, "max", "<=", "DESC", f.Until); err != nil || last < first {
		return nil, 0, err
	}
	if err := edge(&first, "min", ">=", "ASC", f.Since); err != nil || last < first {
		return nil, 0, err
	}
	if last < math.MaxInt64 && (before == 0 || int64(before) > last+1) { //nolint:gosec // a position is below 2^63
		before = eventlog.Position(last + 1) //nolint:gosec // positive
	}
	rows, rest, err = f.walk().Step(ctx, q.DB, before, limit)
	if int64(rest) <= first { //nolint:gosec // a position is below 2^63
		rest = 0
	}
	return f.later(rows), rest, err
}

// aroundMost is how many requests around a time are read to find the position at which a list begins
// or ends.
const aroundMost = projections.StepRows

// byHash returns the rows of the intents that have an attempt with a hash and these terms, newest
// first.
func (q Query) byHash(ctx context.Context, hash chain.Hash, terms []term) ([]Row, error) {
	text, args := hashStatement(hash, terms)
	return projections.Documents[Row](ctx, q.DB, Name, text, args...)
}

func hashStatement(hash chain.Hash, terms []term) (text string, args []any) {
	var where projections.Where
	where.And("a.hash = %s", hash[:])
	where.And("i.intent = a.intent")
	having(&where, "i", terms)
	return "SELECT i.data FROM intent_attempts a CROSS JOIN intents i" + where.String() + " ORDER BY i.position DESC", where.Args
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
	terms := f.terms()
	switch {
	case f.Client != nil && f.Key != "":
		equal("wish", f.Key)
	case f.Nonce != nil, f.Metadata != nil: // the first term
		w.Table = termsTable
		equal("term", []byte(terms[0]))
	case f.Client != nil && f.Subject != "":
		equal("subject", f.Subject)
	case len(terms) > 0:
		w.Table = termsTable
		equal("term", []byte(terms[0]))
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
	having(&where, "t", f.terms())
	return where
}

// terms returns the terms of the filters, from the term that the fewest intents are likely to have.
func (f Filters) terms() (all []term) {
	if f.Nonce != nil && f.Signer != nil {
		all = append(all, nonceTerm(*f.Signer, *f.Nonce))
	}
	if f.Metadata != nil {
		all = append(all, metadataTerm(f.Metadata.Name, f.Metadata.Value))
	}
	if f.Target != nil {
		all = append(all, targetTerm(*f.Target))
	}
	if f.Selector != nil {
		all = append(all, selectorTerm(*f.Selector))
	}
	return all
}

// having adds the condition that an intent has these terms.
func having(where *projections.Where, intents string, terms []term) {
	for _, t := range terms {
		where.And("EXISTS (SELECT 1 FROM "+termsTable+" x WHERE x.intent = "+intents+".intent AND x.term = %s)", []byte(t))
	}
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
