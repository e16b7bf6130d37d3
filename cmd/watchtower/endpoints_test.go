package main_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tempo-watchtower/watchtower/cmd/devnet/wallet"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/proof/rig"
)

// endpoints returns the state of the endpoints in /health, by name.
func endpoints(ctx context.Context, t *testing.T, url string) map[string]endpointHealth {
	t.Helper()
	var report struct{ Endpoints []endpointHealth }
	readHealth(ctx, t, url, &report)
	byName := map[string]endpointHealth{}
	for _, e := range report.Endpoints {
		byName[e.Name] = e
	}
	return byName
}

// readHealth decodes the answer to GET /health.
func readHealth(ctx context.Context, t *testing.T, url string, into any) {
	t.Helper()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url+"/health", nil)
	check(t, err)
	res, err := http.DefaultClient.Do(req)
	check(t, err)
	defer res.Body.Close() //nolint:errcheck // read to its end
	check(t, json.NewDecoder(res.Body).Decode(into))
}

type endpointHealth struct {
	Name, State, Breaker, Problem string
	Healthy, Reading              bool
	Score                         float64
	Trips, Contradictions         int
}

// awaitEndpoint waits until an endpoint's state satisfies want, and returns how long that took.
func awaitEndpoint(ctx context.Context, t *testing.T, url, name string, want func(endpointHealth) bool) time.Duration {
	t.Helper()
	began := time.Now()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		e := endpoints(ctx, t, url)[name]
		if want(e) {
			return time.Since(began)
		}
		select {
		case <-ctx.Done():
			t.Fatalf("endpoint %s is %+v", name, e)
		case <-tick.C:
		}
	}
}

// withGates configures a chain with these endpoints for the world.
func (w *world) withGates(t *testing.T, gates map[string]*gate, order ...string) {
	t.Helper()
	var text strings.Builder
	fmt.Fprintf(&text, "chains:\n  - id: %d\n    endpoints:\n", rig.TempoChain)
	for _, name := range order {
		fmt.Fprintf(&text, "      - {name: %s, url: %q}\n", name, gates[name].URL)
	}
	path := filepath.Join(w.dir, "chains.yaml")
	check(t, os.WriteFile(path, []byte(text.String()), 0o600))
	w.chains = ""
	w.store = append(w.store, "--config", path)
}

// lateness returns each payment's time from acceptance to the event that it was mined, sorted.
func (w *world) lateness(t *testing.T, url string, payments []rig.Payment) []time.Duration {
	t.Helper()
	var all []time.Duration
	for _, p := range payments {
		events, err := rig.Events(w.ctx, url, p.Hash)
		check(t, err)
		for _, e := range events {
			if strings.HasPrefix(e.Name, "tx.mined.") {
				all = append(all, e.At.Sub(events[0].At))
				break
			}
		}
	}
	slices.Sort(all)
	return all
}

// trueReceipts checks that the service's receipts agree with the node's, and that no receipt was
// announced and withdrawn.
func (w *world) trueReceipts(t *testing.T, url string, payments []rig.Payment) {
	t.Helper()
	w.sameReceipts(t, url, payments)
	for _, p := range payments {
		for _, name := range w.names(t, url, p.Hash) {
			if strings.Contains(name, "stale") || strings.Contains(name, "expired") || strings.Contains(name, "violated") || strings.Contains(name, "reorged") {
				t.Errorf("%s: %s", p.Hash, name)
			}
		}
	}
}

// peakMemory returns the peak memory of a process in bytes.
func peakMemory(t *testing.T, pid int) (peak int64) {
	t.Helper()
	f, err := os.Open(fmt.Sprintf("/proc/%d/status", pid))
	check(t, err)
	defer f.Close() //nolint:errcheck // only read
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if _, err := fmt.Sscanf(lines.Text(), "VmHWM: %d kB", &peak); err == nil {
			return peak << 10
		}
	}
	t.Fatal("no VmHWM")
	return 0
}

