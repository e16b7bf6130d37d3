package intents

// ListStatement is the statement that answers [Query.List], for who asks how the
// databases carry it out.
func ListStatement(f Filters, limit int) (text string, args []any) { return f.walk().Statement(limit) }

// ByHashStatement is the statement of [Query.ByHash].
const ByHashStatement = byHash
