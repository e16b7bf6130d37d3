package eventstoredb

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/EventStore/EventStore-Client-Go/v4/esdb"

	"github.com/tempo-watchtower/watchtower/domain/event"
)

// How the leader is looked for.
const (
	connectFirst = 20 * time.Millisecond  // pause between two searches
	connectMost  = 500 * time.Millisecond // an election takes one to two seconds
	flapping     = time.Second            // a client that lived shorter is not replaced at once
	discoverMost = math.MaxInt32
	hopsMost     = 3               // nodes in turn that name another as the leader
	probeLimit   = 3 * time.Second // for a sign of life after a late answer
)

// supervisor keeps a client that is connected to the leader, or looks for one.
//
// A client looks for a node by itself when its connection breaks, and all its callers wait
// for that in a way that no context ends. So a client whose connection broke, or whose
// node does not lead, is retired: its callers end as they may, and the last of them closes
// it. Only the supervisor's own goroutine looks for nodes, one search at a time, with a
// client of its own that it closes after the search. Callers wait beside it as long as
// they like.
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
	current *client
	changed chan struct{}  // closed when current or why has changed
	why     error          // of the last search that failed
	named   *esdb.EndPoint // the leader by the word of a node that is not; where to search first
	made    int            // clients so far
	users   int
	idle    chan struct{} // closed when users is 0
}

// client is a client that reached the leader when it was made.
type client struct {
	*esdb.Client
	named   *ear
	users   int
	probed  bool            // a probe is under way
	gone    context.Context // ends when the client is retired
	retired context.CancelFunc
}

// ear listens to the client's log for the leader that a node names: the client follows
// the name by itself, and tells it nowhere else.
type ear struct {
	log   esdb.LoggingFunc
	named atomic.Pointer[esdb.EndPoint]
}

func (e *ear) hear(level esdb.LogLevel, format string, args ...any) {
	for _, a := range args {
		if at, ok := a.(esdb.EndPoint); ok {
			e.named.Store(&at)
		}
	}
	e.log(level, format, args...)
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

// Close ends every call, waits for them until ctx ends, and closes the clients. The
// client of a call that hangs is left open: closing it would panic.
func (s *supervisor) Close(ctx context.Context) error {
	s.Kill()
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
			if s.found(c, err); err == nil {
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

// connect makes one search for the leader: where a node said that it is, or else among
// the URL's nodes; and from there to the nodes that are named in turn.
func (s *supervisor) connect() (*client, error) {
	s.mu.Lock()
	named := s.named
	s.named = nil
	s.mu.Unlock()
	hinted := named != nil
	for hops := 0; ; hops++ {
		c, next, err := s.reach(named)
		switch {
		case err == nil:
			return c, nil
		case hops == hopsMost:
		case next != nil:
			named, hinted = next, false
			continue
		case hinted: // it was the leader once
			named, hinted = nil, false
			continue
		}
		if named != nil {
			err = fmt.Errorf("a node names %s as the leader, which cannot be reached as such: %w", named, err)
		}
		return nil, err
	}
}

// reach asks a node, or those of the URL, whether it lets us read as from the leader. next
// is the leader that the node names instead. The client that asked cannot be used on: its
// next search would fail for good, and its callers would wait for ever.
func (s *supervisor) reach(node *esdb.EndPoint) (c *client, next *esdb.EndPoint, err error) {
	config := s.config
	if node != nil {
		config.Address, config.GossipSeeds, config.DnsDiscover = node.String(), nil, false
	}
	once := config
	named := &ear{log: config.Logger}
	once.MaxDiscoverAttempts, once.DiscoveryInterval, once.Logger = 1, 1, named.hear
	scout, err := esdb.NewClient(&once)
	if err != nil {
		return nil, nil, err
	}
	ctx, cancel := context.WithTimeout(s.alive, s.limit)
	defer cancel()
	_, err = guarded(ctx, func() ([]*esdb.RecordedEvent, error) { return signOfLife(ctx, scout) }, func() {
		scout.Close() //nolint:errcheck,gosec // never fails
	})
	if kind, ok := kindOf(classify(err)); ok && kind == NotLeader {
		return nil, named.named.Load(), err
	}
	if err != nil {
		return nil, nil, err
	}
	c = &client{named: &ear{log: config.Logger}}
	lasting := config
	lasting.MaxDiscoverAttempts, lasting.Logger = discoverMost, c.named.hear
	if c.Client, err = esdb.NewClient(&lasting); err != nil {
		return nil, nil, err
	}
	c.gone, c.retired = context.WithCancel(context.Background())
	return c, nil, nil
}

// signOfLife reads the log's last event.
func signOfLife(ctx context.Context, c *esdb.Client) ([]*esdb.RecordedEvent, error) {
	return receive(c.ReadAll(leading(ctx), lastFirst(esdb.End{}), 1))
}

// found publishes the outcome of a search.
func (s *supervisor) found(c *client, why error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.current, s.why = c, why; c != nil {
		s.made++
	}
	close(s.changed)
	s.changed = make(chan struct{})
}

// acquire returns the client, for release. It waits for one.
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

// retire takes a client out of use. Another caller may have done so before.
func (s *supervisor) retire(c *client, why error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.current == c {
		s.current, s.why, s.named = nil, why, c.named.named.Load()
		s.want()
	}
	c.retired()
	s.closeUnused(c)
}

// closeUnused closes a retired client that has no callers: beside a call that panics.
func (s *supervisor) closeUnused(c *client) {
	if c.gone.Err() != nil && c.users == 0 {
		c.Close() //nolint:errcheck,gosec // never fails, and may be done twice
	}
}

// probe asks a client whose answer was late for a sign of life, and retires it if none
// comes: one slow call is no reason to end the others.
func (s *supervisor) probe(c *client, why error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.alive.Err() != nil || s.current != c || c.probed {
		return
	}
	c.probed = true
	s.use(c)
	s.running.Go(func() {
		ctx, cancel := context.WithTimeout(s.alive, min(probeLimit, s.limit))
		defer cancel()
		_, err := guarded(ctx, func() ([]*esdb.RecordedEvent, error) { return signOfLife(ctx, c.Client) }, func() { s.release(c) })
		s.mu.Lock()
		c.probed = false
		s.mu.Unlock()
		if err != nil {
			s.retire(c, why)
		}
	})
}

// call runs do with the client, under a deadline: its answer, or that there was none.
func call[T any](ctx context.Context, s *supervisor, do func(context.Context, *esdb.Client) (T, error)) (T, error) {
	c, err := s.acquire(ctx)
	if err != nil {
		var none T
		return none, err
	}
	return on(ctx, s, c, do)
}

// on is call with a client that was acquired; it releases it.
func on[T any](ctx context.Context, s *supervisor, c *client, do func(context.Context, *esdb.Client) (T, error)) (T, error) {
	inner, cancel := context.WithTimeout(leading(ctx), s.limit)
	stop := context.AfterFunc(s.alive, cancel)
	v, err := guarded(inner, func() (T, error) { return do(inner, c.Client) }, func() {
		stop()
		cancel()
		s.release(c)
	})
	if err == nil {
		return v, nil
	}
	var none T
	return none, s.classed(ctx, c, err)
}

// classed gives an error its kind, and retires or probes the client accordingly.
func (s *supervisor) classed(ctx context.Context, c *client, err error) error {
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case s.alive.Err() != nil:
		return event.ErrClosed
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		err = errSlow
	}
	err = classify(err)
	switch kind, ok := kindOf(err); {
	case ok && kind.replaces():
		s.retire(c, err)
	case ok && kind == Late:
		s.probe(c, err)
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
