package main_test

import (
	"fmt"
	"testing"

	"github.com/tempo-watchtower/watchtower/commands/relay/worker"
	"github.com/tempo-watchtower/watchtower/domain/relay/intent"
)

// Intents for one signer, for a pool of three, and in ordering groups: each is mined once, at
// its own nonce, on both kinds of chain and both stores.
func TestCarriesOut(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, store func(t *testing.T, dir string) []string) {
		for _, k := range kinds() {
			t.Run(k.name, func(t *testing.T) {
				t.Parallel()
				w := newWorld(t, k, store)
				var requests []intent.Request
				for i := range 12 {
					requests = append(requests, w.pool(fmt.Sprint("pool-", i)))
				}
				for i := range 6 {
					requests = append(requests, w.one(i%2, fmt.Sprint("one-", i)))
				}
				for i := range 6 {
					r := w.pool(fmt.Sprint("row-", i))
					r.Order = fmt.Sprint("row", i%2)
					if k.name == "tempo" { // each ordering group under its own nonce key
						r.NonceKey.Mode = intent.NonceOrdered
					}
					requests = append(requests, r)
				}
				w.ask(t, requests...)
				w.ask(t, requests[0]) // the same intent again
				s := w.relayer(t)
				check(t, s.Start(w.ctx))
				w.done(t, s)
				check(t, s.Stop(w.ctx))
				w.judge(t)
			})
		}
	})
}

// The relayer is killed, as by kill -9, at every named point in turn, with new intents each
// time. Each intent is carried out once.
func TestKilledAtEveryPoint(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, store func(t *testing.T, dir string) []string) {
		w := newWorld(t, kinds()[0], store)
		w.race(t)
		for i, point := range worker.CrashPoints() {
			for n := range 2 {
				w.ask(t, w.pool(fmt.Sprintf("pool-%d-%d", i, n)), w.one(0, fmt.Sprintf("one-%d-%d", i, n)))
			}
			if i == 0 {
				w.limit(t)
			}
			s := w.relayer(t, "WATCHTOWER_CRASH_AT="+point)
			check(t, s.Launch())
			select {
			case <-s.Ended():
			case <-w.ctx.Done():
				t.Fatalf("the relayer never came to %s", point)
			}
		}
		s := w.relayer(t)
		check(t, s.Start(w.ctx))
		w.done(t, s)
		check(t, s.Stop(w.ctx))
		w.judge(t)
	})
}

// Two replicas share a Postgres, with leases of lanes in a Redis. One is killed while intents
// arrive: the other carries out the rest.
func TestReplicaKilled(t *testing.T) {
	t.Parallel()
	w := newWorld(t, kinds()[1], inPostgres, "--redis="+newRedis(t).URL(), "--lane-leases=redis")
	w.race(t)
	first, second := w.relayer(t), w.relayer(t)
	check(t, first.Start(w.ctx))
	check(t, second.Start(w.ctx))
	for i := range 12 {
		w.ask(t, w.pool(fmt.Sprint("pool-", i)), w.one(i%3, fmt.Sprint("one-", i)))
		if i == 5 {
			first.Kill()
		}
	}
	w.done(t, second)
	check(t, second.Stop(w.ctx))
	w.judge(t)
}
