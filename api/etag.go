package api

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/tempo-watchtower/watchtower/projections/delivery/transactions"
)

// tagOf is the entity tag of a transaction: the version that the viewer sees, and the time of
// the last event. The time keeps a store restored from a backup from giving one tag to two
// histories. The tag is weak (RFC 9110, section 8.8.1): the due queue's counters (attempts,
// note, nextActionAt and the like) are shown too, and change between two events without
// changing the tag.
func tagOf(v viewer, row transactions.Row) string {
	return fmt.Sprintf(`W/"%d-%x"`, v.version(row), row.UpdatedAt.UnixMicro())
}

// unchanged reports whether the client already has the version with this tag. It uses the weak
// comparison of RFC 9110, section 13.1.2.
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

// tagged sets headers that let the client cache the answer and revalidate it by its tag.
func tagged(w http.ResponseWriter, tag string) {
	w.Header().Set("ETag", tag)
	w.Header().Set("Cache-Control", "private, no-cache")
}
