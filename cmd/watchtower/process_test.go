package main_test

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/tempo-watchtower/watchtower/cmd/devnet/wallet"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/infra/testenv"
	"github.com/tempo-watchtower/watchtower/infra/testenv/server"
	"github.com/tempo-watchtower/watchtower/proof/promises"
	"github.com/tempo-watchtower/watchtower/proof/rig"
)

// program is the path of the service built with crash points; TestMain finds or builds it.
// raced returns the path of a build with the race detector, for the tests in which the most
// happens at once; the first call builds it.
var (
	program string
	raced   func() (string, error)
)

func TestMain(m *testing.M) {
	os.Exit(func() int {
		dir, err := os.MkdirTemp("", "watchtower-test-")
		if err != nil {
			panic(err)
		}
		defer os.RemoveAll(dir) //nolint:errcheck // a temporary folder
		if program, err = rig.CrashProgram(context.Background(), dir, "watchtower", false); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		raced = sync.OnceValues(func() (string, error) { return rig.CrashProgram(context.Background(), dir, "watchtower", true) })
		// The race detector would make every process linger for a second.
		if err := os.Setenv("GORACE", "atexit_sleep_ms=0"); err != nil {
			panic(err)
		}
		// Most tests wait for blocks. Tests that measure how soon the service goes on after a
		// fault run before the others, alone.
		if err := flag.Set("test.parallel", strconv.Itoa(2*runtime.GOMAXPROCS(0))); err != nil {
			panic(err)
		}
		return m.Run()
	}())
}

// patience limits a process test; it usually takes far less.
const patience = 10 * time.Minute

// world is one chain with a proxy before it, and the settings of a service for it.
type world struct {
	program string
	ctx     context.Context
	chain   *server.Anvil
	proxy   *rig.Proxy
	dir     string
	store   []string // flags
	// chains and confirmations are flags too.
	chains        string
	confirmations int

	history rig.History
	ledger  *promises.Ledger
	measure promises.Settings
	quiet   bool // at the judgement no work is left
	judged  bool
	direct  string // store for the judge, if different from the services' store
	// broken are the promises that a test breaks on purpose, and why.
	broken map[promises.Number]string
	blamed map[promises.Number]int // violations found by the last judgement
}

// engines runs a process test on each store, in parallel: most tests wait for blocks.
func engines(t *testing.T, test func(t *testing.T, store func(t *testing.T, dir string) []string)) {
	if only := os.Getenv(engineVar); only == "eventstoredb" {
		t.Run(only, func(t *testing.T) {
			t.Parallel()
			test(t, eventStore)
		})
		return
	}
	t.Run("embedded", func(t *testing.T) {
		t.Parallel()
		test(t, func(_ *testing.T, dir string) []string {
			return []string{"--store", "embedded:" + filepath.Join(dir, "data")}
		})
	})
	t.Run("postgres", func(t *testing.T) {
		t.Parallel()
		test(t, func(t *testing.T, dir string) []string {
			return []string{"--store", testenv.Postgres(t), "--vault-key-file", filepath.Join(dir, "vault.key")}
		})
	})
}

func newWorld(t *testing.T, store func(t *testing.T, dir string) []string, anvilFlags ...string) *world {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	w := &world{
		program: program, dir: t.TempDir(), ledger: promises.NewLedger(), broken: map[promises.Number]string{}, blamed: map[promises.Number]int{},
		// A frozen replica finishes its send when it wakes up.
		measure: promises.Settings{Grace: 30 * time.Second, Skew: 50 * time.Millisecond},
	}
	w.ctx = w.history.Record(ctx)
	flags := append(server.TempoFlags(), anvilFlags...)
	var err error
	if w.chain, err = server.NewAnvil(testenv.Need(t, testenv.AnvilVar), flags...); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { check(t, w.chain.Remove()) })
	check(t, w.chain.Start(ctx))
	if w.proxy, err = rig.NewProxy(w.chain.URL(), 1); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { check(t, w.proxy.Close()) })
	w.store, w.chains, w.confirmations = store(t, w.dir), fmt.Sprintf("%d=%s", rig.TempoChain, w.proxy.URL), 2
	t.Cleanup(func() { w.judge(t) }) // after the services have ended, while store and chain still exist
	return w
}

