package verify

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"

	"github.com/tempo-watchtower/watchtower/eventlog"
	"github.com/tempo-watchtower/watchtower/proof/promises"
)

// rows are rows of a table by key, in a form that is identical for equal rows.
type rows map[string]row

type row struct {
	stream eventlog.Stream // the stream from which the row is folded
	form   []byte
}

// form is the form in which rows are compared.
func form(columns any) []byte {
	text, err := json.Marshal(columns)
	if err != nil {
		panic(fmt.Sprintf("verify: a row cannot be encoded: %v", err)) // the columns are our own types
	}
	return text
}

func (t rows) sorted() iter.Seq2[string, []byte] {
	return func(yield func(string, []byte) bool) {
		for _, key := range slices.Sorted(maps.Keys(t)) {
			if !yield(key, t[key].form) {
				return
			}
		}
	}
}

// drift compares rows of a table with the expected rows: P18.
func (r *run) drift(table string, want, got rows) {
	found := promises.Compare(want.sorted(), got.sorted())
	sum := r.report.Drift[table]
	sum.Rows += found.Rows
	sum.Missing += found.Missing
	sum.Extra += found.Extra
	sum.Different += found.Different
	sum.First = append(sum.First, found.First[:min(len(found.First), promises.DriftMax-len(sum.First))]...)
	r.report.Drift[table] = sum
	for _, d := range found.First {
		stream := cmp.Or(want[d.Key].stream, got[d.Key].stream)
		r.broken(promises.Violation{Promise: promises.P18, Stream: stream, Evidence: Tell(table, d)})
	}
	if more := found.Total() - uint64(len(found.First)); more > 0 {
		r.report.Broken[promises.P18] += int(more)
	}
}

// Tell describes how a row differs from the expected row.
func Tell(table string, d promises.Difference) string {
	switch {
	case d.Got == nil:
		return fmt.Sprintf("%s has no row %s", table, d.Key)
	case d.Want == nil:
		return fmt.Sprintf("%s has a row %s without an event", table, d.Key)
	}
	var want, got map[string]json.RawMessage
	if json.Unmarshal(d.Want, &want) != nil || json.Unmarshal(d.Got, &got) != nil {
		return fmt.Sprintf("%s, row %s is wrong", table, d.Key)
	}
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(want)) {
		if string(want[name]) != string(got[name]) {
			a, b := apart(string(want[name]), string(got[name]))
			parts = append(parts, fmt.Sprintf("%s is %s and should be %s", name, b, a))
		}
	}
	return fmt.Sprintf("%s, row %s: %s", table, d.Key, strings.Join(parts, "; "))
}

// apartMax limits how much of a value is shown.
const apartMax = 120

// apart shortens two long values to the part where they begin to differ.
func apart(a, b string) (string, string) {
	n := 0
	for n < min(len(a), len(b)) && a[n] == b[n] {
		n++
	}
	cut := func(s string) string {
		from := max(0, n-apartMax/2)
		if len(s) <= apartMax {
			return s
		}
		return "…" + s[min(from, len(s)):min(from+apartMax, len(s))] + "…"
	}
	return cut(a), cut(b)
}

// query selects rows of the read models by keys, which replace KEYS in the text, and calls scan
// for each row.
func (r *run) query(ctx context.Context, text string, keys [][]byte, scan func(columns func(...any) error) error) error {
	for some := range slices.Chunk(keys, rowsPerStatement) {
		places, args := make([]string, len(some)), make([]any, len(some))
		for i, key := range some {
			places[i], args[i] = fmt.Sprintf("$%d", i+1), key
		}
		if err := r.one(ctx, strings.Replace(text, "KEYS", strings.Join(places, ", "), 1), args, scan); err != nil {
			return err
		}
	}
	return nil
}

// rowsPerStatement is small because SQLite compares each parameter's name with all before it.
const rowsPerStatement = 64

// one runs one statement on the read models, and calls scan for each row.
func (r *run) one(ctx context.Context, text string, args []any, scan func(columns func(...any) error) error) error {
	found, err := r.Work.View().QueryContext(ctx, text, args...)
	if err != nil {
		return err
	}
	defer found.Close() //nolint:errcheck // Err tells
	for found.Next() {
		if err := scan(found.Scan); err != nil {
			return err
		}
	}
	return found.Err()
}
