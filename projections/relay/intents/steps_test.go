package intents_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/relay/intent"
	"github.com/tempo-watchtower/watchtower/eventlog"
	"github.com/tempo-watchtower/watchtower/infra/testenv"
	"github.com/tempo-watchtower/watchtower/projections"
	"github.com/tempo-watchtower/watchtower/projections/relay/intents"
)

// stepRow is the n-th row of fillSteps.
type stepRow struct {
	client, wants, wish, subject string
	chain                        chain.ID
	signer                       chain.Address
	status                       intent.Status
}

func stepRowOf(n int) stepRow {
	r := stepRow{
		client: "shop", wants: fmt.Sprint("pool:", n%2), wish: fmt.Sprint("key ", n/2), subject: fmt.Sprint("subject ", n%600),
		chain: chain.ID(1 + n%2), signer: chain.Address{19: byte(n % 4)}, status: intent.StatusCompleted,
	}
	switch {
	case n%100 == 19:
		r.client = "kiosk"
	case n%10 == 9:
		r.client = "payroll"
	}
	if n%500 == 3 {
		r.status = intent.StatusFailed
	}
	return r
}

const stepRows = 3 * projections.StepRows

// fillSteps writes more rows than two steps read, most of them of one client, and a few of
// a third one. One in five hundred has failed.
func fillSteps(t *testing.T, e engine) {
	t.Helper()
	dbtx, err := e.live.BeginTx(t.Context(), nil)
	check(t, err)
	for n := range stepRows {
		r, id := stepRowOf(n), chain.Keccak(fmt.Append(nil, n))
		_, err := dbtx.ExecContext(t.Context(), `INSERT INTO intents (intent, position, version, chain, client, wants, wish, signer, subject, status, data)
			VALUES ($1, $2, 1, $3, $4, $5, $6, $7, $8, $9, $10)`, id[:], n+1, int64(r.chain), r.client, r.wants, r.wish,
			r.signer[:], r.subject, string(r.status), fmt.Appendf(nil, `{"position":%d}`, n+1))
		check(t, err)
	}
	check(t, dbtx.Commit())
	_, err = e.live.ExecContext(t.Context(), "ANALYZE intents")
	check(t, err)
}

// fitting are the positions of the rows of fillSteps that filters leave, newest first.
func fitting(f intents.Filters) (all []eventlog.Position) {
	for n := stepRows - 1; n >= 0; n-- {
		switch r := stepRowOf(n); {
		case f.Client != nil && *f.Client != r.client, f.Chain != 0 && f.Chain != r.chain, f.From != nil && f.From.Name() != r.wants,
			f.Signer != nil && *f.Signer != r.signer, f.Key != "" && f.Key != r.wish, f.Subject != "" && f.Subject != r.subject,
			len(f.Statuses) > 0 && !slices.Contains(f.Statuses, r.status):
		default:
			all = append(all, eventlog.Position(n+1))
		}
	}
	return all
}

// A list that is read in steps has the rows that the filters leave, newest first, and each
// step covers a thousand entries of an index at most. A list of a client with few rows is
// read by an index that begins with the client, so that other clients' rows cost nothing.
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
			"everything":         {intents.Filters{}, "intents_position", 4},
			"a client":           {intents.Filters{Client: shop}, "intents_client", 3},
			"a client's failed":  {intents.Filters{Client: shop, Statuses: failed}, "intents_client_status", 1},
			"a client's signer":  {intents.Filters{Client: shop, Signer: signer}, "intents_client_signer", 1},
			"a client's subject": {intents.Filters{Client: shop, Subject: "subject 7"}, "intents_client_subject", 1},
			"a client's key":     {intents.Filters{Client: shop, Key: "key 7"}, "intents_client_wish", 1},
			"a client's chain":   {intents.Filters{Client: shop, Chain: 2}, "intents_client", 3},
			"a client's pool":    {intents.Filters{Client: shop, From: &intent.From{Pool: "1"}}, "intents_client", 3},
			"two statuses":       {intents.Filters{Client: shop, Statuses: []intent.Status{intent.StatusFailed, intent.StatusCompleted}}, "intents_client_status", 3},
			"everybody's signer": {intents.Filters{Chain: 2, Signer: signer}, "", 1},
			"everybody's key":    {intents.Filters{Key: "key 7"}, "", 4},
			"failed on a chain":  {intents.Filters{Client: shop, Statuses: failed, Chain: 2}, "intents_client_status", 1},
		} {
			t.Run(name, func(t *testing.T) {
				var got []intents.Row
				before, steps := eventlog.Position(0), 0
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
				if d := cmp.Diff(fitting(c.filters), positions(got)); d != "" {
					t.Errorf("(-want +steps):\n%s", d)
				}
				if c.filters.Client != nil {
					c.filters.Client = new("kiosk")
				}
				text, args := intents.ListStatement(c.filters, 50)
				if explained := testenv.Explain(t, e.live, text, args...); c.index != "" && !strings.Contains(explained, c.index) {
					t.Errorf("not by %s:\n%s", c.index, explained)
				}
			})
		}
	})
}

func positions(rows []intents.Row) (all []eventlog.Position) {
	for _, r := range rows {
		all = append(all, r.Position)
	}
	return all
}
