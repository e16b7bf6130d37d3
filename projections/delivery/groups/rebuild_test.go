package groups_test

import (
	"context"
	"database/sql"
	"iter"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tempo-watchtower/watchtower/domain/delivery/group"
	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
	"github.com/tempo-watchtower/watchtower/eventlog"
	"github.com/tempo-watchtower/watchtower/infra/embedded"
	"github.com/tempo-watchtower/watchtower/infra/postgres"
	"github.com/tempo-watchtower/watchtower/infra/testenv"
	"github.com/tempo-watchtower/watchtower/migrations"
	"github.com/tempo-watchtower/watchtower/projections"
	"github.com/tempo-watchtower/watchtower/projections/delivery/groups"
	"github.com/tempo-watchtower/watchtower/proof/promises"
)

// few is a log that returns a few events per read.
type few struct{ *embedded.Log }

func (f few) ReadAll(ctx context.Context, after eventlog.Position, filter eventlog.Filter, _ int) iter.Seq2[eventlog.Batch, error] {
	return f.Log.ReadAll(ctx, after, filter, 7)
}

// Lost groups, members and claims are rebuilt in batches, and equal the rows of a projector. A
// verification then finds nothing, and later finds damaged rows.
func TestRebuild(t *testing.T) {
	model := groups.Model(group.Codec(), tx.Codec())
	tables := []string{"groups", "group_members", "group_claims"}
	test := func(t *testing.T, live *sql.DB, s projections.Shadow) {
		h := newHistory(t)
		const lives = 84
		for n := range lives {
			h.live(t, n)
		}
		h.project(t, live)
		want := dump(t, live)
		for _, table := range tables {
			_, err := live.ExecContext(t.Context(), `DELETE FROM `+table)
			check(t, err)
		}
		rebuild := &projections.Rebuild{Model: model, Log: few{h.log}, Shadow: s, Heap: 6}
		_, err := rebuild.Run(t.Context())
		check(t, err)
		if d := cmp.Diff(want, dump(t, live)); d != "" {
			t.Errorf("(-live +rebuilt):\n%s", d)
		}
		h.live(t, lives) // and the projector continues
		h.project(t, live)
		found := func() (n uint64) {
			_, err := rebuild.Verify(t.Context(), func(_ projections.Table, want, got iter.Seq2[string, []byte]) error {
				n += promises.Compare(want, got).Total()
				return nil
			})
			check(t, err)
			return n
		}
		if n := found(); n != 0 {
			t.Errorf("%d rows of those that a projector made are called wrong", n)
		}
		_, err = live.ExecContext(t.Context(), `UPDATE groups SET end_at = end_at + 1 WHERE chain = 1`)
		check(t, err)
		if n := found(); n != 3 {
			t.Errorf("%d of 3 groups that are wrong were found", n)
		}
	}
	t.Run("embedded", func(t *testing.T) {
		db, err := embedded.Open("", embedded.Options{})
		check(t, err)
		t.Cleanup(func() { check(t, db.Close()) })
		check(t, projections.Migrate(t.Context(), db.View(), migrations.View))
		s, err := embedded.OpenShadow(t.Context(), db.Dir(), groups.Name, model.Version, tables)
		check(t, err)
		defer func() { check(t, s.Close()) }()
		test(t, db.View(), s)
	})
	t.Run("postgres", func(t *testing.T) {
		url := testenv.Postgres(t)
		db, err := postgres.Open(t.Context(), url, postgres.Options{})
		check(t, err)
		t.Cleanup(func() { check(t, db.Close(context.Background())) })
		check(t, db.Migrate(t.Context()))
		check(t, projections.Migrate(t.Context(), db.View(), migrations.View))
		s, err := postgres.OpenShadow(t.Context(), url, groups.Name, model.Version, tables, func(ctx context.Context, own *sql.DB) error {
			return projections.Migrate(ctx, own, migrations.View)
		})
		check(t, err)
		defer func() { check(t, s.Close()) }()
		test(t, db.View(), s)
	})
}
