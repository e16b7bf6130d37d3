//go:build chaos

package main_test

import (
	"bytes"
	"cmp"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/eventlog"
	"github.com/tempo-watchtower/watchtower/proof/promises"
	"github.com/tempo-watchtower/watchtower/proof/rig"
)

// previousVar names the revision to replace. The default is version 0.1.0; the next version takes
// its place once it is cut.
const (
	previousVar     = "WATCHTOWER_TEST_PREVIOUS"
	previousDefault = "282d5296a55a02c21e09e3d6f9cc043d46601ff9"
	// unlinked is the last revision that recorded no links.
	unlinked = "4787e8cf24a06946681816249287489cf6e0a90e"
)

// build is a build of an earlier revision.
type build struct {
	program    string
	unlinked   bool // it records events without links
	migrations int  // in the databases of an embedded store
}

// previous runs a test with each build that the present build may replace.
func previous(t *testing.T, test func(t *testing.T, old build)) {
	t.Parallel()
	t.Run("previous", func(t *testing.T) { test(t, built(t, cmp.Or(os.Getenv(previousVar), previousDefault))) })
	t.Run("unlinked", func(t *testing.T) {
		old := built(t, unlinked)
		old.unlinked = true
		test(t, old)
	})
}

// built builds the program of a revision.
func built(t *testing.T, revision string) build {
	t.Helper()
	dir := t.TempDir()
	archive := exec.CommandContext(t.Context(), "git", "archive", "--format=tar", revision)
	archive.Dir = sources(t)
	tree, err := archive.Output()
	if err != nil {
		t.Fatalf("MISSING: revision %s in this clone; %s names another one: %v", revision, previousVar, err)
	}
	unpack := exec.CommandContext(t.Context(), "tar", "-x", "-C", dir)
	unpack.Stdin = bytes.NewReader(tree)
	program := filepath.Join(dir, "previous")
	make := exec.CommandContext(t.Context(), "go", "build", "-buildvcs=false", "-o", program, "./cmd/watchtower")
	make.Dir = dir
	for _, cmd := range []*exec.Cmd{unpack, make} {
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v: %v\n%s", cmd.Args, err, out)
		}
	}
	return build{program: program, migrations: countMigrations(t, dir)}
}

// sources is the git clone in which the tests run.
func sources(t *testing.T) string {
	t.Helper()
	root, err := exec.CommandContext(t.Context(), "git", "rev-parse", "--show-toplevel").Output()
	if err != nil {
		t.Fatalf("MISSING: a clone with its history, to build what was from: %v", err)
	}
	return string(bytes.TrimSpace(root))
}

// countMigrations counts the migrations of an embedded store in a source tree.
func countMigrations(t *testing.T, tree string) (n int) {
	t.Helper()
	for _, database := range []string{"keys", "log", "work"} {
		files, err := filepath.Glob(filepath.Join(tree, "migrations/embedded", database, "*.sql"))
		if err != nil || len(files) == 0 {
			t.Fatalf("%d migrations of %s.db in %s: %v", len(files), database, tree, err)
		}
		n += len(files)
	}
	return n
}

// fleet is replicas that are replaced one by one, and their changing addresses.
type fleet struct {
	mu       sync.Mutex
	replicas []*rig.Service
}

func (f *fleet) urls() (all []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, r := range f.replicas {
		all = append(all, r.URL)
	}
	return all
}

// roll replaces the replicas by a program one after the other, with a pause after each in which
// both programs run.
func (f *fleet) roll(t *testing.T, w *world, program string, pause time.Duration) {
	for _, r := range f.replicas {
		if err := r.Stop(w.ctx); err != nil {
			t.Error(err)
		}
		next := *r
		next.Program = program
		if err := next.Start(w.ctx); err != nil {
			t.Error(err)
			return
		}
		f.mu.Lock()
		*r = next
		f.mu.Unlock()
		w.wait(pause)
	}
}

// Row 42. Replicas of the previous build are replaced by this build, rolled back, and replaced
// again, while clients post to all of them. Both builds work side by side on one store, nothing
// is lost and nothing is done twice.
func TestRollingUpgrade(t *testing.T) { previous(t, rollingUpgrade) }

