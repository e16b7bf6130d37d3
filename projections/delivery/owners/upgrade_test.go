package owners_test

import (
	"context"
	"database/sql"
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/tempo-watchtower/watchtower/eventlog/projector"
	"github.com/tempo-watchtower/watchtower/infra/embedded"
	"github.com/tempo-watchtower/watchtower/infra/postgres"
	"github.com/tempo-watchtower/watchtower/infra/testenv"
	"github.com/tempo-watchtower/watchtower/migrations"
	"github.com/tempo-watchtower/watchtower/projections"
	"github.com/tempo-watchtower/watchtower/projections/delivery/owners"
)

// olderView is the migrations without the one that makes the tables.
func olderView(t *testing.T) fs.FS {
	t.Helper()
	older := fstest.MapFS{}
	check(t, fs.WalkDir(migrations.View, ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || d.Name() >= "0007" {
			return err
		}
		data, err := fs.ReadFile(migrations.View, path)
		older[path] = &fstest.MapFile{Data: data}
		return err
	}))
	return older
}

// named is the tables as text. SQLite reads the empty name as null, and Postgres does not.
func named(t *testing.T, db *sql.DB) string {
	t.Helper()
	return strings.ReplaceAll(dump(t, db), `"owner":null`, `"owner":"0x"`)
}

// An upgrade has the rows of an earlier version, and those of the senders, as of its checkpoint. Rows
// of later events may be among them.
func TestUpgrade(t *testing.T) {
	h := newHistory(t)
	for n := range lives {
		h.live(t, n)
	}
	test := func(t *testing.T, db *sql.DB) {
		live, err := embedded.Open("", embedded.Options{})
		check(t, err)
		t.Cleanup(func() { check(t, live.Close()) })
		check(t, projections.Migrate(t.Context(), live.View(), migrations.View))
		h.project(t, live.View())
		want := named(t, live.View())

		check(t, projections.Migrate(t.Context(), db, olderView(t)))
		move := func(from, columns, to string, n int) {
			rows, err := live.View().QueryContext(t.Context(), from)
			check(t, err)
			defer rows.Close() //nolint:errcheck // Err below tells
			for rows.Next() {
				values, into := make([]any, n), make([]any, n)
				for i := range values {
					into[i] = &values[i]
				}
				check(t, rows.Scan(into...))
				if name, is := values[2].([]byte); is && len(name) == 0 {
					values[2] = []byte{} // not NULL
				}
				_, err := db.ExecContext(t.Context(), "INSERT INTO "+to+" ("+columns+") VALUES ("+projections.Places(1, n)+")", values...)
				check(t, err)
			}
			check(t, rows.Err())
		}
		const ownerColumns, claimColumns = "hash, chain, owner, position, sender, group_id", "hash, chain, position"
		move("SELECT "+ownerColumns+" FROM ownership WHERE owner <> sender", ownerColumns, "transaction_owners", 6)
		move("SELECT "+claimColumns+" FROM ownership_claims", claimColumns, "transaction_claims", 3)
		const position = 40 // older than the rows
		_, err = db.ExecContext(t.Context(), "INSERT INTO readers (name, position) VALUES ('owners', $1)", position)
		check(t, err)

		check(t, projections.Migrate(t.Context(), db, migrations.View))
		if d := cmp.Diff(want, named(t, db)); d != "" {
			t.Errorf("(-projected +upgraded):\n%s", d)
		}
		p := projector.Projector{Name: owners.Name, DB: db}
		if at, err := p.Checkpoint(t.Context()); err != nil || at != position {
			t.Errorf("it goes on after %d: %v", at, err)
		}
		h.project(t, db)
		if d := cmp.Diff(want, named(t, db)); d != "" {
			t.Errorf("(-projected +upgraded, and projected):\n%s", d)
		}
	}
	t.Run("embedded", func(t *testing.T) {
		db, err := embedded.Open("", embedded.Options{})
		check(t, err)
		t.Cleanup(func() { check(t, db.Close()) })
		test(t, db.View())
	})
	t.Run("postgres", func(t *testing.T) {
		db, err := postgres.Open(t.Context(), testenv.Postgres(t), postgres.Options{})
		check(t, err)
		t.Cleanup(func() { check(t, db.Close(context.Background())) })
		check(t, db.Migrate(t.Context()))
		test(t, db.View())
	})
}
