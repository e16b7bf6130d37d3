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
	"github.com/tempo-watchtower/watchtower/domain/consumer"
	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
	"github.com/tempo-watchtower/watchtower/eventlog"
	"github.com/tempo-watchtower/watchtower/examples"
	"github.com/tempo-watchtower/watchtower/infra/embedded"
	"github.com/tempo-watchtower/watchtower/infra/feed"
	"github.com/tempo-watchtower/watchtower/infra/postgres"
	"github.com/tempo-watchtower/watchtower/infra/testenv"
)

// childVar is the environment variable that turns the test program into the ledger. It holds
// the store and the ledger's path.
const childVar = "LEDGER_CHILD"

func TestMain(m *testing.M) {
	if os.Getenv(childVar) != "" {
		os.Exit(child(os.Args[1], os.Args[2]))
	}
	os.Exit(m.Run())
}

// ttl is short, so a test does not wait for seconds after each kill.
const ttl = 600 * time.Millisecond

// child keeps the ledger until its input ends, which happens if the test dies.
func child(store, path string) int {
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		cancel()
	}()
	if err := run(ctx, examples.Store{At: store}, path, feed.Options{Group: "ledger", TTL: ttl}); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// process is a running ledger. Closing in ends it gracefully.
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

// killed kills the process and waits for its end.
func (p process) killed(t *testing.T) {
	t.Helper()
	p.signal(t, syscall.SIGKILL)
	_ = p.cmd.Wait() // the error says that it was killed
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// history appends the events of many transactions, concurrently and in two parts each. It
// returns the number of delivered transactions per sender, and the number of events.
func history(t *testing.T, log appender, transactions int) (delivered map[string]int, events int) {
	t.Helper()
	codec := tx.Codec()
	delivered = map[string]int{}
	const turn = 100
	for first := 0; first < transactions; first += turn {
		var writing sync.WaitGroup
		for n := first; n < first+turn; n++ {
			l := life(n)
			events += len(l)
			if last, ok := l[len(l)-1].(tx.Finalized); ok && last.Verdict == tx.StatusExecuted {
				delivered[l[0].(tx.Accepted).Sender.String()]++
			}
			writing.Go(func() {
				stream, half := tx.Stream(1, hash(n)), len(l)/2
				if err := errors.Join(add(t.Context(), codec, log, stream, 0, l[:half]), add(t.Context(), codec, log, stream, half, l[half:])); err != nil {
					t.Error(err)
				}
			})
		}
		writing.Wait()
	}
	return delivered, events
}

// add appends events to a stream that has after events.
func add(ctx context.Context, codec eventlog.Codec[tx.Event], log appender, stream eventlog.Stream, after int, facts []tx.Event) error {
	events := make([]eventlog.Event, len(facts))
	for i, e := range facts {
		name, data, err := codec.Encode(e)
		if err != nil {
			return err
		}
		events[i] = eventlog.Event{ID: eventlog.DeriveID(stream, eventlog.ID{}, after+i), Name: name, Data: data}
	}
	_, err := log.Append(ctx, stream, eventlog.Version(after), events...)
	return err
}

type appender interface {
	Append(ctx context.Context, stream eventlog.Stream, expected eventlog.Version, events ...eventlog.Event) (eventlog.Appended, error)
}

func hash(n int) (h chain.Hash) {
	binary.BigEndian.PutUint64(h[:], uint64(n)+1)
	return h
}

// life returns the events of a transaction: every fifth expires, the others are delivered.
func life(n int) []tx.Event {
	at := time.Unix(1_800_000_000, 0).UTC()
	accepted := tx.Accepted{Chain: 1, Hash: hash(n), Sender: chain.Address{byte(n % 7)}, At: at}
	sent := tx.Broadcast{Attempt: 1, Answers: []tx.Answer{}, At: at}
	if n%5 == 0 {
		return []tx.Event{accepted, sent, tx.Expired{At: at}, tx.Finalized{Verdict: tx.StatusExpired, At: at}}
	}
	return []tx.Event{accepted, sent, tx.Mined{Receipt: chain.Receipt{Status: 1}, At: at}, tx.Finalized{Verdict: tx.StatusExecuted, At: at}}
}

// watch reads a store's consumers beside them.
type watch struct {
	t      *testing.T
	groups interface {
		Groups(ctx context.Context) ([]consumer.Group, error)
	}
}

// ledger returns the state of the ledger's group: every event up to its position has been
// applied.
func (w watch) ledger() consumer.Group {
	w.t.Helper()
	all, err := w.groups.Groups(w.t.Context())
	must(w.t, err)
	if len(all) == 0 { // no ledger has started yet
		return consumer.Group{}
	}
	return all[0]
}

// torment runs ledgers and ends them at random: by kill -9, gracefully, or by stopping them
// until another has taken over and then waking them up. In the end the ledger is right.
func torment(t *testing.T, store string, w watch, delivered map[string]int, events, deaths int) {
	path := filepath.Join(t.TempDir(), "ledger.db")
	kind := rand.IntN(3)
	for death := range deaths {
		// The kills are spread over the work: each comes when its share is done.
		share := eventlog.Position(events * (death + 1) / (deaths + 1))
		p := start(t, store, path)
		waitFor(t, 5*time.Minute, func() bool { return w.ledger().Position >= share })
		switch (kind + death) % 3 {
		case 0:
			p.killed(t)
		case 1:
			must(t, p.in.Close())
			must(t, p.cmd.Wait())
		case 2:
			p.signal(t, syscall.SIGSTOP)
			stopped := w.ledger().Holder
			other := start(t, store, path)
			// The other takes over, unless the stopped one holds a lock of SQLite.
			waitUpTo(t, 5*ttl, func() bool { now := w.ledger().Holder; return now != "" && now != stopped })
			p.signal(t, syscall.SIGCONT) // it does not know that it was stopped
			<-time.After(time.Duration(rand.IntN(200)) * time.Millisecond)
			p.killed(t)
			other.killed(t)
		}
	}
	last := start(t, store, path)
	waitFor(t, 5*time.Minute, func() bool { return w.ledger().Position == eventlog.Position(events) })
	must(t, last.in.Close())
	must(t, last.cmd.Wait())
	if parked := w.ledger().Parked; parked != 0 {
		t.Errorf("%d streams are parked", parked)
	}
	audit(t, path, delivered, events)
}

// audit compares a ledger with the delivered transactions.
func audit(t *testing.T, path string, delivered map[string]int, events int) {
	t.Helper()
	ledger, err := sql.Open("sqlite", "file:"+path)
	must(t, err)
	defer ledger.Close() //nolint:errcheck // it was read
	var seen int
	must(t, ledger.QueryRowContext(t.Context(), `SELECT sum(version) FROM seen`).Scan(&seen))
	if seen != events {
		t.Errorf("%d events were seen, there are %d", seen, events)
	}
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
	if len(delivered) != 0 {
		t.Errorf("%d senders are missing", len(delivered))
	}
}

// waitFor polls until yes returns true.
func waitFor(t *testing.T, patience time.Duration, yes func() bool) {
	t.Helper()
	if !waitUpTo(t, patience, yes) {
		t.Fatal("nothing goes on")
	}
}

// waitUpTo polls until yes returns true or the time is over, and returns the last result.
func waitUpTo(t *testing.T, patience time.Duration, yes func() bool) bool {
	t.Helper()
	deadline := time.NewTimer(patience)
	defer deadline.Stop()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for !yes() {
		select {
		case <-tick.C:
		case <-deadline.C:
			return false
		}
	}
	return true
}

// onEmbedded torments ledgers that read an embedded store beside its owner.
func onEmbedded(t *testing.T, transactions, deaths int) {
	dir := t.TempDir()
	db, err := embedded.Open(dir, embedded.Options{AllowDataLoss: true})
	must(t, err)
	t.Cleanup(func() { must(t, db.Close()) })
	delivered, events := history(t, db.Log(), transactions)
	beside, err := embedded.OpenFeed(dir, embedded.FeedOptions{})
	must(t, err)
	t.Cleanup(func() { must(t, beside.Close()) })
	torment(t, dir, watch{t, beside.Groups()}, delivered, events, deaths)
}

// A consumer is ended at random, again and again, while it reads thousands of events. Every
// event is handled, in the order of its stream, and takes effect once.
func TestEndedAtRandomEmbedded(t *testing.T) {
	t.Parallel()
	onEmbedded(t, 1000, 6)
}

func TestEndedAtRandomPostgres(t *testing.T) {
	t.Parallel()
	url := testenv.Postgres(t)
	db, err := postgres.Open(t.Context(), url, postgres.Options{})
	must(t, err)
	t.Cleanup(func() { must(t, db.Close(context.Background())) })
	must(t, db.Migrate(t.Context()))
	delivered, events := history(t, db.Log, 500)
	torment(t, url, watch{t, db.Groups}, delivered, events, 3)
}
