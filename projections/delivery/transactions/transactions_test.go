package transactions_test

import (
	"database/sql"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
	"github.com/tempo-watchtower/watchtower/eventlog"
	"github.com/tempo-watchtower/watchtower/projections/delivery/transactions"
)

// Rows folded while the log grew, event by event or in batches, equal rows folded from the
// whole log at once, byte for byte, on every engine.
func TestRebuildEqualsLive(t *testing.T) {
	h := newHistory(t)
	const lives = 70
	dumps := map[string]string{}
	engines(t, func(t *testing.T, view func(t *testing.T) *sql.DB) {
		live, rebuilt := migrate(t, view(t)), migrate(t, view(t))
		if len(dumps) == 0 { // the log grows under the first engine only
			for n := range lives {
				h.live(t, n)
				if n%7 == 0 {
					h.project(t, live)
				}
			}
		}
		h.project(t, live)
		h.project(t, rebuilt)
		dumps[t.Name()] = dump(t, live)
		if d := cmp.Diff(dumps[t.Name()], dump(t, rebuilt)); d != "" {
			t.Errorf("rebuilt rows differ (-live +rebuilt):\n%s", d)
		}
	})
	for _, d := range dumps {
		for _, e := range dumps {
			if d != e {
				t.Fatal("the engines' rows differ")
			}
		}
	}
}

// Each row is the fold of its stream.
func TestRowIsTheFoldOfItsStream(t *testing.T) {
	engines(t, func(t *testing.T, view func(t *testing.T) *sql.DB) {
		h, db := newHistory(t), migrate(t, view(t))
		for n := range 21 {
			h.live(t, n)
		}
		h.project(t, db)
		q := transactions.Query{DB: db}
		for n := range 21 {
			id := chain.ID(1 + n%2)
			want, err := h.transactions.Load(t.Context(), tx.Stream(id, hashOf(n)))
			check(t, err)
			rows, err := q.Find(t.Context(), id, hashOf(n))
			check(t, err)
			if want.State.Retired {
				if len(rows) != 0 {
					t.Errorf("a retired transaction has a row")
				}
				continue
			}
			if len(rows) != 1 || rows[0].Version != want.Version {
				t.Fatalf("%d rows at version %v, want version %d", len(rows), rows, want.Version)
			}
			if d := cmp.Diff(want.State, rows[0].State); d != "" {
				t.Errorf("-stream +row:\n%s", d)
			}
		}
	})
}

// A projector whose checkpoint another one has moved writes no more rows.
func TestZombieProjector(t *testing.T) {
	engines(t, func(t *testing.T, view func(t *testing.T) *sql.DB) {
		h, db := newHistory(t), migrate(t, view(t))
		h.live(t, 0)
		zombie := h.projector(db)
		paused, resume := make(chan struct{}), make(chan struct{})
		first := true
		zombie.Moved = func(eventlog.Position, bool) {
			if first {
				first = false
				close(paused)
				<-resume
			}
		}
		ended := make(chan error, 1)
		go func() { ended <- zombie.Run(t.Context()) }()
		<-paused
		for n := 1; n < 10; n++ {
			h.live(t, n)
		}
		h.project(t, db) // the projector that took over
		want := dump(t, db)
		h.live(t, 10)
		close(resume)
		if err := <-ended; !errors.Is(err, eventlog.ErrMoved) {
			t.Errorf("the zombie ended with %v", err)
		}
		if got := dump(t, db); got != want {
			t.Error("the zombie changed rows")
		}
		h.project(t, db)
		rows, err := transactions.Query{DB: db}.Find(t.Context(), 0, hashOf(10))
		if err != nil || len(rows) != 1 {
			t.Errorf("%d rows, %v", len(rows), err)
		}
	})
}

// An event after a gap in its stream stops the fold.
func TestGapStops(t *testing.T) {
	name, data, err := tx.Codec().Encode(tx.Retired{At: epoch})
	check(t, err)
	r := eventlog.Recorded{Event: eventlog.Event{Name: name, Data: data}, Stream: tx.Stream(1, hashOf(1)), Version: 3}
	if _, err := (transactions.Row{Version: 1}).Evolve(r, tx.Codec()); err == nil {
		t.Error("version 3 followed version 1")
	}
	row, err := transactions.Row{Version: 3}.Evolve(r, tx.Codec())
	if err != nil || row.State.Retired {
		t.Errorf("an event that the row has was added again: %v", err)
	}
}

