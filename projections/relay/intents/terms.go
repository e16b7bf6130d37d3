package intents

import (
	"context"
	"database/sql"
	"encoding/binary"
	"slices"

	"github.com/tempo-watchtower/watchtower/domain/bulk"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/relay/intent"
	"github.com/tempo-watchtower/watchtower/eventlog"
	"github.com/tempo-watchtower/watchtower/projections"
)

// TermsName is the name of the checkpoint and lease of the index of terms.
const TermsName = "intent_terms"

// TermsFilter selects the events that the index of terms reads.
func TermsFilter() eventlog.Filter {
	return eventlog.Filter{Streams: []string{intent.StreamPrefix}, Names: []string{"intent.requested.", "intent.assigned."}}
}

// Tables and columns of the index. The primary key is the first two columns of terms, and the first
// column of times.
const (
	termsTable = "intent_terms"
	timesTable = "intent_times"
)

var (
	termColumns = []string{"intent", "term", "client", "position"}         //nolint:gochecknoglobals // a table
	timeColumns = []string{"intent", "client", "position", "requested_at"} //nolint:gochecknoglobals // a table
)

// term is a searchable property of an intent: its kind in one byte, then its content.
type term []byte

func targetTerm(a chain.Address) term    { return append(term{'t'}, a[:]...) }
func selectorTerm(s chain.Selector) term { return append(term{'s'}, s[:]...) }

// metadataTerm is of bounded length; names have no NUL.
func metadataTerm(name, value string) term {
	digest := chain.Keccak([]byte(name), []byte{0}, []byte(value))
	return append(term{'m'}, digest[:]...)
}

// nonceTerm is of a nonce that the intent had, and may have lost.
func nonceTerm(signer chain.Address, nonce uint64) term {
	return binary.BigEndian.AppendUint64(append(term{'n'}, signer[:]...), nonce)
}

// termsOf returns the terms of a request, each once.
func termsOf(r intent.Request) (all []term) {
	for _, c := range r.Calls {
		if c.To != nil {
			all = append(all, targetTerm(*c.To))
		}
		if len(c.Data) >= len(chain.Selector{}) {
			all = append(all, selectorTerm(chain.Selector(c.Data[:len(chain.Selector{})])))
		}
	}
	for name, value := range r.Metadata {
		all = append(all, metadataTerm(name, value))
	}
	slices.SortFunc(all, func(a, b term) int { return slices.Compare(a, b) })
	return slices.CompactFunc(all, func(a, b term) bool { return slices.Equal(a, b) })
}

// place is the position of an intent's request, and its client.
type place struct {
	client   string
	position int64
}

// indexed are rows of the index that events add. No row ever changes.
type indexed struct {
	places map[chain.IntentID]place // of the intents that were met
	terms  [][]any
	times  [][]any
}

// add adds the rows of events. find returns the places of intents that were requested before.
func (x *indexed) add(events []eventlog.Recorded, codec eventlog.Codec[intent.Event], find func([]chain.IntentID) error) error {
	type assigned struct {
		id   chain.IntentID
		term term
	}
	var placed []assigned
	var unknown []chain.IntentID
	for _, recorded := range events {
		e, err := codec.Decode(recorded.Name, recorded.Data)
		if err != nil {
			return &eventlog.Stuck{At: recorded.Position, Err: err}
		}
		id, err := intent.ParseStream(recorded.Stream)
		if err != nil {
			return &eventlog.Stuck{At: recorded.Position, Err: err}
		}
		switch e := e.(type) {
		case intent.Requested:
			at := place{e.Request.Client, int64(recorded.Position)} //nolint:gosec // a position is below 2^63
			x.places[id] = at
			x.times = append(x.times, []any{id[:], at.client, at.position, e.At.UnixMicro()})
			for _, t := range termsOf(e.Request) {
				x.terms = append(x.terms, []any{id[:], []byte(t), at.client, at.position})
			}
		case intent.Assigned:
			placed = append(placed, assigned{id, nonceTerm(e.Place.Signer, e.Place.Nonce)})
			if _, known := x.places[id]; !known {
				unknown = append(unknown, id)
			}
		}
	}
	if err := find(projections.Distinct(unknown)); err != nil {
		return err
	}
	for _, a := range placed {
		if at, known := x.places[a.id]; known {
			x.terms = append(x.terms, []any{a.id[:], []byte(a.term), at.client, at.position})
		}
	}
	return nil
}

