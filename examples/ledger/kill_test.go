package main

import (
	"context"
	"database/sql"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/event"
	"github.com/tempo-watchtower/watchtower/domain/tx"
	"github.com/tempo-watchtower/watchtower/infra/embedded"
	"github.com/tempo-watchtower/watchtower/infra/feed"
	"github.com/tempo-watchtower/watchtower/infra/postgres"
	"github.com/tempo-watchtower/watchtower/infra/testenv"
)

// childVar makes the test's program the ledger: the store, the ledger's path.
const childVar = "LEDGER_CHILD"

func TestMain(m *testing.M) {
	if os.Getenv(childVar) != "" {
		os.Exit(child(os.Args[1], os.Args[2]))
	}
	os.Exit(m.Run())
}

// ttl is short, so that a test need not wait for seconds after each death.
const ttl = 1000 * time.Millisecond

// child keeps the ledger until its input ends, as it does when the test dies.
func child(store, path string) int {
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		cancel()
	}()
	if err := run(ctx, store, path, feed.Options{Group: "ledger", TTL: ttl}); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// process is a running ledger. Closing in ends it in good order.
type process struct {
	cmd *exec.Cmd
	in  io.Closer
}

func start(t *testing.T, store, path string) process {
	t.Helper()
	cmd := exec.Command(os.Args[0], store, path) //nolint:noctx // it is killed, or ends with its input
	cmd.Env = append(os.Environ(), childVar+"=1")
	cmd.Stderr = t.Output()
	in, err := cmd.StdinPipe()
	must(t, err)
	must(t, cmd.Start())
	return process{cmd, in}
}

func (p process) signal(t *testing.T, s syscall.Signal) {
	t.Helper()
	must(t, p.cmd.Process.Signal(s))
}

