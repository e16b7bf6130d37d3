package embedded_test

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"go.uber.org/goleak"

	"github.com/tempo-watchtower/watchtower/infra/embedded"
	"github.com/tempo-watchtower/watchtower/infra/storetest"
)

func TestMain(m *testing.M) {
	if play := os.Getenv(childVar); play != "" {
		os.Exit(child(play))
	}
	goleak.VerifyTestMain(m)
}

const window = 4

// opened opens a fresh directory for a suite.
func opened[P any](t *testing.T, port func(*embedded.DB) P) storetest.Opened[P] {
	t.Helper()
	dir := t.TempDir()
	clock := storetest.MovedClock()
	var db *embedded.DB
	open := func() P {
		var err error
		if db, err = embedded.Open(dir, embedded.Options{Now: clock.Now, Window: window}); err != nil {
			t.Fatal(err)
		}
		return port(db)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	return storetest.Opened[P]{
		Port:  open(),
		Close: func() error { return db.Close() },
		Reopen: func() P {
			if err := db.Close(); err != nil {
				t.Error(err)
			}
			return open()
		},
		Clock:  clock,
		Window: window,
		Medium: func() []byte { return medium(t, dir) },
	}
}

// medium is every byte of every file in a directory.
func medium(t *testing.T, dir string) []byte {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil || len(files) < 4 {
		t.Fatalf("files in %s: %v, %v", dir, files, err)
	}
	var all bytes.Buffer
	for _, name := range files {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		all.Write(b)
	}
	return all.Bytes()
}

func TestLog(t *testing.T) {
	storetest.Store(t, func(t *testing.T) storetest.Opened[storetest.Log] {
		return opened(t, func(db *embedded.DB) storetest.Log { return db.Log() })
	})
}

func TestPayloads(t *testing.T) {
	storetest.Payloads(t, func(t *testing.T) storetest.Opened[storetest.PayloadRows] {
		return opened(t, func(db *embedded.DB) storetest.PayloadRows { return db.Payloads() })
	})
}

func TestQueue(t *testing.T) {
	storetest.Queue(t, func(t *testing.T) storetest.Opened[storetest.WorkRows] {
		return opened(t, func(db *embedded.DB) storetest.WorkRows { return db.Work() })
	})
}

func TestLeases(t *testing.T) {
	storetest.Leases(t, func(t *testing.T) storetest.Opened[storetest.LeaseRows] {
		return opened(t, func(db *embedded.DB) storetest.LeaseRows { return db.Work() })
	})
}

func TestRequests(t *testing.T) {
	storetest.Requests(t, func(t *testing.T) storetest.Opened[storetest.RequestRows] {
		return opened(t, func(db *embedded.DB) storetest.RequestRows { return db.Requests() })
	})
}

func TestCheckpoints(t *testing.T) {
	storetest.Checkpoints(t, func(t *testing.T) storetest.Opened[storetest.CheckpointRows] {
		return opened(t, func(db *embedded.DB) storetest.CheckpointRows { return db.Work() })
	})
}

// TestProbe probes writing, and leaves nothing behind.
func TestProbe(t *testing.T) {
	dir := t.TempDir()
	db := open(t, dir, embedded.Options{})
	files := func() int {
		entries, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		return len(entries)
	}
	before := files()
	if err := db.Probe(t.Context()); err != nil || files() != before {
		t.Errorf("%v; there were %d files and are %d", err, before, files())
	}
	closed(t, db)
	before = files()
	if err := os.WriteFile(filepath.Join(dir, "probe-1"), []byte("its process was killed"), 0o600); err != nil {
		t.Fatal(err)
	}
	closed(t, open(t, dir, embedded.Options{}))
	if files() != before {
		t.Errorf("there were %d files and are %d: what a killed process left is kept", before, files())
	}
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	if db.Probe(t.Context()) == nil {
		t.Error("a folder that is gone takes writes")
	}
}

func TestSnapshots(t *testing.T) {
	storetest.Snapshots(t, func(t *testing.T) storetest.Opened[storetest.SnapshotRows] {
		return opened(t, func(db *embedded.DB) storetest.SnapshotRows { return db.Snapshots() })
	})
}

func TestNotices(t *testing.T) {
	storetest.Notices(t, func(t *testing.T) storetest.Opened[storetest.NoticeRows] {
		return opened(t, func(db *embedded.DB) storetest.NoticeRows { return db.Notices(storetest.NoticePolicy()) })
	})
}

func TestIntents(t *testing.T) {
	storetest.Intents(t, func(t *testing.T) storetest.Opened[storetest.IntentRows] {
		return opened(t, func(db *embedded.DB) storetest.IntentRows { return db.Intents() })
	})
}
