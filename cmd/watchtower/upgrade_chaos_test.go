//go:build chaos

package main_test

import (
	"bytes"
	"cmp"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/tempo-watchtower/watchtower/cmd/internal/rig"
)

// previousVar names the revision that is replaced in a rolling upgrade. Without it, it
// is the last one before the latest change of a schema.
const (
	previousVar     = "WATCHTOWER_TEST_PREVIOUS"
	previousDefault = "4787e8cf24a06946681816249287489cf6e0a90e"
)

// previous builds the program as it was.
func previous(t *testing.T, ctx context.Context) string {
	t.Helper()
	revision := cmp.Or(os.Getenv(previousVar), previousDefault)
	dir := t.TempDir()
	root, err := exec.CommandContext(ctx, "git", "rev-parse", "--show-toplevel").Output()
	if err != nil {
		t.Fatalf("MISSING: a clone with its history, to build %s from: %v", revision, err)
	}
	archive := exec.CommandContext(ctx, "git", "archive", "--format=tar", revision)
	archive.Dir = string(bytes.TrimSpace(root))
	tree, err := archive.Output()
	if err != nil {
		t.Fatalf("MISSING: revision %s in this clone; %s names another one: %v", revision, previousVar, err)
	}
	unpack := exec.CommandContext(ctx, "tar", "-x", "-C", dir)
	unpack.Stdin = bytes.NewReader(tree)
	program := filepath.Join(dir, "previous")
	build := exec.CommandContext(ctx, "go", "build", "-buildvcs=false", "-o", program, "./cmd/watchtower")
	build.Dir = dir
	for _, cmd := range []*exec.Cmd{unpack, build} {
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v: %v\n%s", cmd.Args, err, out)
		}
	}
	return program
}

// fleet is replicas that are replaced one by one, and their addresses, which change.
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

// roll replaces one replica after the other by a program, with a pause after each in
// which both are at work.
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

// Row 42. Replicas of the previous build are replaced by this one's, and that is taken
// back, and done again, while clients post to all of them: the two work side by side
// on one store, nothing is lost and nothing is done twice.
func TestRollingUpgrade(t *testing.T) {
	t.Parallel()
	w := newWorld(t, shared, "--block-time", "1")
	old := previous(t, w.ctx)
	ctx, cancel := context.WithTimeout(context.Background(), 2*patience)
	defer cancel()
	w.ctx = ctx
	f := &fleet{}
	for range 3 {
		r := w.service(t)
		r.Program = old
		check(t, r.Start(w.ctx))
		f.replicas = append(f.replicas, r)
	}
	payments, to := rig.Payments(9900, 3000)
	rolled := make(chan struct{})
	var rolling sync.WaitGroup
	rolling.Go(func() {
		defer close(rolled)
		w.wait(time.Second)
		for _, to := range []string{program, old, program} {
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
}

// The same, one program after the other on one folder.
func TestUpgradeInPlace(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(_ *testing.T, dir string) []string {
		return []string{"--store", "embedded:" + filepath.Join(dir, "data")}
	}, "--block-time", "1")
	old := previous(t, w.ctx)
	s := w.service(t)
	var all []rig.Payment
	for n, next := range []string{old, program, old, program} {
		s.Program = next
		check(t, s.Start(w.ctx))
		payments, _ := rig.Payments(uint32(9910+n), 100)
		if acked := load(w.ctx, s, payments, 8); len(acked) != len(payments) {
			t.Errorf("%d of %d acknowledged", len(acked), len(payments))
		}
		all = append(all, payments...)
		check(t, s.Stop(w.ctx)) // with some of them open
	}
	check(t, s.Start(w.ctx))
	w.delivered(t, s.URL, all, rig.Sealed)
	for n := range 4 {
		_, to := rig.Payments(uint32(9910+n), 0)
		w.paidOnce(t, to, 100)
	}
	check(t, s.Stop(w.ctx))
}
