package main_test

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/spf13/pflag"

	"github.com/tempo-watchtower/watchtower/cmd/devnet/wallet"
	delivery "github.com/tempo-watchtower/watchtower/cmd/program/app"
	"github.com/tempo-watchtower/watchtower/cmd/relayer/settings"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/relay/intent"
	"github.com/tempo-watchtower/watchtower/eventlog"
	"github.com/tempo-watchtower/watchtower/infra/testenv"
	"github.com/tempo-watchtower/watchtower/infra/testenv/server"
	"github.com/tempo-watchtower/watchtower/proof/rig"
)

// program is the path of the relayer built with crash points; TestMain finds or builds it.
// raced returns the path of a build with the race detector, for the tests in which the most
// happens at once; the first call builds it.
var (
	program string
	raced   func() (string, error)
)

func TestMain(m *testing.M) {
	os.Exit(func() int {
		dir, err := os.MkdirTemp("", "relayer-test-")
		if err != nil {
			panic(err)
		}
		defer os.RemoveAll(dir) //nolint:errcheck // a temporary folder
		if program, err = rig.CrashProgram(context.Background(), dir, "relayer", false); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		raced = sync.OnceValues(func() (string, error) { return rig.CrashProgram(context.Background(), dir, "relayer", true) })
		// The race detector would make every process linger for a second.
		if err := os.Setenv("GORACE", "atexit_sleep_ms=0"); err != nil {
			panic(err)
		}
		// Most tests wait for blocks.
		if err := flag.Set("test.parallel", strconv.Itoa(2*runtime.GOMAXPROCS(0))); err != nil {
			panic(err)
		}
		return m.Run()
	}())
}

// patience limits a test; it usually takes far less.
const patience = 10 * time.Minute

// keys are the keys of the first accounts that anvil funds.
var keys = []string{
	"RELAYER_PRIVATE_KEY_0=ac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80",
	"RELAYER_PRIVATE_KEY_1=59c6995e998f97a5a0044966f0945389dc9e86dae88c7a8412f4603b6b78690d",
	"RELAYER_PRIVATE_KEY_2=5de4111afa1a4b94908f83103eb1f1706367c2e68ca870fc3fb9a804cdab365a",
}

// to receives the payments, and no others.
var to = chain.Address{0: 0x77, 19: 9}

// kind is a kind of chain, and its form of payment.
type kind struct {
	name  string
	id    chain.ID
	anvil []string
	pay   intent.Call
}

func kinds() []kind {
	transfer := wallet.Transfer(wallet.PathUSD, to, 1)
	return []kind{
		{"tempo", rig.TempoChain, server.TempoFlags(), intent.Call{To: transfer.To, Data: transfer.Input}},
		{"ethereum", 31337, nil, intent.Call{To: &to, Value: intent.NewAmount(1)}},
	}
}

// world is a chain, a store and a relayer's settings for both.
type world struct {
	kind
	program  string
	ctx      context.Context
	node     interface{ URL() string }
	dir      string
	flags    []string
	settings settings.Settings
	asked    map[chain.IntentID]intent.Request
	canceled map[chain.IntentID]bool // of these, intents that must not be carried out
	// strangers are transactions of the signers that were made elsewhere.
	strangers map[chain.Hash]bool
	beside    int // payments that were made without the relay
}

// engines runs a process test on each store, in parallel.
func engines(t *testing.T, test func(t *testing.T, store func(t *testing.T, dir string) []string)) {
	if inEventStoreOnly() {
		t.Run("eventstoredb", func(t *testing.T) {
			t.Parallel()
			test(t, eventStore)
		})
		return
	}
	t.Run("embedded", func(t *testing.T) {
		t.Parallel()
		test(t, inFiles)
	})
	t.Run("postgres", func(t *testing.T) {
		t.Parallel()
		test(t, inPostgres)
	})
}

// inFiles returns the flags for an embedded store, or for an event store if [engineVar] says so.
func inFiles(t *testing.T, dir string) []string {
	if inEventStoreOnly() {
		return eventStore(t, dir)
	}
	return []string{"--store", "embedded:" + filepath.Join(dir, "data")}
}

// inPostgres returns the flags for a store in Postgres, or for an event store if [engineVar]
// says so.
func inPostgres(t *testing.T, dir string) []string {
	if inEventStoreOnly() {
		return eventStore(t, dir)
	}
	return []string{"--store", testenv.Postgres(t), "--vault-key-file", filepath.Join(dir, "vault.key")}
}

// newWorld starts an anvil with one block per second.
func newWorld(t *testing.T, k kind, store func(t *testing.T, dir string) []string, more ...string) *world {
	t.Helper()
	node, err := server.NewAnvil(testenv.Need(t, testenv.AnvilVar), append(k.anvil, "--block-time", "1")...)
	check(t, err)
	t.Cleanup(func() { check(t, node.Remove()) })
	check(t, node.Start(t.Context()))
	return newWorldOn(t, k, node, store, more...)
}

