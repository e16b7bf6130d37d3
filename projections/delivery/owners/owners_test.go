package owners_test

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"fmt"
	"iter"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
	"github.com/tempo-watchtower/watchtower/eventlog"
	"github.com/tempo-watchtower/watchtower/infra/embedded"
	"github.com/tempo-watchtower/watchtower/infra/postgres"
	"github.com/tempo-watchtower/watchtower/infra/testenv"
	"github.com/tempo-watchtower/watchtower/migrations"
	"github.com/tempo-watchtower/watchtower/projections"
	"github.com/tempo-watchtower/watchtower/projections/delivery/groups"
	"github.com/tempo-watchtower/watchtower/projections/delivery/owners"
	"github.com/tempo-watchtower/watchtower/projections/delivery/transactions"
	"github.com/tempo-watchtower/watchtower/proof/promises"
)

const lives = 120

// owns returns the clients that should own the n-th transaction.
func owns(n int) []string {
	all := []string{clients[clientOf(n)]}
	if again := clients[1+(n+1)%2]; n%3 == 0 && again != all[0] {
		all = append(all, again)
	}
	return all
}

// wanted lists the matching transactions, newest first, without retired ones.
func wanted(fits func(n int) bool) (all []string) {
	for n := lives - 1; n >= 0; n-- {
		if n%7 != 6 && fits(n) {
			all = append(all, hashOf(n).String())
		}
	}
	return all
}

// A list for one client has the transactions that it submitted; a list for bound senders has
// the senders' transactions. This holds page by page, with any other filters.
func TestWithin(t *testing.T) {
	h := newHistory(t)
	for n := range lives {
		h.live(t, n)
	}
	engines(t, func(t *testing.T, db *sql.DB) {
		h.project(t, db)
		q := transactions.Query{DB: db}
		claimed := func(n int) bool { return n%5 == 0 && n%10 != 0 }
		sender, group := senderOf(4), groupOf(0)
		others := map[string]struct {
			filters transactions.Filters
			fits    func(n int) bool
		}{
			"all":      {transactions.Filters{}, func(int) bool { return true }},
			"a sender": {transactions.Filters{Sender: &sender}, func(n int) bool { return senderOf(n) == sender }},
			"a group": {transactions.Filters{Sender: &sender, Group: &group}, func(n int) bool {
				return senderOf(n) == sender && groupOf(n) == group && !claimed(n)
			}},
			"another chain": {transactions.Filters{Chain: 2}, func(int) bool { return false }},
		}
		for name, other := range others {
			for _, names := range [][]string{{""}, {"ann"}, {"bob"}, {clients[old]}, {"ann", clients[old]}, {"bob", "ann"}, {"nobody"}} {
				mine := func(n int) bool {
					return slices.ContainsFunc(names, func(c string) bool { return slices.Contains(owns(n), c) })
				}
				for _, bound := range []bool{false, true} {
					within, fits := transactions.Within{Owners: names}, mine
					if bound {
						within.Senders = []chain.Address{senderOf(0), senderOf(4)}
						fits = func(n int) bool {
							return slices.Contains(within.Senders, senderOf(n)) && (!claimed(n) || mine(n))
						}
					}
					f := other.filters
					f.Within = &within
					want := wanted(func(n int) bool { return fits(n) && other.fits(n) })
					if d := cmp.Diff(want, listed(t, q, f)); d != "" {
						t.Errorf("%s of %q, bound %t (-want +got):\n%s", name, names, bound, d)
					}
				}
			}
		}
	})
}

// listed reads a list to its end, three rows at a time.
func listed(t *testing.T, q transactions.Query, f transactions.Filters) (all []string) {
	t.Helper()
	before := eventlog.Position(0)
	for {
		page, err := q.List(t.Context(), f, before, 3)
		check(t, err)
		for _, row := range page {
			all = append(all, row.State.Accepted.Hash.String())
			before = row.Position
		}
		if len(page) < 3 {
			return all
		}
	}
}

