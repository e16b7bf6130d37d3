package postgres_test

import (
	"cmp"
	"context"
	"crypto/md5" //nolint:gosec // the server's own way to make names of numbers
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/notice"
	"github.com/tempo-watchtower/watchtower/domain/relay/intent"
	"github.com/tempo-watchtower/watchtower/eventlog"
	"github.com/tempo-watchtower/watchtower/infra/postgres"
	"github.com/tempo-watchtower/watchtower/infra/storetest"
)

func noticeOf(endpoint byte, intent int, seq uint64) notice.Key {
	return notice.Key{Endpoint: notice.EndpointID{endpoint}, Intent: chain.IntentID{14: byte(intent >> 8), 15: byte(intent)}, Seq: seq}
}

// TestNoticesClockSetBack simulates a server clock set back by an hour, by moving stored times
// forward. Nothing that was due waits for the hour. A notice told to wait by the correct clock
// keeps its due time.
func TestNoticesClockSetBack(t *testing.T) {
	op := open(t, postgres.Options{})
	ctx := soon(t)
	q := op.db.Notices(storetest.NoticePolicy())
	fresh, leased, failed, paused, before := noticeOf(1, 1, 1), noticeOf(2, 1, 1), noticeOf(3, 1, 1), noticeOf(4, 1, 1), noticeOf(5, 1, 1)
	at := eventlog.Position(0)
	enqueue := func(keys ...notice.Key) {
		t.Helper()
		var news []notice.News
		for _, k := range keys {
			news = append(news, notice.News{Key: k, URL: "u", Body: []byte{}})
		}
		must(t, q.Enqueue(ctx, "notifier", at, at+1, news))
		at++
	}
	lease := func(by string) (got []byte) {
		t.Helper()
		due, _, err := q.Lease(ctx, notice.Claim{Holder: by, TTL: 30 * time.Second, Limit: 10})
		must(t, err)
		for _, n := range due {
			got = append(got, n.Endpoint[0])
		}
		slices.Sort(got)
		return got
	}
	done := func(k notice.Key, o notice.Outcome) {
		t.Helper()
		_, err := q.Done(ctx, "first", []notice.Report{{Key: k, Outcome: o}})
		must(t, err)
	}
	later := notice.Outcome{Class: notice.Later, Cause: notice.Status, Status: 429, RetryAfter: 24 * time.Hour}
	enqueue(leased, failed, paused, before)
	if got := lease("first"); len(got) != 4 {
		t.Fatalf("leased %v", got)
	}
	done(failed, notice.Outcome{Class: notice.Failed, Cause: notice.Status, Status: 500})
	done(paused, later)
	done(before, later)
	enqueue(fresh)
	conn := admin(t, op.url)
	execute(t, conn, `UPDATE work.notices SET next_at = next_at + '1 hour', last_at = last_at + '1 hour', leased_until = leased_until + '1 hour'
		WHERE endpoint <> $1`, [16]byte(before.Endpoint))
	execute(t, conn, `UPDATE work.notice_endpoints SET due_at = due_at + '1 hour', told_at = told_at + '1 hour',
		paused_until = paused_until + '1 hour', failing_since = failing_since + '1 hour' WHERE endpoint <> $1`, [16]byte(before.Endpoint))
	if diff := gocmp.Diff([]byte{1, 3, 4}, lease("second")); diff != "" {
		t.Error("with the clock set back:", diff)
	}
	if got := lease("second"); len(got) != 0 {
		t.Errorf("leased again: %v", got)
	}
	if e, _, err := q.Endpoint(ctx, failed.Endpoint); err != nil || e.FailingSince.After(time.Now().Add(time.Minute)) {
		t.Errorf("it will have failed since %s, %v", e.FailingSince, err)
	}
	execute(t, conn, `UPDATE work.notices SET leased_until = leased_until - '31 seconds'::interval WHERE holder = 'first'`)
	execute(t, conn, `UPDATE work.notice_endpoints SET due_at = due_at - '31 seconds'::interval`)
	if diff := gocmp.Diff([]byte{2}, lease("third")); diff != "" {
		t.Error("when the lease of one who is gone has lapsed:", diff)
	}
}

