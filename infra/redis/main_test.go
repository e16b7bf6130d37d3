package redis

import (
	"context"
	"fmt"
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"
	"go.uber.org/goleak"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
	"github.com/tempo-watchtower/watchtower/infra/testenv"
	"github.com/tempo-watchtower/watchtower/infra/testenv/server"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const patience = 20 * time.Second

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func hash(n int) chain.Hash { return chain.Keccak(fmt.Append(nil, n)) }

func newServer(t *testing.T) *server.Redis {
	t.Helper()
	s, err := server.NewRedis(testenv.Need(t, testenv.RedisBinVar))
	must(t, err)
	t.Cleanup(func() { must(t, s.Remove()) })
	must(t, s.Start(t.Context()))
	return s
}

// replica is a process that gets hints of due work.
type replica struct {
	*Hints
	wakes chan chain.ID
	busy  atomic.Bool
}

// worker is a replica's worker for a chain.
type worker struct {
	chain chain.ID
	*replica
}

func (w worker) Wake() { w.wakes <- w.chain }

func (w worker) Idle() bool { return !w.busy.Load() }

func newReplica(t *testing.T, url string) *replica {
	t.Helper()
	h, err := Open(Options{URL: url, Chains: []chain.ID{1, 2}, Now: time.Now, Log: slog.New(slog.DiscardHandler)})
	must(t, err)
	r := &replica{Hints: h, wakes: make(chan chain.ID, 100_000)}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		h.Run(ctx, map[chain.ID]Worker{1: worker{1, r}, 2: worker{2, r}})
	}()
	t.Cleanup(func() {
		stop()
		<-ended
		must(t, h.Close())
	})
	return r
}

// quiet discards pending wake-ups.
func (r *replica) quiet() {
	for {
		select {
		case <-r.wakes:
		default:
			return
		}
	}
}

// woken waits until one of these replicas is woken for chain 1, and returns the time.
func woken(t *testing.T, a, b *replica) time.Time {
	t.Helper()
	deadline := time.After(patience)
	for {
		var id chain.ID
		select {
		case id = <-a.wakes:
		case id = <-b.wakes:
		case <-deadline:
			t.Fatal("nobody was told that work is due")
		}
		if id == 1 {
			return time.Now()
		}
		t.Errorf("told of chain %d", id)
	}
}

// eventually waits until ok holds, and fails the test if it never does.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(patience); !ok(); <-tick.C {
		if time.Now().After(end) {
			t.Fatal(what)
		}
	}
}

func opened(n int, due time.Time) tx.Change {
	return tx.Change{Chain: 1, Hash: hash(n), Open: &tx.Work{NextAt: due}}
}

func client(t *testing.T, s *server.Redis) *goredis.Client {
	t.Helper()
	o, err := goredis.ParseURL(s.URL())
	must(t, err)
	o.ReadTimeout, o.MaxRetries = time.Minute, -1 // a million members take time
	c := goredis.NewClient(o)
	t.Cleanup(func() { must(t, c.Close()) })
	return c
}
