package archiver_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tempo-watchtower/watchtower/commands/archiver"
	"github.com/tempo-watchtower/watchtower/eventlog"
	"github.com/tempo-watchtower/watchtower/infra/archive"
	"github.com/tempo-watchtower/watchtower/infra/embedded"
	"github.com/tempo-watchtower/watchtower/infra/postgres"
)

// The test binary runs itself as a child that archives and dies.
const (
	childVar = "WATCHTOWER_ARCHIVER_CHILD" // the point at which it dies
	storeVar = "WATCHTOWER_ARCHIVER_STORE" // a folder, or a URL
	shelfVar = "WATCHTOWER_ARCHIVER_SHELF"
)

func child() int {
	passes := 0
	crash := func(point string) {
		if point != os.Getenv(childVar) {
			return
		}
		// A restore's points and "archive.dropping" occur once; at the other points the first pass succeeds.
		if passes++; passes == 2 || point == "archive.dropping" || strings.HasPrefix(point, "restore.") {
			syscall.Kill(os.Getpid(), syscall.SIGKILL) //nolint:errcheck // nobody is left to hear of it
			select {}
		}
	}
	place := os.Getenv(storeVar)
	e := onEmbedded(place, crash)
	if strings.HasPrefix(place, "postgres://") {
		e = onPostgres(place, crash)
	}
	a := archiving(e.open(), archive.NewFiles(archive.Dir(os.Getenv(shelfVar)), crash))
	a.Crash = crash
	if strings.HasPrefix(os.Getenv(childVar), "restore.") {
		return childRestores(a)
	}
	for {
		report, err := a.Pass(context.Background(), true)
		if err != nil || len(report.Stored) == 0 {
			fmt.Fprintln(os.Stderr, "not killed:", err)
			return 1
		}
		a.Settings.Segment /= 2 // another pass has something to do
	}
}

// After a kill at any point the next pass continues: no event is lost or doubled.
func TestKilledWhileArchiving(t *testing.T) {
	own := append(archiver.CrashPoints(), archive.CrashPoints()...)
	for name, points := range map[string][]string{
		"embedded": append(embedded.ArchiveCrashPoints(), own...),
		"postgres": append(postgres.ArchiveCrashPoints(), own...),
	} {
		for _, point := range points {
			t.Run(name+"/"+point, func(t *testing.T) { killed(t, name, point) })
		}
	}
}

// killing fills a store, has a child die at a point, and opens the store again. The last event
// of before was the log's last one.
func killing(t *testing.T, engine, point string) (a *archiver.Archiver, before []eventlog.Recorded) {
	place, shelf := t.TempDir(), t.TempDir()
	e := onEmbedded(place, nil)
	if engine == "postgres" {
		place = postgresURL(t)
		e = onPostgres(place, nil)
	}
	a = archiving(e.open(), archive.NewFiles(archive.Dir(shelf), nil))
	fill(t, a, 40)
	before = all(t, a)
	check(t, e.close())

	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), childVar+"="+point, storeVar+"="+place, shelfVar+"="+shelf)
	var said bytes.Buffer
	cmd.Stderr = &said
	err := cmd.Run()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
		t.Fatalf("the child was not killed: %v, %s", err, said.String())
	}

	a = archiving(e.open(), archive.NewFiles(archive.Dir(shelf), nil))
	t.Cleanup(func() { e.close() }) //nolint:errcheck // the test is over
	return a, before
}

func killed(t *testing.T, engine, point string) {
	a, before := killing(t, engine, point)
	same := func(when string) {
		t.Helper()
		if diff := cmp.Diff(before, all(t, a)[:len(before)]); diff != "" {
			t.Fatalf("%s: %s", when, diff)
		}
	}
	same("after the kill")
	report, err := a.Pass(t.Context(), true)
	check(t, err)
	same("resumed")
	state, err := a.State(t.Context())
	check(t, err)
	listed, err := a.Store.Segments(t.Context())
	check(t, err)
	if diff := cmp.Diff(state.Segments, listed); diff != "" || state.Begins != report.Begins || report.Begins <= part {
		t.Errorf("recorded is what begins at %d, the log begins at %d; listed: %s", state.Begins, report.Begins, diff)
	}
	for _, s := range state.Segments {
		check(t, a.Files.Verify(t.Context(), s))
	}
}
