package embedded

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"testing"

	"zombiezen.com/go/sqlite"

	"github.com/tempo-watchtower/watchtower/eventlog"
)

// held is a file whose writer is busy until release, so that a test controls which jobs share a
// transaction.
func held(t *testing.T) (f *file, release func()) {
	t.Helper()
	f, err := openFile(filepath.Join(t.TempDir(), "work.db"), consistent, tables("work"), 1, hooks{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := f.close(); err != nil {
			t.Error(err)
		}
	})
	entered, gate := make(chan struct{}), make(chan struct{})
	var first sync.WaitGroup
	var once sync.Once // it runs again if another job fails
	first.Go(func() {
		err := f.writer.do(context.Background(), &job{do: func(*sqlite.Conn) error {
			once.Do(func() { close(entered) })
			<-gate
			return nil
		}})
		if err != nil {
			t.Error("the job that held the writer:", err)
		}
	})
	<-entered
	return f, func() { close(gate); first.Wait() }
}

func move(reader string) func(*sqlite.Conn) error {
	return func(conn *sqlite.Conn) error { return moveCheckpoint(conn, reader, 0, 1) }
}

func standing(t *testing.T, f *file, reader string) bool {
	t.Helper()
	var at eventlog.Position
	err := f.readers.read(context.Background(), func(conn *sqlite.Conn) (err error) {
		at, err = checkpointOf(conn, reader)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return at == 1
}

// queued waits until n jobs wait for the writer.
func queued(t *testing.T, f *file, n int) {
	t.Helper()
	for f.writer.jobs.Len() < n {
		if t.Context().Err() != nil {
			t.Fatal("the jobs did not come to wait")
		}
		runtime.Gosched()
	}
}

// TestTroubleIsNotShared makes one of several jobs in a transaction fail after it has written.
// It alone fails, and its writes are undone.
func TestTroubleIsNotShared(t *testing.T) {
	f, release := held(t)
	trouble := errors.New("trouble")
	results := map[string]error{}
	var mu sync.Mutex
	var all sync.WaitGroup
	for i, name := range []string{"before", "bad", "after"} {
		all.Go(func() {
			err := f.writer.do(t.Context(), &job{do: func(conn *sqlite.Conn) error {
				if err := move(name)(conn); err != nil || name != "bad" {
					return err
				}
				return trouble
			}})
			mu.Lock()
			results[name] = err
			mu.Unlock()
		})
		queued(t, f, i+1)
	}
	release()
	all.Wait()
	if results["before"] != nil || results["after"] != nil || !errors.Is(results["bad"], trouble) || errors.Is(results["bad"], eventlog.ErrUnknown) {
		t.Errorf("answers: %v", results)
	}
	for name, want := range map[string]bool{"before": true, "bad": false, "after": true} {
		if standing(t, f, name) != want {
			t.Errorf("what %q wrote stands: %v", name, !want)
		}
	}
}

// TestWithdrawnJobsNeverRun ends callers' contexts while their jobs wait. They get an error
// that nothing was written, and nothing is.
func TestWithdrawnJobsNeverRun(t *testing.T) {
	f, release := held(t)
	ctx, cancel := context.WithCancel(t.Context())
	var all sync.WaitGroup
	for i := range 20 {
		all.Go(func() {
			if err := f.writer.do(ctx, &job{do: move("gone")}); !errors.Is(err, context.Canceled) || errors.Is(err, eventlog.ErrUnknown) {
				t.Error(err)
			}
		})
		queued(t, f, i+1)
	}
	cancel()
	all.Wait()
	release()
	if err := f.writer.do(t.Context(), &job{do: move("stayed")}); err != nil {
		t.Error(err)
	}
	if standing(t, f, "gone") || !standing(t, f, "stayed") {
		t.Error("a withdrawn job was run, or another was not")
	}
}

// TestLeavingUnderWay ends a caller's context while its job runs: the outcome is unknown.
func TestLeavingUnderWay(t *testing.T) {
	f, release := held(t)
	release()
	ctx, cancel := context.WithCancel(t.Context())
	running, finish := make(chan struct{}), make(chan struct{})
	answered := make(chan error)
	go func() {
		answered <- f.writer.do(ctx, &job{do: func(conn *sqlite.Conn) error {
			close(running)
			<-finish
			return move("left")(conn)
		}})
	}()
	<-running
	cancel()
	if err := <-answered; !errors.Is(err, eventlog.ErrUnknown) || !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	close(finish)
	if err := f.writer.do(t.Context(), &job{do: move("next")}); err != nil {
		t.Error(err)
	}
	if !standing(t, f, "left") {
		t.Error("the job under way did not stand in the end")
	}
}

// TestFullDisk fills a file to its limit. Appends fail without effect, and succeed again once
// there is room.
func TestFullDisk(t *testing.T) {
	f, release := held(t)
	release()
	limit := func(pages int) {
		t.Helper()
		err := f.writer.do(t.Context(), &job{do: func(conn *sqlite.Conn) error {
			return query(conn, "PRAGMA max_page_count = "+fmt.Sprint(pages), func(*sqlite.Stmt) bool { return true })
		}})
		if err != nil {
			t.Fatal(err)
		}
	}
	limit(100) // room for the schema and some rows
	large := string(make([]byte, 5000))
	put := func(name string) error {
		return f.writer.do(t.Context(), &job{do: move(name + large)})
	}
	var full error
	n := 0
	for ; full == nil && n < 100; n++ {
		full = put(fmt.Sprint(n))
	}
	if sqlite.ErrCode(full) != sqlite.ResultFull || errors.Is(full, eventlog.ErrUnknown) {
		t.Fatalf("after %d rows: %v", n, full)
	}
	if standing(t, f, fmt.Sprint(n-1)+large) || !standing(t, f, fmt.Sprint(n-2)+large) {
		t.Error("the failed row stands, or the one before it does not")
	}
	limit(1000)
	if err := put("again"); err != nil {
		t.Error("with room again:", err)
	}
}

func TestSlotLength(t *testing.T) {
	lengths := map[int]bool{}
	if l := slotLength(0); l < 1 {
		t.Error("nothing gets a slot of length", l)
	}
	for n := 1; n < 200_000; n++ {
		l := slotLength(n)
		if l < n || l-n >= max(slotLeast, n/8+1) {
			t.Fatalf("content of %d bytes gets a slot of %d", n, l)
		}
		lengths[l] = true
	}
	if len(lengths) > 100 {
		t.Errorf("%d lengths of slots: cleared ones will not be used again", len(lengths))
	}
}

// TestTransactionsEnd adds a job for each job that runs. No job waits for more jobs than there
// were when its own transaction began.
func TestTransactionsEnd(t *testing.T) {
	const jobs = 20
	commits := 0
	f, err := openFile(filepath.Join(t.TempDir(), "work.db"), consistent, tables("work"), 1, hooks{after: func() { commits++ }})
	if err != nil {
		t.Fatal(err)
	}
	commits = 0
	var all sync.WaitGroup
	var next func(n int) func(*sqlite.Conn) error
	ask := func(n int) {
		if err := f.writer.do(t.Context(), &job{do: next(n)}); err != nil {
			t.Error(err)
		}
	}
	next = func(n int) func(*sqlite.Conn) error {
		return func(*sqlite.Conn) error {
			if n < jobs {
				all.Go(func() { ask(n + 1) })
				queued(t, f, 1)
			}
			return nil
		}
	}
	ask(1)
	all.Wait()
	if err := f.close(); err != nil {
		t.Fatal(err)
	}
	if commits < jobs {
		t.Errorf("%d jobs took %d transactions", jobs, commits)
	}
}

// TestLargeJobsHoldNobody adds many large jobs of one actor, and then a small one of another. It is
// in the first transaction, and not behind all of the large ones.
func TestLargeJobsHoldNobody(t *testing.T) {
	f, release := held(t)
	var ran []string // by the writer
	var all sync.WaitGroup
	add := func(actor string, bytes int) {
		n := f.writer.jobs.Len()
		all.Go(func() {
			err := f.writer.do(t.Context(), &job{actor: actor, bytes: bytes, do: func(*sqlite.Conn) error {
				ran = append(ran, actor)
				return nil
			}})
			if err != nil {
				t.Error(err)
			}
		})
		queued(t, f, n+1)
	}
	for range 20 {
		add("large", 200<<10)
	}
	add("small", 200)
	release()
	all.Wait()
	if at := slices.Index(ran, "small"); at < 0 || at > 2 {
		t.Errorf("the small job ran after %d large ones", at)
	}
}
