package app

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/tempo-watchtower/watchtower/commands"
	"github.com/tempo-watchtower/watchtower/domain/event"
	"github.com/tempo-watchtower/watchtower/domain/payload"
)

// When so many writes in a row were not taken, and the last not long ago, nothing is
// tried: as long as clients go on trying, /health says the same as they hear.
const (
	refusedMost = 3
	refusedFor  = 5 * time.Second
)

// writes is how the writing of what clients bring went last. A database whose disk
// is full answers every question, and takes nothing.
type writes struct {
	transient func(error) bool
	now       func() time.Time
	// probe writes something durable, and takes it away; nil does nothing.
	probe func(ctx context.Context) error

	mu     sync.Mutex
	failed error // of the last one; nil when it stood
	at     time.Time
	times  int // in a row
}

// note takes in what came of a write. Only trouble of the database's counts: neither
// a refusal, nor what the caller's own end has cut short.
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
	return errors.Is(err, event.ErrUnknown) || w.transient != nil && w.transient(err)
}

// check reports the trouble there is with writing. In doubt it tries by itself.
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
	if w.times == times { // nobody has had trouble meanwhile
		w.failed, w.times = nil, 0
	}
	return w.failed
}

// watchWrites has what clients bring pass through eyes that note how writing it went.
func (a *App) watchWrites() {
	s := &a.ports.Storage
	log := &writes{transient: s.Transient, now: a.ports.Now, probe: s.Probe}
	payloads := &writes{transient: s.Transient, now: a.ports.Now, probe: s.Probe}
	s.Log, s.Payloads = watchedLog{s.Log, log}, watchedPayloads{s.Payloads, payloads}
	a.written = []*writes{log, payloads}
}

// database reports why requests that bring something would be answered 503: nobody
// answers, or nothing is taken.
func (a *App) database(ctx context.Context) error {
	err := a.ports.Storage.Ping(ctx)
	for _, w := range a.written {
		if err == nil {
			err = w.check(ctx)
		}
	}
	return err
}

// watchedLog and watchedPayloads note what comes of writing.
type watchedLog struct {
	commands.Store
	writes *writes
}

func (l watchedLog) Append(ctx context.Context, stream event.Stream, expected event.Version, events ...event.Event) (event.Appended, error) {
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