// service prepares a process that serves the world. It is killed when the test ends.
func (w *world) service(t *testing.T, env ...string) *rig.Service {
	t.Helper()
	s := &rig.Service{
		Program: w.program, Env: env, Log: filepath.Join(w.dir, "log-"+testenv.Random(4)),
		Args: append([]string{"--confirmations", fmt.Sprintf("%d=%d", rig.TempoChain, w.confirmations)}, w.store...),
	}
	if w.chains != "" { // otherwise a file among the flags names them
		s.Args = append(s.Args, "--chains", w.chains)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("log of the service:\n%s", s.Autopsy())
		}
		s.Kill()
		if log, err := os.ReadFile(s.Log); err == nil && bytes.Contains(log, []byte("WARNING: DATA RACE")) {
			t.Errorf("the service has a data race:\n%s", log)
		}
	})
	return s
}

// race has the services of the world built with the race detector.
func (w *world) race(t *testing.T) {
	t.Helper()
	var err error
	w.program, err = raced()
	check(t, err)
}

// load posts payments one by one from several clients at once, and returns the acknowledged
// hashes. Errors are expected: the service may be killed meanwhile.
func load(ctx context.Context, s *rig.Service, payments []rig.Payment, clients int) map[chain.Hash]bool {
	return loadAnd(ctx, s, payments, clients, 0, nil)
}

// loadAnd is load, and runs then on a goroutine once n payments have been acknowledged and more
// are in progress. It waits for then.
func loadAnd(ctx context.Context, s *rig.Service, payments []rig.Payment, clients, n int, then func()) map[chain.Hash]bool {
	acked := map[chain.Hash]bool{}
	var mu sync.Mutex
	var working sync.WaitGroup
	work := make(chan rig.Payment)
	for range clients {
		working.Go(func() {
			for p := range work {
				results, err := rig.Submit(ctx, s.URL, rig.TempoChain, p.Raw)
				if err == nil && results[0].OK {
					mu.Lock()
					acked[p.Hash] = true
					if len(acked) == n && then != nil {
						working.Go(then)
					}
					mu.Unlock()
				}
			}
		})
	}
	for _, p := range payments {
		select {
		case work <- p:
		case <-s.Ended():
		}
	}
	close(work)
	working.Wait()
	return acked
}

// submit posts payments to a service that is up, until each is acknowledged. A post that failed
// is repeated, as a client does on a busy machine.
func (w *world) submit(t *testing.T, s *rig.Service, payments []rig.Payment, clients int) {
	t.Helper()
	work := make(chan rig.Payment, len(payments))
	for _, p := range payments {
		work <- p
	}
	close(work)
	var posting sync.WaitGroup
	for range clients {
		posting.Go(func() {
			for p := range work {
				for w.ctx.Err() == nil && !w.posted(t, s.URL, p) {
					w.wait(50 * time.Millisecond)
				}
			}
		})
	}
	posting.Wait()
	check(t, w.ctx.Err())
}

// postMost is how long a post may take before it counts as failed.
const postMost = 10 * time.Second

// posted posts a payment once, and reports whether that was acknowledged. A failure is logged.
func (w *world) posted(t *testing.T, url string, p rig.Payment) bool {
	short, cancel := context.WithTimeout(w.ctx, postMost)
	defer cancel()
	results, err := rig.Submit(short, url, rig.TempoChain, p.Raw)
	if err == nil && results[0].OK {
		return true
	}
	if err == nil && results[0].Problem != nil {
		err = fmt.Errorf("%s: %s", results[0].Problem.Code, results[0].Problem.Detail)
	}
	t.Logf("a post of %s failed: %v", p.Hash, err)
	return false
}

// delivered waits until every payment is executed.
func (w *world) delivered(t *testing.T, url string, payments []rig.Payment, want func(rig.Transaction) bool) {
	t.Helper()
	for _, p := range payments {
		if _, err := rig.Await(w.ctx, url, p.Hash, want); err != nil {
			t.Fatal(err)
		}
	}
}

// paidOnce checks that each payment had its effect exactly once.
func (w *world) paidOnce(t *testing.T, to chain.Address, want int) {
	t.Helper()
	got, err := rig.Balance(w.ctx, w.chain.URL(), wallet.PathUSD, to)
	check(t, err)
	if got != uint64(want) {
		t.Errorf("%d payments were executed, want %d", got, want)
	}
}

// health returns the status code of GET /health.
func health(ctx context.Context, url string) int {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url+"/health", nil)
	if err != nil {
		return 0
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0
	}
	res.Body.Close() //nolint:errcheck,gosec // only the code matters
	return res.StatusCode
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
