package lanes_test

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/relay/lane"
	"github.com/tempo-watchtower/watchtower/eventlog"
	"github.com/tempo-watchtower/watchtower/eventlog/handler"
	"github.com/tempo-watchtower/watchtower/eventlog/projector"
	"github.com/tempo-watchtower/watchtower/infra/embedded"
	"github.com/tempo-watchtower/watchtower/infra/postgres"
	"github.com/tempo-watchtower/watchtower/infra/testenv"
	"github.com/tempo-watchtower/watchtower/migrations"
	"github.com/tempo-watchtower/watchtower/projections"
	"github.com/tempo-watchtower/watchtower/projections/relay/lanes"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// engines runs a test on every engine for read models. open opens a shadow of the tables.
func engines(t *testing.T, test func(t *testing.T, live *sql.DB, open func() projections.Shadow)) {
	model := lanes.Model(lane.Codec())
	t.Run("embedded", func(t *testing.T) {
		db, err := embedded.Open("", embedded.Options{})
		check(t, err)
		t.Cleanup(func() { check(t, db.Close()) })
		check(t, projections.Migrate(t.Context(), db.View(), migrations.View))
		test(t, db.View(), func() projections.Shadow {
			s, err := embedded.OpenShadow(t.Context(), db.Dir(), model.Name, model.Version, model.TableNames())
			check(t, err)
			return s
		})
	})
	t.Run("postgres", func(t *testing.T) {
		url := testenv.Postgres(t)
		db, err := postgres.Open(t.Context(), url, postgres.Options{})
		check(t, err)
		t.Cleanup(func() { check(t, db.Close(context.Background())) })
		check(t, db.Migrate(t.Context()))
		migrate := func(ctx context.Context, view *sql.DB) error { return projections.Migrate(ctx, view, migrations.View) }
		check(t, migrate(t.Context(), db.View()))
		test(t, db.View(), func() projections.Shadow {
			s, err := postgres.OpenShadow(t.Context(), url, model.Name, model.Version, model.TableNames(), migrate)
			check(t, err)
			return s
		})
	})
}

var epoch = time.Unix(1_800_000_000, 0).UTC()

// number is the number of lanes of a log; the n-th is idOf(n).
const number = 12

func idOf(n int) chain.Sequence {
	return chain.Sequence{Chain: chain.ID(1 + n%2), Sender: chain.Address{byte(1 + n%3)}, Key: chain.NonceKey{31: byte(n / 6)}}
}

type lanesOf = handler.Handler[lane.State, lane.Command, lane.Event]

// life records the n-th lane: opened by one of two holders, and with nonces in flight unless n is a
// multiple of four. Every third is taken over.
func life(t *testing.T, h lanesOf, n int) {
	t.Helper()
	at := epoch.Add(time.Duration(n) * time.Minute)
	witness := func(nonce uint64) lane.Witness {
		return lane.Witness{Nonce: nonce, Block: chain.Block{Number: 1, Hash: chain.Hash{1}}, Endpoints: []string{"a"}, Needed: 1, Asked: 1}
	}
	commands := []lane.Command{lane.Open{Holder: fmt.Sprint("p", n%2), Token: 1, At: at}, lane.Advance{Token: 1, Witness: witness(uint64(10 * n)), At: at}}
	if n%4 != 0 {
		one, two := chain.IntentID{byte(n), 1}, chain.IntentID{byte(n), 2}
		signed := lane.Signed{Nonce: uint64(10 * n), Intent: one, Hash: chain.Hash{byte(n)}, Fee: chain.LegacyFee(chain.PriceOf(100))}
		commands = append(commands, lane.Reserve{Token: 1, Intents: []chain.IntentID{one, two}, Budget: 9, At: at}, lane.Attempt{Token: 1, Signed: []lane.Signed{signed}, At: at.Add(time.Second)})
	}
	if n%3 == 0 {
		commands = append(commands, lane.Open{Holder: "p2", Token: 2, At: at.Add(time.Minute)})
	}
	for _, c := range commands {
		_, err := h.Do(t.Context(), lane.Stream(idOf(n)), c, eventlog.Meta{Actor: "test"})
		check(t, err)
	}
}

func newLog(t *testing.T) lanesOf {
	t.Helper()
	db, err := embedded.Open("", embedded.Options{})
	check(t, err)
	t.Cleanup(func() { check(t, db.Close()) })
	h := lanesOf{Store: db.Log(), Codec: lane.Codec(), Random: rand.Reader}
	for n := range number {
		life(t, h, n)
	}
	return h
}

func project(t *testing.T, h lanesOf, db *sql.DB) {
	t.Helper()
	head, err := h.Store.Head(t.Context())
	check(t, err)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	p := projector.Projector{Name: lanes.Name, DB: db, Log: h.Store, Filter: lanes.Filter(), Fold: lanes.Projection{Codec: lane.Codec()}.Fold}
	p.Moved = func(at eventlog.Position, _ bool) {
		if at >= head {
			stop()
		}
	}
	if err := p.Run(ctx); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
}