// A client sees only the members of a group that it owns.
func TestGroupsOfOwner(t *testing.T) {
	h := newHistory(t)
	for n := range lives {
		h.live(t, n)
	}
	engines(t, func(t *testing.T, db *sql.DB) {
		h.project(t, db)
		q := groups.Query{DB: db}
		for _, names := range [][]string{{""}, {"ann"}, {"ann", "bob"}, {"nobody"}} {
			for _, n := range []int{0, 1, 4, 5, 8} {
				sender, id := senderOf(n), groupOf(n)
				var want []string
				var end uint64
				for m := range lives {
					mine := slices.ContainsFunc(names, func(c string) bool { return slices.Contains(owns(m), c) })
					member := m%7 != 6 && (m%5 != 0 || m%10 == 0) && senderOf(m) == sender && groupOf(m) == id
					if mine && member {
						want, end = append(want, hashOf(m).String()), accepted(m).EligibleAt
					}
				}
				found, err := q.Find(t.Context(), 0, sender, id, groups.Filters{Owners: names})
				check(t, err)
				if len(found) != min(len(want), 1) {
					t.Fatalf("%q found %d groups with %d members", names, len(found), len(want))
				}
				if len(want) == 0 {
					continue
				}
				members, err := q.Members(t.Context(), found[0].ID, names, nil, 1000)
				check(t, err)
				nonces, err := q.Nonces(t.Context(), found[0].ID, names, 1000)
				check(t, err)
				var got []string
				for _, m := range members {
					got = append(got, m.Hash.String())
				}
				if d := cmp.Diff(want, got); d != "" || found[0].EndAt != end || len(nonces) != len(want) {
					t.Errorf("%q: it ends at %d, want %d, with %d nonces; members (-want +got):\n%s", names, found[0].EndAt, end, len(nonces), d)
				}
			}
			// The list has the groups that Find finds.
			page, err := q.List(t.Context(), senderOf(0), groups.Filters{Owners: names}, 0, 1)
			check(t, err)
			all, err := q.List(t.Context(), senderOf(0), groups.Filters{Owners: names}, 0, 10)
			check(t, err)
			if names[0] == "nobody" {
				if len(all) != 0 {
					t.Errorf("nobody has %d groups", len(all))
				}
				continue
			}
			rest, err := q.List(t.Context(), senderOf(0), groups.Filters{Owners: names}, page[0].Position, 10)
			check(t, err)
			if d := cmp.Diff(all, append(page, rest...)); d != "" || len(all) == 0 {
				t.Errorf("%q, of %d (-all +pages):\n%s", names, len(all), d)
			}
		}
	})
}

// few is a log that returns a few events per read.
type few struct{ *embedded.Log }

func (f few) ReadAll(ctx context.Context, after eventlog.Position, filter eventlog.Filter, _ int) iter.Seq2[eventlog.Batch, error] {
	return f.Log.ReadAll(ctx, after, filter, 7)
}

// A rebuild makes the same tables as the projector. A verification then finds nothing, and
// later finds each damaged row.
func TestRebuild(t *testing.T) {
	model := owners.Model(tx.Codec())
	test := func(t *testing.T, live *sql.DB, s projections.Shadow) {
		h := newHistory(t)
		for n := range lives {
			h.live(t, n)
		}
		h.project(t, live)
		want := dump(t, live)
		_, err := live.ExecContext(t.Context(), `DELETE FROM ownership`)
		check(t, err)
		rebuild := &projections.Rebuild{Model: model, Log: few{h.log}, Shadow: s, Heap: 6}
		_, err = rebuild.Run(t.Context())
		check(t, err)
		if d := cmp.Diff(want, dump(t, live)); d != "" {
			t.Errorf("(-live +rebuilt):\n%s", d)
		}
		again := accepted(1) // and the projector continues
		again.Client = "bob"
		h.command(t, 1, "api", tx.Accept{Accepted: again})
		h.live(t, lives)
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
			t.Errorf("%d of the projector's rows are called wrong", n)
		}
		hash := hashOf(1)
		for _, text := range []string{`DELETE FROM ownership WHERE hash = $1`, `INSERT INTO ownership_claims (chain, hash, position) VALUES (1, $1, 1)`} {
			_, err = live.ExecContext(t.Context(), text, hash[:])
			check(t, err)
		}
		if n := found(); n != 4 {
			t.Errorf("%d of 4 wrong rows were found", n)
		}
	}
	t.Run("embedded", func(t *testing.T) {
		db, err := embedded.Open("", embedded.Options{})
		check(t, err)
		t.Cleanup(func() { check(t, db.Close()) })
		check(t, projections.Migrate(t.Context(), db.View(), migrations.View))
		s, err := embedded.OpenShadow(t.Context(), db.Dir(), owners.Name, model.Version, model.TableNames())
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
		s, err := postgres.OpenShadow(t.Context(), url, owners.Name, model.Version, model.TableNames(), func(ctx context.Context, own *sql.DB) error {
			return projections.Migrate(ctx, own, migrations.View)
		})
		check(t, err)
		defer func() { check(t, s.Close()) }()
		test(t, db.View(), s)
	})
}

// madeOf is the version, and a digest of the rows of a history. If you change the content of
// rows, raise the version. If you change only the history, update only the digest.
const madeOf = `2 debc175384751add0047ff28084830a0a55084f3ef8b36650eb5baabad2307b8`

func TestVersion(t *testing.T) {
	h := newHistory(t)
	for n := range lives {
		h.live(t, n)
	}
	db, err := embedded.Open("", embedded.Options{})
	check(t, err)
	t.Cleanup(func() { check(t, db.Close()) })
	check(t, projections.Migrate(t.Context(), db.View(), migrations.View))
	h.project(t, db.View())
	if got := fmt.Sprintf("%d %x", owners.Model(tx.Codec()).Version, sha256.Sum256([]byte(dump(t, db.View())))); got != madeOf {
		t.Errorf("version and rows are %s, want %s", got, madeOf)
	}
}
