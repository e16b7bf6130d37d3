package main_test

import (
	"context"
	"encoding/hex"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tempo-watchtower/watchtower/infra/testenv"
	"github.com/tempo-watchtower/watchtower/infra/testenv/server"
	"github.com/tempo-watchtower/watchtower/proof/rig"
)

func hexOf(raw []byte) string { return "0x" + hex.EncodeToString(raw) }

// Postgres is killed under load, as by kill -9, and restarted. No acknowledged payment is lost,
// and all end.
func TestPostgresKilled(t *testing.T) {
	t.Parallel()
	bin := testenv.Need(t, testenv.PostgresBinVar)
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	db, err := server.NewPostgres(ctx, bin)
	check(t, err)
	t.Cleanup(func() { check(t, db.Remove()) })
	check(t, db.Start(ctx))
	w := newWorld(t, func(_ *testing.T, dir string) []string {
		return []string{"--store", db.URL(), "--vault-key-file", filepath.Join(dir, "vault.key")}
	}, "--block-time", "1")
	s := w.service(t)
	check(t, s.Start(w.ctx))
	payments, to := rig.Payments(5000, 400)

	down := 0
	acked := loadAnd(w.ctx, s, payments, 8, 50, func() {
		if err := db.Kill(); err != nil {
			t.Error(err)
		}
		// Its child processes end a moment later.
		for down = health(ctx, s.URL); down == http.StatusOK && ctx.Err() == nil; {
			down = health(ctx, s.URL)
		}
		if err := db.Start(ctx); err != nil {
			t.Error(err)
		}
	})
	if down != http.StatusServiceUnavailable {
		t.Errorf("/health answered %d while the store was down", down)
	}
	again := payments[:0:0]
	for _, p := range payments {
		if !acked[p.Hash] {
			again = append(again, p)
		}
	}
	for len(again) > 0 { // the client repeats requests without an answer
		more := load(w.ctx, s, again, 8)
		left := again[:0:0]
		for _, p := range again {
			if !more[p.Hash] {
				left = append(left, p)
			}
		}
		again = left
		if w.ctx.Err() != nil {
			t.Fatalf("%d payments are not taken after the store is back", len(again))
		}
	}
	t.Logf("%d of %d acknowledged at the first try", len(acked), len(payments))
	w.delivered(t, s.URL, payments, rig.Executed)
	w.paidOnce(t, to, len(payments))
	check(t, s.Stop(w.ctx))
}

// Two replicas share a Postgres. The owner of the watcher and the projectors is killed, and due
// work continues within five seconds.
func TestReplicaKilled(t *testing.T) {
	w := newWorld(t, shared, "--block-time", "1")
	first, second := w.pair(t)
	payments, to := rig.Payments(6001, 200)
	half := len(payments) / 2
	w.submit(t, first, payments[:half], 8)
	killed := time.Now()
	first.Kill()
	w.submit(t, second, payments[half:], 8)
	_, err := rig.Await(w.ctx, second.URL, payments[half].Hash, func(t rig.Transaction) bool { return t.Attempts > 0 })
	check(t, err)
	rig.Within(t, time.Since(killed), 5*time.Second, "due work went on")
	w.delivered(t, second.URL, payments, rig.Executed)
	w.paidOnce(t, to, len(payments))
	check(t, second.Stop(w.ctx))
}

// A graceful stop cuts no request and releases every lease: the next process starts work at
// once.
func TestGracefulStop(t *testing.T) {
	engines(t, func(t *testing.T, store func(t *testing.T, dir string) []string) {
		w := newWorld(t, store, "--block-time", "1")
		s := w.service(t)
		// Long enough that waiting for a lease cannot be confused with a busy machine.
		const lease = 15 * time.Second
		s.Args = append(s.Args, "--owner-lease-ttl", "1m", "--scheduler-lease-ttl", lease.String())
		check(t, s.Start(w.ctx))
		payments, to := rig.Payments(7000, 300)
		var stopped error
		acked := loadAnd(w.ctx, s, payments, 8, 50, func() { stopped = s.Stop(w.ctx) })
		check(t, stopped)
		if len(acked) == len(payments) {
			t.Error("all were acknowledged: the stop came too late to cut anything")
		}

		check(t, s.Start(w.ctx))
		began := time.Now()
		for hash := range acked {
			_, err := rig.Await(w.ctx, s.URL, hash, func(t rig.Transaction) bool { return t.Attempts > 0 })
			check(t, err)
		}
		if lag := time.Since(began); lag > lease/2 {
			t.Errorf("the next process went on after %v: was a lease left behind?", lag)
		}
		w.submit(t, s, payments, 8)
		w.delivered(t, s.URL, payments, rig.Executed)
		w.paidOnce(t, to, len(payments))
		check(t, s.Stop(w.ctx))
	})
}

// The service prints no secret of the configuration.
func TestSecretsStayIn(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(_ *testing.T, dir string) []string {
		return []string{"--store", "embedded:" + filepath.Join(dir, "data")}
	}, "--block-time", "1")
	const canary = "canary-7f3a91"
	w.chains = "42431=" + w.proxy.URL + "/" + canary + ",http://user:" + canary + "@127.0.0.1:9/" + canary
	s := w.service(t)
	s.Args = append(s.Args, "--log-level", "debug")
	check(t, s.Start(w.ctx))
	payments, _ := rig.Payments(8000, 5)
	w.submit(t, s, payments, 1)
	w.delivered(t, s.URL, payments, rig.Executed)
	check(t, s.Stop(w.ctx))
	log, err := os.ReadFile(s.Log)
	check(t, err)
	for _, p := range payments {
		if strings.Contains(string(log), hexOf(p.Raw)[2:80]) {
			t.Error("signed bytes are in the log")
		}
	}
	if strings.Contains(string(log), canary) {
		t.Error("a URL's secret is in the log")
	}
}
