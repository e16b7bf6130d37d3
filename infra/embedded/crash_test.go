package embedded_test

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/payload"
	"github.com/tempo-watchtower/watchtower/eventlog"
	"github.com/tempo-watchtower/watchtower/infra/embedded"
)

// The test binary runs itself as a child that writes to a store and dies.
const (
	childVar = "WATCHTOWER_EMBEDDED_CHILD" // the child's role
	dirVar   = "WATCHTOWER_EMBEDDED_DIR"
	roundVar = "WATCHTOWER_EMBEDDED_ROUND"
)

func child(play string) int {
	var err error
	if play == "full" {
		err = playFullDisk(os.Getenv(dirVar))
	} else {
		err = playCrash(os.Getenv(dirVar), play, os.Getenv(roundVar))
	}
	fmt.Fprintln(os.Stderr, err)
	return 1
}

// crashWriters write concurrently, so that a crash hits several of them in one commit.
const crashWriters = 8

// playCrash writes until it reaches a point for the 40th time, and kills itself there. It
// prints every acknowledged append first.
func playCrash(dir, point, round string) error {
	var passed atomic.Int32
	db, err := embedded.Open(dir, embedded.Options{Crash: func(at string) {
		if at == point && passed.Add(1) == 40 {
			syscall.Kill(os.Getpid(), syscall.SIGKILL) //nolint:errcheck // nobody is left to hear of it
			select {}
		}
	}})
	if err != nil {
		return err
	}
	var all sync.WaitGroup
	for w := range crashWriters {
		all.Go(func() {
			for i := 0; ; i++ {
				name := eventlog.Stream(fmt.Sprintf("s-%s-%d-%d", round, w, i))
				if err := db.Payloads().Put(soonest, []payload.Sealed{crashPayload(name)}); err != nil {
					panic(err)
				}
				if _, err := db.Log().Append(soonest, name, 0, crashEvents(name)...); err != nil {
					panic(err)
				}
				fmt.Fprintln(os.Stdout, name) // a single write, because it is short
			}
		})
	}
	all.Wait()
	return errors.New("the writers ended")
}

func crashEvents(name eventlog.Stream) []eventlog.Event {
	events := make([]eventlog.Event, 3)
	for i := range events {
		events[i] = eventlog.Event{ID: eventlog.DeriveID(name, eventlog.ID{}, i), Name: "test.happened.v1", Data: []byte("{}")}
	}
	return events
}

func crashPayload(name eventlog.Stream) payload.Sealed {
	return payload.Sealed{
		Ref:   payload.Ref{Chain: 1, Hash: chain.Keccak([]byte(name))},
		KeyID: 7, Wrapped: []byte("key of " + name), Bytes: []byte("bytes of " + name),
	}
}

// TestCrash kills a process at every named point, repeatedly on one directory. Acknowledged
// appends are stored, every append is whole, and retrying an unanswered append has one effect.
func TestCrash(t *testing.T) {
	for _, point := range embedded.CrashPoints() {
		t.Run(point, func(t *testing.T) {
			dir := t.TempDir()
			var told []eventlog.Stream
			for round := range 3 {
				cmd := exec.Command(os.Args[0])
				cmd.Env = append(os.Environ(), childVar+"="+point, dirVar+"="+dir, fmt.Sprintf("%s=%d", roundVar, round))
				var stderr bytes.Buffer
				cmd.Stderr = &stderr
				out, err := cmd.Output()
				var exit *exec.ExitError
				if !errors.As(err, &exit) || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
					t.Fatalf("the child ended with %v: %s", err, stderr.String())
				}
				for line := bufio.NewScanner(bytes.NewReader(out)); line.Scan(); {
					told = append(told, eventlog.Stream(line.Text()))
				}
			}
			checkCrashed(t, dir, told)
		})
	}
}

