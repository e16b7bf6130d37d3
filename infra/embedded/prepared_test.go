package embedded

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"zombiezen.com/go/sqlite"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/relay/intent"
	"github.com/tempo-watchtower/watchtower/eventlog"
)

// A turn of a lane with many ordering groups looks each of them up. SQLite compiles these
// statements once, and not again for each group: that made one client's turns five times as
// long for all clients.
func TestClaimCompilesNothingAgain(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	db, err := Open("", Options{Now: func() time.Time { return now }})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close() //nolint:errcheck // nothing is kept
	q := db.Intents()
	const groups = 50
	var changes []intent.Change
	for n := range groups {
		w := intent.Waiting{
			ID: chain.IntentID{byte(n), 1}, Position: eventlog.Position(n + 1), Chain: 1, Client: "ann", From: intent.From{Pool: "hot"},
			Row: intent.Row{Chain: 1, Client: "ann", Order: fmt.Sprint(n)},
		}
		changes = append(changes, intent.Change{ID: w.ID, Open: &w})
	}
	if err := q.Apply(t.Context(), "relayer", 0, groups, changes); err != nil {
		t.Fatal(err)
	}
	compiled := 0
	_, err = write(t.Context(), q.work.file, "count", func(conn *sqlite.Conn) (any, error) {
		return nil, conn.SetAuthorizer(sqlite.AuthorizeFunc(func(a sqlite.Action) sqlite.AuthResult {
			if a.Type() == sqlite.OpSelect {
				compiled++
			}
			return sqlite.AuthResultOK
		}))
	})
	if err != nil {
		t.Fatal(err)
	}
	claim := func() {
		t.Helper()
		claimed, err := q.Claim(context.WithoutCancel(t.Context()), intent.Claim{
			Lane: chain.Sequence{Chain: 1, Sender: chain.Address{1}}, Pools: []string{"hot"}, Holder: "a", TTL: time.Hour, Limit: groups / 2,
		})
		if err != nil || len(claimed) != groups/2 {
			t.Fatalf("%d claimed, %v", len(claimed), err)
		}
	}
	claim() // compiles the statements not used before
	first := compiled
	claim() // half of the groups are in the lane by now
	if first == 0 || compiled > first {
		t.Errorf("%d times is a SELECT compiled at first, %d times by the second claim", first, compiled-first)
	}
}

// A claim looks up few of the intents that follow in a client's ordering groups in the lane,
// however many groups there are: it is given the same intents.
func TestClaimLooksUpFewFollowers(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	db, err := Open("", Options{Now: func() time.Time { return now }})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close() //nolint:errcheck // nothing is kept
	const groups, each, limit = 60, 30, 20
	lane := chain.Sequence{Chain: 1, Sender: chain.Address{1}}
	var changes []intent.Change
	for n := range groups * each {
		w := intent.Waiting{
			ID: chain.IntentID{byte(n >> 8), byte(n), 1}, Position: eventlog.Position(n + 1), Chain: 1, Client: "ann", From: intent.From{Pool: "hot"},
			Row: intent.Row{Chain: 1, Client: "ann", Order: fmt.Sprint(n % groups)},
		}
		changes = append(changes, intent.Change{ID: w.ID, Open: &w})
		if n < groups { // the first intent of each group
			changes = append(changes, intent.Change{ID: w.ID, Place: &intent.Place{Signer: lane.Sender}})
		}
	}
	q := db.Intents()
	if err := q.Apply(t.Context(), "relayer", 0, 1, changes); err != nil {
		t.Fatal(err)
	}
	l := &intentClaim{
		Claim: intent.Claim{Lane: lane, Pools: []string{"hot"}, Holder: "a", TTL: time.Hour, Limit: limit}, now: now, lane: laneOf(lane),
	}
	claimed, err := write(t.Context(), q.work.file, "claim intents", func(conn *sqlite.Conn) ([]intent.Claimed, error) {
		l.conn = conn
		return l.run()
	})
	if err != nil || len(claimed) != limit {
		t.Fatalf("%d claimed, %v", len(claimed), err)
	}
	for n, c := range claimed {
		if c.Position != eventlog.Position(groups+n+1) {
			t.Errorf("claim %d is at %d", n, c.Position)
		}
	}
	if most := limit * (limit + 1) / 2; len(l.found) > most {
		t.Errorf("%d candidates, more than %d", len(l.found), most)
	}
}

// A row from before the queue had fee ceilings and sizes has neither, and is claimed.
func TestRowsBeforeCeilings(t *testing.T) {
	db, err := Open("", Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close() //nolint:errcheck // nothing is kept
	q := db.Intents()
	want := intent.Claimed{Waiting: intent.Waiting{ID: chain.IntentID{1}, Position: 1, Chain: 1, Client: "ann", From: intent.From{Pool: "hot"}}}
	_, err = write(t.Context(), q.work.file, "insert", func(conn *sqlite.Conn) (any, error) {
		return nil, exec(conn, `INSERT INTO intents (intent, pos, chain, client, wants, nonce_key, deadline, head) VALUES (?, 1, 1, 'ann', 'pool:hot', x'', 0, 1)`, want.ID[:])
	})
	if err != nil {
		t.Fatal(err)
	}
	got, err := q.Claim(t.Context(), intent.Claim{
		Lane: chain.Sequence{Chain: 1, Sender: chain.Address{1}}, Pools: []string{"hot"}, Holder: "a", TTL: time.Hour, Limit: 1,
	})
	if diff := cmp.Diff([]intent.Claimed{want}, got); err != nil || diff != "" {
		t.Errorf("%v (-want +got)\n%s", err, diff)
	}
}