func TestList(t *testing.T) {
	engines(t, func(t *testing.T, view func(t *testing.T) *sql.DB) {
		h, db := newHistory(t), migrate(t, view(t))
		const lives = 42
		for n := range lives {
			h.live(t, n)
		}
		h.project(t, db)
		q := transactions.Query{DB: db}
		everything, err := q.List(t.Context(), transactions.Filters{}, 0, 1000)
		check(t, err)
		if len(everything) != lives-lives/7 { // every seventh is retired
			t.Fatalf("%d rows", len(everything))
		}
		if !slices.IsSortedFunc(everything, func(a, b transactions.Row) int { return int(b.Position) - int(a.Position) }) {
			t.Error("not newest first")
		}
		sender, group := chain.Address{0: 1}, chain.GroupID{15: 2}
		for name, c := range map[string]struct {
			filters transactions.Filters
			fits    func(tx.State) bool
		}{
			"chain":     {transactions.Filters{Chain: 2}, func(s tx.State) bool { return s.Accepted.Chain == 2 }},
			"sender":    {transactions.Filters{Sender: &sender}, func(s tx.State) bool { return s.Accepted.Sender == sender }},
			"group":     {transactions.Filters{Group: &group}, func(s tx.State) bool { return s.Group() != nil && *s.Group() == group }},
			"ungrouped": {transactions.Filters{Ungrouped: true}, func(s tx.State) bool { return s.Group() == nil }},
			"statuses": {transactions.Filters{Statuses: []tx.Status{tx.StatusQueued, tx.StatusExecuted}}, func(s tx.State) bool {
				return s.Status == tx.StatusQueued || s.Status == tx.StatusExecuted
			}},
			"all of it": {transactions.Filters{Chain: 1, Sender: &sender, Statuses: []tx.Status{tx.StatusExecuted}}, func(s tx.State) bool {
				return s.Accepted.Chain == 1 && s.Accepted.Sender == sender && s.Status == tx.StatusExecuted
			}},
		} {
			var want []eventlog.Position
			for _, r := range everything {
				if c.fits(r.State) {
					want = append(want, r.Position)
				}
			}
			var got []eventlog.Position
			for before := eventlog.Position(0); ; { // in pages of three
				page, err := q.List(t.Context(), c.filters, before, 3)
				check(t, err)
				for _, r := range page {
					got = append(got, r.Position)
				}
				if len(page) < 3 {
					break
				}
				before = page[2].Position
			}
			if d := cmp.Diff(want, got); d != "" || len(want) == 0 {
				t.Errorf("%s (-want +got):\n%s", name, d)
			}
		}
	})
}

// A submission of the same bytes by another client is no update for the first client.
func TestAnotherSubmissionIsNoUpdate(t *testing.T) {
	var row transactions.Row
	for i, c := range []struct {
		event tx.Event
		want  int // the version of the last update
	}{
		{tx.Accepted{Chain: 1, Hash: hashOf(1), Client: "ann"}, 1}, {tx.Resubmitted{Client: "bob"}, 1},
		{tx.Broadcast{Attempt: 1, Answers: []tx.Answer{{Endpoint: "a", Class: tx.Taken}}}, 3}, {tx.Resubmitted{Client: "carol"}, 3},
	} {
		name, data, err := tx.Codec().Encode(c.event)
		check(t, err)
		row, err = row.Evolve(eventlog.Recorded{
			Event: eventlog.Event{Name: name, Data: data}, Stream: tx.Stream(1, hashOf(1)), Version: eventlog.Version(i + 1), At: time.Unix(int64(i+1), 0),
		}, tx.Codec())
		check(t, err)
		if want := time.Unix(int64(c.want), 0); !row.UpdatedAt.Equal(want) || row.Version != eventlog.Version(i+1) {
			t.Errorf("after %s: version %d, updated at %s, want %s", name, row.Version, row.UpdatedAt, want)
		}
	}
}
