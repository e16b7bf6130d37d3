package main_test

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/tempo-watchtower/watchtower/cmd/devnet/wallet"
	delivery "github.com/tempo-watchtower/watchtower/cmd/program/app"
	"github.com/tempo-watchtower/watchtower/commands/relay/worker"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/eventlog/lease"
	"github.com/tempo-watchtower/watchtower/eventlog/port"
	"github.com/tempo-watchtower/watchtower/infra/redis"
	"github.com/tempo-watchtower/watchtower/infra/testenv"
	"github.com/tempo-watchtower/watchtower/infra/testenv/server"
)

// newRedis starts a Redis for one test.
func newRedis(t *testing.T) *server.Redis {
	t.Helper()
	r, err := server.NewRedis(testenv.Need(t, testenv.RedisBinVar))
	check(t, err)
	t.Cleanup(func() { check(t, r.Remove()) })
	check(t, r.Start(t.Context()))
	return r
}

// taken makes an unknown process hold a lease until back is called.
func (w *world) taken(t *testing.T, l port.Leases, name string) (back func()) {
	t.Helper()
	ctx, stop := context.WithCancel(w.ctx)
	held, ended := make(chan struct{}), make(chan struct{})
	hold := sync.OnceFunc(func() { close(held) }) // it may lose the lease and win it again
	somebody := lease.Owner{Leases: l, Holder: "somebody", TTL: time.Second, Renew: 100 * time.Millisecond, Log: slog.New(slog.DiscardHandler)}
	go func() {
		defer close(ended)
		somebody.Own(ctx, name, func(ctx context.Context) error {
			hold()
			<-ctx.Done()
			return ctx.Err()
		})
	}()
	back = func() { stop(); <-ended }
	t.Cleanup(back)
	select {
	case <-held:
	case <-w.ctx.Done():
		t.Fatalf("%s is not to be had", name)
	}
	return back
}

// Two relayers keep their leases of lanes in two Redis servers, which is a mistake; another
// process holds leases; and a Redis goes down.
func alertsOfLeases(t *testing.T) {
	t.Parallel()
	one, other := newRedis(t), newRedis(t)
	w := newWorld(t, kinds()[1], inPostgres, "--redis="+one.URL(), "--lane-leases=redis", "--lane-look=1s")
	storage, err := delivery.OpenStorage(w.ctx, w.settings.Delivery, delivery.StorageOptions{Log: slog.New(slog.DiscardHandler)})
	check(t, err)
	t.Cleanup(func() { check(t, storage.Close(context.WithoutCancel(w.ctx))) })
	ofLanes, err := redis.OpenLeases(one.URL())
	check(t, err)
	t.Cleanup(func() { check(t, ofLanes.Close()) })

	readBack := w.taken(t, storage.Leases, worker.Reader)
	first := &worker.Lane{ID: chain.Sequence{Chain: w.id, Sender: wallet.Dev(0).Address()}}
	laneBack := w.taken(t, ofLanes, first.LeaseName())
	s, l := w.started(t)
	w.shows(t, l, "RelayReaderAbsent")
	w.shows(t, l, "RelayLaneUnheld")
	readBack()
	laneBack()
	l.ends(t, w, "RelayReaderAbsent")
	l.ends(t, w, "RelayLaneUnheld")
	l.calm(t, w)

	w.flags = with(w.flags, "--redis="+other.URL())
	second := w.relayer(t)
	check(t, second.Start(w.ctx))
	l.targets["b"] = second
	n := 0
	l.until(t, w, "RelayFenced fires", func() bool {
		for i := range 3 {
			w.create(t, []client{w.client(t, s), w.client(t, second)}, w.one(i, fmt.Sprint("contended-", n)))
			n++
		}
		return slices.Contains(l.firing(), "RelayFenced")
	}, "RelayFenced")
	w.shows(t, l, "RelayFenced")
	check(t, one.Kill())
	w.shows(t, l, "RelayLeasesOutOfReach")
	w.done(t, second)
	check(t, second.Stop(w.ctx))
	s.Kill()
	w.judge(t)
}
