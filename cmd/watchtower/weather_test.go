package main_test

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/tempo-watchtower/watchtower/infra/testenv"
	"github.com/tempo-watchtower/watchtower/proof/rig"
)

// distant is a world with a faulty network connection to its Postgres.
type distant struct {
	*world
	wire *rig.Wire
	url  string // of the database, bypassing the wire
}

func newDistant(t *testing.T) *distant {
	t.Helper()
	d := &distant{url: testenv.Postgres(t)}
	d.world = newWorld(t, func(t *testing.T, dir string) []string {
		u, err := url.Parse(d.url)
		check(t, err)
		if u.Port() == "" {
			u.Host = net.JoinHostPort(u.Host, "5432")
		}
		d.wire, err = rig.NewWire(u.Host)
		check(t, err)
		t.Cleanup(func() { check(t, d.wire.Close()) })
		u.Host = d.wire.Addr
		return []string{"--store", u.String(), "--vault-key-file", filepath.Join(dir, "vault.key")}
	}, "--block-time", "1")
	return d
}

// sql runs statements on one connection that bypasses the wire, with a pause between two.
func (d *distant) sql(t *testing.T, pause time.Duration, statements ...string) {
	t.Helper()
	conn, err := pgx.Connect(d.ctx, d.url)
	if err != nil {
		t.Error(err)
		return
	}
	defer conn.Close(context.WithoutCancel(d.ctx)) //nolint:errcheck // the statements have been run
	for i, s := range statements {
		if i > 0 {
			d.wait(pause)
		}
		if _, err := conn.Exec(d.ctx, s); err != nil {
			t.Errorf("%s: %v", s, err)
		}
	}
}

// wait sleeps, so that a fault lasts.
func (w *world) wait(long time.Duration) {
	timer := time.NewTimer(long)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-w.ctx.Done():
	}
}

// insist posts payments until each is acknowledged, as a client that must not lose one does. It
// returns the number of requests without an acknowledgement, and the longest wait of a payment
// for its own.
func (w *world) insist(t *testing.T, payments []rig.Payment, clients int, urls ...string) (failed int, longest time.Duration) {
	t.Helper()
	work := make(chan rig.Payment)
	var mu sync.Mutex
	var posting sync.WaitGroup
	for c := range clients {
		posting.Go(func() {
			for p := range work {
				began := time.Now()
				for try := 0; w.ctx.Err() == nil && !w.posted(t, urls[(c+try)%len(urls)], p); try++ {
					mu.Lock()
					failed++
					mu.Unlock()
					w.wait(50 * time.Millisecond)
				}
				mu.Lock()
				longest = max(longest, time.Since(began))
				mu.Unlock()
			}
		})
	}
	for _, p := range payments {
		work <- p
		w.wait(10 * time.Millisecond) // a load that lasts as long as the fault
	}
	close(work)
	posting.Wait()
	return failed, longest
}

// unwell waits until /health reports trouble and returns how long that took.
func (d *distant) unwell(t *testing.T, url string) time.Duration {
	began := time.Now()
	for {
		short, cancel := context.WithTimeout(d.ctx, 10*time.Second)
		code := health(short, url)
		cancel()
		if code != http.StatusOK {
			return time.Since(began)
		}
		if d.ctx.Err() != nil {
			t.Error("/health never tells that the store is away")
			return 0
		}
	}
}

const (
	blackout = 6 * time.Second // duration of an outage
	// shortage is the duration of an outage in which a request fails: longer than a post is given.
	shortage = postMost + 2*time.Second
)