// killed is dead for sure.
func (p process) killed(t *testing.T) {
	t.Helper()
	p.signal(t, syscall.SIGKILL)
	_ = p.cmd.Wait() // it says that it was killed
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// history appends transactions' lives, many at once, and tells how many of each sender are delivered in the end, and how many events there are.
func history(t *testing.T, log appender, transactions int) (delivered map[string]int, events int) {
	t.Helper()
	ctx, codec := t.Context(), tx.Codec()
	delivered = map[string]int{}
	const turn = 100
	for first := 0; first < transactions; first += turn {
		lives := make([][]tx.Event, turn)
		for i := range lives {
			lives[i] = life(first + i)
			sender := lives[i][0].(tx.Accepted).Sender.String()
			if last, ok := lives[i][len(lives[i])-1].(tx.Finalized); ok && last.Verdict == tx.StatusExecuted {
				delivered[sender]++
			}
		}
		var writing sync.WaitGroup
		for i, l := range lives {
			events += len(l)
			writing.Go(func() {
				stream := tx.Stream(1, hash(first+i))
				for version, e := range l {
					name, data, err := codec.Encode(e)
					if err == nil {
						_, err = log.Append(ctx, stream, event.Version(version), event.Event{ID: event.DeriveID(stream, event.ID{}, version), Name: name, Data: data})
					}
					if err != nil {
						t.Error(err)
					}
				}
			})
		}
		writing.Wait()
	}
	return delivered, events
}

type appender interface {
	Append(ctx context.Context, stream event.Stream, expected event.Version, events ...event.Event) (event.Appended, error)
}

func hash(n int) (h chain.Hash) {
	binary.BigEndian.PutUint64(h[:], uint64(n)+1)
	return h
}

// life is what happens to a transaction: each fifth expires, the others are delivered.
func life(n int) []tx.Event {
	at := time.Unix(1_800_000_000, 0).UTC()
	accepted := tx.Accepted{Chain: 1, Hash: hash(n), Sender: chain.Address{byte(n % 7)}, At: at}
	sent := tx.Broadcast{Attempt: 1, Answers: []tx.Answer{}, At: at}
	if n%5 == 0 {
		return []tx.Event{accepted, sent, tx.Expired{At: at}, tx.Finalized{Verdict: tx.StatusExpired, At: at}}
	}
	return []tx.Event{accepted, sent, tx.Mined{Receipt: chain.Receipt{Status: 1}, At: at}, tx.Finalized{Verdict: tx.StatusExecuted, At: at}}
}

// progress is how many events have had their effect.
func progress(t *testing.T, ledger *sql.DB) (events int) {
	t.Helper()
	err := ledger.QueryRowContext(t.Context(), `SELECT coalesce(sum(version), 0) FROM seen`).Scan(&events)
	if err != nil && ledger.QueryRowContext(t.Context(), `SELECT count(*) FROM sqlite_schema`).Scan(&events) == nil && events == 0 {
		return 0 // its tables are not made yet
	}
	must(t, err)
	return events
}

// torment runs ledgers and ends them at random: by kill -9, in good order, or by standing
// still until another has taken over and then waking up. In the end the ledger is right.
func torment(t *testing.T, store string, delivered map[string]int, events, deaths int, parked func() (int, error)) {
	path := filepath.Join(t.TempDir(), "ledger.db")
	ledger, err := sql.Open("sqlite", "file:"+path+"?_pragma=busy_timeout(10000)")
	must(t, err)
	t.Cleanup(func() { must(t, ledger.Close()) })
	for death := range deaths {
		// The deaths are spread over the work: the next one comes when its share is done.
		share := events * (death + 1) / (deaths + 1)
		p := start(t, store, path)
		waitFor(t, func() bool { return progress(t, ledger) >= share })
		switch rand.IntN(3) {
		case 0:
			p.killed(t)
		case 1:
			must(t, p.in.Close())
			must(t, p.cmd.Wait())
		case 2:
			p.signal(t, syscall.SIGSTOP)
			other := start(t, store, path)
			// The other takes over, unless the first stands still with a lock of SQLite's.
			<-time.After(3 * ttl)
			p.signal(t, syscall.SIGCONT) // it believes that nothing has happened
			<-time.After(time.Duration(rand.IntN(200)) * time.Millisecond)
			p.killed(t)
			other.killed(t)
		}
	}
	last := start(t, store, path)
	waitFor(t, func() bool { return progress(t, ledger) == events })
	must(t, last.in.Close())
	must(t, last.cmd.Wait())

	rows, err := ledger.QueryContext(t.Context(), `SELECT sender, n FROM delivered`)
	must(t, err)
	defer rows.Close() //nolint:errcheck // Err tells
	for rows.Next() {
		var sender string
		var n int
		must(t, rows.Scan(&sender, &n))
		if n != delivered[sender] {
			t.Errorf("%s: %d were counted, %d were delivered", sender, n, delivered[sender])
		}
		delete(delivered, sender)
	}
	must(t, rows.Err())
	if n, err := parked(); err != nil || n != 0 || len(delivered) != 0 {
		t.Errorf("%d streams are parked, %d senders are missing: %v", n, len(delivered), err)
	}
}

// waitFor asks until the answer is yes.
func waitFor(t *testing.T, yes func() bool) {
	t.Helper()
	deadline := time.NewTimer(5 * time.Minute)
	defer deadline.Stop()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for !yes() {
		select {
		case <-tick.C:
		case <-deadline.C:
			t.Fatal("nothing goes on")
		}
	}
}

// onEmbedded torments ledgers that read an embedded store beside its owner.
func onEmbedded(t *testing.T, transactions, deaths int) {
	dir := t.TempDir()
	db, err := embedded.Open(dir, embedded.Options{AllowDataLoss: true})
	must(t, err)
	t.Cleanup(func() { must(t, db.Close()) })
	delivered, events := history(t, db.Log(), transactions)
	torment(t, dir, delivered, events, deaths, func() (int, error) {
		f, err := embedded.OpenFeed(dir, embedded.FeedOptions{})
		if err != nil {
			return 0, err
		}
		all, err := f.Groups().Parked(t.Context(), feed.Name("ledger", "stream:tx-"))
		return len(all), errors.Join(err, f.Close())
	})
}

// A consumer is ended at random, again and again, while it reads 20,000 events: every
// event is seen, each stream's in order, and each has its effect once.
func TestEndedAtRandomEmbedded(t *testing.T) { onEmbedded(t, 5000, 10) }

func TestEndedAtRandomPostgres(t *testing.T) {
	url := testenv.Postgres(t)
	db, err := postgres.Open(t.Context(), url, postgres.Options{})
	must(t, err)
	t.Cleanup(func() { must(t, db.Close(context.Background())) })
	must(t, db.Migrate(t.Context()))
	delivered, events := history(t, db.Log, 1000)
	torment(t, url, delivered, events, 4, func() (int, error) {
		all, err := db.Groups.Parked(t.Context(), feed.Name("ledger", "stream:tx-"))
		return len(all), err
	})
}
