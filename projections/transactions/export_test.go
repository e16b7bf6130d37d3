package transactions

// ListStatement returns the statement behind [Query.List], so that tests can explain it.
func ListStatement(f Filters, limit int) (text string, args []any) { return list(f, 0, 0, limit) }
