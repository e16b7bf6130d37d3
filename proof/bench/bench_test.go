package main

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/tempo-watchtower/watchtower/infra/testenv"
	"github.com/tempo-watchtower/watchtower/proof/rig"
)

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && (os.Args[1] == "serve" || os.Args[1] == floodCommand) { // the benchmark runs itself
		main()
		return
	}
	dir, err := os.MkdirTemp("", "watchtower-bench-test-")
	if err != nil {
		panic(err)
	}
	build = sync.OnceValues(func() (string, error) { return rig.Build(context.Background(), dir) })
	buildRelayer = sync.OnceValues(func() (string, error) { return rig.BuildProgram(context.Background(), dir, "relayer") })
	// CI has built everything without cgo before, and these tests measure nothing.
	if err := os.Setenv("CGO_ENABLED", "0"); err != nil {
		panic(err)
	}
	// Most tests wait for blocks.
	if err := flag.Set("test.parallel", strconv.Itoa(2*runtime.GOMAXPROCS(0))); err != nil {
		panic(err)
	}
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		os.RemoveAll(dir) //nolint:errcheck // a temporary folder
		os.Exit(code)
	}), // HTTP clients keep connections
		goleak.IgnoreTopFunction("net/http.(*persistConn).writeLoop"),
		goleak.IgnoreAnyFunction("net/http.(*persistConn).readLoop"))
}

// build and buildRelayer build the programs once for all tests.
var build, buildRelayer func() (program string, err error)

// tiny is just enough for every measurement to run.
func tiny() scale {
	return scale{
		runs: 1, spin: 10 * time.Millisecond, blockTime: 250 * time.Millisecond, alone: 40, lives: 100,
		scheduled: 300, oneByOne: 100, due: 10, dueFor: 2,
		payments: 100, senders: 10, rate: 20, steadyFor: 1,
		anvil: 20, fleet: 200, crew: 100,
		beside: neighbourly{rate: 5, lasts: 3 * time.Second, limit: 50, times: 10, connections: 20},
		crowds: []int{100}, herd: 100, idleFor: 100 * time.Millisecond,
		trials: map[string][]trial{
			sectionPeers: {
				{name: "lost", payments: 40, signers: 2, cut: 0.3},
				{name: "killed", payments: 60, signers: 2, rate: 40, kill: 500 * time.Millisecond, down: 100 * time.Millisecond},
				{name: "together", payments: 40, signers: 2, replicas: 1, doubled: true},
			},
			sectionRelay: {
				{name: "lost", payments: 40, signers: 2, cut: 0.3},
				{name: "killed", payments: 60, signers: 2, rate: 40, kill: 500 * time.Millisecond, down: 100 * time.Millisecond},
				{name: "together", payments: 40, signers: 2, replicas: 1, doubled: true, aims: aims{against: "another"}},
				{name: "taken over", payments: 60, signers: 2, rate: 20, replicas: 1, kill: 500 * time.Millisecond, takeover: true},
			},
		},
	}
}

func measure(t *testing.T, o options) *bench {
	t.Helper()
	b := newBench(t, o)
	if err := b.all(t.Context()); err != nil {
		t.Fatal(err)
	}
	return b
}

func newBench(t *testing.T, o options) *bench {
	t.Helper()
	o.scale, o.fanout = tiny(), 1
	b := &bench{options: o, sheet: newSheet(), dir: t.TempDir(), say: io.Discard}
	if o.wantsAny(sectionRelay, sectionNeighbours) {
		var err error
		if b.relayer, err = buildRelayer(); err != nil {
			t.Fatal(err)
		}
	}
	if o.wants(sectionRelay) {
		return b
	}
	if o.profile == "" {
		var err error
		if b.program, err = build(); err != nil {
			t.Fatal(err)
		}
	}
	return b
}

// onEach runs a test for each available store, in parallel.
func onEach(t *testing.T, test func(t *testing.T, engine string)) {
	t.Helper()
	t.Parallel()
	engines, err := chooseEngines("")
	if err != nil {
		t.Fatal(err)
	}
	for _, engine := range engines {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			test(t, engine)
		})
	}
}

// Every section can be measured on every store.
func TestEverySection(t *testing.T) {
	onEach(t, func(t *testing.T, engine string) {
		for _, section := range sections() {
			if slices.Contains(onlyAsked(), section) || section == sectionReplicas && engine == embeddedEngine ||
				section == sectionAnvil && os.Getenv(testenv.AnvilVar) == "" {
				continue
			}
			t.Run(section, func(t *testing.T) {
				t.Parallel()
				b := measure(t, options{engines: []string{engine}, only: []string{section}})
				of := func(r *row) bool { return r.Section == section && (r.Store == engine || section == sectionLimits) }
				if !slices.ContainsFunc(b.sheet.rows, of) {
					t.Errorf("no figure of %s on %s", section, engine)
				}
				for _, r := range b.sheet.rows {
					if r.What == "each on its own nonce key, of these eth_sendRawTransaction" && median(r.values) < 1 {
						t.Errorf("%v sends for each transaction delivered", median(r.values))
					}
				}
			})
		}
	})
}

// The crowds are measured only on request, since they are large.
func TestCrowds(t *testing.T) {
	if (options{}).wants(sectionCrowd) {
		t.Error("crowds are measured unasked")
	}
	onEach(t, func(t *testing.T, engine string) {
		b := measure(t, options{engines: []string{engine}, only: []string{sectionCrowd}})
		of := func(r *row) bool {
			return r.Section == sectionCrowd && r.Store == engine && strings.HasSuffix(r.What, "lateness of the last")
		}
		if !slices.ContainsFunc(b.sheet.rows, of) {
			t.Errorf("no lateness on %s", engine)
		}
	})
}

