package intents_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/event"
	"github.com/tempo-watchtower/watchtower/domain/intent"
	"github.com/tempo-watchtower/watchtower/infra/testenv"
	"github.com/tempo-watchtower/watchtower/projections"
	"github.com/tempo-watchtower/watchtower/projections/intents"
)

// fillSteps writes more rows than two steps read, most of them of one client. One in five
// hundred has failed.
func fillSteps(t *testing.T, e engine) {
	t.Helper()
	dbtx, err := e.live.BeginTx(t.Context(), nil)
	check(t, err)
	for n := range 3 * projections.StepRows {
		client, status := "shop", intent.StatusCompleted
		if n%10 == 9 {
			client = "payroll"
		}
		if n%500 == 3 {
			status = intent.StatusFailed
		}
		id := chain.Keccak(fmt.Append(nil, n))
		_, err := dbtx.ExecContext(t.Context(), `INSERT INTO intents (intent, position, version, chain, client, wants, wish, signer, subject, status, data)
			VALUES ($1, $2, 1, $3, $4, $5, $6, $7, $8, $9, $10)`, id[:], n+1, 1+n%2, client, fmt.Sprint("pool:", n%2), fmt.Sprint("key ", n/2),
			[]byte{19: byte(n % 4)}, fmt.Sprint("subject ", n%600), string(status), fmt.Appendf(nil, `{"position":%d}`, n+1))
		check(t, err)
	}
	check(t, dbtx.Commit())
	_, err = e.live.ExecContext(t.Context(), "ANALYZE intents")
	check(t, err)
}

// A list that is read in steps has the rows of the whole list, in order, with any filters. A
// client's list with one filter takes one step, along a separate index.
func TestSteps(t *testing.T) {
	shop, signer, failed := new("shop"), &chain.Address{19: 1}, []intent.Status{intent.StatusFailed}
	engines(t, func(t *testing.T, e engine) {
		fillSteps(t, e)
		q := intents.Query{DB: e.live}
		for name, c := range map[string]struct {
			filters intents.Filters
			index   string
			steps   int
		}{
			"everything":         {intents.Filters{}, "intents_position", 1},
			"a client":           {intents.Filters{Client: shop}, "intents_client", 1},
			"a client's failed":  {intents.Filters{Client: shop, Statuses: failed}, "intents_client_status", 1},
			"a client's signer":  {intents.Filters{Client: shop, Signer: signer}, "intents_client_signer", 1},
			"a client's subject": {intents.Filters{Client: shop, Subject: "subject 7"}, "intents_client_subject", 1},
			"a client's key":     {intents.Filters{Client: shop, Key: "key 7"}, "intents_client_wish", 1},
			"a client's chain":   {intents.Filters{Client: shop, Chain: 2}, "", 3},
			"a client's pool":    {intents.Filters{Client: shop, From: &intent.From{Pool: "1"}}, "", 3},
			"two statuses":       {intents.Filters{Client: shop, Statuses: []intent.Status{intent.StatusFailed, intent.StatusCompleted}}, "", 3},
			"everybody's chain":  {intents.Filters{Chain: 2, Signer: signer}, "", 1},
			"everybody's key":    {intents.Filters{Key: "key 7"}, "", 4},
			"failed on a chain":  {intents.Filters{Client: shop, Statuses: failed, Chain: 2}, "", 1},
		} {
			t.Run(name, func(t *testing.T) {
				whole, err := q.List(t.Context(), c.filters, 0, 10_000)
				check(t, err)
				var got []intents.Row
				before, steps := event.Position(0), 0
				for {
					rows, rest, err := q.Step(t.Context(), c.filters, before, 10_000)
					check(t, err)
					got, before, steps = append(got, rows...), rest, steps+1
					if rest == 0 || steps > 10 {
						break
					}
				}
				if steps != c.steps {
					t.Errorf("%d steps, want %d", steps, c.steps)
				}
				if d := cmp.Diff(positions(whole), positions(got)); d != "" || len(whole) == 0 && name != "everybody's chain" {
					t.Errorf("(-whole +steps):\n%s", d)
				}
				text, args := intents.ListStatement(c.filters, 50)
				if explained := testenv.Explain(t, e.live, text, args...); c.index != "" && !strings.Contains(explained, c.index+" ") && !strings.Contains(explained, c.index+"\n") {
					t.Errorf("not by %s:\n%s", c.index, explained)
				}
			})
		}
	})
}

func positions(rows []intents.Row) (all []event.Position) {
	for _, r := range rows {
		all = append(all, r.Position)
	}
	return all
}
