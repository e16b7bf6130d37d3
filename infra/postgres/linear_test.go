package postgres_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/tempo-watchtower/watchtower/infra/postgres"
	"github.com/tempo-watchtower/watchtower/infra/storetest"
)

// againAfter is shorter than the pause before the adapter's own retry.
const againAfter = 5 * time.Millisecond

// TestLinearInTrouble runs the contract's histories while sessions are ended and stopped, and
// requests and replies are lost. The clients' answers must still be linearizable.
func TestLinearInTrouble(t *testing.T) { linearInTrouble(t, 1, 60, 2) }

func linearInTrouble(t *testing.T, seed uint64, calls, each int) {
	for _, part := range []struct {
		name    string
		history func(t *testing.T, db *postgres.DB, c storetest.Crowd)
	}{
		{"streams", func(t *testing.T, db *postgres.DB, c storetest.Crowd) { storetest.LinearStreams(t, db.Log, c) }},
		{"leases", func(t *testing.T, db *postgres.DB, c storetest.Crowd) {
			storetest.LinearLeases(t, db.Leases, storetest.Clock{}, c)
		}},
		{"requests", func(t *testing.T, db *postgres.DB, c storetest.Crowd) { storetest.LinearRequests(t, db.Requests, c) }},
	} {
		t.Run(part.name, func(t *testing.T) {
			direct := open(t, postgres.Options{})
			p, url := through(t, direct.url)
			store := &opener{t: t, url: url, o: direct.o}
			store.start()
			t.Cleanup(func() { store.close() }) //nolint:errcheck // not what is tested
			weather := &trouble{t: t, proxy: p, conn: admin(t, direct.url), draw: rand.New(rand.NewPCG(seed, seed))}
			over := weather.begin()
			defer over()
			part.history(t, store.db, storetest.Crowd{
				Clients: 12, Calls: calls, Seed: seed, Again: againAfter,
				Enough: func() bool { return weather.enough(each) },
			})
			if over(); !weather.enough(each) {
				t.Errorf("too little trouble for a verdict: %+v", weather.met)
			}
			t.Logf("trouble: %+v", weather.met)
		})
	}
}

// trouble injects faults into a store's connections.
type trouble struct {
	t     *testing.T
	proxy *proxy
	conn  *pgx.Conn // bypasses the proxy
	draw  *rand.Rand

	mu  sync.Mutex
	met troubles
}

// troubles counts the injected faults by kind.
type troubles struct {
	Ended   int // sessions ended on the server
	Stopped int // sessions stopped for a while
	Lost    int // requests or replies lost, with their connection
	Cut     int // times that all connections were cut, after a silence
}

func (w *trouble) enough(each int) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.met.Ended >= each && w.met.Lost >= 2*each && w.met.Cut >= each
}

// begin injects faults of all kinds until over is called.
func (w *trouble) begin() (over func()) {
	ctx, stop := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() {
		for i := 0; ctx.Err() == nil; i++ {
			met := w.one(ctx, i)
			w.mu.Lock()
			w.met.Ended, w.met.Stopped = w.met.Ended+met.Ended, w.met.Stopped+met.Stopped
			w.met.Lost, w.met.Cut = w.met.Lost+met.Lost, w.met.Cut+met.Cut
			w.mu.Unlock()
			rest(ctx, time.Duration(20+w.draw.IntN(60))*time.Millisecond)
		}
		w.proxy.lose(nothing)
	})
	return sync.OnceFunc(func() {
		stop()
		running.Wait()
	})
}

// one injects the i-th fault.
func (w *trouble) one(ctx context.Context, i int) troubles {
	switch i % 5 {
	case 0:
		return troubles{Ended: end(w.t, w.conn)}
	case 1:
		w.proxy.lose(reply)
		return troubles{Lost: 1}
	case 2:
		return troubles{Stopped: pause(ctx, w.t, w.conn)}
	case 3:
		w.proxy.lose([]loss{request, reply}[w.draw.IntN(2)])
		return troubles{Lost: 1}
	}
	w.proxy.lose(silence)
	rest(ctx, 20*time.Millisecond)
	w.proxy.lose(nothing)
	w.proxy.cut()
	return troubles{Cut: 1}
}

func rest(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// end ends all other sessions of the database and returns their number.
func end(t *testing.T, conn *pgx.Conn) (n int) {
	if err := conn.QueryRow(context.Background(), `SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
		WHERE datname = current_database() AND pid <> pg_backend_pid()`).Scan(&n); err != nil {
		t.Error(err)
	}
	return n
}

// pauseFor is shorter than the leases of most histories, and longer than some.
const pauseFor = 25 * time.Millisecond

// pause stops a busy session for a while, like a machine short of resources. It does nothing if
// we may not stop the server's processes.
func pause(ctx context.Context, t *testing.T, conn *pgx.Conn) int {
	var pid int
	err := conn.QueryRow(context.Background(), `SELECT pid FROM pg_stat_activity
		WHERE datname = current_database() AND pid <> pg_backend_pid() ORDER BY query_start DESC LIMIT 1`).Scan(&pid)
	if errors.Is(err, pgx.ErrNoRows) || syscall.Kill(pid, syscall.SIGSTOP) != nil {
		return 0
	}
	if err != nil {
		t.Error(err)
		return 0
	}
	rest(ctx, pauseFor)
	_ = syscall.Kill(pid, syscall.SIGCONT) // an error means that it has ended meanwhile
	return 1
}
