package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
	"github.com/tempo-watchtower/watchtower/eventlog"
	"github.com/tempo-watchtower/watchtower/infra/postgres"
)

// killRounds bounds the number of strikes: on a slow machine sessions might not even begin
// between two strikes, and would make no progress.
const killRounds = 60

// killer ends all other sessions of a database repeatedly until stop is called. stop returns
// how many it ended.
func killer(t *testing.T, url string) (stop func() int) {
	conn := admin(t, url)
	quit := make(chan struct{})
	var killed int
	var running sync.WaitGroup
	running.Go(func() {
		tick := time.NewTicker(30 * time.Millisecond)
		defer tick.Stop()
		for range killRounds {
			select {
			case <-quit:
				return
			case <-tick.C:
			}
			var n int
			if err := conn.QueryRow(context.Background(), `SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
				WHERE datname = current_database() AND pid <> pg_backend_pid()`).Scan(&n); err != nil {
				t.Error(err)
				return
			}
			killed += n
		}
	})
	return sync.OnceValue(func() int {
		close(quit)
		running.Wait()
		return killed
	})
}

// TestKilledSessions ends the store's sessions during appends. Writers retry each append with
// the same ids until it is stored. Nothing is lost or duplicated, and a subscriber sees each
// event once.
func TestKilledSessions(t *testing.T) {
	op := open(t, postgres.Options{})
	ctx := soon(t)
	const writers, appends = 16, 100
	stop := killer(t, op.url)
	defer stop()

	var unknown, failed, repeated atomic.Int64
	var all sync.WaitGroup
	for w := range writers {
		all.Go(func() {
			stream := eventlog.Stream(fmt.Sprint("s-", w))
			for v := eventlog.Version(0); v < 2*appends; v += 2 {
				for {
					a, err := op.db.Log.Append(ctx, stream, v, happened(stream, v, 2)...)
					var conflict *eventlog.ConflictError
					if err == nil {
						if a.Version != v+2 {
							t.Errorf("%s at %d: %+v", stream, v, a)
						}
						if a.Repeated {
							repeated.Add(1)
						}
						break
					}
					if errors.As(err, &conflict) || ctx.Err() != nil {
						t.Errorf("%s at %d: %v", stream, v, err)
						return
					}
					if errors.Is(err, eventlog.ErrUnknown) {
						unknown.Add(1)
					} else {
						failed.Add(1)
					}
				}
			}
		})
	}
	seen := map[eventlog.Stream]eventlog.Version{}
	for b, err := range op.db.Log.Subscribe(ctx, 0, eventlog.Filter{}, 50) {
		must(t, err)
		for _, r := range b.Events {
			if seen[r.Stream]++; seen[r.Stream] != r.Version {
				t.Fatalf("%s: version %d came as number %d", r.Stream, r.Version, seen[r.Stream])
			}
		}
		if b.Next == writers*2*appends {
			break
		}
	}
	all.Wait()
	killed := stop()
	t.Logf("%d sessions ended, %d outcomes unknown, %d failures, %d repeats", killed, unknown.Load(), failed.Load(), repeated.Load())
	if killed < 10 {
		t.Errorf("only %d sessions were ended: nothing was tested", killed)
	}
	for w := range writers {
		stream := eventlog.Stream(fmt.Sprint("s-", w))
		var want []eventlog.ID
		for _, e := range happened(stream, 0, 2*appends) {
			want = append(want, e.ID)
		}
		var got []eventlog.ID
		for _, r := range stands(t, op.db.Log, stream) {
			got = append(got, r.ID)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: %s", stream, diff)
		}
	}
}

// TestKilledApply ends sessions while changes are applied. Each batch of changes is stored
// together with its checkpoint, or not at all.
func TestKilledApply(t *testing.T) {
	op := open(t, postgres.Options{})
	ctx := soon(t)
	stop := killer(t, op.url)
	defer stop()
	const batches = 300
	for at := eventlog.Position(0); at < batches; {
		n := int(at)
		row := tx.Work{Chain: 1, Hash: chain.Hash{byte(n >> 8), byte(n)}, Nonce: uint64(at), Phase: tx.Open, NextAt: time.Now()}
		err := op.db.Work.Apply(ctx, "feeder", at, at+1, []tx.Change{{Chain: 1, Hash: row.Hash, Open: &row}})
		if err == nil {
			at++
			continue
		}
		if errors.Is(err, eventlog.ErrMoved) {
			t.Fatal("nobody else moves this checkpoint:", err)
		}
		eventually(t, "reading the checkpoint", func() bool {
			at, err = op.db.Checkpoints.Checkpoint(ctx, "feeder")
			return err == nil
		})
	}
	killed := stop()
	if killed < 10 {
		t.Errorf("only %d sessions were ended: nothing was tested", killed)
	}
	var rows int
	must(t, admin(t, op.url).QueryRow(ctx, `SELECT count(*) FROM work.queue`).Scan(&rows))
	if rows != batches {
		t.Errorf("%d rows stand, not %d", rows, batches)
	}
}

