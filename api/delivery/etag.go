package delivery

import (
	"fmt"

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
