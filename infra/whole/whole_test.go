package whole_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
	"github.com/tempo-watchtower/watchtower/eventlog"
	"github.com/tempo-watchtower/watchtower/infra/embedded"
	"github.com/tempo-watchtower/watchtower/infra/whole"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// record appends events of a transaction.
func record(t *testing.T, db *embedded.DB, hash chain.Hash, events ...tx.Event) {
	t.Helper()
	stream := tx.Stream(1, hash)
	for i, e := range events {
		name, data, err := tx.Codec().Encode(e)
		must(t, err)
		_, err = db.Log().Append(t.Context(), stream, eventlog.Version(i), eventlog.Event{ID: eventlog.DeriveID(stream, eventlog.ID{1}, i), Name: name, Data: data})
		must(t, err)
	}
}

// life is a transaction that is sent, mined, reorged, mined again, and final.
func life(hash chain.Hash) []tx.Event {
	at := time.Date(2026, 11, 21, 3, 4, 5, 0, time.UTC)
	one, two := chain.Block{Number: 7, Hash: chain.Hash{1}, Time: 9}, chain.Block{Number: 7, Hash: chain.Hash{2}, Time: 9}
	return []tx.Event{
		tx.Accepted{Chain: 1, Hash: hash, Sender: chain.Address{1}, Signature: chain.Secp256k1, Nonce: 4, EligibleAt: 5, At: at},
		tx.Broadcast{Attempt: 1, Answers: []tx.Answer{{Endpoint: "node", Class: tx.Taken}}, At: at},
		tx.Mined{Receipt: chain.Receipt{Block: one, Status: 1, GasUsed: 21_000}, At: at},
		tx.Reorged{Was: one, Now: two, At: at},
		tx.Mined{Receipt: chain.Receipt{Block: two, Status: 0, GasUsed: 30_000}, At: at},
		tx.Finalized{Verdict: tx.StatusExecuted, Block: two, By: two, At: at},
	}
}

// states returns the statuses and receipts that a reader of the view sees, by stream and version.
func states(t *testing.T, log whole.Log, after eventlog.Position, names ...string) (all []string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	head, err := log.Head(ctx)
	must(t, err)
	for batch, err := range log.Subscribe(ctx, after, eventlog.Filter{Names: names}, 100) {
		must(t, err)
		for _, r := range batch.Events {
			all = append(all, shown(t, r))
		}
		if batch.Next >= head {
			return all
		}
	}
	return all
}

func shown(t *testing.T, r eventlog.Recorded) string {
	t.Helper()
	var e whole.Event
	must(t, json.Unmarshal(r.Data, &e))
	if _, err := tx.Codec().Decode(r.Name, e.Data); err != nil {
		t.Errorf("%s: the data is not as recorded: %v", r.Name, err)
	}
	line := fmt.Sprint(e.Transaction.Hash[0], " ", r.Version, " ", e.Transaction.Status, " ", e.Transaction.Finalized)
	if got := e.Transaction.Receipt; got != nil {
		line += fmt.Sprint(" ", got.Status, " ", got.GasUsed)
	}
	return line
}

// Every event of a transaction carries the state right after it, in whatever way it is read.
func TestEventsCarryTheState(t *testing.T) {
	db, err := embedded.Open("", embedded.Options{})
	must(t, err)
	defer func() { must(t, db.Close()) }()
	a, b := chain.Hash{1}, chain.Hash{2}
	record(t, db, a, life(a)...)
	record(t, db, b, life(b)[:1]...)
	want := []string{
		"1 1 queued false", "1 2 broadcasting false", "1 3 executed false 1 21000", "1 4 broadcasting false", "1 5 executed false 0 30000", "1 6 executed true 0 30000",
		"2 1 queued false",
	}
	log := whole.New(db.Log())
	for range 2 {
		if d := cmp.Diff(want, states(t, log, 0)); d != "" {
			t.Error(d)
		}
	}
	if d := cmp.Diff([]string{want[2], want[4]}, states(t, whole.New(db.Log()), 0, "tx.mined.")); d != "" {
		t.Errorf("by name: %s", d)
	}
	if d := cmp.Diff(want[4:], states(t, whole.New(db.Log()), 4)); d != "" {
		t.Errorf("from the middle: %s", d)
	}
	var streamed []string
	for r, err := range log.ReadStream(t.Context(), tx.Stream(1, a), 3) {
		must(t, err)
		streamed = append(streamed, shown(t, r))
	}
	if d := cmp.Diff(want[3:6], streamed); d != "" {
		t.Errorf("of a stream: %s", d)
	}
}

// Other events are as recorded. An unreadable event ends the reading behind the events before it.
func TestOtherAndUnreadableEvents(t *testing.T) {
	db, err := embedded.Open("", embedded.Options{})
	must(t, err)
	defer func() { must(t, db.Close()) }()
	_, err = db.Log().Append(t.Context(), "group-x", 0, eventlog.Event{ID: eventlog.ID{1}, Name: "group.joined.v1", Data: []byte(`{"a":1}`)})
	must(t, err)
	record(t, db, chain.Hash{1}, life(chain.Hash{1})[:1]...)
	_, err = db.Log().Append(t.Context(), tx.Stream(1, chain.Hash{1}), 1, eventlog.Event{ID: eventlog.ID{2}, Name: "tx.mined.v9", Data: []byte("{}")})
	must(t, err)
	var got []string
	var stuck *eventlog.Stuck
	for batch, err := range whole.New(db.Log()).Subscribe(t.Context(), 0, eventlog.Filter{}, 100) {
		if err != nil {
			if !errors.As(err, &stuck) {
				t.Fatal(err)
			}
			break
		}
		for _, r := range batch.Events {
			got = append(got, r.Name)
			if r.Name == "group.joined.v1" && string(r.Data) != `{"a":1}` {
				t.Errorf("%s", r.Data)
			}
		}
	}
	if d := cmp.Diff([]string{"group.joined.v1", "tx.accepted.v1"}, got); d != "" || stuck == nil || stuck.At != 3 {
		t.Errorf("%s, then %v", d, stuck)
	}
}
