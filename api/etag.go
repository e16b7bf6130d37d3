package api

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/tempo-watchtower/watchtower/projections/transactions"
)

// tagOf is the entity tag of a transaction as it is recorded: its version as the viewer
// is told it, with the time of the last event, so that a store restored from a backup does
// not give one tag to two histories. It is weak (RFC 9110, section 8.8.1), because what
// the due queue counts between two events (attempts, note, nextActionAt and the
// like) is shown too and does not change it.
func tagOf(v viewer, row transactions.Row) string {
	return fmt.Sprintf(`W/"%d-%x"`, v.version(row), row.UpdatedAt.UnixMicro())
}

// unchanged reports whether a client has what a tag stands for. The comparison is
// the weak one of RFC 9110, section 13.1.2.
func unchanged(r *http.Request, tag string) bool {
	for _, field := range r.Header.Values("If-None-Match") {
		for given := range strings.SplitSeq(field, ",") {
			given = strings.TrimSpace(given)
			if given == "*" || strings.TrimPrefix(given, "W/") == strings.TrimPrefix(tag, "W/") {
				return true
			}
		}
	}
	return false
}

// tagged lets the client that asked keep the answer, to ask about its tag later.
func tagged(w http.ResponseWriter, tag string) {
	w.Header().Set("ETag", tag)
	w.Header().Set("Cache-Control", "private, no-cache")
}
