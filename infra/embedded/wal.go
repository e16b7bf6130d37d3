package embedded

import (
	"errors"
	"sync"
	"time"

	"zombiezen.com/go/sqlite"
)

// tender bounds a file's write-ahead log. A checkpoint inside a commit would delay all its
// callers, so a separate goroutine makes checkpoints next to the writer. Next to a busy writer
// it never catches up fully, so beyond a limit the writer makes one itself.
type tender struct {
	conn *sqlite.Conn
	wake chan struct{}
	gone chan struct{}
	most int64 // owned by the writer: frames in the log before the writer checkpoints

	// one checkpoint at a time: SQLite returns "busy" at once for a second one.
	one sync.Mutex
}

const (
	pageBytes = 4096
	walBehind = 16 << 20 / pageBytes // frames not yet checkpointed before tender acts
	walMost   = 64 << 20 / pageBytes // frames in the log before the writer acts

	// checkpointPatience is how long a writer waits for readers of old pages. Our readers take
	// milliseconds. A backup may take long and must not block the log: the file then grows
	// until it has ended.
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
			// PASSIVE waits for no reader. The next checkpoint handles the rest.
			_ = t.checkpoint(t.conn, "PASSIVE")
		}
	}()
	return t, nil
}

// close is called after the writer has ended.
func (t *tender) close() error {
	close(t.wake)
	<-t.gone
	return t.conn.Close()
}

// tend is called by the writer after each commit. Its errors concern no caller: the commit is
// done.
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
			t.most = frames + walMost // a long reader: do not try at every commit
		}
	case frames-done > walBehind:
		select {
		case t.wake <- struct{}{}:
		default:
		}
	}
}

// errBusy means that a reader of old pages was in the way.
var errBusy = errors.New("checkpoint did not finish: the file is in use")

// checkpoint copies the write-ahead log into the file. PASSIVE copies as much as it can without
// waiting. RESTART finishes, so that the log is written from its start again. TRUNCATE also
// empties it.
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