// Under every fault of the connection between the service and its Postgres, no acknowledged
// payment is lost, none is made twice, and all end after the fault.
func TestBadWeather(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]func(t *testing.T, d *distant, s *rig.Service){
		"slow": func(_ *testing.T, d *distant, _ *rig.Service) {
			d.wire.Set(rig.Weather{Delay: 500 * time.Millisecond})
			d.wait(blackout)
		},
		"narrow": func(_ *testing.T, d *distant, _ *rig.Service) {
			d.wire.Set(rig.Weather{BytesPerSecond: 32 << 10})
			d.wait(blackout)
		},
		// A commit counts although its reply is lost.
		"answers lost": func(t *testing.T, d *distant, s *rig.Service) {
			d.wire.Set(rig.Weather{Mute: true})
			d.unwell(t, s.URL)
			d.wait(blackout)
		},
		"cut off": func(t *testing.T, d *distant, s *rig.Service) {
			d.wire.Set(rig.Weather{Mute: true, Deaf: true})
			noticed := d.unwell(t, s.URL)
			rig.Within(t, noticed, 5*time.Second, "noticed that the store cannot be reached")
			d.wait(blackout)
		},
		"connections break": func(_ *testing.T, d *distant, _ *rig.Service) {
			for range 30 {
				d.wire.Reset()
				d.wait(150 * time.Millisecond)
			}
		},
		"backends are ended": func(t *testing.T, d *distant, _ *rig.Service) {
			const end = `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()`
			d.sql(t, 200*time.Millisecond, end, end, end, end, end, end, end, end, end, end, end, end, end, end, end, end)
		},
		"the log is locked": func(t *testing.T, d *distant, _ *rig.Service) {
			d.sql(t, blackout, `BEGIN; LOCK TABLE log.head, log.streams IN ACCESS EXCLUSIVE MODE`, `COMMIT`)
		},
		"the queue is locked": func(t *testing.T, d *distant, _ *rig.Service) {
			d.sql(t, blackout, `BEGIN; LOCK TABLE work.queue, work.leases IN ACCESS EXCLUSIVE MODE`, `COMMIT`)
		},
		"the read model is locked": func(t *testing.T, d *distant, _ *rig.Service) {
			d.sql(t, blackout, `BEGIN; LOCK TABLE view.transactions IN ACCESS EXCLUSIVE MODE`, `COMMIT`)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := newDistant(t)
			s := d.service(t)
			check(t, s.Start(d.ctx))
			payments, to := rig.Payments(uint32(9000+len(name)), 400)
			var passing sync.WaitGroup
			passing.Go(func() {
				d.wait(time.Second) // let the load begin
				fault(t, d, s)
				d.wire.Set(rig.Weather{})
			})
			failed, longest := d.insist(t, payments, 8, s.URL)
			passing.Wait()
			cleared := time.Now()
			d.delivered(t, s.URL, payments, rig.Executed)
			t.Logf("%d requests failed, the longest acceptance took %v, all were executed %v after it had passed",
				failed, longest.Round(time.Millisecond), time.Since(cleared).Round(time.Millisecond))
			d.paidOnce(t, to, len(payments))
			check(t, s.Stop(d.ctx))
		})
	}
}

// The server has no connection to spare. The service reports it, accepts nothing that it cannot
// store, and goes on when connections are available again.
func TestNoConnections(t *testing.T) {
	t.Parallel()
	d := newDistant(t)
	u, err := url.Parse(d.url)
	check(t, err)
	role := "role_" + testenv.Random(6)
	d.sql(t, 0, `CREATE ROLE `+role+` LOGIN PASSWORD 'w'`, fmt.Sprintf(`ALTER DATABASE %s OWNER TO %s`, u.Path[1:], role),
		`GRANT ALL ON SCHEMA public TO `+role)
	t.Cleanup(func() {
		conn, err := pgx.Connect(context.Background(), testenv.Need(t, testenv.PostgresVar))
		check(t, err)
		defer conn.Close(context.Background()) //nolint:errcheck // the statements have been run
		for _, s := range []string{
			"DROP DATABASE IF EXISTS " + u.Path[1:] + " WITH (FORCE)", "DROP ROLE " + role, "CREATE DATABASE " + u.Path[1:], // it is dropped again
		} {
			_, err := conn.Exec(context.Background(), s)
			check(t, err)
		}
	})
	own := *u
	own.User, own.Host = url.UserPassword(role, "w"), d.wire.Addr
	d.store[1] = own.String()
	s := d.service(t)
	check(t, s.Start(d.ctx))
	payments, to := rig.Payments(9100, 300)
	stands := make(chan struct{})
	var passing sync.WaitGroup
	passing.Go(func() {
		d.wait(time.Second)
		// The limit must be committed before connections end: in the same transaction, it would
		// let them reconnect first. The second call ends a connection that was being opened
		// meanwhile.
		end := fmt.Sprintf(`SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = '%s'`, role)
		d.sql(t, 200*time.Millisecond, fmt.Sprintf(`ALTER ROLE %s CONNECTION LIMIT 0`, role), end, end)
		close(stands)
		d.wait(shortage)
		d.sql(t, 0, fmt.Sprintf(`ALTER ROLE %s CONNECTION LIMIT -1`, role))
	})
	// Connections end while the first half is posted, or before. Requests accepted by then only
	// wait. Of the second half, posted after the end of the connections, none is accepted.
	var failures [2]int
	var waits [2]time.Duration
	passing.Go(func() { failures[0], waits[0] = d.insist(t, payments[:150], 8, s.URL) })
	<-stands
	failures[1], waits[1] = d.insist(t, payments[150:], 8, s.URL)
	passing.Wait()
	if failures[0]+failures[1] == 0 {
		t.Error("no request failed: the connections did not run out")
	}
	t.Logf("%d requests failed, the longest acceptance took %v", failures, waits)
	d.delivered(t, s.URL, payments, rig.Executed)
	d.paidOnce(t, to, len(payments))
	check(t, s.Stop(d.ctx))
	d.direct = d.url
	d.judge(t) // before role and database are dropped
}