func TestProfileIsLeft(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	measure(t, options{engines: []string{embeddedEngine}, only: []string{sectionAccept}, profile: dir})
	for _, name := range []string{"embedded-accept-single.pprof", "embedded-accept-batch.pprof"} {
		if info, err := os.Stat(filepath.Join(dir, name)); err != nil || info.Size() == 0 {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestSheet(t *testing.T) {
	s := newSheet()
	rate := figure{Section: sectionAccept, Store: embeddedEngine, What: "rate", Unit: "tx/s", Yardstick: "best", Against: 200, Goal: goal{AtLeast: 150}}
	for _, v := range []float64{10, 160, 300} {
		s.note(rate, v)
	}
	other := rate
	other.Store, other.Goal = postgresEngine, goal{AtLeast: 170}
	s.note(figure{Section: sectionAccept, Store: embeddedEngine, What: "wait", Unit: "ms", Goal: goal{AtMost: 5}}, 5)
	s.note(other, 160)
	for run, yardstick := range []float64{100, 40, 50} { // a run's value is compared with the same run's yardstick
		s.note(figure{Section: sectionReplicas, What: "many", Unit: "1/s", Yardstick: "one", Against: yardstick, Goal: goal{Reach: true}}, []float64{90, 45, 55}[run])
	}
	s.note(figure{Section: sectionLimits, What: "limit", Unit: "1/s"}, 1234.5)

	var text bytes.Buffer
	if err := s.print(&text, machine{}); err != nil {
		t.Fatal(err)
	}
	var got [][]string
	for _, line := range strings.Split(strings.TrimSpace(text.String()), "\n")[1:] {
		got = append(got, strings.Fields(line))
	}
	want := [][]string{
		{"measure", "store", "figure", "unit", "yardstick", "ratio", "goal", "kept"},
		{"limits"},
		{"limit", "1234", "1/s"},
		{"accept"},
		{"rate", "embedded", "160", "tx/s", "best", "200", "0.80", "≥", "150", "yes"},
		{"rate", "postgres", "160", "tx/s", "best", "200", "0.80", "≥", "170", "no"},
		{"wait", "embedded", "5.00", "ms", "≤", "5.00", "yes"},
		{"replicas"},
		{"many", "55.0", "1/s", "one", "50.0", "1.10", "≥", "50.0", "yes"},
	}
	if !slices.EqualFunc(got, want, slices.Equal) {
		t.Errorf("printed\n%s", &text)
	}

	text.Reset()
	if err := s.json(&text, machine{}, nil, nil); err != nil {
		t.Fatal(err)
	}
	var parsed struct{ Figures []told }
	if err := json.Unmarshal(text.Bytes(), &parsed); err != nil {
		t.Fatal(err)
	}
	if len(parsed.Figures) != 5 || parsed.Figures[1].Median != 160 || parsed.Figures[1].Ratio != 0.8 || len(parsed.Figures[1].Values) != 3 {
		t.Errorf("as JSON: %+v", parsed.Figures)
	}
}

func TestStatistics(t *testing.T) {
	var all []time.Duration
	for i := range 200 {
		all = append(all, time.Duration(200-i))
	}
	for p, want := range map[float64]time.Duration{0.5: 100, 0.99: 198, 1: 200, 0: 1} {
		if got := percentile(all, p); got != want {
			t.Errorf("percentile %v of 1 to 200 is %d, want %d", p, got, want)
		}
	}
	if percentile(nil, 0.5) != 0 {
		t.Error("nothing has a percentile")
	}
	if got := median([]float64{4, 1, 3, 2}); got != 2.5 {
		t.Errorf("median %v", got)
	}
}

func TestFlags(t *testing.T) {
	for _, args := range [][]string{{"-store", "redis"}, {"-only", "lunch"}, {"more"}, {"-nope"}, {"-fanout", "0"}} {
		if o, err := parse(args, io.Discard); err == nil {
			t.Errorf("%v is taken: %+v", args, o)
		}
	}
	o, err := parse([]string{"-quick", "-store", "embedded", "-only", "log,accept", "-runs", "5"}, io.Discard)
	if err != nil || o.scale.runs != 5 || o.scale.payments != small().payments || !o.wants(sectionLog) || o.wants(sectionSteady) {
		t.Errorf("%+v, %v", o, err)
	}
}

// A refused request is an error, and does not count towards the rate.
func TestRefusalsAreNoAcceptances(t *testing.T) {
	t.Parallel()
	b := newBench(t, options{})
	s, err := b.serve(t.Context(), embeddedEngine)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := s.end(t.Context()); err != nil {
			t.Error(err)
		}
	}()
	payments := sign(3, independent(seriesBurst))
	payments[1].Raw[len(payments[1].Raw)-70]++ // in the middle of a signature
	payments[1].Raw = payments[1].Raw[:len(payments[1].Raw)-1]
	_, err = postAll(t.Context(), s.URL, requests(payments, 3), 1)
	if err == nil || !strings.Contains(err.Error(), "2 of 3 taken") {
		t.Errorf("posting a broken transaction: %v", err)
	}
}

func TestOwnProcess(t *testing.T) {
	p, ok := readProcess(os.Getpid())
	if !ok {
		t.Log("no /proc here: no processor time is told")
		return
	}
	if p.parent != os.Getppid() {
		t.Errorf("parent %d, want %d", p.parent, os.Getppid())
	}
	for range 100 { // other processes may use most of the processors
		if _, err := spin(t.Context(), 1, 100*time.Millisecond, func() error { return nil }); err != nil {
			t.Fatal(err)
		}
		if after, _ := readProcess(os.Getpid()); after.used > p.used {
			return
		}
	}
	t.Errorf("%v used before and after ten seconds of work", p.used)
}