func checkCrashed(t *testing.T, dir string, told []eventlog.Stream) {
	t.Helper()
	db, err := embedded.Open(dir, embedded.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close() //nolint:errcheck // only read from
	if len(told) < 20 {
		t.Fatalf("only %d appends were acknowledged", len(told))
	}
	standing := map[eventlog.Stream]int{}
	last := eventlog.Position(0)
	for batch, err := range db.Log().ReadAll(t.Context(), 0, eventlog.Filter{}, 1000) {
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range batch.Events {
			standing[r.Stream]++
			if last++; r.Position != last {
				t.Fatalf("position %d follows %d", r.Position, last-1)
			}
		}
	}
	for name, n := range standing {
		if n != 3 {
			t.Errorf("%s has %d of 3 events", name, n)
		}
	}
	for _, name := range told {
		if standing[name] != 3 {
			t.Errorf("%s was acknowledged and is lost", name)
		}
	}
	for name := range standing { // the payload was stored before the event was appended
		want := crashPayload(name)
		got, err := db.Payloads().Get(t.Context(), want.Chain, want.Hash)
		if err != nil || !bytes.Equal(got.Bytes, want.Bytes) || !bytes.Equal(got.Wrapped, want.Wrapped) {
			t.Errorf("payload of %s: %v, %v", name, got, err)
		}
	}
	// Retry the appends that were running when the child died.
	for round := range 3 {
		for w := range crashWriters {
			i := 0
			for ; standing[eventlog.Stream(fmt.Sprintf("s-%d-%d-%d", round, w, i))] > 0; i++ {
			}
			for i = max(0, i-1); ; i++ { // the last stored append, and the one after it
				name := eventlog.Stream(fmt.Sprintf("s-%d-%d-%d", round, w, i))
				row := crashPayload(name)
				if err := db.Payloads().Put(t.Context(), []payload.Sealed{row}); err != nil {
					t.Fatal(err)
				}
				a, err := db.Log().Append(t.Context(), name, 0, crashEvents(name)...)
				if err != nil || a.Version != 3 || a.Repeated != (standing[name] == 3) {
					t.Errorf("%s again: %+v, %v; it had %d events", name, a, err, standing[name])
				}
				if got, err := db.Payloads().Get(t.Context(), row.Chain, row.Hash); err != nil || !bytes.Equal(got.Wrapped, row.Wrapped) {
					t.Errorf("payload of %s, put again: %v, %v", name, got, err)
				}
				if standing[name] == 0 {
					break
				}
			}
		}
	}
}

// TestFailedCommit makes the operating system refuse a write during a commit.
func TestFailedCommit(t *testing.T) {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childVar+"=full", dirVar+"="+t.TempDir())
	out, err := cmd.CombinedOutput()
	if !strings.Contains(string(out), fullPlayed) {
		t.Fatalf("%v: %s", err, out)
	}
	t.Logf("%s", out)
}

const fullPlayed = "played to the end"

// playFullDisk limits this process's file size until a commit fails, then lifts the limit.
func playFullDisk(dir string) error {
	signal.Ignore(syscall.SIGXFSZ) // so that a write over the limit is an error
	db, err := embedded.Open(dir, embedded.Options{})
	if err != nil {
		return err
	}
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_FSIZE, &limit); err != nil {
		return err
	}
	short := limit
	short.Cur = 3 << 20
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &short); err != nil {
		return err
	}
	events := func(i int) (eventlog.Stream, []eventlog.Event) {
		name := eventlog.Stream(fmt.Sprint("s-", i))
		e := crashEvents(name)
		e[2].Data = bytes.Repeat([]byte(" "), 200_000)
		return name, e
	}
	n := 0
	for ; err == nil; n++ {
		if n == 100 {
			return errors.New("a hundred appends fit into 3 MiB")
		}
		name, e := events(n)
		_, err = db.Log().Append(soonest, name, 0, e...)
	}
	if !errors.Is(err, eventlog.ErrUnknown) {
		return fmt.Errorf("the failed commit answered %w", err)
	}
	failed := err
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &limit); err != nil {
		return err
	}
	for i := range n + 5 {
		name, e := events(i)
		a, err := db.Log().Append(soonest, name, 0, e...)
		if err != nil || a.Repeated != (i < n-1) || a.Position != eventlog.Position(3*i+3) {
			return fmt.Errorf("append %d of %d again: %+v, %w", i, n, a, err)
		}
	}
	if err := db.Close(); err != nil {
		return err
	}
	return fmt.Errorf("%s; append %d answered: %w", fullPlayed, n, failed)
}