// Of four endpoints one lies, one is slow and one is dead. Everything is delivered once, no
// false result is announced, and each bad endpoint is detected.
func TestOneLyingOneSlowOneDead(t *testing.T) {
	engines(t, func(t *testing.T, store func(t *testing.T, dir string) []string) {
		w := newWorld(t, store, "--block-time", "1")
		lies := &liar{inserted: map[chain.Hash]inserted{}}
		var dies mortal
		gates := map[string]*gate{
			"lying": newGate(t, w.chain.URL(), lies.serve), "slow": newGate(t, w.chain.URL(), slow),
			"dead": newGate(t, w.chain.URL(), dies.serve), "honest": newGate(t, w.proxy.URL, honest),
		}
		w.withGates(t, gates, "lying", "slow", "dead", "honest")
		s := w.service(t)
		check(t, s.Start(w.ctx))
		dies.dead.Store(true)
		payments, to := rig.Payments(9001, 200)
		half := len(payments) / 2
		if acked := load(w.ctx, s, payments[:half], 16); len(acked) != half {
			t.Fatalf("%d of %d acknowledged", len(acked), half)
		}
		left := payments[half:]
		// An endpoint that has lied once or twice is asked less often: without payments it may not be asked again.
		for e := (endpointHealth{}); e.State != "distrusted" && e.State != "tripped" && len(left) > half/2; e = endpoints(w.ctx, t, s.URL)["lying"] {
			w.submit(t, s, left[:5], 5)
			w.delivered(t, s.URL, left[:5], rig.Executed)
			left = left[5:]
		}
		t.Logf("the liar after %d payments: %+v", len(payments)-len(left), endpoints(w.ctx, t, s.URL)["lying"])
		w.submit(t, s, left, 16)
		w.delivered(t, s.URL, payments, rig.Sealed)
		w.paidOnce(t, to, len(payments))
		w.trueReceipts(t, s.URL, payments)

		late := w.lateness(t, s.URL, payments)
		if len(late) != len(payments) {
			t.Fatalf("%d of %d were mined, says the log", len(late), len(payments))
		}
		// Lateness depends on this machine's load; the simulation judges it by its own clock.
		t.Logf("mined and known after: median %s, p95 %s, worst %s",
			late[len(late)/2], late[len(late)*95/100], late[len(late)-1])
		peak := peakMemory(t, s.Pid())
		t.Logf("peak memory %d MiB (with the race detector)", peak>>20)
		if peak > 512<<20 {
			t.Errorf("peak memory %d MiB", peak>>20)
		}
		for name, g := range gates {
			e := endpoints(w.ctx, t, s.URL)[name]
			t.Logf("%s: %d requests, %d with broadcasts, %+v", name, g.asked.Load(), g.sends.Load(), e)
			if name != "honest" && e.Trips+e.Contradictions == 0 {
				t.Errorf("%s was not found out: %+v", name, e)
			}
		}
		check(t, s.Stop(w.ctx))
	})
}

// A node of another chain takes over an endpoint's address. The service stops using it, and
// delivers through the other endpoint.
func TestEndpointChangesItsChain(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(_ *testing.T, dir string) []string {
		return []string{"--store", "embedded:" + filepath.Join(dir, "data")}
	}, "--block-time", "1")
	var other turncoat
	gates := map[string]*gate{"other": newGate(t, w.chain.URL(), other.serve), "honest": newGate(t, w.proxy.URL, honest)}
	w.withGates(t, gates, "other", "honest")
	s := w.service(t)
	check(t, s.Start(w.ctx))
	before, to := rig.Payments(9200, 10)
	w.submit(t, s, before, 4)
	w.delivered(t, s.URL, before, rig.Executed)
	other.turned.Store(true)
	took := awaitEndpoint(w.ctx, t, s.URL, "other", func(e endpointHealth) bool { return e.State == "foreign" })
	rig.Within(t, took, 10*time.Second, "the other chain was found out")
	sends := gates["other"].sends.Load()
	after, toAfter := rig.Payments(9201, 20)
	w.submit(t, s, after, 4)
	w.delivered(t, s.URL, after, rig.Sealed)
	w.paidOnce(t, to, len(before))
	w.paidOnce(t, toAfter, len(after))
	if got := gates["other"].sends.Load() - sends; got != 0 {
		t.Errorf("%d broadcasts went to another chain", got)
	}
	check(t, s.Stop(w.ctx))
}

// All endpoints are down when a transaction becomes eligible, and back before its window closes.
// The outage delays it, with little further delay.
func TestAllEndpointsDown(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, store func(t *testing.T, dir string) []string) {
		allEndpointsDown(t, newWorld(t, store, "--block-time", "1"), 10*time.Second)
	})
}

func allEndpointsDown(t *testing.T, w *world, outage time.Duration) {
	var down atomic.Bool
	fails := func(g *gate, w http.ResponseWriter, r *http.Request, body []byte) {
		if down.Load() {
			panic(http.ErrAbortHandler)
		}
		honest(g, w, r, body)
	}
	refused, open := refusing(t, w.proxy.URL, honest)
	w.withGates(t, map[string]*gate{"a": newGate(t, w.chain.URL(), fails), "b": refused}, "a", "b")
	s := w.service(t)
	check(t, s.Start(w.ctx))
	opens := time.Now().Add(3 * time.Second).Truncate(time.Second)
	to := chain.Address{0: 0x44}
	p := rig.Pay(wallet.Dev(3), wallet.Tempo{
		NonceKey: chain.NonceKey{31: 1}, Calls: []chain.Call{wallet.Transfer(wallet.PathUSD, to, 1)},
		Window: chain.Window{After: uint64(opens.Unix()), Before: uint64(opens.Unix()) + uint64(outage/time.Second) + 80},
	})
	w.submit(t, s, []rig.Payment{p}, 1)
	down.Store(true)
	// Long enough for several attempts to fail and every breaker to open.
	_, err := rig.Await(w.ctx, s.URL, p.Hash, func(t rig.Transaction) bool { return t.Attempts >= 4 && time.Since(opens) > outage })
	check(t, err)
	awaitEndpoint(w.ctx, t, s.URL, "a", func(e endpointHealth) bool { return !e.Healthy })
	down.Store(false)
	open()
	back := time.Now()
	w.delivered(t, s.URL, []rig.Payment{p}, rig.Executed)
	late := time.Since(back)
	t.Logf("down for %s after it was eligible; executed %s after the end of that", back.Sub(opens), late)
	rig.Within(t, late, 15*time.Second, "executed, counted from the end of the outage,")
	w.paidOnce(t, to, 1)
	w.trueReceipts(t, s.URL, []rig.Payment{p})
	check(t, s.Stop(w.ctx))
}