// listening are the sessions that have run LISTEN.
func listening(t *testing.T, conn *pgx.Conn) (pids []int) {
	t.Helper()
	rows, err := conn.Query(soon(t), `SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND query LIKE 'LISTEN%'`)
	must(t, err)
	pids, err = pgx.CollectRows(rows, pgx.RowTo[int])
	must(t, err)
	return pids
}

// TestNotified appends in one process and subscribes in another, with pauses. An idle
// subscriber polls the log once a second, so without notifications an event would take most of
// a second. The test repeats this after the listening session was ended.
func TestNotified(t *testing.T) {
	writer := open(t, postgres.Options{})
	reader := writer.again()
	conn := admin(t, writer.url)
	batches := make(chan eventlog.Batch)
	ctx, cancel := context.WithCancel(soon(t))
	var running sync.WaitGroup
	running.Go(func() {
		for b, err := range reader.db.Log.Subscribe(ctx, 0, eventlog.Filter{}, 10) {
			if err != nil {
				return
			}
			select {
			case batches <- b:
			case <-ctx.Done():
			}
		}
	})
	defer running.Wait()
	defer cancel()
	<-batches // caught up on an empty log
	at := eventlog.Version(0)
	round := func() time.Duration {
		start := time.Now()
		a, err := writer.db.Log.Append(ctx, "one", at, happened("one", at, 1)...)
		must(t, err)
		for b := range batches {
			if b.Next == a.Position {
				break
			}
		}
		at = a.Version
		return time.Since(start)
	}
	quick := func(when string) {
		t.Helper()
		var took time.Duration
		for range 3 {
			<-time.After(1400 * time.Millisecond) // it has just polled: its pauses are 20, 40, … 640 ms, then a second
			took += round()
		}
		if took > time.Second {
			t.Errorf("%s, 3 appends took %s to the other process", when, took)
		}
	}
	eventually(t, "listening", func() bool { return len(listening(t, conn)) == 1 })
	quick("at first")
	was := listening(t, conn)[0]
	execute(t, conn, `SELECT pg_terminate_backend($1)`, was)
	round() // by polling, or by listening again
	eventually(t, "listening again", func() bool {
		now := listening(t, conn)
		return len(now) == 1 && now[0] != was
	})
	quick("listening again")
}

// TestLostReplies cuts the connection around COMMIT, before the server has it and after. Either
// way the outcome is unknown, and repeating the append shows it.
func TestLostReplies(t *testing.T) {
	direct := open(t, postgres.Options{})
	p, url := through(t, direct.url)
	var what atomic.Int64
	store := &opener{t: t, url: url, o: direct.o}
	store.o.Crash = func(point string) {
		if point == postgres.CrashPoints()[0] {
			p.lose(loss(what.Swap(int64(nothing))))
		}
	}
	store.start()
	t.Cleanup(func() { store.close() }) //nolint:errcheck // not what is tested
	ctx := soon(t)
	for name, c := range map[string]struct {
		loss  loss
		stood bool
	}{"the request is lost": {request, false}, "the reply is lost": {reply, true}} {
		t.Run(name, func(t *testing.T) {
			for i := range 20 {
				stream := eventlog.Stream(fmt.Sprintf("%s-%d", name, i))
				events := happened(stream, 0, 3)
				// After this the session has prepared its statements: the next thing lost is
				// the append.
				_, err := store.db.Log.Append(ctx, "warm-"+stream, 0, happened("warm-"+stream, 0, 1)...)
				must(t, err)
				what.Store(int64(c.loss))
				_, err = store.db.Log.Append(ctx, stream, 0, events...)
				if !errors.Is(err, eventlog.ErrUnknown) {
					t.Fatal("the append whose answer was lost answered", err)
				}
				if c.stood { // the server finishes a statement it has begun, in its own time
					eventually(t, "the commit", func() bool { return len(stands(t, direct.db.Log, stream)) == 3 })
				}
				again, err := store.db.Log.Append(ctx, stream, 0, events...)
				must(t, err)
				if again.Version != 3 || again.Repeated != c.stood {
					t.Errorf("the append again: %+v", again)
				}
				if got := stands(t, direct.db.Log, stream); len(got) != 3 {
					t.Errorf("%d events stand, not 3", len(got))
				}
			}
		})
	}
}

