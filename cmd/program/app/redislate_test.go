package app_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tempo-watchtower/watchtower/cmd/devnet/wallet"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/infra/chain/chaintest"
	"github.com/tempo-watchtower/watchtower/infra/testenv"
	"github.com/tempo-watchtower/watchtower/infra/testenv/server"
	"github.com/tempo-watchtower/watchtower/proof/rig"
)

// Of two replicas, the feeder of the queue is busy with a slow node. The other polls the queue
// every five seconds. With Redis it sends new transactions when they are due; without Redis only
// when it polls.
func TestRedisIsSooner(t *testing.T) {
	s, err := server.NewRedis(testenv.Need(t, testenv.RedisBinVar))
	must(t, err)
	t.Cleanup(func() { must(t, s.Remove()) })
	must(t, s.Start(t.Context()))
	var with, without []time.Duration
	t.Run("with", func(t *testing.T) { with = lateness(t, "--scheduler-poll-interval", "5s", "--redis", s.URL()) })
	t.Run("without", func(t *testing.T) { without = lateness(t, "--scheduler-poll-interval", "5s") })
	if len(with) == 0 || len(without) == 0 {
		t.FailNow()
	}
	for name, all := range map[string][]time.Duration{"with Redis": with, "without": without} {
		slices.Sort(all)
		t.Logf("%s: median %s, nine tenths within %s, worst %s", name, all[len(all)/2], all[len(all)*9/10], all[len(all)-1])
	}
	if with[len(with)/2] > without[len(without)/2]/2 {
		t.Error("it helps little")
	}
}

// lateness returns the delays from acceptance to sending of transactions submitted one by one,
// by two replicas of which the first is slow.
func lateness(t *testing.T, flags ...string) (late []time.Duration) {
	w := newWork(t)
	slow := w.chain.Node("slow")
	slow.Set(chaintest.Faults{Delay: 500 * time.Millisecond})
	served := httptest.NewServer(slow)
	t.Cleanup(served.Close)
	flags = append(flags, "--store", testenv.Postgres(t), "--vault-key-file", filepath.Join(t.TempDir(), "vault.key"))
	feeder := serveUntilTheEnd(t, slices.Concat(flags, w.flags[2:], []string{"--scheduler-max-concurrency", "1",
		"--chains", fmt.Sprintf("%s=%s", rig.TempoChain, served.URL)})...)
	serveUntilTheEnd(t, slices.Concat(flags, w.flags)...)
	accepted := map[chain.Hash]time.Time{}
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	const crowd = 100
	for n := range crowd {
		<-tick.C
		p := rig.Pay(wallet.Dev(n%wallet.Devs), wallet.Tempo{NonceKey: chain.NonceKey{31: byte(n + 1)}, Calls: []chain.Call{wallet.Transfer(wallet.PathUSD, chain.Address{1}, 1)}})
		_, err := rig.Submit(t.Context(), feeder, rig.TempoChain, p.Raw)
		must(t, err)
		accepted[p.Hash] = time.Now()
	}
	for end := time.Now().Add(time.Minute); len(late) < crowd; <-tick.C {
		if time.Now().After(end) {
			t.Fatalf("%d of %d are sent", len(late), crowd)
		}
		late = late[:0]
		first := map[chain.Hash]bool{}
		for _, d := range w.chain.Received() {
			if !first[d.Hash] {
				first[d.Hash], late = true, append(late, max(d.At.Sub(accepted[d.Hash]), 0))
			}
		}
	}
	return late
}

// /health shows a configured Redis, and is degraded while it is down; the service stays ready.
// Without a configured Redis, /health has no entry for it.
func TestRedisInHealth(t *testing.T) {
	s, err := server.NewRedis(testenv.Need(t, testenv.RedisBinVar))
	must(t, err)
	t.Cleanup(func() { must(t, s.Remove()) })
	must(t, s.Start(t.Context()))
	ask := func(url, path string) (int, string) {
		t.Helper()
		res, err := http.Get(url + path)
		must(t, err)
		defer res.Body.Close() //nolint:errcheck // read to its end
		body, err := io.ReadAll(res.Body)
		must(t, err)
		return res.StatusCode, string(body)
	}
	want := func(url string, status int, redis string) {
		t.Helper()
		got, body := ask(url, "/health")
		var report struct {
			Dependencies map[string]struct{ OK bool }
		}
		must(t, json.Unmarshal([]byte(body), &report))
		shown := "absent"
		if d, ok := report.Dependencies["redis"]; ok {
			shown = fmt.Sprint(d.OK)
		}
		if got != status || shown != redis || strings.Contains(body, "password") {
			t.Errorf("/health answers %d, redis %s: %s", got, shown, body)
		}
		if code, _ := ask(url, "/readyz"); code != http.StatusOK {
			t.Errorf("/readyz answers %d", code)
		}
	}
	// In the end: an answer is shared for a moment, and a connection from before may still have to be
	// given up.
	becomes := func(url string, status int) {
		t.Helper()
		for deadline := time.After(20 * time.Second); ; {
			if code, _ := ask(url, "/health"); code == status {
				return
			}
			select {
			case <-deadline:
				t.Fatalf("/health never answers %d", status)
			case <-time.After(20 * time.Millisecond):
			}
		}
	}
	chains := []string{"--chains", "1=http://127.0.0.1:9", "--store", "embedded::memory:"}
	want(serveUntilTheEnd(t, chains...), http.StatusOK, "absent")
	url := serveUntilTheEnd(t, append(chains, "--redis", s.URL())...)
	becomes(url, http.StatusOK)
	want(url, http.StatusOK, "true")
	must(t, s.Kill())
	becomes(url, http.StatusServiceUnavailable)
	want(url, http.StatusServiceUnavailable, "false")
	must(t, s.Start(t.Context()))
	becomes(url, http.StatusOK)
	want(url, http.StatusOK, "true")
}
