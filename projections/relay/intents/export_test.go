package intents

import "github.com/tempo-watchtower/watchtower/domain/chain"

// ListStatement is the statement that answers [Query.List], for who asks how the
// databases carry it out.
func ListStatement(f Filters, limit int) (text string, args []any) { return f.walk().Statement(limit) }

// ByHashStatement is the statement of [Query.ByHash].
func ByHashStatement(hash chain.Hash) (text string, args []any) { return hashStatement(hash, nil) }
