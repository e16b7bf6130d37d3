// Package embedded is the store without a server: SQLite files in one directory, for one
// process on one machine.
//
//   - events.db: the log and the sealed payloads. Every commit is on disk before it
//     is acknowledged. This is the file to back up.
//   - keys.db: the payloads' wrapped data keys; likewise durable. It is separate so that a
//     backup of events.db holds no key.
//   - work.db and view.db: the due queue, leases and checkpoints; the read models.
//     Both are derived from the log and may be deleted while nothing runs.
//   - feed.db: the checkpoints of consumers that read the events from their own
//     processes. They create it, see [OpenFeed], and it cannot be rebuilt.
//
// SQLite allows one writer per file, hence the files. The directory must be on a local disk:
// SQLite's locks do not work on network file systems.
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

// Options are the settings of a store. The zero Options suit a service.
type Options struct {
	// Now is the store's clock; nil means time.Now.
	Now func() time.Time
	// Window is the number of open transactions of one sequence processed at once; 0 means
	// [DefaultWindow].
	Window int
	// Pause is the longest pause between two attempts at a transaction. A due time further away
	// was stored before the clock was set back. 0 means unknown.
	Pause time.Duration
	// AllowDataLoss makes commits not wait for the disk, so that a power cut loses acknowledged
	// commits. It is for the test that shows that it would detect such a loss.
	AllowDataLoss bool
	// Crash is called at the points listed by [CrashPoints], [ArchiveCrashPoints]
	// and [RestoreCrashPoints]; nil does
	// nothing.
	Crash func(point string)
}

// DefaultWindow is the default parking window of a queue.
const DefaultWindow = 16

// Points where a test may kill the process.
const (
	beforeCommit = "log.before-commit" // events are written and not committed
	afterCommit  = "log.after-commit"  // the commit is on disk, no caller has its answer
	keysKept     = "payload.key-kept"  // a payload's key is on disk, its row is not
	dropping     = "archive.dropping"  // the log begins later, the events before are not removed yet
	dropped      = "archive.dropped"   // some of these events are removed
	recalled     = "restore.recalled"  // some events are put back, the log does not begin with them yet
	rejoined     = "restore.rejoined"  // the log begins with them, no caller has its answer
)

// CrashPoints lists the points at which Options.Crash is called.
func CrashPoints() []string { return []string{beforeCommit, afterCommit, keysKept} }

// ArchiveCrashPoints lists the points that only an archiving process reaches.
func ArchiveCrashPoints() []string { return []string{dropping, dropped} }

// RestoreCrashPoints lists the points that only a restore reaches.
func RestoreCrashPoints() []string { return []string{recalled, rejoined} }

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
	err       error // of Close
}

const (
	logReaders  = 4
	keyReaders  = 2
	workReaders = 4
)

// Open opens a directory, and creates it and its tables if they are missing. A second opener of
// the same directory is refused. Without a directory ("" or ":memory:") the data is in a
// temporary directory, which Close removes.
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
	if err := errors.Join(unfinished(d.dir), d.sweep()); err != nil {
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

// Dir is the files' directory.
func (d *DB) Dir() string { return d.dir }

// Log is the event store.
func (d *DB) Log() *Log { return d.log }

// Payloads stores the sealed signed bytes.
func (d *DB) Payloads() *Payloads { return d.payloads }

// Work is the due queue, the watcher's open transactions, leases and checkpoints.
func (d *DB) Work() *Work { return d.work }

// Requests stores requests that clients may repeat.
func (d *DB) Requests() Requests { return Requests{d.work} }

// Snapshots stores folded states of long streams.
func (d *DB) Snapshots() Snapshots { return Snapshots{d.work} }

// View is the read models' database. The read models create its tables.
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
	// probeBytes is the size of a probe: more than the commit of a large request.
	probeBytes = 1 << 20
	probeFiles = "probe-*"
)

// sweep removes probe files left by a killed process.
func (d *DB) sweep() error {
	left, err := fs.Glob(os.DirFS(d.dir), probeFiles)
	for _, name := range left {
		err = errors.Join(err, os.Remove(d.path(name)))
	}
	return err
}

// Probe writes a file next to the others, waits until it is on disk, and removes it. With a
// full disk reads still succeed.
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

// Close lets running calls end, and closes all files. Later appends and subscriptions get
// eventlog.ErrClosed. A second Close does nothing.
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

// Migrate brings the files of a directory, except the read models, up to date.
func Migrate(dir string) error {
	d, err := Open(dir, Options{})
	if err != nil {
		return err
	}
	return d.Close()
}
