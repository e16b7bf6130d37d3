package main_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"

	"github.com/tempo-watchtower/watchtower/cmd/devnet/wallet"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
	"github.com/tempo-watchtower/watchtower/proof/promises"
	"github.com/tempo-watchtower/watchtower/proof/rig"
)

// byHand runs statements on the log of a stopped service. $1 is the stream's name.
func (w *world) byHand(t *testing.T, stream string, statements ...string) {
	t.Helper()
	dir, dsn := w.engine()
	if dir == "" {
		conn, err := pgx.Connect(w.ctx, dsn)
		check(t, err)
		defer conn.Close(context.WithoutCancel(w.ctx)) //nolint:errcheck // the statements have been run
		for _, s := range statements {
			s = strings.NewReplacer("{events}", "log.events", "{streams}", "log.streams", "$1", "'"+stream+"'",
				"{id}", "gen_random_uuid()", "{bytes}", "convert_to", "{as}", ", 'UTF8'", "{at}", "at").Replace(s)
			_, err := conn.Exec(w.ctx, s)
			check(t, err)
		}
		return
	}
	conn, err := sqlite.OpenConn(filepath.Join(dir, "events.db"), sqlite.OpenReadWrite)
	check(t, err)
	defer func() { check(t, conn.Close()) }()
	for _, s := range statements {
		s = strings.NewReplacer("{events}", "events", "{streams}", "streams", "$1", "'"+stream+"'",
			"{id}", "randomblob(16)", "{bytes}", "CAST", "{as}", " AS BLOB", "{at}", "at").Replace(s)
		check(t, sqlitex.ExecuteScript(conn, s, nil))
	}
}

// halted returns the readers that cannot go on, by name, according to /health.
func halted(ctx context.Context, url string) (status int, problems map[string]string) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url+"/health", nil)
	if err != nil {
		return 0, nil
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, nil
	}
	defer res.Body.Close() //nolint:errcheck // read as far as it matters
	var report struct {
		Readers []struct{ Name, Problem string }
	}
	_ = json.NewDecoder(res.Body).Decode(&report) // on an error there are no problems
	problems = map[string]string{}
	for _, r := range report.Readers {
		if r.Problem != "" {
			problems[r.Name] = r.Problem
		}
	}
	return res.StatusCode, problems
}

// poisons are unreadable events, with the readers that read them.
var poisons = map[string]struct { //nolint:gochecknoglobals // a table
	name, data string
	readers    []string
}{
	"unknown type":    {"tx.surprised.v1", `{}`, []string{"scheduler", "transactions"}},
	"unknown version": {"tx.accepted.v99", `{}`, []string{"grouping", "scheduler", "ownership", "transactions", "groups"}},
	"unknown field":   {"tx.broadcast.v1", `{"unheard":1}`, []string{"scheduler", "transactions"}},
	"no JSON":         {"tx.broadcast.v1", `{"at":`, []string{"scheduler", "transactions"}},
}

// The log contains an event that no reader can read. The readers of its kind stop before it, and
// report that in the log, in /health and as a metric. The other readers go on, and earlier
// events are handled. Nothing is skipped: once the event can be read, all later events are
// handled.
func TestPoisonedLog(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, store func(t *testing.T, dir string) []string) {
		storedHere(t, "an event of an event store cannot be replaced by hand")
		for name, poison := range poisons {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				poisoned(t, newWorld(t, store, "--block-time", "1"), poison.name, poison.data, poison.readers)
			})
		}
	})
}

