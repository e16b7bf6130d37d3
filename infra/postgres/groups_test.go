package postgres_test

import (
	"net/url"
	"testing"
	"time"

	"github.com/tempo-watchtower/watchtower/domain/consumer"
	"github.com/tempo-watchtower/watchtower/eventlog"
	"github.com/tempo-watchtower/watchtower/infra/postgres"
	"github.com/tempo-watchtower/watchtower/infra/storetest"
	"github.com/tempo-watchtower/watchtower/infra/testenv"
)

func TestGroups(t *testing.T) {
	storetest.Groups(t, func(t *testing.T) storetest.Opened[storetest.GroupRows] {
		return opened(open(t, postgres.Options{}), func(db *postgres.DB) storetest.GroupRows { return db.Groups })
	})
}

// A consumer's role needs only the rights listed in docs/howto/watermill.md.
func TestConsumersRole(t *testing.T) {
	op := open(t, postgres.Options{})
	owner := admin(t, op.url)
	role := "consumer_" + testenv.Random(4)
	execute(t, owner, `CREATE ROLE `+role+` LOGIN PASSWORD 'w'`)
	t.Cleanup(func() { execute(t, owner, `DROP OWNED BY `+role); execute(t, owner, `DROP ROLE `+role) })
	for _, grant := range []string{
		`USAGE ON SCHEMA log, feed`, `SELECT ON log.events, log.streams, log.head, log.kept, log.segments`, `SELECT, INSERT, UPDATE, DELETE ON feed.groups, feed.parked`,
	} {
		execute(t, owner, `GRANT `+grant+` TO `+role)
	}
	_, err := op.db.Log.Append(soon(t), "tx-a", 0, happened("tx-a", 0, 2)...)
	must(t, err)
	u, err := url.Parse(op.url)
	must(t, err)
	u.User = url.UserPassword(role, "w")
	theirs := &opener{t: t, url: u.String(), o: op.o}
	theirs.start()
	t.Cleanup(func() { theirs.close() }) //nolint:errcheck // the test is over

	ctx, groups := soon(t), theirs.db.Groups
	c, held, err := groups.Claim(ctx, "g", "a", time.Minute)
	if err != nil || !held {
		t.Fatalf("%v, %v", held, err)
	}
	for b, err := range theirs.db.Log.Subscribe(ctx, 0, eventlog.Filter{}, 10) {
		must(t, err)
		if len(b.Events) != 2 {
			t.Errorf("%d events", len(b.Events))
		}
		break
	}
	if got := stands(t, theirs.db.Log, "tx-a"); len(got) != 2 {
		t.Errorf("%d events in the stream", len(got))
	}
	if _, err := theirs.db.Log.Segments(ctx); err != nil {
		t.Error(err)
	}
	must(t, groups.Save(ctx, "g", c.Token, 2))
	must(t, groups.Park(ctx, "g", c.Token, consumer.Parked{Stream: "tx-a", Version: 1, Position: 1}))
	must(t, groups.Wish(ctx, "g", "tx-a", 1, consumer.Skip))
	must(t, groups.Unpark(ctx, "g", c.Token, "tx-a"))
	if _, err := theirs.db.Log.Append(ctx, "tx-b", 0, happened("tx-b", 0, 1)...); err == nil {
		t.Error("a consumer wrote the log")
	}
}
