package postgres_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/tempo-watchtower/watchtower/commands/notifier"
	"github.com/tempo-watchtower/watchtower/commands/relay/messages"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/notice"
	"github.com/tempo-watchtower/watchtower/domain/relay/intent"
	"github.com/tempo-watchtower/watchtower/eventlog"
	"github.com/tempo-watchtower/watchtower/eventlog/handler"
	"github.com/tempo-watchtower/watchtower/infra/postgres"
)

// TestCommandsOfOneHoldUpNobody: a client asks 5,000 times for redeliveries, spread over its
// hundred endpoints. Another client's next delivery is queued after a few database
// transactions.
func TestCommandsOfOneHoldUpNobody(t *testing.T) {
	const endpoints, each = 100, 50
	op := open(t, postgres.Options{})
	ctx := soon(t)
	rows := op.db.Notices(notice.DefaultPolicy())
	var known []notice.News
	for i := range byte(endpoints) {
		id := notice.EndpointID{1, i}
		known = append(known, notice.News{Key: notice.Key{Endpoint: id, Intent: chain.IntentID{1}, Seq: 1}, Client: "crowd", URL: "https://example.org/"})
		var wishes []eventlog.Event
		for n := range each {
			name, data, err := notice.Codec().Encode(notice.RedeliveryAsked{
				Endpoint: id, Notices: []notice.Ref{{Intent: chain.IntentID{byte(n)}, Seq: 1}}, At: time.Unix(1_800_000_000, 0).UTC(),
			})
			must(t, err)
			wishes = append(wishes, eventlog.Event{ID: eventlog.ID{1, i, byte(n)}, Name: name, Data: data, Meta: eventlog.Meta{Actor: "crowd"}})
		}
		_, err := op.db.Log.Append(ctx, notice.Stream(id), 0, wishes...)
		must(t, err)
	}
	must(t, rows.Enqueue(ctx, "fill", 0, 1, known))

	seal, err := notice.NewSealer(bytes.Repeat([]byte{3}, notice.SealKeyBytes))
	must(t, err)
	r := intent.Sealed(seal, intent.Request{
		Client: "shop", Key: "next", From: intent.From{Pool: "hot"}, Chain: 1, Calls: []intent.Call{{To: &chain.Address{9}}},
		Webhooks: []intent.Webhook{{URL: "https://shop.example.org/"}},
	})
	for _, c := range []intent.Command{
		intent.Create{Request: r},
		intent.Assign{Assignment: 1, Place: intent.Place{Signer: chain.Address{1}}, Token: 1},
	} {
		o, err := handler.Begin(rand.Reader, eventlog.Meta{Actor: "test"})
		must(t, err)
		h := handler.Handler[intent.State, intent.Command, intent.Event]{Store: op.db.Log, Codec: intent.Codec()}
		_, err = h.Handle(ctx, intent.Stream(r.ID()), c, o)
		must(t, err)
	}
	last, err := op.db.Log.Head(ctx)
	must(t, err)

	conn := admin(t, op.url)
	execute(t, conn, `CREATE TABLE work.moves (xid bigint)`)
	execute(t, conn, `CREATE FUNCTION work.moved() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN INSERT INTO work.moves VALUES (txid_current()); RETURN NULL; END'`)
	execute(t, conn, `CREATE TRIGGER moved AFTER INSERT OR UPDATE ON work.checkpoints FOR EACH ROW EXECUTE FUNCTION work.moved()`)
	running, stop := context.WithCancel(ctx)
	defer stop()
	feeder := &notifier.Feeder{
		Store: op.db.Log, Rows: rows, Checkpoints: op.db.Checkpoints,
		Reader: notifier.Reader, Sources: []notifier.Source{{Prefix: intent.StreamPrefix, News: messages.New(op.db.Log, 1000).News}}, Wishes: notice.Codec(),
		Moved: func(at eventlog.Position) {
			if at >= last {
				stop()
			}
		},
		Log: slog.New(slog.DiscardHandler),
	}
	began := time.Now()
	if err := feeder.Run(running); !errors.Is(err, context.Canceled) || ctx.Err() != nil {
		t.Fatal(err)
	}
	took := time.Since(began)
	id := notice.EndpointOf("shop", r.Webhooks[0].URL)
	if n, err := rows.Count(ctx, id, notice.Queued, 10); err != nil || n != 1 {
		t.Errorf("%d notices of the other client are queued, %v", n, err)
	}
	var transactions int
	must(t, conn.QueryRow(ctx, `SELECT count(DISTINCT xid) FROM work.moves`).Scan(&transactions))
	if transactions > 50 {
		t.Errorf("%d transactions", transactions)
	}
	t.Logf("%d transactions in %s", transactions, took)
}