// find reads the places of intents, at most most per statement.
func (x *indexed) find(ctx context.Context, db projections.Querier, table string, ids []chain.IntentID, most int) error {
	for some := range slices.Chunk(ids, most) {
		args := make([]any, len(some))
		for i, id := range some {
			args[i] = id[:]
		}
		if err := x.findSome(ctx, db, `SELECT intent, client, position FROM `+table+` WHERE intent IN (`+projections.Places(1, len(some))+`)`, args); err != nil {
			return err
		}
	}
	return nil
}

func (x *indexed) findSome(ctx context.Context, db projections.Querier, text string, args []any) error {
	found, err := db.QueryContext(ctx, text, args...)
	if err != nil {
		return err
	}
	defer found.Close() //nolint:errcheck // reading is over; Err below tells
	for found.Next() {
		var id []byte
		var at place
		if err := found.Scan(&id, &at.client, &at.position); err != nil {
			return err
		}
		x.places[chain.IntentID(id)] = at
	}
	return found.Err()
}

// Terms folds intents' events into the index of terms.
type Terms struct {
	Codec eventlog.Codec[intent.Event]
	// Prefix begins the tables' names; empty for the serving tables.
	Prefix string
}

// Fold adds events to the tables.
func (p Terms) Fold(ctx context.Context, dbtx *sql.Tx, events []eventlog.Recorded) error {
	x := indexed{places: map[chain.IntentID]place{}}
	err := x.add(events, p.Codec, func(ids []chain.IntentID) error {
		return x.find(ctx, dbtx, p.Prefix+timesTable, ids, rowsPerStatement)
	})
	if err != nil {
		return err
	}
	for some := range slices.Chunk(x.times, rowsPerStatement) {
		if err := insert(ctx, dbtx, p.Prefix+timesTable, timeColumns, some, `(intent) DO NOTHING`); err != nil {
			return err
		}
	}
	for some := range slices.Chunk(x.terms, rowsPerStatement) {
		if err := insert(ctx, dbtx, p.Prefix+termsTable, termColumns, some, `(intent, term) DO NOTHING`); err != nil {
			return err
		}
	}
	return nil
}

// termsVersion is the version of the rows: see [projections.Model].
const termsVersion = 1

// TermsModel describes the index of terms for a rebuild.
func TermsModel(codec eventlog.Codec[intent.Event]) projections.Model {
	kinds := map[string]projections.Kind{"intent": projections.Bytes, "term": projections.Bytes, "position": projections.Number, "requested_at": projections.Number}
	return projections.Model{
		Name: TermsName, About: "finds intents by target, selector, metadata, nonce and time", Filter: TermsFilter(), Version: termsVersion,
		Tables: []projections.Table{
			projections.Shape(timesTable, 1, timeColumns, kinds, projections.Text),
			projections.Shape(termsTable, 2, termColumns, kinds, projections.Text),
		},
		Fold: func(prefix string) projections.Fold { return Terms{codec, prefix}.Fold },
		Load: func(prefix string) projections.Loader {
			return &termsLoader{Terms: Terms{codec, prefix}, indexed: indexed{places: map[chain.IntentID]place{}}}
		},
	}
}

// termsLoader gathers the index in memory.
type termsLoader struct {
	Terms
	indexed
}

// Add gathers events.
func (l *termsLoader) Add(ctx context.Context, db *sql.DB, events []eventlog.Recorded) error {
	return l.add(events, l.Codec, func(ids []chain.IntentID) error {
		return l.find(ctx, db, l.Prefix+timesTable, ids, readMost) // the rows of the last Take are among the places
	})
}

// Pending returns the number of rows that wait to be taken.
func (l *termsLoader) Pending() int { return len(l.terms) + len(l.times) }

// Take returns the rows since the last Take. It keeps the places of the newest intents alone.
func (l *termsLoader) Take() ([]bulk.Change, error) {
	times := bulk.Change{Table: timesTable, Columns: timeColumns, Key: 1, New: l.times}
	terms := bulk.Change{Table: termsTable, Columns: termColumns, Key: 2}
	met := map[string]bool{} // an intent may get the same nonce again
	for _, row := range l.terms {
		key := string(row[0].([]byte)) + string(row[1].([]byte)) //nolint:forcetypeassert // add makes them so
		if !met[key] {
			met[key] = true
			terms.New = append(terms.New, row)
		}
	}
	if len(l.places) > heldMost {
		fresh := map[chain.IntentID]place{} // they may be on their way to the table
		for _, row := range l.times {
			id := chain.IntentID(row[0].([]byte)) //nolint:forcetypeassert // likewise
			fresh[id] = l.places[id]
		}
		l.places = fresh
	}
	l.times, l.terms = nil, nil
	return slices.DeleteFunc([]bulk.Change{times, terms}, bulk.Change.Empty), nil
}