func rollingUpgrade(t *testing.T, old build) {
	w := newWorld(t, shared, "--block-time", "1").lasting(t, 2*patience)
	f := &fleet{}
	for range 3 {
		r := w.service(t)
		r.Program = old.program
		check(t, r.Start(w.ctx))
		f.replicas = append(f.replicas, r)
	}
	payments, to := rig.Payments(9900, 3000)
	rolled := make(chan struct{})
	var rolling sync.WaitGroup
	rolling.Go(func() {
		defer close(rolled)
		w.wait(time.Second)
		for _, to := range []string{program, old.program, program} {
			began := time.Now()
			f.roll(t, w, to, time.Second)
			t.Logf("all replaced in %v", time.Since(began).Round(time.Millisecond))
		}
	})
	failed, posted := 0, 0
	for some := range chunks(payments, 30) {
		n, _ := w.insist(t, some, 6, f.urls()...)
		failed, posted = failed+n, posted+len(some)
		select {
		case <-rolled:
		default:
			continue
		}
		break
	}
	rolling.Wait()
	payments = payments[:posted]
	if posted == 3000 {
		t.Error("the load ended before the upgrade did")
	}
	url := f.urls()[0]
	w.delivered(t, url, payments, rig.Sealed)
	w.paidOnce(t, to, len(payments))
	status, problems := halted(w.ctx, url)
	t.Logf("%d acknowledged, %d calls without an answer, latest first answer of a node %v, /health %d %v",
		posted, failed, w.late(t, url, payments).Round(time.Millisecond), status, problems)
	for _, r := range f.replicas {
		check(t, r.Stop(w.ctx))
	}
	if old.unlinked {
		w.broken[promises.P31] = "the previous build goes on with streams that have links, and records none"
		if told, want := w.judge(t).Broken[promises.P31], w.unlinked(t); told != want || want == 0 {
			t.Errorf("the judge tells of %d events without a link, and there are %d after one with", told, want)
		}
	}
}

// unlinked counts the events without a link that follow a linked event in their stream.
func (w *world) unlinked(t *testing.T) (n int) {
	t.Helper()
	store, err := w.inspect(w.ctx)
	check(t, err)
	defer store.Close() //nolint:errcheck // it was only read
	linked := map[eventlog.Stream]bool{}
	for after := eventlog.Position(0); ; {
		page, err := store.Page(w.ctx, after, 1000)
		check(t, err)
		if len(page) == 0 {
			return n
		}
		for _, e := range page {
			after = e.Position
			switch {
			case !e.Meta.Link.IsZero():
				linked[e.Stream] = true
			case linked[e.Stream]:
				n++
			}
		}
	}
}

// The same, one program after the other on one directory. If this build has changed the schema,
// the previous build refuses the directory and leaves it unchanged.
func TestUpgradeInPlace(t *testing.T) { previous(t, upgradeInPlace) }

func upgradeInPlace(t *testing.T, old build) {
	w := newWorld(t, func(_ *testing.T, dir string) []string {
		return []string{"--store", "embedded:" + filepath.Join(dir, "data")}
	}, "--block-time", "1")
	changed := old.migrations < countMigrations(t, sources(t))
	s := w.service(t)
	var all []rig.Payment
	paid := map[chain.Address]int{}
	for n, next := range []string{old.program, program, old.program, program} {
		s.Program = next
		if changed && n == 2 {
			if err := s.Start(w.ctx); err == nil || !strings.Contains(err.Error(), "made by a newer version of this program") {
				t.Fatalf("the previous build on what this one has changed: %v", err)
			}
			continue
		}
		check(t, s.Start(w.ctx))
		payments, to := rig.Payments(uint32(9910+n), 100)
		if acked := load(w.ctx, s, payments, 8); len(acked) != len(payments) {
			t.Errorf("%d of %d acknowledged", len(acked), len(payments))
		}
		all = append(all, payments...)
		paid[to] = len(payments)
		check(t, s.Stop(w.ctx)) // with some of them open
	}
	check(t, s.Start(w.ctx))
	w.delivered(t, s.URL, all, rig.Sealed)
	for to, n := range paid {
		w.paidOnce(t, to, n)
	}
	check(t, s.Stop(w.ctx))
}
