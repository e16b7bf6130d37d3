package outward_test

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/relay/intent"
	"github.com/tempo-watchtower/watchtower/eventlog"
	"github.com/tempo-watchtower/watchtower/eventlog/handler"
	"github.com/tempo-watchtower/watchtower/infra/embedded"
	"github.com/tempo-watchtower/watchtower/infra/feed"
	"github.com/tempo-watchtower/watchtower/infra/outward"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

const patience = 30 * time.Second

// history is a log with the events of some intents, and events of other streams.
func history(t *testing.T, db *embedded.DB, n int) (ids []chain.IntentID) {
	t.Helper()
	intents := handler.Handler[intent.State, intent.Command, intent.Event]{Store: db.Log(), Codec: intent.Codec()}
	for i := range n {
		r := intent.Request{Key: fmt.Sprint(i), From: intent.From{Pool: "hot"}, Chain: 1, Calls: []intent.Call{{To: &chain.Address{9}}}}
		hash, block := chain.Keccak([]byte(r.Key)), chain.Block{Number: 7, Hash: chain.Keccak([]byte("7")), Time: 7}
		for _, c := range []intent.Command{
			intent.Create{Request: r},
			intent.Assign{Assignment: 1, Place: intent.Place{Signer: chain.Address{1}, Nonce: uint64(i)}, Token: 1},
			intent.SpeedUp{Fee: intent.NewAmount(1)},
			intent.Attempt{Assignment: 1, Kind: intent.First, Hash: hash},
			intent.Announce{Hash: hash, Receipt: chain.Receipt{Block: block, Status: 1}, Confirmations: []chain.Block{block}, Settled: true},
		} {
			o, err := handler.Begin(rand.Reader, eventlog.Meta{Actor: "test"})
			must(t, err)
			_, err = intents.Handle(t.Context(), intent.Stream(r.ID()), c, o)
			must(t, err)
		}
		stream := eventlog.Stream(fmt.Sprint("tx-", i))
		_, err := db.Log().Append(t.Context(), stream, 0, eventlog.Event{ID: eventlog.DeriveID(stream, eventlog.ID{}, 0), Name: "tx.mined.v1", Data: []byte("{}")})
		must(t, err)
		ids = append(ids, r.ID())
	}
	return ids
}

func types() []string {
	return []string{"TxAccepted", "TxSubmitted", "TxReceiptUpdated", "TxConfirmed", "TxConfirmed"}
}

// A Watermill consumer gets the same events as webhooks: each intent's in order, with the
// gapless sequence. A topic may select some of them.
func TestThroughTheFeed(t *testing.T) {
	dir := t.TempDir()
	db, err := embedded.Open(dir, embedded.Options{})
	must(t, err)
	defer func() { must(t, db.Close()) }()
	files, err := embedded.OpenFeed(dir, embedded.FeedOptions{})
	must(t, err)
	defer func() { must(t, files.Close()) }()
	ids := history(t, db, 3)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for topic, want := range map[string][]string{feed.All: types(), "name:TxConfirmed": types()[3:], "stream:" + intent.StreamPrefix + ids[1].String(): types()} {
		subscriber, err := feed.New(feed.Options{Log: outward.New(files, 1000), Groups: files.Groups(), Group: "outward"})
		must(t, err)
		messages, err := subscriber.Subscribe(ctx, topic)
		must(t, err)
		got := map[chain.IntentID][]string{}
		total := len(ids) * len(want)
		if topic[0] == 's' {
			total = len(want)
		}
		for range total {
			m, ok := <-messages
			if !ok {
				t.Fatalf("%s ended after %v", topic, got)
			}
			var n intent.Notice
			must(t, json.Unmarshal(m.Payload, &n))
			o, err := feed.OriginOf(m)
			must(t, err)
			if o.Stream != intent.Stream(n.Intent) || int(n.Sequence) != len(types())-len(want)+len(got[n.Intent])+1 {
				t.Errorf("%s: %+v comes after %v", topic, n, got[n.Intent])
			}
			got[n.Intent] = append(got[n.Intent], o.Name)
			m.Ack()
		}
		for id, names := range got {
			if d := cmp.Diff(want, names); d != "" {
				t.Errorf("%s of %s: %s", topic, id, d)
			}
		}
		must(t, subscriber.Close())
	}
}

// An unreadable event ends the reading; the events before it are yielded.
func TestStuck(t *testing.T) {
	db, err := embedded.Open("", embedded.Options{})
	must(t, err)
	defer func() { must(t, db.Close()) }()
	id := history(t, db, 1)[0]
	strange := eventlog.Event{ID: eventlog.ID{1}, Name: "intent.requested.v9", Data: []byte("{}")}
	head, err := db.Log().Head(t.Context())
	must(t, err)
	_, err = db.Log().Append(t.Context(), intent.Stream(chain.IntentID{9}), 0, strange)
	must(t, err)
	log := outward.New(db.Log(), 1000)
	told, upto := 0, eventlog.Position(0)
	var stuck *eventlog.Stuck
	for batch, err := range log.Subscribe(t.Context(), 0, eventlog.Filter{}, 1000) {
		if err != nil {
			if !errors.As(err, &stuck) || stuck.At != head+1 {
				t.Fatal(err)
			}
			break
		}
		told, upto = told+len(batch.Events), batch.Next
	}
	if told != len(types()) || stuck == nil || upto > head {
		t.Errorf("%d were told, up to %d, then %v", told, upto, stuck)
	}
	var names []string
	for r, err := range log.ReadStream(t.Context(), intent.Stream(id), 0) {
		must(t, err)
		names = append(names, r.Name)
	}
	if d := cmp.Diff(types(), names); d != "" {
		t.Error(d)
	}
	for r, err := range log.ReadStream(t.Context(), intent.Stream(chain.IntentID{9}), 0) {
		if err == nil {
			t.Errorf("%+v is told", r)
		}
	}
}
