package transactions_test

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"regexp"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
	"github.com/tempo-watchtower/watchtower/eventlog"
	"github.com/tempo-watchtower/watchtower/infra/embedded"
	"github.com/tempo-watchtower/watchtower/migrations"
	"github.com/tempo-watchtower/watchtower/projections"
	"github.com/tempo-watchtower/watchtower/projections/delivery/transactions"
)

// A shadow of another version is not resumed, even if its tables have the same schema. Neither
// is a shadow of a program that recorded no version.
func TestRebuildAfterAnotherVersion(t *testing.T) {
	const left, now = 1, 2
	unsaid := func(t *testing.T, live *sql.DB) {
		_, err := live.ExecContext(t.Context(), `ALTER TABLE shadow_readers DROP COLUMN version`)
		if err != nil {
			_, err = live.ExecContext(t.Context(), `COMMENT ON SCHEMA view_shadow_transactions IS NULL`)
		}
		check(t, err)
	}
	migrated(t, func(t *testing.T, live *sql.DB, open func(t *testing.T, files fs.FS, version int) shadow) {
		h := newHistory(t)
		for n := range 35 {
			h.live(t, n)
		}
		h.project(t, live)
		want := dump(t, live)
		for _, c := range []struct {
			name    string
			version int
			before  func(*testing.T, *sql.DB)
			goesOn  bool
		}{
			{"the same", left, func(*testing.T, *sql.DB) {}, true},
			{"another", now, func(*testing.T, *sql.DB) {}, false},
			{"unsaid", left, unsaid, false},
		} {
			killed(t, h, func(t *testing.T) shadow { return open(t, migrations.View, left) }, projections.RebuildCrashPoints()[0])
			c.before(t, live)
			s := open(t, migrations.View, c.version)
			at, there, err := s.(interface { // used by "projections status"
				At(ctx context.Context) (eventlog.Position, bool, error)
			}).At(t.Context())
			if err != nil || !there || (at > 0) != c.goesOn {
				t.Errorf("%s: it says that it is at %d, %v, %v", c.name, at, there, err)
			}
			told, err := h.rebuild(s).Run(t.Context())
			check(t, errors.Join(err, s.Close()))
			if told.Began != at {
				t.Errorf("%s: it began after position %d, and said %d", c.name, told.Began, at)
			}
			if d := cmp.Diff(want, dump(t, live)); d != "" {
				t.Errorf("%s (-live +rebuilt):\n%s", c.name, d)
			}
		}
	})
}

// madeOf is the version, and a digest of the rows of a history. If you change the content of
// rows, raise the version. If you change only the history, update only the digest.
const madeOf = `2 b35842b89b139eef5ca6408d59e706bb499da5e2a14349b73e630a7bf8778a6a`

// recordedAt matches times of the store's clock.
var recordedAt = regexp.MustCompile(`"(AcceptedAt|UpdatedAt)":"[^"]+"`)

func TestVersion(t *testing.T) {
	h := newHistory(t)
	for n := range 84 {
		h.live(t, n)
	}
	db, err := embedded.Open("", embedded.Options{})
	check(t, err)
	t.Cleanup(func() { check(t, db.Close()) })
	h.project(t, migrate(t, db.View()))
	rows := recordedAt.ReplaceAllString(dump(t, db.View()), "$1")
	if got := fmt.Sprintf("%d %x", transactions.Model(tx.Codec()).Version, sha256.Sum256([]byte(rows))); got != madeOf {
		t.Errorf("version and rows are %s, want %s", got, madeOf)
	}
}
