package postgres_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/tempo-watchtower/watchtower/eventlog"
	"github.com/tempo-watchtower/watchtower/infra/postgres"
)

// Another session holds the head row while one client's large appends come to wait, and after them
// one of another client. That one is in the first commits, and not behind all of the large ones.
func TestLargeAppendsHoldNobody(t *testing.T) {
	op := open(t, postgres.Options{})
	ctx := soon(t)
	dbtx, err := admin(t, op.url).Begin(ctx)
	must(t, err)
	_, err = dbtx.Exec(ctx, `SELECT FROM log.head FOR UPDATE`)
	must(t, err)
	const many = 40
	large := json.RawMessage(`"` + strings.Repeat("a", 200<<10) + `"`)
	var all sync.WaitGroup
	for i := range many {
		stream := eventlog.Stream(fmt.Sprint("large-", i))
		events := happened(stream, 0, 1)
		events[0].Data, events[0].Meta.Actor = large, "api key large"
		all.Go(func() {
			if _, err := op.db.Log.Append(ctx, stream, 0, events...); err != nil {
				t.Error(err)
			}
		})
	}
	eventually(t, "the large appends in the line", func() bool { return op.db.Log.Waiting() == many-1 })
	small := make(chan eventlog.Appended, 1)
	events := happened("small", 0, 1)
	events[0].Meta.Actor = "api key small"
	all.Go(func() {
		a, err := op.db.Log.Append(ctx, "small", 0, events...)
		if err != nil {
			t.Error(err)
		}
		small <- a
	})
	eventually(t, "the small append in the line", func() bool { return op.db.Log.Waiting() == many })
	must(t, dbtx.Rollback(ctx))
	if a := <-small; a.Position > 4 { // the first large append, and the others of its share
		t.Errorf("the small append has position %d, after %d large ones", a.Position, a.Position-1)
	}
	all.Wait()
}

// An append whose caller gives up while another session holds the head row leaves the line.
func TestLeftAppendsLeaveTheLine(t *testing.T) {
	op := open(t, postgres.Options{})
	ctx := soon(t)
	dbtx, err := admin(t, op.url).Begin(ctx)
	must(t, err)
	_, err = dbtx.Exec(ctx, `SELECT FROM log.head FOR UPDATE`)
	must(t, err)
	const many = 10
	short, leave := context.WithCancel(ctx)
	var all sync.WaitGroup
	for i := range many {
		stream := eventlog.Stream(fmt.Sprint("left-", i))
		all.Go(func() {
			_, err := op.db.Log.Append(short, stream, 0, happened(stream, 0, 1)...)
			if !errors.Is(err, context.Canceled) || errors.Is(err, eventlog.ErrUnknown) {
				t.Error(err)
			}
		})
	}
	eventually(t, "the appends in the line", func() bool { return op.db.Log.Waiting() == many-1 })
	leave()
	all.Wait()
	if n := op.db.Log.Waiting(); n != 0 {
		t.Errorf("%d appends wait for callers that are gone", n)
	}
	must(t, dbtx.Rollback(ctx))
}
