// Package bulk is what a read model wants written into a table: values, for those who
// know how an engine writes many of them at once.
package bulk

// Change is what becomes of one table's rows. Values are int64, string, []byte or nil.
type Change struct {
	Table   string
	Columns []string // of New and Changed, in the order of the table's
	Key     int      // the first so many columns are the primary key
	// New are rows that the table does not have; one that it has all the same stays.
	New [][]any
	// Changed are rows to be there as they are here, whether the table has them or not.
	Changed [][]any
	// Gone are the keys of rows that are to go. One that is not there is no error. No
	// key is both here and above.
	Gone [][]any
}

// Empty reports whether nothing becomes of the table.
func (c Change) Empty() bool { return len(c.New)+len(c.Changed)+len(c.Gone) == 0 }
