package app

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/tempo-watchtower/watchtower/commands"
	"github.com/tempo-watchtower/watchtower/domain/payload"
	"github.com/tempo-watchtower/watchtower/eventlog"
	"github.com/tempo-watchtower/watchtower/eventlog/port"
)

// After refusedMost failed writes in a row, the last within refusedFor, check reports trouble
// without probing. While clients keep retrying, /health agrees with their responses.
const (
	refusedMost = 3
	refusedFor  = 5 * time.Second
)

// writes records the outcome of the last writes for clients. A database with a full disk answers
// every query, and accepts no write.
type writes struct {
	transient func(error) bool
	now       func() time.Time
	// probe writes a durable record and removes it; nil does nothing.
	probe func(ctx context.Context) error

	mu     sync.Mutex
	failed error // by the last write; nil when it succeeded
	at     time.Time
	times  int // in a row
}

// note records the outcome of a write. Only trouble of the database counts: neither a refusal
// nor a write that the caller's own end cut short.
func (w *writes) note(err error) {
	if err != nil && !w.troubled(err) {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.failed, w.at = err, w.now()
	if w.times++; err == nil {
		w.times = 0
	}
}

func (w *writes) troubled(err error) bool {
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return false
	}
	return errors.Is(err, eventlog.ErrUnknown) || w.transient != nil && w.transient(err)
}

// check returns the present trouble with writing. In doubt it probes.
func (w *writes) check(ctx context.Context) error {
	w.mu.Lock()
	failed, at, times := w.failed, w.at, w.times
	w.mu.Unlock()
	if failed == nil || w.probe == nil || times >= refusedMost && w.now().Sub(at) < refusedFor {
		return failed
	}
	err := w.probe(ctx)
	if err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.times == times { // no write has failed meanwhile
		w.failed, w.times = nil, 0
	}
	return w.failed
}

// watchWrites wraps the stores that clients write to, so that the outcome of each write is
// noted.
func (a *App) watchWrites() {
	s := &a.Ports.Storage
	log := &writes{transient: s.Transient, now: a.Ports.Now, probe: s.Probe}
	payloads := &writes{transient: s.Transient, now: a.Ports.Now, probe: s.Probe}
	s.Log, s.Payloads = watchedLog{s.Log, log}, watchedPayloads{s.Payloads, payloads}
	a.written = []*writes{log, payloads}
}

// database returns why write requests would be answered 503: the database does not respond, or
// refuses writes.
func (a *App) database(ctx context.Context) error {
	err := a.Ports.Storage.Ping(ctx)
	for _, w := range a.written {
		if err == nil {
			err = w.check(ctx)
		}
	}
	return err
}

// watchedLog and watchedPayloads note the outcome of each write.
type watchedLog struct {
	port.Store
	writes *writes
}

func (l watchedLog) Append(ctx context.Context, stream eventlog.Stream, expected eventlog.Version, events ...eventlog.Event) (eventlog.Appended, error) {
	a, err := l.Store.Append(ctx, stream, expected, events...)
	l.writes.note(err)
	return a, err
}

type watchedPayloads struct {
	commands.PayloadRows
	writes *writes
}

func (p watchedPayloads) Put(ctx context.Context, rows []payload.Sealed) error {
	err := p.PayloadRows.Put(ctx, rows)
	p.writes.note(err)
	return err
}
