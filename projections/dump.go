package projections

import (
	"context"
	"database/sql"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"strconv"
	"strings"
)

// Kind is the format in which a column's values are written.
type Kind int

// The kinds of columns.
const (
	Number  Kind = iota // a decimal number
	Flipped             // an unsigned number that is stored with its highest bit flipped
	Bytes               // 0x and hex digits, or null
	Text
	JSON // as stored
)

// Column is a column of a table.
type Column struct {
	Name string
	Kind Kind
}

// Table is a table of a read model. The first Key columns are the primary key, which is also
// the order in which Rows yields the rows.
type Table struct {
	Name    string
	Key     int
	Columns []Column
}

// ColumnNames returns the columns' names, in order.
func (t Table) ColumnNames() []string {
	all := make([]string, len(t.Columns))
	for i, c := range t.Columns {
		all[i] = c.Name
	}
	return all
}

// Rows yields a table's rows in the order of its primary key: numbers by value, bytes
// lexically. The text of the keys sorts in the same order. A row is a JSON object with the
// table's name and its columns in order; equal rows are equal text on every engine. An error is
// stored in failed, and ends the rows.
func (t Table) Rows(ctx context.Context, db Querier, prefix string, failed *error) iter.Seq2[string, []byte] {
	return func(yield func(string, []byte) bool) {
		key := strings.Join(t.ColumnNames()[:t.Key], ", ")
		found, err := db.QueryContext(ctx, fmt.Sprintf(`SELECT %s FROM %s%s ORDER BY %s`, strings.Join(t.ColumnNames(), ", "), prefix, t.Name, key))
		if err != nil {
			*failed = fmt.Errorf("%s: %w", t.Name, err)
			return
		}
		defer found.Close() //nolint:errcheck // reading is over; Err tells
		values, into := make([]any, len(t.Columns)), make([]any, len(t.Columns))
		for i, c := range t.Columns {
			into[i] = c.Kind.holder()
			values[i] = into[i]
		}
		for found.Next() {
			if err := found.Scan(into...); err != nil {
				*failed = fmt.Errorf("%s: %w", t.Name, err)
				return
			}
			if !yield(t.key(values), t.row(values)) {
				return
			}
		}
		if err := found.Err(); err != nil {
			*failed = fmt.Errorf("%s: %w", t.Name, err)
		}
	}
}

func (k Kind) holder() any {
	switch k {
	case Number, Flipped:
		return new(sql.NullInt64)
	case Text:
		return new(sql.NullString)
	}
	return new([]byte)
}

// key is the primary key as text with the same order: numbers have twenty digits.
func (t Table) key(values []any) string {
	var b strings.Builder
	for i := range t.Key {
		if i > 0 {
			b.WriteByte('/')
		}
		switch v := values[i].(type) {
		case *sql.NullInt64:
			fmt.Fprintf(&b, "%020d", v.Int64)
		case *[]byte:
			b.WriteString("0x" + hex.EncodeToString(*v))
		case *sql.NullString:
			b.WriteString(v.String)
		}
	}
	return b.String()
}

func (t Table) row(values []any) []byte {
	text := append([]byte(`{"table":`), strconv.AppendQuote(nil, t.Name)...)
	for i, c := range t.Columns {
		text = append(text, `,"`+c.Name+`":`...)
		text = c.Kind.write(text, values[i])
	}
	return append(text, '}')
}

func (k Kind) write(text []byte, value any) []byte {
	switch v := value.(type) {
	case *sql.NullInt64:
		switch {
		case !v.Valid:
			return append(text, "null"...)
		case k == Flipped:
			return strconv.AppendUint(text, uint64(v.Int64)^1<<63, 10) //nolint:gosec // that is how it is kept
		}
		return strconv.AppendInt(text, v.Int64, 10)
	case *sql.NullString:
		if !v.Valid {
			return append(text, "null"...)
		}
		quoted, _ := json.Marshal(v.String) // a string can always be encoded
		return append(text, quoted...)
	case *[]byte:
		switch {
		case *v == nil:
			return append(text, "null"...)
		case k == JSON && json.Valid(*v):
			return append(text, *v...)
		}
		return append(hex.AppendEncode(append(text, `"0x`...), *v), '"')
	}
	panic(fmt.Sprintf("projections: a column of %T", value)) // holder creates no other type
}

// Dump writes a model's rows from a snapshot, table by table, one row per line.
func Dump(ctx context.Context, snapshot *sql.Tx, m Model, to io.Writer) error {
	for _, t := range m.Tables {
		var failed error
		for _, row := range t.Rows(ctx, snapshot, "", &failed) {
			if _, err := to.Write(append(row, '\n')); err != nil {
				return err
			}
		}
		if failed != nil {
			return failed
		}
	}
	return nil
}
