package transactions_test

import (
	"database/sql"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
	"github.com/tempo-watchtower/watchtower/eventlog"
	"github.com/tempo-watchtower/watchtower/projections"
	"github.com/tempo-watchtower/watchtower/projections/delivery/transactions"
)

// stepRow is the n-th row of fillSteps.
type stepRow struct {
	chain  chain.ID
	sender chain.Address
	group  *chain.GroupID
	status tx.Status
	owners []string
}

// stepRowOf gives the rows to two clients. One of them has two names, and some rows under
// both. One row in a thousand has a rare status.
func stepRowOf(n int) stepRow {
	r := stepRow{chain: chain.ID(1 + n%2), sender: chain.Address{byte(n % 3)}, status: tx.StatusExecuted, owners: []string{"small"}}
	if n%4 == 0 {
		r.group = &chain.GroupID{15: byte(n / 4 % 2)}
	}
	if n%1000 == 7 {
		r.status = tx.StatusRetry
	}
	switch {
	case n%16 == 1:
		r.owners = []string{"big", "older name"}
	case n%8 != 0:
		r.owners = []string{"big", "older name"}[n%2 : n%2+1]
	}
	return r
}

const stepRows = 4 * projections.StepRows

// fillSteps writes more rows than three steps read.
func fillSteps(t *testing.T, db *sql.DB) {
	t.Helper()
	dbtx, err := db.BeginTx(t.Context(), nil)
	check(t, err)
	for n := range stepRows {
		r, hash := stepRowOf(n), chain.Keccak(fmt.Append(nil, n))
		var group []byte
		if r.group != nil {
			group = r.group[:]
		}
		_, err := dbtx.ExecContext(t.Context(), `INSERT INTO transactions (chain, hash, position, version, sender, nonce_key, group_id, status, data)
			VALUES ($1, $2, $3, 1, $4, $5, $6, $7, $8)`, int64(r.chain), hash[:], n+1, r.sender[:], make([]byte, 32), group, string(r.status),
			fmt.Appendf(nil, `{"position":%d}`, n+1))
		check(t, err)
		for _, owner := range append(r.owners, string(r.sender[:])) {
			_, err = dbtx.ExecContext(t.Context(), `INSERT INTO ownership (hash, chain, owner, position, sender, group_id) VALUES ($1, $2, $3, $4, $5, $6)`,
				hash[:], int64(r.chain), []byte(owner), n+1, r.sender[:], group)
			check(t, err)
		}
	}
	check(t, dbtx.Commit())
}

// fitting are the positions of the rows of fillSteps that filters leave, newest first.
func fitting(f transactions.Filters) (all []eventlog.Position) {
	for n := stepRows - 1; n >= 0; n-- {
		r := stepRowOf(n)
		owns := func(name string) bool { return slices.Contains(r.owners, name) }
		switch w := f.Within; {
		case f.Chain != 0 && f.Chain != r.chain, f.Sender != nil && *f.Sender != r.sender, f.Ungrouped && r.group != nil,
			f.Group != nil && (r.group == nil || *f.Group != *r.group), len(f.Statuses) > 0 && !slices.Contains(f.Statuses, r.status),
			len(f.Senders) > 0 && !slices.Contains(f.Senders, r.sender),
			w != nil && len(w.Senders) == 0 && !slices.ContainsFunc(w.Owners, owns),
			w != nil && len(w.Senders) > 0 && !slices.Contains(w.Senders, r.sender):
		default:
			all = append(all, eventlog.Position(n+1))
		}
	}
	return all
}

// A list that is read in steps has the rows that the filters leave, newest first, for any
// length of page, and no step covers more than [projections.StepRows] entries.
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
				for _, limit := range []int{70, 10_000} {
					var got []transactions.Row
					before, steps := eventlog.Position(0), 0
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
					if d := cmp.Diff(fitting(f), positions(got)); d != "" {
						t.Fatalf("in pages of %d (-want +steps):\n%s", limit, d)
					}
				}
			})
		}
	})
}

func positions(rows []transactions.Row) (all []eventlog.Position) {
	for _, r := range rows {
		all = append(all, r.Position)
	}
	return all
}

// manyNames are more than one statement reads ranges of.
func manyNames() (all []string) {
	for n := range 250 {
		all = append(all, fmt.Sprint("nobody ", n))
	}
	return slices.Clip(all)
}
