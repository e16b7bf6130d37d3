package transactions

import "github.com/tempo-watchtower/watchtower/domain/chain"

// ListStatement is the statement that answers [Query.List], for who asks how the
// databases carry it out.
func ListStatement(f Filters, limit int) (text string, args []any) { return f.walk().Statement(limit) }

// NewestStatements are the statements of [Query.Newest].
func NewestStatements(sender chain.Address, names []string) map[string]func() (text string, args []any) {
	return map[string]func() (string, []any){
		"of a client": func() (string, []any) { return newestOf(sender, names) },
		"of a sender": func() (string, []any) { return newestUnclaimed(sender) },
	}
}