// A row is the fold of its lane's stream, with the times of its last opening and attempt.
func TestRowIsTheFoldOfItsStream(t *testing.T) {
	h := newLog(t)
	engines(t, func(t *testing.T, live *sql.DB, _ func() projections.Shadow) {
		project(t, h, live)
		q := lanes.Query{DB: live}
		for n := range number {
			loaded, err := h.Load(t.Context(), lane.Stream(idOf(n)))
			check(t, err)
			row, ok, err := q.Find(t.Context(), idOf(n))
			check(t, err)
			opened, signed := epoch.Add(time.Duration(n)*time.Minute), time.Time{}
			if n%4 != 0 {
				signed = opened.Add(time.Second)
			}
			if n%3 == 0 {
				opened = opened.Add(time.Minute)
			}
			if !ok || row.ID != idOf(n) || row.Version != loaded.Version || string(row.State.Snapshot()) != string(loaded.State.Snapshot()) ||
				!row.OpenedAt.Equal(opened) || !row.SignedAt.Equal(signed) || row.UpdatedAt.IsZero() {
				t.Errorf("lane %d is %+v, want the state %+v, opened at %s and signed at %s", n, row, loaded.State, opened, signed)
			}
		}
		if _, ok, err := q.Find(t.Context(), chain.Sequence{Chain: 99}); ok || err != nil {
			t.Errorf("an unknown lane: %t, %v", ok, err)
		}
	})
}

// Lists have the lanes that the filters leave, newest first, page by page.
func TestList(t *testing.T) {
	h := newLog(t)
	holder := func(n int) string {
		if n%3 == 0 {
			return "p2"
		}
		return fmt.Sprint("p", n%2)
	}
	yes, no := true, false
	engines(t, func(t *testing.T, live *sql.DB, _ func() projections.Shadow) {
		project(t, h, live)
		for name, c := range map[string]struct {
			f    lanes.Filters
			fits func(n int) bool
		}{
			"all":               {lanes.Filters{}, func(int) bool { return true }},
			"a chain":           {lanes.Filters{Chain: 2}, func(n int) bool { return n%2 == 1 }},
			"a signer":          {lanes.Filters{Signer: &chain.Address{2}}, func(n int) bool { return n%3 == 1 }},
			"a signer's, busy":  {lanes.Filters{Signer: &chain.Address{2}, Busy: &yes}, func(n int) bool { return n%3 == 1 && n%4 != 0 }},
			"a holder":          {lanes.Filters{Holder: "p2"}, func(n int) bool { return holder(n) == "p2" }},
			"idle":              {lanes.Filters{Busy: &no}, func(n int) bool { return n%4 == 0 }},
			"busy on a chain":   {lanes.Filters{Busy: &yes, Chain: 1}, func(n int) bool { return n%4 != 0 && n%2 == 0 }},
			"a holder, a chain": {lanes.Filters{Holder: "p1", Chain: 2}, func(n int) bool { return holder(n) == "p1" && n%2 == 1 }},
		} {
			var want, got []chain.Sequence
			for n := number - 1; n >= 0; n-- {
				if c.fits(n) {
					want = append(want, idOf(n))
				}
			}
			for before, first := eventlog.Position(0), true; first || before != 0; first = false {
				rows, rest, err := (lanes.Query{DB: live}).Step(t.Context(), c.f, before, 3)
				check(t, err)
				for _, r := range rows {
					got = append(got, r.ID)
				}
				before = rest
			}
			if d := cmp.Diff(want, got); d != "" {
				t.Errorf("%s (-want +got):\n%s", name, d)
			}
		}
	})
}

func dump(t *testing.T, db *sql.DB) string {
	t.Helper()
	var all strings.Builder
	for _, table := range lanes.Model(lane.Codec()).Tables {
		var failed error
		for _, row := range table.Rows(t.Context(), db, "", &failed) {
			fmt.Fprintf(&all, "%s\n", row)
		}
		check(t, failed)
	}
	return all.String()
}

// A rebuild makes the rows that the events made, whatever was in the table, on both engines alike.
func TestRebuildEqualsLive(t *testing.T) {
	h := newLog(t)
	dumps := map[string]bool{}
	engines(t, func(t *testing.T, live *sql.DB, open func() projections.Shadow) {
		project(t, h, live)
		want := dump(t, live)
		dumps[want] = true
		for _, damage := range []string{`DELETE FROM lanes`, `UPDATE lanes SET holder = 'x', busy = 7, data = '{}'`} {
			_, err := live.ExecContext(t.Context(), damage)
			check(t, err)
			s := open()
			_, err = (&projections.Rebuild{Model: lanes.Model(lane.Codec()), Log: h.Store, Shadow: s, Heap: 3}).Run(t.Context())
			check(t, err)
			check(t, s.Close())
			if d := cmp.Diff(want, dump(t, live)); d != "" {
				t.Fatalf("after %s (-live +rebuilt):\n%s", damage, d)
			}
		}
	})
	if len(dumps) != 1 {
		t.Error("the engines' rows differ")
	}
}

// An event after a gap in its stream stops the fold, with its position.
func TestGapStops(t *testing.T) {
	name, data, err := lane.Codec().Encode(lane.Filled{Token: 1, Nonce: 2, At: epoch})
	check(t, err)
	r := eventlog.Recorded{Event: eventlog.Event{Name: name, Data: data}, Stream: lane.Stream(idOf(1)), Version: 3, Position: 9}
	engines(t, func(t *testing.T, live *sql.DB, _ func() projections.Shadow) {
		dbtx, err := live.BeginTx(t.Context(), nil)
		check(t, err)
		var stuck *eventlog.Stuck
		if err := (lanes.Projection{Codec: lane.Codec()}).Fold(t.Context(), dbtx, []eventlog.Recorded{r}); !errors.As(err, &stuck) || stuck.At != 9 {
			t.Error(err)
		}
		check(t, dbtx.Rollback())
	})
}
