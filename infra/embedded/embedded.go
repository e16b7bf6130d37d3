// Package embedded is the store that needs no server: SQLite files in one
// directory, for one process on one machine.
//
//   - events.db: the log and the sealed payloads. Every commit is on the disk
//     before it is acknowledged. This is the file to back up.
//   - keys.db: the payloads' data keys, wrapped; likewise durable. Kept apart so
//     that a backup of events.db holds no key.
//   - work.db and view.db: the due queue, leases and checkpoints; the read models.
//     Both follow from the log and may be deleted while nothing runs.
//   - feed.db: how far those have come who consume the events from processes of their
//     own. They make it, see [OpenFeed], and nothing can make it again.
//
// SQLite has one writer for each file, hence the files. The directory must be on a
// local disk: SQLite's locks do not hold on network file systems.
package embedded

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	"zombiezen.com/go/sqlite"

	"github.com/tempo-watchtower/watchtower/migrations"
)

// Options are what may differ; the zero Options are what a service wants.
type Options struct {
	// Now is the store's clock; nil is time.Now.
	Now func() time.Time
	// Window is how many open transactions of one sequence are worked on at
	// once; 0 is [DefaultWindow].
	Window int
	// Pause is the longest between two attempts at a transaction: what is due later
	// than that was told so before the clock was set back. 0 is not known.
	Pause time.Duration
	// AllowDataLoss has commits not wait for the disk, so that a power cut loses what
	// was acknowledged: for the test that shows that power cuts would show it.
	AllowDataLoss bool
	// Crash is called at the points that [CrashPoints] and [ArchiveCrashPoints] name; nil does nothing.
	Crash func(point string)
}

// DefaultWindow is the parking window of a queue that is not told another.
const DefaultWindow = 16

// The points where a test may kill the process.
const (
	beforeCommit = "log.before-commit" // events are written, the commit is not
	afterCommit  = "log.after-commit"  // the commit is on the disk, nobody is told
	keysKept     = "payload.key-kept"  // a payload's key is on the disk, its row is not
	dropping     = "archive.dropping"  // the log begins later, what lies before is still there
	dropped      = "archive.dropped"   // some of that is gone
)

// CrashPoints lists the names that Options.Crash is called with.
func CrashPoints() []string { return []string{beforeCommit, afterCommit, keysKept} }

// ArchiveCrashPoints lists those that only a process comes to which archives.
func ArchiveCrashPoints() []string { return []string{dropping, dropped} }

// DB is an open directory.
type DB struct {
	dir       string
	temporary bool
	lock      *os.File
	log       *Log
	payloads  *Payloads
	work      *Work
	view      *sql.DB
	once      sync.Once
	err       error // of closing
}

const (
	logReaders  = 4
	keyReaders  = 2
	workReaders = 4
)

// Open opens a directory, making it and its tables where they are missing. Of two
// openers of one directory the second is refused. Without a directory ("" or
// ":memory:") the data lies in a temporary one and is gone when it is closed.
func Open(dir string, o Options) (_ *DB, err error) {
	d := &DB{dir: dir}
	if dir == "" || dir == ":memory:" {
		d.temporary = true
		if d.dir, err = os.MkdirTemp("", "watchtower-"); err != nil {
			return nil, fmt.Errorf("open embedded store: %w", err)
		}
	}
	if err := d.open(o); err != nil {
		return nil, errors.Join(fmt.Errorf("open embedded store: %w", err), d.Close())
	}
	return d, nil
}

