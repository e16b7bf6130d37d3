package transactions

import "github.com/tempo-watchtower/watchtower/domain/chain"

// ListStatement is the statement that answers [Query.List], for who asks how the
// databases carry it out.
func ListStatement(f Filters, limit int) (text string, args []any) { return f.walk().Statement(limit) }

// NewestStatement is the statement of [Query.Newest].
func NewestStatement(sender chain.Address, names []string) (text string, args []any) {
	return newestOf(sender, names)
}
