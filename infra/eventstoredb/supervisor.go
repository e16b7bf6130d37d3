package eventstoredb

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"sync"
	"time"

	"github.com/EventStore/EventStore-Client-Go/v4/esdb"

	"github.com/tempo-watchtower/watchtower/domain/event"
)

// How a node is looked for.
const (
	connectFirst = 20 * time.Millisecond // between two tries
	connectMost  = time.Second
	flapping     = time.Second // a client that lived shorter is not replaced at once
	discoverMost = math.MaxInt32
)

// supervisor has a client that works, or is making one.
//
// A client looks for a node by itself when its connection breaks, and everybody waits
// for that in a way that no context ends; so one that broke is retired: who uses it ends
// as may be, and it is closed by the last of them. Only the supervisor's own goroutine
// looks for nodes, once at a time, with a client of its own that is given up if there
// is none; those who want one wait beside it, for as long as they like.
type supervisor struct {
	config   esdb.Configuration
	logger   *slog.Logger
	patience time.Duration // for a node
	alive    context.Context
	kill     context.CancelFunc
	wanted   chan struct{}
	running  sync.WaitGroup // the connector

	mu      sync.Mutex
	current *client
	changed chan struct{} // closed when current or why has changed
	why     error         // the last try to connect failed
	users   int
	idle    chan struct{} // closed when users is 0
}

// client is one that worked when it was made.
type client struct {
	*esdb.Client
	users   int
	retired bool
}

func newSupervisor(config esdb.Configuration, patience time.Duration, logger *slog.Logger) *supervisor {
	s := &supervisor{
		config: config, logger: logger, patience: patience,
		wanted: make(chan struct{}, 1), changed: make(chan struct{}), idle: make(chan struct{}),
	}
	close(s.idle)
	s.alive, s.kill = context.WithCancel(context.Background())
	s.want()
	s.running.Go(s.run)
	return s
}

// close ends every call, waits for them until ctx ends, and closes the clients. The
// client of a call that hangs is left open: closing it would panic.
func (s *supervisor) close(ctx context.Context) error {
	s.kill()
	s.running.Wait()
	s.mu.Lock()
	c, idle := s.current, s.idle
	s.mu.Unlock()
	if c != nil {
		s.retire(c, event.ErrClosed)
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

// run makes a client whenever there is none.
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
			c, err := s.connect()
			if s.tell(c, err); err == nil {
				break
			}
			s.logger.Warn("EventStoreDB is not to be had", "err", err)
			if pause(s.alive, wait) != nil {
				return
			}
		}
		made = time.Now()
	}
}

// connect tries one round of the nodes, and asks the one that was found whether it lets
// us read. The client that did it cannot be used on: its next search would fail for
// good, and whoever waited for it would wait for ever.
func (s *supervisor) connect() (*client, error) {
	once := s.config
	once.MaxDiscoverAttempts, once.DiscoveryInterval = 1, 1
	scout, err := esdb.NewClient(&once)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(s.alive, callLimit)
	defer cancel()
	_, err = guarded(ctx, func() ([]*esdb.ResolvedEvent, error) { return tail(ctx, scout, esdb.End{}, 1) }, func() {
		scout.Close() //nolint:errcheck,gosec // never fails
	})
	if err != nil {
		return nil, err
	}
	lasting := s.config
	lasting.MaxDiscoverAttempts = discoverMost
	made, err := esdb.NewClient(&lasting)
	if err != nil {
		return nil, err
	}
	return &client{Client: made}, nil
}

// tell lets those who wait know what came of a try.
func (s *supervisor) tell(c *client, why error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.current, s.why = c, why
	close(s.changed)
	s.changed = make(chan struct{})
}

// acquire is the client that works, for release. It waits for one.
func (s *supervisor) acquire(ctx context.Context) (*client, error) {
	timer := time.NewTimer(s.patience)
	defer timer.Stop()
	for {
		s.mu.Lock()
		if s.alive.Err() != nil {
			s.mu.Unlock()
			return nil, event.ErrClosed
		}
		if c := s.current; c != nil {
			s.use(c)
			s.mu.Unlock()
			return c, nil
		}
		changed, why := s.changed, s.why
		s.mu.Unlock()
		if hopeless(why) {
			return nil, &awayError{why}
		}
		select {
		case <-changed:
		case <-s.alive.Done():
		case <-timer.C:
			return nil, &awayError{why}
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

func (s *supervisor) use(c *client) {
	if s.users == 0 {
		s.idle = make(chan struct{})
	}
	s.users++
	c.users++
}

func (s *supervisor) release(c *client) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c.users--
	if s.users--; s.users == 0 {
		close(s.idle)
	}
	s.closeUnused(c)
}

// retire takes a client out of use. Others may have done so before.
func (s *supervisor) retire(c *client, why error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.current == c {
		s.current, s.why = nil, why
		s.want()
	}
	c.retired = true
	s.closeUnused(c)
}

// closeUnused closes a retired client that nobody uses any more: that panics beside a call.
func (s *supervisor) closeUnused(c *client) {
	if c.retired && c.users == 0 {
		c.Close() //nolint:errcheck,gosec // never fails, and may be done twice
	}
}

// call runs do with the client, under a deadline: its answer, or that there was none.
func call[T any](ctx context.Context, s *supervisor, limit time.Duration, do func(context.Context, *esdb.Client) (T, error)) (T, error) {
	var none T
	c, err := s.acquire(ctx)
	if err != nil {
		return none, err
	}
	inner, cancel := context.WithTimeout(ctx, limit)
	stop := context.AfterFunc(s.alive, cancel)
	v, err := guarded(inner, func() (T, error) { return do(inner, c.Client) }, func() {
		stop()
		cancel()
		s.release(c)
	})
	if err == nil {
		return v, nil
	}
	return none, s.classed(ctx, c, err)
}

// classed says of an error whose it is, and retires a client that is spent.
func (s *supervisor) classed(ctx context.Context, c *client, err error) error {
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case s.alive.Err() != nil:
		return event.ErrClosed
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		err = errSlow
	}
	if spent(err) {
		s.retire(c, err)
	}
	if Transient(err) {
		return &brokenError{err}
	}
	return err
}

// guarded runs do in a goroutine of its own, catches its panic, and calls after when it
// has ended; which may be long after ctx has, and with it this call.
func guarded[T any](ctx context.Context, do func() (T, error), after func()) (T, error) {
	type answer struct {
		value T
		err   error
	}
	told := make(chan answer, 1)
	go func() {
		defer after()
		var a answer
		defer func() {
			if p := recover(); p != nil {
				a.err = &panicError{p}
			}
			told <- a
		}()
		a.value, a.err = do()
	}()
	select {
	case a := <-told:
		return a.value, a.err
	case <-ctx.Done():
	}
	select {
	case a := <-told: // it came just now
		return a.value, a.err
	default:
		var none T
		return none, ctx.Err()
	}
}