func (d *DB) open(o Options) (err error) {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Window == 0 {
		o.Window = DefaultWindow
	}
	if o.Crash == nil {
		o.Crash = func(string) {}
	}
	precious, derived := durable, consistent
	if d.temporary || o.AllowDataLoss {
		precious, derived = fleeting, fleeting
	}
	if err := os.MkdirAll(d.dir, 0o700); err != nil {
		return err
	}
	if d.lock, err = lock(d.dir); err != nil {
		return err
	}
	if err := d.sweep(); err != nil {
		return err
	}
	if d.log, err = openLog(d.path("events.db"), precious, o); err != nil {
		return err
	}
	if d.payloads, err = openPayloads(d.path("keys.db"), precious, d.log.file, o); err != nil {
		return err
	}
	if d.work, err = openWork(d.path("work.db"), derived, o); err != nil {
		return err
	}
	d.view, err = openView(d.path("view.db"), derived)
	return err
}

func (d *DB) path(name string) string { return filepath.Join(d.dir, name) }

// tables are the embedded migrations of one file.
func tables(name string) fs.FS {
	sub, err := fs.Sub(migrations.Embedded, "embedded/"+name)
	if err != nil {
		panic(err) // the name is a constant
	}
	return sub
}

// Dir is where the files lie.
func (d *DB) Dir() string { return d.dir }

// Log is the event store.
func (d *DB) Log() *Log { return d.log }

// Payloads are the sealed signed bytes.
func (d *DB) Payloads() *Payloads { return d.payloads }

// Work is the due queue, the watcher's board, leases and checkpoints.
func (d *DB) Work() *Work { return d.work }

// Requests is what is remembered of requests that clients may repeat.
func (d *DB) Requests() Requests { return Requests{d.work} }

// Snapshots are folded states of long streams.
func (d *DB) Snapshots() Snapshots { return Snapshots{d.work} }

// View is the read models' database. Whose they are makes its tables.
func (d *DB) View() *sql.DB { return d.view }

// Ping reports whether every file can be read.
func (d *DB) Ping(ctx context.Context) error {
	for _, f := range []*file{d.log.file, d.payloads.keys, d.work.file} {
		err := f.readers.read(ctx, func(conn *sqlite.Conn) error {
			return query(conn, "SELECT count(*) FROM sqlite_schema", func(*sqlite.Stmt) bool { return true })
		})
		if err != nil {
			return fmt.Errorf("%s: %w", f.path, err)
		}
	}
	if err := d.view.PingContext(ctx); err != nil {
		return fmt.Errorf("view.db: %w", err)
	}
	return nil
}

const (
	// probeBytes are what a probe writes: more than the commit of a large request.
	probeBytes = 1 << 20
	probeFiles = "probe-*"
)

// sweep removes the files of probes in the middle of which a process was killed.
func (d *DB) sweep() error {
	left, err := fs.Glob(os.DirFS(d.dir), probeFiles)
	for _, name := range left {
		err = errors.Join(err, os.Remove(d.path(name)))
	}
	return err
}

// Probe writes a file beside the others, waits until it is on the disk, and removes
// it. A full disk still answers every question.
func (d *DB) Probe(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	f, err := os.CreateTemp(d.dir, probeFiles)
	if err != nil {
		return err
	}
	_, err = f.Write(make([]byte, probeBytes))
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close(), os.Remove(f.Name()))
}

// Close lets what was begun end, and closes all files. Whoever still appends or
// subscribes is answered event.ErrClosed. Closing again does nothing more.
func (d *DB) Close() error {
	d.once.Do(func() {
		var errs []error
		if d.view != nil {
			errs = append(errs, d.view.Close())
		}
		if d.work != nil {
			errs = append(errs, d.work.file.close())
		}
		if d.log != nil {
			d.log.stop()
		}
		if d.payloads != nil {
			errs = append(errs, d.payloads.keys.close())
		}
		if d.log != nil {
			errs = append(errs, d.log.file.close())
		}
		if d.lock != nil {
			errs = append(errs, d.lock.Close())
		}
		if d.temporary {
			errs = append(errs, os.RemoveAll(d.dir))
		}
		d.err = errors.Join(errs...)
	})
	return d.err
}

// Migrate brings the files of a directory, save the read models, up to date.
func Migrate(dir string) error {
	d, err := Open(dir, Options{})
	if err != nil {
		return err
	}
	return d.Close()
}
