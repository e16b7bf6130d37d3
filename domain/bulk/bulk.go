// Package bulk describes a read model's writes to a table as values, for stores that write many
// rows at once.
package bulk

// Change lists the changes to one table's rows. Values are int64, string, []byte or nil.
type Change struct {
	Table   string
	Columns []string // of New and Changed, in the table's order
	Key     int      // number of leading columns in the primary key
	// New are rows to insert; an existing row with the same key stays.
	New [][]any
	// Changed are rows to insert or to overwrite.
	Changed [][]any
	// Gone are keys of rows to delete; missing rows are no error. No key is in Gone and in New or
	// Changed.
	Gone [][]any
}

// Empty reports whether there is no change.
func (c Change) Empty() bool { return len(c.New)+len(c.Changed)+len(c.Gone) == 0 }
