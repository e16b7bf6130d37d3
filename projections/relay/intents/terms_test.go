package intents_test

import (
	"database/sql"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/relay/intent"
	"github.com/tempo-watchtower/watchtower/eventlog"
	"github.com/tempo-watchtower/watchtower/eventlog/projector"
	"github.com/tempo-watchtower/watchtower/projections"
	"github.com/tempo-watchtower/watchtower/projections/relay/intents"
)

// index runs the projector of the index of terms to the log's head.
func (h *history) index(t *testing.T, db *sql.DB) {
	t.Helper()
	head, err := h.log.Head(t.Context())
	check(t, err)
	run(t, &projector.Projector{
		Name: intents.TermsName, DB: db, Log: h.log, Filter: intents.TermsFilter(), Fold: intents.Terms{Codec: intent.Codec()}.Fold,
	}, head)
}

var transfer = chain.Selector{0xa9, 0x05, 0x9c, 0xbb}

// searched is the n-th request: its second call has one of five targets, and every third transfers.
func searched(n int) intent.Request {
	r := asked(n)
	second := intent.Call{To: &chain.Address{7, byte(n % 5)}, Data: intent.Data{1, 2, 3}}
	if n%3 == 0 {
		second.Data = append(transfer[:], 5, 6)
	}
	r.Calls = append(r.Calls, second, second)
	r.Metadata = map[string]string{"order": fmt.Sprint(n / 4), "line": fmt.Sprint(n % 4)}
	return r
}

const searches = 60

// searchable is a log with requests, of which some have nonces, one had another nonce before, and some
// have a receipt.
func searchable(t *testing.T) (h *history, at map[string]time.Time) {
	t.Helper()
	h = newHistory(t)
	at = map[string]time.Time{}
	for n := range searches {
		r := searched(n)
		at[r.Key] = epoch.Add(time.Duration(n) * time.Second)
		if n%2 == 1 { // another replica's clock
			at[r.Key] = at[r.Key].Add(-300 * time.Millisecond)
		}
		commands := []intent.Command{intent.Create{Request: r, At: at[r.Key]}}
		if n%2 == 1 {
			commands = append(commands, assign(n, 1), attempt(1, 10*n, intent.First))
		}
		if n%10 == 1 {
			commands = append(commands, intent.Requeue{Assignment: 1, Evidence: intent.Evidence{Kind: intent.Rival, Block: blockAt(9, "main")}, At: epoch}, assign(n, 2))
		}
		if n%6 == 3 && n%10 != 1 {
			commands = append(commands, seen(10*n, "main", 1, false))
		}
		h.tell(t, r.ID(), commands...)
	}
	return h, at
}

// Intents are found by target, selector, metadata, nonce and time, within one client's or everybody's,
// and by several of these together: as if every request were compared.
func TestTerms(t *testing.T) {
	h, at := searchable(t)
	target, other, signer := chain.Address{7, 2}, chain.Address{8}, chain.Address{1, 0}
	early, late := at["wish-20"], at["wish-40"]
	calls := func(n int, to chain.Address) bool {
		return slices.ContainsFunc(searched(n).Calls, func(c intent.Call) bool { return *c.To == to })
	}
	transfers := func(n int) bool { return n%3 == 0 }
	timed := func(n int) bool { return n >= 20 && n <= 40 }
	nonce := func(n int) *uint64 { return new(uint64(n)) }
	cases := map[string]struct {
		f    intents.Filters
		fits func(n int) bool
	}{
		"target":                {intents.Filters{Target: &target}, func(n int) bool { return calls(n, target) }},
		"unknown target":        {intents.Filters{Target: &other}, func(int) bool { return false }},
		"selector":              {intents.Filters{Selector: &transfer}, transfers},
		"selector, mined":       {intents.Filters{Selector: &transfer, Mined: true}, func(n int) bool { return transfers(n) && n%6 == 3 && n%10 != 1 }},
		"target and selector":   {intents.Filters{Target: &target, Selector: &transfer}, func(n int) bool { return calls(n, target) && transfers(n) }},
		"metadata":              {intents.Filters{Metadata: &intents.Entry{Name: "order", Value: "3"}}, func(n int) bool { return n/4 == 3 }},
		"another's value":       {intents.Filters{Metadata: &intents.Entry{Name: "line", Value: "14"}}, func(int) bool { return false }},
		"metadata and target":   {intents.Filters{Metadata: &intents.Entry{Name: "line", Value: "1"}, Target: &target}, func(n int) bool { return n%4 == 1 && calls(n, target) }},
		"subject and target":    {intents.Filters{Subject: "subject 2", Target: &target}, func(n int) bool { return n%4 == 2 && calls(n, target) }},
		"nonce":                 {intents.Filters{Signer: &signer, Nonce: nonce(31)}, func(n int) bool { return n == 3 }},
		"a nonce that it lost":  {intents.Filters{Signer: &chain.Address{1, 1}, Nonce: nonce(11)}, func(int) bool { return false }},
		"the nonce instead":     {intents.Filters{Signer: &chain.Address{1, 1 % 3}, Nonce: nonce(12)}, func(n int) bool { return n == 1 }},
		"under another key":     {intents.Filters{Signer: &signer, Nonce: nonce(31), NonceKey: &chain.NonceKey{1}}, func(int) bool { return false }},
		"since":                 {intents.Filters{Since: early}, func(n int) bool { return n >= 20 }},
		"until":                 {intents.Filters{Until: late}, func(n int) bool { return n <= 40 }},
		"between":               {intents.Filters{Since: early, Until: late}, timed},
		"between, and a status": {intents.Filters{Since: early, Until: late, Statuses: []intent.Status{intent.StatusWaiting}}, func(n int) bool { return timed(n) && n%2 == 0 }},
		"between, and a target": {intents.Filters{Since: early, Until: late, Target: &target}, func(n int) bool { return timed(n) && calls(n, target) }},
		"after everything":      {intents.Filters{Since: epoch.AddDate(1000, 0, 0)}, func(int) bool { return false }},
		"before everything":     {intents.Filters{Until: time.Unix(1, 0)}, func(int) bool { return false }},
		"by hash, and a target": {intents.Filters{Hash: new(hashOf(70)), Target: &target}, func(n int) bool { return n == 7 }},
		"by hash, not target":   {intents.Filters{Hash: new(hashOf(70)), Target: &other}, func(int) bool { return false }},
		"by hash, not selector": {intents.Filters{Hash: new(hashOf(70)), Selector: &transfer}, func(int) bool { return false }},
	}
	enginesOf(t, intents.TermsModel(intent.Codec()), func(t *testing.T, e engine) {
		h.project(t, e.live)
		h.index(t, e.live)
		q := intents.Query{DB: e.live}
		for name, c := range cases {
			for _, client := range []*string{nil, new(""), new("payroll"), new("shop"), new("nobody")} {
				f := c.f
				f.Client = client
				var want []string
				for n := searches - 1; n >= 0; n-- {
					if c.fits(n) && (client == nil || *client == searched(n).Client) {
						want = append(want, searched(n).Key)
					}
				}
				var got []string
				for before, first := eventlog.Position(0), true; first || before != 0; first = false {
					rows, rest, err := q.Step(t.Context(), f, before, 4)
					check(t, err)
					for _, r := range rows {
						got = append(got, r.Request().Key)
						if !f.Fits(r) {
							t.Errorf("%s: %s is listed, and does not fit", name, r.Request().Key)
						}
					}
					before = rest
				}
				if d := cmp.Diff(want, got); d != "" {
					t.Errorf("%s of %v (-want +got):\n%s", name, f.Client, d)
				}
			}
		}
	})
}

