package postgres_test

import (
	"context"
	"testing"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/infra/postgres"
)

// A client breaks off its requests in the middle of a query. The connection stays: it is shared
// with the requests of others, which would wait for a new one.
func TestQueriesOutlastTheirCallers(t *testing.T) {
	o := open(t, postgres.Options{Application: "outlast"})
	ctx := soon(t)
	look := admin(t, o.url)
	waiting := func() (pid int) { // the session that waits for a lock; 0: none
		err := look.QueryRow(ctx, `SELECT coalesce(max(pid), 0) FROM pg_stat_activity
			WHERE application_name = 'outlast' AND wait_event_type = 'Lock'`).Scan(&pid)
		must(t, err)
		return pid
	}
	var before int
	for range 5 {
		locker := admin(t, o.url)
		lock, err := locker.Begin(ctx)
		must(t, err)
		execute(t, lock.Conn(), `LOCK TABLE log.payloads IN ACCESS EXCLUSIVE MODE`)
		own, leave := context.WithCancel(ctx)
		ended := make(chan error, 1)
		go func() {
			_, err := o.db.Payloads.Get(own, chain.ID(1), chain.Hash{1})
			ended <- err
		}()
		pid := 0
		eventually(t, "a query waits for the lock", func() bool { pid = waiting(); return pid != 0 })
		leave()
		must(t, lock.Rollback(ctx))
		if err := <-ended; err == nil {
			t.Error("there is a payload")
		}
		if before != 0 && pid != before {
			t.Errorf("session %d has replaced session %d", pid, before)
		}
		before = pid
	}
	var sessions int
	must(t, look.QueryRow(ctx, `SELECT count(*) FROM pg_stat_activity WHERE pid = $1`, before).Scan(&sessions))
	if sessions != 1 {
		t.Error("the connection was closed")
	}
}