func newWorldOn(t *testing.T, k kind, node interface{ URL() string }, store func(t *testing.T, dir string) []string, more ...string) *world {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	w := &world{program: program, kind: k, ctx: ctx, dir: t.TempDir(), asked: map[chain.IntentID]intent.Request{}, canceled: map[chain.IntentID]bool{}, strangers: map[chain.Hash]bool{}}
	w.node = node
	var signers []string
	for i := range keys {
		signers = append(signers, wallet.Dev(i).Address().String())
	}
	all := strings.Join(signers, ",")
	w.flags = append(store(t, w.dir), "--relay-listen=127.0.0.1:0",
		fmt.Sprintf("--chains=%d=%s", k.id, w.node.URL()), fmt.Sprintf("--confirmations=%d=2", k.id),
		"--scheduler-rebroadcast-min=1s", // anvil drops a transaction whose nonce is ahead
		"--signers-allowed="+all, "--signers-environment", "--pools=hot="+all, "--lane-poll=100ms",
		"--owner-lease-ttl=1s", "--owner-lease-renew=300ms", "--lane-claim=1s") // a killed process leaves leases and claims behind
	w.flags = with(w.flags, more...)
	flags := pflag.NewFlagSet("relayer", pflag.ContinueOnError)
	settings.Flags(flags)
	check(t, flags.Parse(w.flags))
	var err error
	w.settings, _, err = settings.Resolve(flags, nil, nil)
	check(t, err)
	return w
}

// with returns flags, with more replacing flags of the same names.
func with(flags []string, more ...string) []string {
	for _, flag := range more {
		name, _, _ := strings.Cut(flag, "=")
		flags = slices.DeleteFunc(slices.Clone(flags), func(f string) bool { return strings.HasPrefix(f, name+"=") })
		flags = append(flags, flag)
	}
	return flags
}

// without returns flags without those with a prefix.
func without(flags []string, prefixes ...string) []string {
	return slices.DeleteFunc(slices.Clone(flags), func(flag string) bool {
		return slices.ContainsFunc(prefixes, func(prefix string) bool { return strings.HasPrefix(flag, prefix) })
	})
}

// race has the relayers of the world built with the race detector.
func (w *world) race(t *testing.T) {
	t.Helper()
	var err error
	w.program, err = raced()
	check(t, err)
}

// relayer prepares a process. It is killed when the test ends.
func (w *world) relayer(t *testing.T, env ...string) *rig.Service {
	t.Helper()
	s := &rig.Service{Program: w.program, Env: append(env, keys...), Args: w.flags, Log: filepath.Join(w.dir, "log-"+testenv.Random(4))}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("log of the relayer:\n%s", s.Autopsy())
		}
		s.Kill()
		log, err := os.ReadFile(s.Log)
		if err == nil && bytes.Contains(log, []byte("WARNING: DATA RACE")) {
			t.Errorf("the relayer has a data race:\n%s", log)
		}
		for _, secret := range keys {
			if _, digits, _ := strings.Cut(secret, "="); bytes.Contains(log, []byte(digits)) {
				t.Error("a private key is in the log")
			}
		}
	})
	return s
}

// pool is an intent for any signer of the pool.
func (w *world) pool(key string) intent.Request {
	return intent.Request{Key: key, Chain: w.id, From: intent.From{Pool: "hot"}, Calls: []intent.Call{w.pay}}
}

// one is an intent for one signer.
func (w *world) one(signer int, key string) intent.Request {
	r, a := w.pool(key), wallet.Dev(signer).Address()
	r.From = intent.From{Signer: &a}
	return r
}

// ask puts intents into the log with the program.
func (w *world) ask(t *testing.T, requests ...intent.Request) {
	t.Helper()
	var in bytes.Buffer
	for _, r := range requests {
		check(t, json.NewEncoder(&in).Encode(wish(r)))
		w.asked[r.ID()] = r
	}
	c, err := rig.Run(w.ctx, &in, nil, program, append([]string{"request"}, w.flags...)...)
	check(t, err)
	if c.Status != 0 {
		t.Fatalf("relayer request ends with %d: %s", c.Status, c.Stderr)
	}
	for i, line := range strings.Split(strings.TrimSpace(c.Stdout), "\n") {
		if id, _, _ := strings.Cut(line, " "); i >= len(requests) || id != requests[i].ID().String() {
			t.Errorf("it answers %q", line)
		}
	}
}

// feed opens the log in another process than the relayer's.
func (w *world) feed(t *testing.T) delivery.Feed {
	t.Helper()
	f, err := delivery.OpenFeed(w.ctx, w.settings.Delivery, slog.New(slog.DiscardHandler))
	check(t, err)
	t.Cleanup(func() { check(t, f.Close()) })
	return f
}

// done waits until all intents have ended.
func (w *world) done(t *testing.T, s *rig.Service) {
	t.Helper()
	ctx, cancel := context.WithCancel(w.ctx)
	defer cancel()
	ended := s.Ended() // of this start
	go func() {        // cancel the wait if the relayer has ended
		select {
		case <-ended:
			cancel()
		case <-ctx.Done():
		}
	}()
	open := len(w.asked)
	ends := eventlog.Filter{Names: []string{"intent.completed.", "intent.failed.", "intent.canceled."}}
	for batch, err := range w.feed(t).Log.Subscribe(ctx, 0, ends, 1000) {
		if err != nil {
			t.Fatalf("%d intents are open: %v", open, err)
		}
		if open -= len(batch.Events); open <= 0 {
			return
		}
	}
	t.Fatalf("%d intents are open", open)
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