// TestSilence makes the network silent during an append. The caller's context ends with an
// unknown outcome, and Close ends in time.
func TestSilence(t *testing.T) {
	direct := open(t, postgres.Options{})
	p, url := through(t, direct.url)
	store := &opener{t: t, url: url, o: direct.o}
	var armed atomic.Bool
	store.o.Crash = func(string) {
		if armed.Load() {
			p.lose(silence)
		}
	}
	store.start()
	ctx := soon(t)
	_, err := store.db.Log.Append(ctx, "one", 0, happened("one", 0, 1)...)
	must(t, err)
	armed.Store(true)
	short, cancel := context.WithTimeout(ctx, 200*time.Millisecond)
	defer cancel()
	if _, err := store.db.Log.Append(short, "one", 1, happened("one", 1, 1)...); !errors.Is(err, eventlog.ErrUnknown) || !errors.Is(err, context.DeadlineExceeded) {
		t.Error("an append into silence answered", err)
	}
	// The committer still waits, so this append is never received.
	short, cancel = context.WithTimeout(ctx, 50*time.Millisecond)
	defer cancel()
	if _, err := store.db.Log.Append(short, "two", 0, happened("two", 0, 1)...); !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, eventlog.ErrUnknown) {
		t.Error("an append behind it answered", err)
	}
	short, cancel = context.WithTimeout(ctx, 100*time.Millisecond)
	defer cancel()
	start := time.Now()
	if err := store.db.Close(short); !errors.Is(err, context.DeadlineExceeded) {
		t.Error("Close answered", err)
	}
	if took := time.Since(start); took > 15*time.Second {
		t.Errorf("Close took %s", took)
	}
	p.cut()
}

// TestServerGone stops the server for a while. Appends that arrive meanwhile wait for it
// together, and are stored once it is back. An append whose context ends is not written.
func TestServerGone(t *testing.T) {
	direct := open(t, postgres.Options{})
	p, url := through(t, direct.url)
	store := &opener{t: t, url: url, o: direct.o}
	store.start()
	t.Cleanup(func() { store.close() }) //nolint:errcheck // not what is tested
	ctx := soon(t)
	_, err := store.db.Log.Append(ctx, "first", 0, happened("first", 0, 1)...)
	must(t, err)

	p.refuse(true)
	var all sync.WaitGroup
	for i := range 50 {
		all.Go(func() {
			stream := eventlog.Stream(fmt.Sprint("s-", i))
			within := ctx
			if i%10 == 0 {
				short, cancel := context.WithTimeout(ctx, 100*time.Millisecond)
				defer cancel()
				within = short
			}
			_, err := store.db.Log.Append(within, stream, 0, happened(stream, 0, 2)...)
			if i%10 == 0 && (!errors.Is(err, context.DeadlineExceeded) || errors.Is(err, eventlog.ErrUnknown)) || i%10 != 0 && err != nil {
				t.Errorf("%s: %v", stream, err)
			}
		})
	}
	_, err = store.db.Log.Head(ctx)
	if err == nil || !postgres.Transient(err) {
		t.Error("a read without a server answers", err)
	}
	p.refuse(false)
	all.Wait()
	head, err := store.db.Log.Head(ctx)
	must(t, err)
	if head != 1+45*2 {
		t.Errorf("the head is %d", head)
	}
}

// TestApplyLosesReplies loses each answer of the server in turn. A caller's own changes are
// never mistaken for another's.
func TestApplyLosesReplies(t *testing.T) {
	direct := open(t, postgres.Options{})
	p, url := through(t, direct.url)
	store := &opener{t: t, url: url, o: direct.o}
	store.start()
	t.Cleanup(func() { store.close() }) //nolint:errcheck // not what is tested
	ctx := soon(t)
	at := eventlog.Position(0)
	for pieces, lost := 0, true; lost; pieces++ {
		row := tx.Work{Chain: 1, Hash: chain.Hash{byte(pieces)}, Nonce: uint64(pieces), Phase: tx.Open, NextAt: time.Now()}
		p.loseAfter(pieces, reply)
		err := store.db.Work.Apply(ctx, "feeder", at, at+1, []tx.Change{{Chain: 1, Hash: row.Hash, Open: &row}})
		lost = p.lost()
		p.lose(nothing)
		stands, readErr := direct.db.Checkpoints.Checkpoint(ctx, "feeder")
		must(t, readErr)
		if errors.Is(err, eventlog.ErrMoved) || !errors.Is(err, eventlog.ErrUnknown) && (stands == at+1) != (err == nil) {
			t.Errorf("cut after %d pieces: %v; the checkpoint went from %d to %d", pieces, err, at, stands)
		}
		at = stands
	}
}
