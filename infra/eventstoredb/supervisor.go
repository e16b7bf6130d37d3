package eventstoredb

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/EventStore/EventStore-Client-Go/v4/esdb"
	"github.com/EventStore/EventStore-Client-Go/v4/protos/streams"
	"google.golang.org/grpc"

	"github.com/tempo-watchtower/watchtower/eventlog"
)

// How the leader is looked for.
const (
	connectFirst = 20 * time.Millisecond  // pause between two searches
	connectMost  = 500 * time.Millisecond // an election takes one to two seconds
	flapping     = time.Second            // a connection that lived shorter is not replaced at once
	probeLimit   = 3 * time.Second        // for a sign of life after a late answer
)

// supervisor keeps a connection to the leader, or looks for the leader. Callers wait
// beside the search as long as they like; one goroutine searches.
type supervisor struct {
	config   esdb.Configuration
	logger   *slog.Logger
	patience time.Duration // of a call for a node
	limit    time.Duration // of a call for its answer
	alive    context.Context
	kill     context.CancelFunc // under mu
	wanted   chan struct{}
	running  sync.WaitGroup // the search and the probes; Add under mu

	mu      sync.Mutex
	current *link
	changed chan struct{} // closed when current or why has changed
	why     error         // of the last search that failed
	named   string        // the leader's address by the word of another node; the next search begins there
	made    int           // connections so far
	users   int
	idle    chan struct{} // closed when users is 0
}

// link is a connection to a node that led when it was made.
type link struct {
	conn    *grpc.ClientConn
	streams streams.StreamsClient
	users   int
	probed  bool            // a probe is under way
	gone    context.Context // ends when the link is retired
	retired context.CancelFunc
}

func newSupervisor(config esdb.Configuration, patience, limit time.Duration, logger *slog.Logger) *supervisor {
	s := &supervisor{
		config: config, logger: logger, patience: patience, limit: limit,
		wanted: make(chan struct{}, 1), changed: make(chan struct{}), idle: make(chan struct{}),
	}
	close(s.idle)
	s.alive, s.kill = context.WithCancel(context.Background())
	s.want()
	s.running.Go(s.run)
	return s
}

// Kill ends every call, and the search for nodes.
func (s *supervisor) Kill() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.kill()
}

// Close ends every call, waits for them until ctx ends, and closes the connection.
func (s *supervisor) Close(ctx context.Context) error {
	s.Kill()
	s.running.Wait()
	s.mu.Lock()
	l, idle := s.current, s.idle
	s.mu.Unlock()
	if l != nil {
		s.retire(l, eventlog.ErrClosed)
	}
	select {
	case <-idle:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("eventstoredb: closed beside calls that do not end: %w", ctx.Err())
	}
}

func (s *supervisor) want() {
	select {
	case s.wanted <- struct{}{}:
	default:
	}
}

// run connects whenever there is no connection.
func (s *supervisor) run() {
	var made time.Time
	for {
		select {
		case <-s.wanted:
		case <-s.alive.Done():
			return
		}
		if time.Since(made) < flapping && pause(s.alive, connectFirst) != nil {
			return
		}
		for wait := connectFirst; ; wait = min(2*wait, connectMost) {
			l, err := s.search()
			if s.found(l, err); err == nil {
				break
			}
			s.logger.Warn("no EventStoreDB node leads", "err", err)
			if pause(s.alive, wait) != nil {
				return
			}
		}
		made = time.Now()
	}
}

// found publishes the outcome of a search.
func (s *supervisor) found(l *link, why error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.current, s.why = l, why; l != nil {
		s.made++
	}
	close(s.changed)
	s.changed = make(chan struct{})
}

// acquire returns the connection, for release. It waits for one.
func (s *supervisor) acquire(ctx context.Context) (*link, error) {
	timer := time.NewTimer(s.patience)
	defer timer.Stop()
	for {
		s.mu.Lock()
		if s.alive.Err() != nil {
			s.mu.Unlock()
			return nil, eventlog.ErrClosed
		}
		if l := s.current; l != nil {
			s.use(l)
			s.mu.Unlock()
			return l, nil
		}
		changed, why := s.changed, s.why
		s.mu.Unlock()
		if hopeless(why) {
			return nil, &refusedError{why}
		}
		select {
		case <-changed:
		case <-s.alive.Done():
		case <-timer.C:
			return nil, &Failure{Away, why}
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

func (s *supervisor) use(l *link) {
	if s.users == 0 {
		s.idle = make(chan struct{})
	}
	s.users++
	l.users++
}

func (s *supervisor) release(l *link) {
	s.mu.Lock()
	defer s.mu.Unlock()
	l.users--
	if s.users--; s.users == 0 {
		close(s.idle)
	}
	l.closeUnused()
}

// retire takes a connection out of use. Another caller may have done so before.
func (s *supervisor) retire(l *link, why error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.current == l {
		s.current, s.why = nil, why
		if elsewhere := new(notLeaderError); errors.As(why, &elsewhere) {
			s.named = elsewhere.leader
		}
		s.want()
	}
	l.retired()
	l.closeUnused()
}

// closeUnused closes a retired connection that has no callers: those that it has end by
// themselves.
func (l *link) closeUnused() {
	if l.gone.Err() != nil && l.users == 0 {
		l.conn.Close() //nolint:errcheck,gosec // it may be closed already
	}
}

// probe asks a node whose answer was late for a sign of life, and retires the connection
// if none comes: one slow call is no reason to end the others.
func (s *supervisor) probe(l *link, why error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.alive.Err() != nil || s.current != l || l.probed {
		return
	}
	l.probed = true
	s.use(l)
	s.running.Go(func() {
		defer s.release(l)
		ctx, cancel := context.WithTimeout(s.alive, min(probeLimit, s.limit))
		defer cancel()
		_, err := readPage(leading(ctx), l.streams, signOfLife())
		s.mu.Lock()
		l.probed = false
		s.mu.Unlock()
		if err != nil {
			s.retire(l, why)
		}
	})
}

// signOfLife asks for the log's last event.
func signOfLife() *streams.ReadReq { return allRequest(lastFirst(esdb.End{}), 1) }

// on runs a call on an acquired connection, with the limit for one answer, and releases
// the connection.
func (s *supervisor) on(ctx context.Context, l *link, do func(context.Context, streams.StreamsClient) error) error {
	defer s.release(l)
	inner, cancel := context.WithTimeout(leading(ctx), s.limit)
	defer cancel()
	defer context.AfterFunc(s.alive, cancel)()
	err := do(inner, l.streams)
	if err != nil && inner.Err() != nil {
		err = errSlow
	}
	return s.classed(ctx, l, err)
}

// classed gives an error its kind, and retires or probes the connection accordingly.
func (s *supervisor) classed(ctx context.Context, l *link, err error) error {
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return ctx.Err()
	case s.alive.Err() != nil:
		return eventlog.ErrClosed
	}
	err = classify(err)
	switch kind, ok := kindOf(err); {
	case ok && kind.replaces():
		s.retire(l, err)
	case ok && kind == Late:
		s.probe(l, err)
	}
	return err
}
