package groups_test

import (
	"crypto/sha256"
	"fmt"
	"testing"

	"github.com/tempo-watchtower/watchtower/domain/delivery/group"
	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
	"github.com/tempo-watchtower/watchtower/infra/embedded"
	"github.com/tempo-watchtower/watchtower/migrations"
	"github.com/tempo-watchtower/watchtower/projections"
	"github.com/tempo-watchtower/watchtower/projections/delivery/groups"
)

// madeOf is the version, and a digest of the rows of a history. If you change the content of
// rows, raise the version. If you change only the history, update only the digest.
const madeOf = `2 79b1e1117268222d954db1897ac4aad2f6148652551738729ab56c318a1c9535`

func TestVersion(t *testing.T) {
	h := newHistory(t)
	for n := range 84 {
		h.live(t, n)
	}
	db, err := embedded.Open("", embedded.Options{})
	check(t, err)
	t.Cleanup(func() { check(t, db.Close()) })
	check(t, projections.Migrate(t.Context(), db.View(), migrations.View))
	h.project(t, db.View())
	if got := fmt.Sprintf("%d %x", groups.Model(group.Codec(), tx.Codec()).Version, sha256.Sum256([]byte(dump(t, db.View())))); got != madeOf {
		t.Errorf("version and rows are %s, want %s", got, madeOf)
	}
}
