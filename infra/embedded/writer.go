package embedded

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"zombiezen.com/go/sqlite"

	"github.com/tempo-watchtower/watchtower/domain/fair"
	"github.com/tempo-watchtower/watchtower/eventlog"
)

// writer owns a file's only writing connection. It takes jobs from a line, by turns of their actors,
// and commits them together in one transaction. While one commit is on its way to disk, new jobs wait for
// the next one.
type writer struct {
	conn   *sqlite.Conn
	hooks  hooks
	jobs   *fair.Line[*job]
	gone   chan struct{} // closed: the writer has ended
	once   sync.Once
	err    error // of closing
	tender *tender
}

// hooks are called by the writer's goroutine; nil does nothing.
type hooks struct {
	before     func() // before a commit
	after      func() // after a commit, before its callers get their answers
	committed  func() // after that
	rolledBack func() // undoes the jobs' changes in memory
}

func (h *hooks) fill() {
	for _, f := range []*func(){&h.before, &h.after, &h.committed, &h.rolledBack} {
		if *f == nil {
			*f = func() {}
		}
	}
}

// job is one caller's write. do checks before it writes. For an answer such as a conflict it
// returns nil and writes nothing. An error from do means that the database failed, and undoes
// the writes. do may run more than once.
type job struct {
	do    func(*sqlite.Conn) error
	actor string // the component that writes; the jobs of each wait in a line of their own
	bytes int    // about how much it writes
	scrub bool   // done only when deleted content has left the write-ahead log

	state atomic.Int32
	done  chan struct{}
	err   error // valid once done is closed
}

const (
	waiting   = iota
	taken     // by the writer: the outcome is open until done is closed
	withdrawn // by the caller: it never runs
)

const (
	batchJobs  = 1024
	batchBytes = 2 << 20
	// batchShare is how many bytes of one actor's jobs a transaction has, or one job with more. All
	// other jobs wait for the transaction.
	batchShare = 512 << 10
)

func startWriter(conn *sqlite.Conn, path string, c care, h hooks) (*writer, error) {
	h.fill()
	w := &writer{
		conn: conn, hooks: h,
		jobs: fair.NewLine[*job](batchShare), gone: make(chan struct{}),
	}
	var err error
	if w.tender, err = startTender(path, c); err != nil {
		return nil, err
	}
	go w.run()
	return w, nil
}

// close ends the writer once all queued jobs are written.
func (w *writer) close() error {
	w.once.Do(func() {
		w.jobs.Close()
		<-w.gone
		w.err = errors.Join(w.tender.close(), w.conn.Close())
	})
	return w.err
}

// do runs a job. It returns eventlog.ErrUnknown only if ctx ended, or the commit failed, while the
// job was running. After any other error nothing is written.
func (w *writer) do(ctx context.Context, j *job) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	j.done = make(chan struct{})
	if !w.jobs.Add(j.actor, j, j.bytes) {
		return eventlog.ErrClosed
	}
	select {
	case <-j.done:
		return j.err
	case <-ctx.Done():
		if j.state.CompareAndSwap(waiting, withdrawn) {
			w.jobs.Remove(j.actor, j)
			return ctx.Err()
		}
	}
	select {
	case <-j.done:
		return j.err
	default:
		return fmt.Errorf("%w: %w", eventlog.ErrUnknown, ctx.Err())
	}
}

func (w *writer) run() {
	defer close(w.gone)
	for w.jobs.Begin() {
		w.batch()
	}
}

// batch commits waiting jobs together.
func (w *writer) batch() {
	jobs, err := w.fill()
	if err != nil {
		w.rollback()
		for _, j := range jobs { // one job failed: run each alone, so that the others succeed
			if len(jobs) > 1 {
				err = w.alone(j)
			}
			j.answer(err)
		}
		return
	}
	if len(jobs) == 0 {
		return
	}
	err = w.commit(jobs)
	for _, j := range jobs {
		j.answer(err)
	}
}

// fill begins a transaction and runs the waiting jobs in it, up to the limits of a transaction.
// Jobs that arrive meanwhile belong to the next one. Otherwise, if jobs arrive as fast as they
// run, the first job would wait for batchJobs others.
func (w *writer) fill() (jobs []*job, err error) {
	bytes := 0
	most := min(w.jobs.Len(), batchJobs)
	for len(jobs) < most && bytes < batchBytes {
		j, ok := w.jobs.Next()
		if !ok {
			break
		}
		if !j.state.CompareAndSwap(waiting, taken) {
			continue
		}
		jobs = append(jobs, j)
		if len(jobs) == 1 {
			if err := exec(w.conn, "BEGIN IMMEDIATE"); err != nil {
				return jobs, err
			}
		}
		if err := j.do(w.conn); err != nil {
			return jobs, err
		}
		bytes += j.bytes
	}
	return jobs, nil
}

// alone runs one job in a transaction of its own.
func (w *writer) alone(j *job) error {
	err := exec(w.conn, "BEGIN IMMEDIATE")
	if err == nil {
		err = j.do(w.conn)
	}
	if err != nil {
		w.rollback()
		return err
	}
	return w.commit([]*job{j})
}

// commit commits, and bounds the write-ahead log. If COMMIT itself fails, its frames may be on
// disk all the same, and would count after a crash: the outcome is unknown.
func (w *writer) commit(jobs []*job) error {
	w.hooks.before()
	if err := exec(w.conn, "COMMIT"); err != nil {
		w.rollback()
		return fmt.Errorf("%w: commit: %w", eventlog.ErrUnknown, err)
	}
	w.hooks.after()
	w.hooks.committed()
	if slices.ContainsFunc(jobs, func(j *job) bool { return j.scrub }) {
		w.scrub(jobs)
	} else {
		w.tender.tend(w.conn)
	}
	return nil
}

func (w *writer) rollback() {
	if !w.conn.AutocommitEnabled() {
		// An error here means that SQLite has rolled back by itself.
		_ = exec(w.conn, "ROLLBACK")
	}
	w.hooks.rolledBack()
}

func (j *job) answer(err error) {
	if j.err == nil {
		j.err = err
	}
	close(j.done)
}

// scrub empties the write-ahead log, which still holds deleted content. Jobs that did not
// request it do not get its errors.
func (w *writer) scrub(jobs []*job) {
	err := w.tender.checkpoint(w.conn, "TRUNCATE")
	if err == nil {
		return
	}
	for _, j := range jobs {
		if j.scrub {
			j.err = fmt.Errorf("deleted, but not yet gone from the write-ahead log: %w", err)
		}
	}
}