// A rebuild makes the index that the events made, whatever was in the tables.
func TestTermsAreRebuilt(t *testing.T) {
	h, _ := searchable(t)
	model := intents.TermsModel(intent.Codec())
	dumps := map[string]bool{}
	enginesOf(t, model, func(t *testing.T, e engine) {
		h.index(t, e.live)
		want := dumpOf(t, e.live, model)
		dumps[want] = true
		for _, damage := range []string{`DELETE FROM intent_terms`, `UPDATE intent_times SET requested_at = 0, client = 'x'`} {
			_, err := e.live.ExecContext(t.Context(), damage)
			check(t, err)
			for _, heap := range []int{3, 10_000} {
				s := e.open(t)
				_, err = (&projections.Rebuild{Model: model, Log: few{h.log, 3}, Shadow: s, Heap: heap}).Run(t.Context())
				check(t, err)
				check(t, s.Close())
				if d := cmp.Diff(want, dumpOf(t, e.live, model)); d != "" {
					t.Fatalf("after %s, %d rows at once (-live +rebuilt):\n%s", damage, heap, d)
				}
			}
		}
	})
	if len(dumps) != 1 {
		t.Error("the engines' rows differ")
	}
}

// A list with a term is read along the index of terms, also among the intents of many clients that have
// the term, and a list with times does not read the intents outside them.
func TestTermsUseIndexes(t *testing.T) {
	enginesOf(t, intents.TermsModel(intent.Codec()), func(t *testing.T, e engine) {
		fill(t, e.live)
		target := chain.Address{7}
		dbtx, err := e.live.BeginTx(t.Context(), nil)
		check(t, err)
		for n := range 12_000 {
			id, client := hashOf(-1-n), fmt.Sprint("client ", n%200)
			for _, term := range [][]byte{append([]byte{'t'}, target[:]...), fmt.Append([]byte{'m'}, n)} {
				_, err = dbtx.ExecContext(t.Context(), `INSERT INTO intent_terms (intent, term, client, position) VALUES ($1, $2, $3, $4)`, id[:16], term, client, n+1)
				check(t, err)
			}
		}
		check(t, dbtx.Commit())
		_, err = e.live.ExecContext(t.Context(), "ANALYZE intent_terms")
		check(t, err)
		for index, f := range map[string]intents.Filters{
			"intent_terms_client": {Client: new("client 7"), Target: &target},
			"intent_terms_term":   {Target: &target, Statuses: []intent.Status{intent.StatusCanceling}},
		} {
			if plan := explain(t, e.live, f); !strings.Contains(plan, index) {
				t.Errorf("not by %s:\n%s", index, plan)
			}
		}
		if plan := explain(t, e.live, intents.Filters{Client: new("client 7"), Target: &target, Selector: &transfer}); strings.Contains(plan, "SCAN x") || strings.Contains(plan, "Seq Scan on intent_terms") {
			t.Errorf("a second term is searched for in all rows:\n%s", plan)
		}
	})
}