func poisoned(t *testing.T, w *world, name, data string, readers []string) {
	w.broken[promises.P12] = "what takes the poison's place is a verdict that is sealed again"
	w.broken[promises.P31] = "the poison is put in by hand, and so has no link"
	s := w.service(t)
	check(t, s.Start(w.ctx))
	before, toBefore := rig.Payments(9700, 10)
	w.submit(t, s, before, 4)
	w.delivered(t, s.URL, before, rig.Sealed)
	to := chain.Address{0: 0x79, 19: 7}
	opens := uint64(time.Now().Unix()) + 12
	waits := rig.Pay(wallet.Dev(0), wallet.Tempo{
		NonceKey: chain.NonceKey{30: 7, 31: 1}, Window: chain.Window{After: opens}, Calls: []chain.Call{wallet.Transfer(wallet.PathUSD, to, 1)},
	})
	w.submit(t, s, []rig.Payment{waits}, 1)
	check(t, s.Stop(w.ctx))

	stream := string(tx.Stream(rig.TempoChain, before[0].Hash))
	position := w.poison(t, stream, name, data)
	w.forget(t) // so that it is read in one batch with all events before it
	check(t, s.Start(w.ctx))
	after, toAfter := rig.Payments(9701, 10)
	if acked := load(w.ctx, s, after, 4); len(acked) != len(after) {
		t.Fatalf("%d of %d are accepted while the log is poisoned", len(acked), len(after))
	}
	w.alarmed(t, s, position, readers)
	for { // the transactions before the event are delivered, long after it stopped the readers
		if paid, err := rig.Balance(w.ctx, w.chain.URL(), wallet.PathUSD, to); err == nil && paid == 1 {
			break
		}
		if w.ctx.Err() != nil {
			t.Fatal("what came before the event is not delivered")
		}
		w.wait(100 * time.Millisecond)
	}
	w.alarmed(t, s, position, readers) // still
	sent := w.proxy.Sent()
	for _, p := range after {
		if got, err := rig.Get(w.ctx, s.URL, p.Hash); err != nil || got.Status != "queued" || sent[p.Hash] > 0 {
			t.Errorf("came after the event, and is %s, sent %d times: %v", got.Status, sent[p.Hash], err)
		}
	}
	check(t, s.Stop(w.ctx))

	// A copy of an event already in the stream takes the poison's place: it changes nothing.
	w.byHand(t, stream, fmt.Sprintf(`UPDATE {events} SET name = 'tx.finalized.v1', data = (SELECT e.data FROM {events} e
		JOIN {streams} s ON s.no = e.stream WHERE s.name = $1 AND e.name = 'tx.finalized.v1' LIMIT 1) WHERE pos = %d`, position))
	check(t, s.Start(w.ctx))
	w.delivered(t, s.URL, slices.Concat(before, []rig.Payment{waits}, after), rig.Sealed)
	w.paidOnce(t, toBefore, len(before))
	w.paidOnce(t, to, 1)
	w.paidOnce(t, toAfter, len(after))
	if status, problems := halted(w.ctx, s.URL); status != http.StatusOK || len(problems) > 0 {
		t.Errorf("afterwards /health answers %d, %v", status, problems)
	}
	check(t, s.Stop(w.ctx))
}

// poison appends an event to a stream, and returns its position.
func (w *world) poison(t *testing.T, stream, name, data string) (position uint64) {
	t.Helper()
	insert := fmt.Sprintf(`INSERT INTO {events} (pos, stream, version, at, id, name, data, actor, trace)
		SELECT (SELECT max(pos) + 1 FROM {events}), e.stream, e.version + 1, {at}, {id}, '%s', {bytes}('%s'{as}), 'nobody', ''
		FROM {events} e JOIN {streams} s ON s.no = e.stream WHERE s.name = $1 ORDER BY e.version DESC LIMIT 1`, name, data)
	if dir, _ := w.engine(); dir != "" {
		w.byHand(t, stream, insert)
	} else {
		w.byHand(t, stream, insert, `UPDATE log.head SET pos = pos + 1`,
			`UPDATE log.streams SET version = version + 1, last_pos = (SELECT pos FROM log.head) WHERE name = $1`)
	}
	return w.head(t)
}

// head is the position of the last event in the log of a stopped service.
func (w *world) head(t *testing.T) (position uint64) {
	t.Helper()
	dir, dsn := w.engine()
	if dir == "" {
		conn, err := pgx.Connect(w.ctx, dsn)
		check(t, err)
		defer conn.Close(context.WithoutCancel(w.ctx)) //nolint:errcheck // it has been asked
		check(t, conn.QueryRow(w.ctx, `SELECT pos FROM log.head`).Scan(&position))
		return position
	}
	conn, err := sqlite.OpenConn(filepath.Join(dir, "events.db"), sqlite.OpenReadWrite)
	check(t, err)
	defer func() { check(t, conn.Close()) }()
	check(t, sqlitex.Execute(conn, `SELECT max(pos) FROM events`, &sqlitex.ExecOptions{ResultFunc: func(s *sqlite.Stmt) error {
		position = uint64(s.ColumnInt64(0))
		return nil
	}}))
	return position
}

// alarmed waits until exactly these readers are reported as halted at a position.
func (w *world) alarmed(t *testing.T, s *rig.Service, position uint64, readers []string) {
	t.Helper()
	want := slices.Sorted(slices.Values(readers))
	var got []string
	for {
		status, problems := halted(w.ctx, s.URL)
		got = got[:0]
		for name, problem := range problems {
			if !strings.Contains(problem, fmt.Sprintf("position %d: ", position)) {
				t.Errorf("%s: %s, but it is position %d", name, problem, position)
			}
			got = append(got, name)
		}
		if slices.Sort(got); slices.Equal(got, want) && status == http.StatusServiceUnavailable {
			break
		}
		if w.ctx.Err() != nil {
			t.Fatalf("/health answers %d and names %v, want %v", status, problems, want)
		}
		w.wait(50 * time.Millisecond)
	}
	figures, log := scrape(t, w, s), string(readFile(t, s.Log))
	for _, name := range want {
		if figure := fmt.Sprintf("watchtower_reader_stuck_position{reader=%q} %d\n", name, position); !strings.Contains(figures, figure) {
			t.Errorf("no figure %s", figure)
		}
		if line := fmt.Sprintf(`"reader":%q,"position":%d`, name, position); !strings.Contains(log, line) {
			t.Errorf("not in the log: %s", line)
		}
	}
}