// TestNoticesAmongMany explains the statements that change a few notices. Very many others
// wait, and the planner's statistics say few, as after an endpoint has stopped answering.
func TestNoticesAmongMany(t *testing.T) {
	op := open(t, postgres.Options{})
	conn := admin(t, op.url)
	const settled = `INSERT INTO work.notices SELECT md5((i % 50)::text)::uuid, md5(i::text)::uuid, 1, '', 'delivered', false, 1, now(), '', '', 0, now(), NULL, NULL, now()
		FROM generate_series(1, 10000) i`
	const queued = `INSERT INTO work.notices SELECT $1, md5((i / $2::integer)::text)::uuid, i, '', 'queued', i % $2::integer = 0, 0, now(), '', '', 0
		FROM generate_series(0, 9999) i`
	execute(t, conn, `ALTER TABLE work.notices SET (autovacuum_enabled = off)`)
	execute(t, conn, settled)
	execute(t, conn, `ANALYZE work.notices`)
	many, long := [16]byte{1}, [16]byte{2} // of many intents, and of one intent with many notices
	execute(t, conn, queued, many, 2)
	execute(t, conn, queued, long, 10000)
	execute(t, conn, `INSERT INTO work.notice_endpoints (endpoint, url, client, due_at) VALUES ($1, '', 'many', now()), ($2, '', 'long', now())`, many, long)
	execute(t, conn, `INSERT INTO work.notice_endpoints (endpoint, url, client) SELECT md5('other' || i)::uuid, '', 'many' FROM generate_series(1, 1000) i`)
	at, of := make([][16]byte, 20), make([][16]byte, 20)
	seqs, times, texts, numbers := make([]int64, 20), make([]time.Time, 20), make([]string, 20), make([]int32, 20)
	for i := range at {
		at[i], of[i], seqs[i], texts[i] = many, md5.Sum(fmt.Append(nil, i)), int64(2*i), "queued"
	}
	cheap := func(name, sql string, args ...any) {
		t.Helper()
		touchesFew(t, conn, name, sql, args...)
	}
	cheap("heads of few intents", postgres.MoveHeads, at, of)
	execute(t, conn, `UPDATE work.notices SET head = false WHERE endpoint = $1 AND seq = 0`, long)
	cheap("the head of a long intent", postgres.MoveHeads, [][16]byte{long}, [][16]byte{md5.Sum([]byte("0"))})
	cheap("when they are due", postgres.MoveDue, [][16]byte{many, long}, 4)
	cheap("what came of them", postgres.UpdateNotices, at, of, seqs, texts, numbers, times, texts, texts, numbers, times)
	cheap("who holds them", postgres.HeldNotices, "a", at, of, seqs)
	cheap("queue the named ones again", postgres.RequeueNamed, at, of, seqs)
	execute(t, conn, `ANALYZE work.notices`)
	for _, analyzed := range []bool{false, true} {
		cheap("give up some", postgres.GiveUpSome, many, [16]byte{}, 20)
		cheap("give up some of a long intent", postgres.GiveUpSome, long, [16]byte{}, 20)
		cheap("count queued ones", postgres.CountQueued, many, 20)
		cheap("count a client's queued ones", postgres.QueuedOfOne, "many", 20)
		execute(t, conn, `UPDATE work.notices SET stage = 'dead', head = false, settled_at = now() WHERE endpoint = $1 AND seq < 5000`, many)
		if analyzed {
			execute(t, conn, `ANALYZE work.notices`)
		}
		cheap("count dead ones", postgres.CountDead, many, 20)
		cheap("queue some again", postgres.RequeueSome, many, [16]byte{}, 0, 20)
	}
	cheap("forget", postgres.ForgetNotices, time.Now().Add(time.Hour), 100)
}

// touchedRows finds a plan step's returned rows, and the rows it has read and discarded.
var touchedRows = regexp.MustCompile(`actual time=\S+ rows=(\d+) loops=(\d+)|Rows Removed by .*: (\d+)`)

// touchesFew runs EXPLAIN ANALYZE on a statement and checks the rows of each step, both with
// and without argument values known to the planner.
func touchesFew(t *testing.T, conn *pgx.Conn, name, sql string, args ...any) {
	t.Helper()
	const few = 200
	for _, plans := range []string{"force_generic_plan", "force_custom_plan"} {
		execute(t, conn, `SET plan_cache_mode = `+plans)
		rows, err := conn.Query(t.Context(), "EXPLAIN ANALYZE "+sql, args...)
		must(t, err)
		plan, err := pgx.CollectRows(rows, pgx.RowTo[string])
		must(t, err)
		for _, line := range plan {
			for _, n := range touchedRows.FindAllStringSubmatch(line, -1) {
				each, _ := strconv.Atoi(cmp.Or(n[1], n[3]))
				loops, _ := strconv.Atoi(cmp.Or(n[2], "1"))
				if each*loops > few {
					t.Fatalf("%s, %s: %s\n%s", name, plans, line, strings.Join(plan, "\n"))
				}
			}
		}
	}
}

// Webhook deliveries have connections of their own: they go on while every connection for the other
// queues waits.
func TestNoticesHaveTheirOwnConnections(t *testing.T) {
	o := open(t, postgres.Options{WorkConns: 1})
	holder := admin(t, o.url)
	execute(t, holder, `SELECT pg_advisory_lock(x'7774696e74656e74'::bigint)`) // the lock of the queue of intents
	claimed := make(chan error)
	go func() {
		_, err := o.db.Intents().Claim(soon(t), intent.Claim{Holder: "a", TTL: time.Minute, Limit: 1})
		claimed <- err
	}()
	watch := admin(t, o.url)
	eventually(t, "a claim that waits", func() (waits bool) {
		must(t, watch.QueryRow(soon(t), `SELECT count(*) > 0 FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`).Scan(&waits))
		return waits
	})
	ctx, cancel := context.WithTimeout(soon(t), 5*time.Second)
	defer cancel()
	q := o.db.Notices(storetest.NoticePolicy())
	must(t, q.Enqueue(ctx, "notifier", 0, 1, []notice.News{{Key: noticeOf(1, 1, 1), URL: "u", Body: []byte{}}}))
	due, _, err := q.Lease(ctx, notice.Claim{Holder: "a", TTL: time.Minute, Limit: 1})
	if err != nil || len(due) != 1 {
		t.Errorf("%d are leased, %v", len(due), err)
	}
	execute(t, holder, `SELECT pg_advisory_unlock_all()`)
	must(t, <-claimed)
}
