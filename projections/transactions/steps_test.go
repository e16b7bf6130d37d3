package transactions_test

import (
	"database/sql"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/event"
	"github.com/tempo-watchtower/watchtower/domain/tx"
	"github.com/tempo-watchtower/watchtower/projections"
	"github.com/tempo-watchtower/watchtower/projections/transactions"
)

// fillSteps writes more rows than three steps read, for two clients. One client has two names,
// and some rows under both. One row in a thousand has a rare status.
func fillSteps(t *testing.T, db *sql.DB) {
	t.Helper()
	const rows = 4 * projections.StepRows
	dbtx, err := db.BeginTx(t.Context(), nil)
	check(t, err)
	for n := range rows {
		hash, sender := chain.Keccak(fmt.Append(nil, n)), chain.Address{byte(n % 3)}
		var group []byte
		if n%4 == 0 {
			group = []byte{15: byte(n % 2)}
		}
		status := tx.StatusExecuted
		if n%1000 == 7 {
			status = tx.StatusRetry
		}
		_, err := dbtx.ExecContext(t.Context(), `INSERT INTO transactions (chain, hash, position, version, sender, nonce_key, group_id, status, data)
			VALUES ($1, $2, $3, 1, $4, $5, $6, $7, $8)`, 1+n%2, hash[:], n+1, sender[:], make([]byte, 32), group, string(status),
			fmt.Appendf(nil, `{"position":%d}`, n+1))
		check(t, err)
		owners := []string{"small"}
		if n%8 != 0 {
			owners = []string{"big", "older name"}[n%2 : n%2+1]
		}
		if n%16 == 1 {
			owners = []string{"big", "older name"}
		}
		for _, owner := range owners {
			_, err = dbtx.ExecContext(t.Context(), `INSERT INTO transaction_owners (hash, chain, owner, position, sender, group_id) VALUES ($1, $2, $3, $4, $5, $6)`,
				hash[:], 1+n%2, []byte(owner), n+1, sender[:], group)
			check(t, err)
		}
	}
	check(t, dbtx.Commit())
}

// A list that is read in steps has the rows of the whole list, in order, with any filters and
// page size. No step reads more than [projections.StepRows].
func TestSteps(t *testing.T) {
	big := &transactions.Within{Owners: []string{"big", "older name"}}
	bound := &transactions.Within{Owners: []string{"big"}, Senders: []chain.Address{{0}, {1}}}
	rare, group, sender := []tx.Status{tx.StatusRetry}, &chain.GroupID{15: 0}, &chain.Address{2}
	engines(t, func(t *testing.T, view func(t *testing.T) *sql.DB) {
		db := migrate(t, view(t))
		fillSteps(t, db)
		q := transactions.Query{DB: db}
		least := map[string]int{"a chain": 4, "a client's rare": 4, "a client's others": 4, "a sender's rare": 2, "of a bound key": 3, "a client": 4}
		for name, f := range map[string]transactions.Filters{
			"everything":          {},
			"a chain":             {Chain: 2},
			"rare":                {Statuses: rare},
			"two statuses":        {Statuses: []tx.Status{tx.StatusRetry, tx.StatusExecuted}},
			"a sender's rare":     {Sender: sender, Statuses: rare},
			"senders":             {Senders: []chain.Address{{0}, {2}}},
			"a group's rare":      {Group: group, Statuses: rare},
			"a client":            {Within: big},
			"one name":            {Within: &transactions.Within{Owners: []string{"big"}}},
			"a client's rare":     {Within: big, Statuses: rare},
			"a client's group":    {Within: big, Sender: &chain.Address{0}, Group: group},
			"groups of a client":  {Within: big, Group: group},
			"a client's others":   {Within: big, Ungrouped: true, Chain: 1},
			"a client's unknown":  {Within: big, Statuses: []tx.Status{tx.StatusExpired}},
			"of a bound key":      {Within: bound},
			"a bound key's rare":  {Within: bound, Statuses: rare},
			"not a bound key's":   {Within: bound, Sender: sender},
			"many names, no rows": {Within: &transactions.Within{Owners: manyNames()}, Chain: 1},
		} {
			t.Run(name, func(t *testing.T) {
				whole, err := q.List(t.Context(), f, 0, 10_000)
				check(t, err)
				for _, limit := range []int{70, 10_000} {
					var got []transactions.Row
					before, steps := event.Position(0), 0
					for {
						rows, rest, err := q.Step(t.Context(), f, before, limit)
						check(t, err)
						if steps++; steps > 100 || rest != 0 && before != 0 && rest >= before {
							t.Fatalf("step %d leads from %d to %d", steps, before, rest)
						}
						got = append(got, rows...)
						if before = rest; rest == 0 {
							break
						}
					}
					if steps < least[name] {
						t.Errorf("%d steps, not %d: one has read more than it may", steps, least[name])
					}
					if d := cmp.Diff(positions(whole), positions(got)); d != "" {
						t.Fatalf("in pages of %d (-whole +steps):\n%s", limit, d)
					}
				}
			})
		}
	})
}

func positions(rows []transactions.Row) (all []event.Position) {
	for _, r := range rows {
		all = append(all, r.Position)
	}
	return all
}

// manyNames returns more names than one statement reads ranges of.
func manyNames() (all []string) {
	for n := range 250 {
		all = append(all, fmt.Sprint("nobody ", n))
	}
	return slices.Clip(all)
}
