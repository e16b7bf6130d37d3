package embedded

import (
	"errors"
	"sync"
	"time"

	"zombiezen.com/go/sqlite"
)

// tender keeps a file's write-ahead log in bounds. A checkpoint inside a commit
// would hold up everybody in it, so a goroutine of its own makes them beside the
// writer; but beside a busy writer it never catches up entirely, so that beyond a
// limit the writer stops and finishes the job.
type tender struct {
	conn *sqlite.Conn
	wake chan struct{}
	gone chan struct{}
	most int64 // owned by the writer: frames in the log before it acts itself

	// one checkpoint at a time: SQLite answers a second one "busy" at once.
	one sync.Mutex
}

const (
	pageBytes = 4096
	walBehind = 16 << 20 / pageBytes // frames not yet checkpointed before the tender acts
	walMost   = 64 << 20 / pageBytes // frames in the log before the writer acts

	// checkpointPatience is how long a writer waits for readers of old pages.
	// Ours are done in milliseconds; a backup may take long, and must not stop
	// the log: the file then grows until it has ended.
	checkpointPatience = time.Second
)

func startTender(path string, c care) (*tender, error) {
	conn, err := connect(path, c, readerCacheKiB)
	if err != nil {
		return nil, err
	}
	t := &tender{conn: conn, wake: make(chan struct{}, 1), gone: make(chan struct{}), most: walMost}
	go func() {
		defer close(t.gone)
		for range t.wake {
			// Passive waits for nobody. What it leaves, the next one takes along.
			_ = t.checkpoint(t.conn, "PASSIVE")
		}
	}()
	return t, nil
}

// close is called when the writer has ended.
func (t *tender) close() error {
	close(t.wake)
	<-t.gone
	return t.conn.Close()
}

// tend is called by the writer after each commit. Its trouble is nobody's who
// wrote: what is committed is committed.
func (t *tender) tend(conn *sqlite.Conn) {
	var frames, done int64
	err := query(conn, "PRAGMA wal_checkpoint(NOOP)", func(s *sqlite.Stmt) bool {
		frames, done = s.ColumnInt64(1), s.ColumnInt64(2)
		return true
	})
	switch {
	case err != nil:
	case frames > t.most:
		t.most = walMost
		if t.checkpoint(conn, "RESTART") != nil {
			t.most = frames + walMost // somebody reads on and on: do not ask at every commit
		}
	case frames-done > walBehind:
		select {
		case t.wake <- struct{}{}:
		default:
		}
	}
}

// errBusy says that a reader of old pages was in the way.
var errBusy = errors.New("checkpoint did not finish: the file is in use")

// checkpoint moves the write-ahead log into the file. PASSIVE does what it can
// without waiting; RESTART finishes, so that the log is written from its start
// again; TRUNCATE also empties it.
func (t *tender) checkpoint(conn *sqlite.Conn, mode string) error {
	t.one.Lock()
	defer t.one.Unlock()
	conn.SetBusyTimeout(checkpointPatience)
	defer conn.SetBusyTimeout(busyPatience)
	busy := false
	err := query(conn, "PRAGMA wal_checkpoint("+mode+")", func(s *sqlite.Stmt) bool {
		busy = s.ColumnInt64(0) != 0
		return true
	})
	if err == nil && busy {
		err = errBusy
	}
	return err
}
