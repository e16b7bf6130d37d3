package postgres_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	domain "github.com/tempo-watchtower/watchtower/domain/request"
	"github.com/tempo-watchtower/watchtower/eventlog"
	"github.com/tempo-watchtower/watchtower/infra/postgres"
)

// A connection breaks between the two statements of a first claim, before the second is sent or
// before it is answered. The claim is retried, and claims the request.
func TestClaimIsCutInTwo(t *testing.T) {
	direct := open(t, postgres.Options{})
	p, url := through(t, direct.url)
	store := &opener{t: t, url: url, o: direct.o}
	store.start()
	t.Cleanup(func() { store.close() }) //nolint:errcheck // not what is tested
	ctx := soon(t)
	claim := func(id, name byte, want domain.Stage) {
		t.Helper()
		c := domain.Claim{ID: eventlog.ID{id}, Name: domain.Name{name}, Print: domain.Print{1}, Hold: time.Minute, Keep: time.Hour}
		stage, _, err := store.db.Requests.Claim(ctx, c)
		must(t, err)
		if stage != want {
			t.Errorf("request %d: stage %d, want %d", name, stage, want)
		}
	}
	name := byte(0)
	for _, what := range []loss{request, reply} {
		for range 3 { // so that the session has prepared both statements: a piece is one of them
			name++
			claim(1, name, domain.Claimed)
		}
		name++
		p.loseAfter(1, what)
		claim(2, name, domain.Claimed)
		if p.take() != nothing {
			t.Errorf("loss %d: nothing was lost", what)
		}
		claim(3, name, domain.Running)
	}
}

// A sweep of expired requests reads no other: the time bounds the scan of the index.
func TestForgetReadsExpiredAlone(t *testing.T) {
	o := open(t, postgres.Options{})
	conn := admin(t, o.url)
	for _, by := range []string{"seqscan", "bitmapscan", "sort"} { // a small table would be read in whole
		execute(t, conn, `SET enable_`+by+` = off`)
	}
	client := "ann"
	for _, of := range []*string{nil, &client} {
		text, args := postgres.Forgetting(domain.Oldest{Expired: true, Client: of, Limit: 100})
		rows, err := conn.Query(soon(t), "EXPLAIN "+text, args...)
		must(t, err)
		lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
		must(t, err)
		bounded := slices.ContainsFunc(lines, func(l string) bool {
			return strings.Contains(l, "Index Cond") && strings.Contains(l, "expires_at <=")
		})
		if !bounded {
			t.Errorf("%s\n%s", text, strings.Join(lines, "\n"))
		}
	}
}

// A request whose holder died is claimed again while a sweep waits to remove it: the sweep keeps it.
func TestForgetKeepsRequestsClaimedMeanwhile(t *testing.T) {
	o := open(t, postgres.Options{})
	ctx, conn := soon(t), admin(t, o.url)
	c := domain.Claim{ID: eventlog.ID{1}, Name: domain.Name{1}, Print: domain.Print{1}, Keep: time.Hour}
	_, _, err := o.db.Requests.Claim(ctx, c)
	must(t, err)
	claimer, err := conn.Begin(ctx)
	must(t, err)
	_, err = claimer.Exec(ctx, `UPDATE work.requests SET claim = $1, held_until = clock_timestamp() + interval '1 hour',
		expires_at = clock_timestamp() + interval '1 hour' WHERE name = $2`, eventlog.ID{2}.String(), c.Name[:])
	must(t, err)
	forgotten := make(chan int, 1)
	go func() {
		n, err := o.db.Requests.Forget(ctx, domain.Oldest{Limit: 10})
		if err != nil {
			t.Error(err)
		}
		forgotten <- n
	}()
	eventually(t, "a sweep that waits", func() (waits bool) {
		must(t, claimer.QueryRow(ctx, `SELECT count(*) > 0 FROM pg_stat_activity
			WHERE datname = current_database() AND wait_event_type = 'Lock' AND query LIKE '%DELETE FROM work.requests%'`).Scan(&waits))
		return waits
	})
	must(t, claimer.Commit(ctx))
	if n := <-forgotten; n != 0 {
		t.Errorf("forgot %d", n)
	}
	c.ID = eventlog.ID{3}
	if stage, _, err := o.db.Requests.Claim(ctx, c); err != nil || stage != domain.Running {
		t.Errorf("stage %d, %v", stage, err)
	}
}

// Repetitions of a request read it, and wait for no lock: their client could hold every connection
// with them.
func TestRepeatedClaimLocksNothing(t *testing.T) {
	o := open(t, postgres.Options{})
	claim := func(id, print byte) domain.Stage {
		t.Helper()
		ctx, cancel := context.WithTimeout(soon(t), 5*time.Second)
		defer cancel()
		c := domain.Claim{ID: eventlog.ID{id}, Name: domain.Name{1}, Print: domain.Print{print}, Hold: time.Hour, Keep: time.Hour}
		stage, _, err := o.db.Requests.Claim(ctx, c)
		if err != nil {
			t.Errorf("claim %d: %v", id, err)
		}
		return stage
	}
	if got := claim(1, 1); got != domain.Claimed {
		t.Fatalf("the first claim: stage %d", got)
	}
	holder := admin(t, o.url)
	hold := func(what string, claims func()) {
		execute(t, holder, `BEGIN`)
		execute(t, holder, `SELECT FROM work.requests FOR UPDATE`)
		claims()
		execute(t, holder, `COMMIT`)
		if t.Failed() {
			t.Fatal(what)
		}
	}
	hold("running", func() {
		if got := claim(2, 1); got != domain.Running {
			t.Errorf("stage %d", got)
		}
		if got := claim(3, 2); got != domain.Differs {
			t.Errorf("another request: stage %d", got)
		}
	})
	must(t, o.db.Requests.Answer(soon(t), domain.Name{1}, eventlog.ID{1}, domain.Answer{Status: 200}))
	hold("answered", func() {
		if got := claim(4, 1); got != domain.Answered {
			t.Errorf("stage %d", got)
		}
	})
}
