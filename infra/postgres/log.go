package postgres

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/tempo-watchtower/watchtower/domain/fair"
	"github.com/tempo-watchtower/watchtower/eventlog"
	"github.com/tempo-watchtower/watchtower/infra/recent"
)

// Log is the event store.
type Log struct {
	pool   *pgxpool.Pool
	config *pgx.ConnConfig
	logger *slog.Logger
	bell   *recent.Bell
	recent *recent.Tail
	crash  func(point string)

	line    *fair.Line[*pending] // appends that wait for the committer, by actor
	open    context.Context      // ends when Close begins
	shut    context.CancelFunc   // ends open
	alive   context.Context      // ends when all work must stop
	kill    context.CancelFunc   // ends alive
	running sync.WaitGroup       // the committer, the listener and follow
	listen  sync.Once            // the first subscription starts the listener and follow
}

func openLog(pool *pgxpool.Pool, config *pgx.ConnConfig, o Options) *Log {
	l := &Log{pool: pool, config: config, logger: o.Logger, bell: recent.NewBell(), recent: recent.New(recentReaders), crash: o.Crash, line: fair.NewLine[*pending](batchShare)}
	l.open, l.shut = context.WithCancel(context.Background())
	l.alive, l.kill = context.WithCancel(context.Background())
	c := &committer{log: l, partition: o.Partition, crash: o.Crash}
	l.running.Go(c.run)
	return l
}

// close ends the log once the taken appends are committed, or when ctx ends.
func (l *Log) close(ctx context.Context) error {
	l.shut()
	l.line.Close()
	l.listen.Do(func() {}) // from here on the listener is not started
	cut := context.AfterFunc(ctx, l.kill)
	l.running.Wait()
	defer l.kill()
	if !cut() {
		return fmt.Errorf("postgres: closed before all appends were committed: %w", ctx.Err())
	}
	return nil
}

// Append adds events to a stream at the expected version. If ctx ends before the append was
// sent to the server, nothing is written.
func (l *Log) Append(ctx context.Context, stream eventlog.Stream, expected eventlog.Version, events ...eventlog.Event) (eventlog.Appended, error) {
	if err := admissible(stream, events); err != nil {
		return eventlog.Appended{}, err
	}
	switch {
	case l.open.Err() != nil:
		return eventlog.Appended{}, eventlog.ErrClosed
	case ctx.Err() != nil:
		return eventlog.Appended{}, ctx.Err()
	}
	p := &pending{stream: stream, expected: expected, events: events, told: make(chan answer, 1)}
	if !l.line.Add(p.actor(), p, p.weight()) {
		return eventlog.Appended{}, eventlog.ErrClosed
	}
	select {
	case a := <-p.told:
		return a.appended, a.err
	case <-ctx.Done():
		defer l.line.Remove(p.actor(), p)
		return p.leave(ctx.Err())
	}
}

// admissible refuses appends that the store or the database does not accept: in a batch they
// would make other appends fail.
func admissible(stream eventlog.Stream, events []eventlog.Event) error {
	switch {
	case len(stream) > eventlog.MaxStreamBytes:
		return fmt.Errorf("%w: stream name of %d bytes", eventlog.ErrTooLarge, len(stream))
	case len(events) > eventlog.MaxAppend:
		return fmt.Errorf("%w: %d events", eventlog.ErrTooLarge, len(events))
	case stream == "" || !storable(string(stream)):
		return fmt.Errorf("%q is not a valid stream name", stream)
	case len(events) == 0:
		return errors.New("an append without events")
	}
	for _, e := range events {
		if len(e.Data) > eventlog.MaxEventBytes {
			return fmt.Errorf("%w: event of %d bytes", eventlog.ErrTooLarge, len(e.Data))
		}
		if !storable(e.Name) || !storable(e.Meta.Actor) || !storable(e.Meta.Trace) {
			return fmt.Errorf("event %s has text that is not UTF-8, or holds a zero", e.ID)
		}
	}
	return nil
}

// storable reports whether Postgres accepts a string as text.
func storable(s string) bool { return utf8.ValidString(s) && !strings.Contains(s, "\x00") }

// pending is an append between its caller and the committer.
type pending struct {
	stream   eventlog.Stream
	expected eventlog.Version
	events   []eventlog.Event
	told     chan answer // buffer of one, so the committer never waits
	state    atomic.Int32

	standing []place // events stored after the expected version, if any
	answer   answer  // set once decided
}

// States of a pending append. The caller sets left, which is final; the committer sets the
// others.
const (
	held int32 = iota // not sent to the server
	sent              // it may be committed at any moment
	left              // its caller is gone
)

// answer is an append's result.
type answer struct {
	appended eventlog.Appended
	err      error
}

// leave ends the append for a caller whose context has ended. The error is plain if the append
// was not sent to the server, and otherwise eventlog.ErrUnknown.
func (p *pending) leave(why error) (eventlog.Appended, error) {
	for {
		if p.state.CompareAndSwap(held, left) {
			break
		}
		if p.state.CompareAndSwap(sent, left) {
			why = fmt.Errorf("%w: %w", eventlog.ErrUnknown, why)
			break
		}
	}
	select {
	case a := <-p.told: // the answer arrived just now
		return a.appended, a.err
	default:
		return eventlog.Appended{}, why
	}
}

func (p *pending) tell(a answer) { p.told <- a }

// actor is the component that appends: a client's key, or a part of the service. The appends of each
// wait in a line of their own.
func (p *pending) actor() string { return p.events[0].Meta.Actor }

// weight is about how many bytes the append adds to a batch.
func (p *pending) weight() (n int) {
	const overhead = 160 // ids, numbers, lengths, the link
	for _, e := range p.events {
		n += overhead + len(e.Name) + len(e.Data) + len(e.Meta.Actor) + len(e.Meta.Trace)
	}
	return n
}
