package intents_test

import (
	"database/sql"
	"errors"
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

const lives = 24 // three of each kind

// Rows folded while the log grew, event by event or in batches, equal rows rebuilt from the
// whole log at once, byte for byte, on every engine. This also holds if the rebuild was killed
// on the way, or the serving tables were damaged.
func TestRebuildEqualsLive(t *testing.T) {
	h := newHistory(t)
	dumps := map[string]string{}
	engines(t, func(t *testing.T, e engine) {
		if len(dumps) == 0 { // the log grows under the first engine only
			for n := range lives {
				if h.live(t, n); n%7 == 0 {
					h.project(t, e.live)
				}
			}
		}
		h.project(t, e.live)
		want := dump(t, e.live)
		dumps[t.Name()] = want
		damages := []string{`DELETE FROM intents`, `UPDATE intents SET status = 'failed', data = '{}'`, `DELETE FROM intent_attempts`}
		for i, point := range append(projections.RebuildCrashPoints(), "never") {
			damage := damages[i%len(damages)]
			_, err := e.live.ExecContext(t.Context(), damage)
			check(t, err)
			killed(t, h, e, point)
			s := e.open(t)
			_, err = h.rebuild(s).Run(t.Context())
			check(t, err)
			check(t, s.Close())
			if d := cmp.Diff(want, dump(t, e.live)); d != "" {
				t.Fatalf("after %s, killed at %s (-live +rebuilt):\n%s", damage, point, d)
			}
		}
	})
	for name, d := range dumps {
		for other, e := range dumps {
			if d != e {
				t.Fatalf("the rows of %s and %s differ", name, other)
			}
		}
	}
}

func (h *history) rebuild(s projections.Shadow) *projections.Rebuild {
	return &projections.Rebuild{Model: intents.Model(intent.Codec()), Log: few{h.log, 3}, Shadow: s, Heap: 5}
}

// killed runs a rebuild up to a crash point.
func killed(t *testing.T, h *history, e engine, point string) {
	t.Helper()
	if point == "never" {
		return
	}
	s := e.open(t)
	defer func() { check(t, s.Close()) }()
	r := h.rebuild(s)
	times := 0
	r.Crash = func(at string) {
		if times++; at == point && times >= 3 || at == point && at != projections.RebuildCrashPoints()[0] {
			panic(point)
		}
	}
	defer func() {
		if cause := recover(); cause != point {
			t.Errorf("it was to be killed at %s: %v", point, cause)
		}
	}()
	_, err := r.Run(t.Context())
	t.Error(err)
}

// Each row is the fold of its stream, without large or secret parts. It is found by id, key and
// hash.
func TestRowIsTheFoldOfItsStream(t *testing.T) {
	engines(t, func(t *testing.T, e engine) {
		h, q := newHistory(t), intents.Query{DB: e.live}
		for n := range lives {
			h.live(t, n)
		}
		h.project(t, e.live)
		if strings.Contains(dump(t, e.live), secret) || strings.Contains(dump(t, e.live), fmt.Sprintf("%x", secret)) {
			t.Error("a row tells a secret")
		}
		for n := range lives {
			r := asked(n)
			want, err := h.intents.Load(t.Context(), intent.Stream(r.ID()))
			check(t, err)
			row, ok, err := q.ByKey(t.Context(), r.Client, r.From, r.Key)
			check(t, err)
			if !ok || row.Version != want.Version || row.RequestedAt.IsZero() || row.UpdatedAt.IsZero() {
				t.Fatalf("intent %d: %v %+v, want version %d", n, ok, row, want.Version)
			}
			outline := want.State
			outline.Requested.Request.Calls[0].Data = nil
			outline.Requested.Request.Webhooks[0].URL = "https://hooks.example.com"
			if d := cmp.Diff(outline, row.State); d != "" {
				t.Errorf("intent %d (-stream +row):\n%s", n, d)
			}
			for _, made := range want.State.Attempts {
				found, err := q.ByHash(t.Context(), made.Hash)
				check(t, err)
				if len(found) != 1 || found[0].Version != row.Version {
					t.Errorf("%s of intent %d is of %d", made.Hash, n, len(found))
				}
			}
		}
		for _, id := range []chain.IntentID{{}, intent.ID("nobody", intent.From{Pool: "hot"}, "wish-0")} {
			if _, ok, err := q.Find(t.Context(), id); ok || err != nil {
				t.Errorf("%s: %v, %v", id, ok, err)
			}
		}
		if found, err := q.ByHash(t.Context(), hashOf(-1)); len(found) > 0 || err != nil {
			t.Errorf("%d intents have an attempt that there is not, %v", len(found), err)
		}
	})
}

// list reads steps until it has limit rows, or there are no more.
func list(t *testing.T, q intents.Query, f intents.Filters, before eventlog.Position, limit int) (rows []intents.Row) {
	t.Helper()
	for more := true; more && len(rows) < limit; more = before != 0 {
		some, rest, err := q.Step(t.Context(), f, before, limit-len(rows))
		check(t, err)
		rows, before = append(rows, some...), rest
	}
	return rows
}

// A list has the rows that match its filters, newest first, in pages that neither skip nor
// repeat rows.
func TestList(t *testing.T) {
	engines(t, func(t *testing.T, e engine) {
		h, q := newHistory(t), intents.Query{DB: e.live}
		for n := range lives {
			h.live(t, n)
		}
		h.project(t, e.live)
		everything := list(t, q, intents.Filters{}, 0, 1000)
		if len(everything) != lives || !slices.IsSortedFunc(everything, func(a, b intents.Row) int { return int(b.Position) - int(a.Position) }) {
			t.Fatalf("%d rows, or not newest first", len(everything))
		}
		nobody, payroll, signer, hash := "", "payroll", chain.Address{1, 1}, hashOf(31)
		for name, f := range map[string]intents.Filters{
			"everything":          {},
			"who have no key":     {Client: &nobody},
			"a client":            {Client: &payroll},
			"a chain":             {Chain: 2},
			"a pool":              {From: &intent.From{Pool: "hot"}},
			"an account":          {From: &intent.From{Signer: &signer}},
			"a signer":            {Signer: &signer},
			"a key":               {Key: "wish-4"},
			"an attempt":          {Hash: &hash},
			"a subject":           {Subject: "subject 3"},
			"a status":            {Statuses: []intent.Status{intent.StatusCanceled}},
			"statuses":            {Statuses: []intent.Status{intent.StatusWaiting, intent.StatusMined, intent.StatusCompleted}},
			"a client's pending":  {Client: &payroll, Statuses: []intent.Status{intent.StatusSubmitted, intent.StatusAssigned}},
			"a signer's of chain": {Signer: &signer, Chain: 1},
		} {
			var want, got []eventlog.Position
			for _, r := range everything {
				if f.Fits(r) {
					want = append(want, r.Position)
				}
			}
			for before := eventlog.Position(0); ; { // in pages of three
				page := list(t, q, f, before, 3)
				for _, r := range page {
					got = append(got, r.Position)
				}
				if len(page) < 3 {
					break
				}
				before = page[2].Position
			}
			if d := cmp.Diff(want, got); d != "" || len(want) == 0 || name != "everything" && len(want) == lives {
				t.Errorf("%s: %d of %d (-want +got):\n%s", name, len(want), lives, d)
			}
		}
	})
}

// A few expectations are written by hand, so the filters are not only compared with themselves.
func TestFits(t *testing.T) {
	row := intents.Row{State: intent.State{Requested: intent.Requested{ID: asked(2).ID(), Request: asked(2)}}}
	yes, no := "shop", "payroll"
	signer := chain.Address{7}
	for name, c := range map[string]struct {
		f    intents.Filters
		fits bool
	}{
		"its client": {intents.Filters{Client: &yes}, true}, "another client": {intents.Filters{Client: &no}, false},
		"its chain": {intents.Filters{Chain: 1}, true}, "another chain": {intents.Filters{Chain: 2}, false},
		"its pool": {intents.Filters{From: &intent.From{Pool: "hot"}}, true}, "another pool": {intents.Filters{From: &intent.From{Pool: "cold"}}, false},
		"nobody signs": {intents.Filters{Signer: &signer}, false},
		"its key":      {intents.Filters{Key: "wish-2"}, true}, "another key": {intents.Filters{Key: "wish-20"}, false},
		"its subject": {intents.Filters{Subject: "subject 2"}, true}, "another subject": {intents.Filters{Subject: "subject"}, false},
		"it waits": {intents.Filters{Statuses: []intent.Status{intent.StatusWaiting}}, true}, "it does not": {intents.Filters{Statuses: []intent.Status{intent.StatusMined}}, false},
		"nothing is signed": {intents.Filters{Hash: &chain.Hash{1}}, false},
	} {
		if c.f.Fits(row) != c.fits {
			t.Errorf("%s: %v", name, !c.fits)
		}
	}
	row.State = row.State.Evolve(intent.Assigned{Assignment: 1, Place: intent.Place{Signer: signer}}).Evolve(intent.Attempted{Assignment: 1, Hash: chain.Hash{1}})
	if !(intents.Filters{Signer: &signer, Hash: &chain.Hash{1}}).Fits(row) {
		t.Error("it is signed by another")
	}
}

// Lists are read by an index, and never scan a whole table.
func TestQueriesUseIndexes(t *testing.T) {
	client, signer, hash := "client 6", chain.Address{6}, hashOf(6)
	engines(t, func(t *testing.T, e engine) {
		fill(t, e.live)
		for name, tt := range map[string]struct {
			filters intents.Filters
			index   string
		}{
			"everything":    {intents.Filters{}, "intents_position"},
			"a client":      {intents.Filters{Client: &client}, "intents_client"},
			"a wish":        {intents.Filters{Client: &client, From: &intent.From{Pool: "hot"}, Key: "wish 6"}, "intents_client_wish"},
			"a signer":      {intents.Filters{Signer: &signer}, "intents_signer"},
			"a rare status": {intents.Filters{Statuses: []intent.Status{intent.StatusCanceling}}, "intents_status"},
		} {
			explained := explain(t, e.live, tt.filters)
			if !strings.Contains(explained, tt.index) || strings.Contains(explained, "Seq Scan") || strings.Contains(explained, "SCAN intents \n") {
				t.Errorf("%s: not by %s:\n%s", name, tt.index, explained)
			}
		}
		text, args := intents.ByHashStatement(hash)
		if explained := testenv.Explain(t, e.live, text, args...); strings.Contains(explained, "Seq Scan") || strings.Contains(explained, "SCAN i \n") {
			t.Errorf("a hash: a table is read whole:\n%s", explained)
		}
	})
}

// fill writes rows of 200 clients and as many signers without a log: only the way of finding
// them matters here.
func fill(t *testing.T, db *sql.DB) {
	t.Helper()
	dbtx, err := db.BeginTx(t.Context(), nil)
	check(t, err)
	for n := range 12_000 { // a small table Postgres reads whole
		id, hash, signer, status := hashOf(-1-n), hashOf(n), chain.Address{byte(n % 200)}, intent.StatusCompleted
		if n%500 == 1 {
			status = intent.StatusCanceling
		}
		_, err := dbtx.ExecContext(t.Context(), `INSERT INTO intents (intent, position, version, chain, client, wants, wish, signer, subject, status, data)
			VALUES ($1, $2, 1, 1, $3, 'pool:hot', $4, $5, '', $6, $7)`, id[:16], n+1, fmt.Sprint("client ", n%200), fmt.Sprint("wish ", n), signer[:], string(status), []byte("{}"))
		check(t, err)
		_, err = dbtx.ExecContext(t.Context(), `INSERT INTO intent_attempts (hash, intent, attempt) VALUES ($1, $2, 1)`, hash[:], id[:16])
		check(t, err)
	}
	check(t, dbtx.Commit())
	for _, table := range []string{"intents", "intent_attempts"} {
		_, err = db.ExecContext(t.Context(), "ANALYZE "+table)
		check(t, err)
	}
}

// explain returns the engine's query plan of a list.
func explain(t *testing.T, db *sql.DB, f intents.Filters) string {
	t.Helper()
	text, args := intents.ListStatement(f, 50)
	return testenv.Explain(t, db, text, args...)
}

// An event after a gap in its stream stops the fold. An event that the row already contains is
// skipped. An event of another kind of stream is reported with its position.
func TestGapStops(t *testing.T) {
	name, data, err := intent.Codec().Encode(intent.CancelRequested{Reason: intent.Withdrawn, At: epoch})
	check(t, err)
	r := eventlog.Recorded{Event: eventlog.Event{Name: name, Data: data}, Stream: intent.Stream(chain.IntentID{1}), Version: 3, Position: 9}
	if _, err := (intents.Row{Version: 1}).Evolve(r, intent.Codec()); err == nil {
		t.Error("version 3 followed version 1")
	}
	row, err := intents.Row{Version: 3}.Evolve(r, intent.Codec())
	if err != nil || row.State.Stop.Reason != "" {
		t.Errorf("an event that the row has was added again: %v", err)
	}
	engines(t, func(t *testing.T, e engine) {
		for _, stream := range []eventlog.Stream{r.Stream, "intent-nobody"} {
			r.Stream = stream
			dbtx, err := e.live.BeginTx(t.Context(), nil)
			check(t, err)
			var stuck *eventlog.Stuck
			err = intents.Projection{Codec: intent.Codec()}.Fold(t.Context(), dbtx, []eventlog.Recorded{r})
			if !errors.As(err, &stuck) || stuck.At != 9 {
				t.Errorf("%s: %v", stream, err)
			}
			if err := intents.NewLoader(intent.Codec(), "").Add(t.Context(), e.live, []eventlog.Recorded{r}); !errors.As(err, &stuck) {
				t.Errorf("%s: %v", stream, err)
			}
			check(t, dbtx.Rollback())
		}
	})
}
