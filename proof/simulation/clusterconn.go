package simulation

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/EventStore/EventStore-Client-Go/v4/esdb"

	"github.com/tempo-watchtower/watchtower/eventlog"
	"github.com/tempo-watchtower/watchtower/infra/eventstoredb"
	"github.com/tempo-watchtower/watchtower/infra/eventstoredb/esdbtest/esdbcluster"
)

// Default limits of the adapter's real connection.
const (
	connPatience = 5 * time.Second  // wait of a call for a leader
	connLimit    = 10 * time.Second // wait of a call for its answer
	searchFirst  = 20 * time.Millisecond
	searchMost   = 500 * time.Millisecond
	hopsMost     = 3 // consecutive nodes that name another as the leader
)

// clusterConn is a replica's connection to the cluster. It models the adapter's supervisor and
// its gRPC clients: each call goes to the node that was the leader when the connection was made.
type clusterConn struct {
	*replica
	cluster *cluster
	alive   context.Context
	kill    context.CancelFunc
	running sync.WaitGroup // the search for the leader

	mu        sync.Mutex
	current   *leaderConn
	changed   chan struct{} // closed when current or why changes
	why       error         // error of the last failed search
	named     int           // the leader as named by a node; 0: none
	searching bool
}

// leaderConn is a connection to the node that was the leader when it was made.
type leaderConn struct {
	node   int
	gone   context.Context // ends when another connection replaces it
	retire context.CancelFunc
}

func (c *cluster) connection(r *replica) *clusterConn {
	d := &clusterConn{replica: r, cluster: c, changed: make(chan struct{})}
	d.alive, d.kill = context.WithCancel(context.Background())
	return d
}

// Kill ends every call.
func (d *clusterConn) Kill() { d.kill() }

// Close ends every call, and waits for the search.
func (d *clusterConn) Close(context.Context) error {
	d.kill()
	d.running.Wait()
	return nil
}

// acquire returns the connection, and waits until there is one.
func (d *clusterConn) acquire(ctx context.Context) (*leaderConn, error) {
	timer := time.NewTimer(connPatience)
	defer timer.Stop()
	for {
		d.mu.Lock()
		at, changed, why := d.current, d.changed, d.why
		if at == nil && !d.searching && d.alive.Err() == nil {
			d.searching = true
			d.running.Go(d.search)
		}
		d.mu.Unlock()
		switch {
		case d.alive.Err() != nil:
			return nil, eventlog.ErrClosed
		case at != nil:
			return at, nil
		case errors.Is(why, errCrashed):
			return nil, why
		}
		select {
		case <-changed:
		case <-d.alive.Done():
		case <-timer.C:
			return nil, &eventstoredb.Failure{Kind: eventstoredb.Away, Err: why}
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// search looks for the leader until it is found.
func (d *clusterConn) search() {
	for wait := searchFirst; ; wait = min(2*wait, searchMost) {
		node, err := d.connect()
		d.found(node, err)
		if err == nil || errors.Is(err, errCrashed) {
			return
		}
		select {
		case <-time.After(wait):
		case <-d.alive.Done():
			return
		}
	}
}

func (d *clusterConn) found(node int, why error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.why = why; why == nil {
		c := &leaderConn{node: node}
		c.gone, c.retire = context.WithCancel(context.Background())
		d.current, d.searching = c, false
	}
	close(d.changed)
	d.changed = make(chan struct{})
}

// connect asks the node named as the leader, or else the leader according to another node. It
// follows the nodes' answers from there.
func (d *clusterConn) connect() (node int, err error) {
	d.mu.Lock()
	named := d.named
	d.named = 0
	d.mu.Unlock()
	for hop := range hopsMost + 1 {
		var failed error
		ctx, cancel := context.WithTimeout(d.alive, connLimit)
		err = d.ask(ctx, &call{kind: reading, log: true, name: fmt.Sprintf("find leader %d", hop), do: func() { node, failed = d.cluster.lookup(named) }})
		cancel()
		if err != nil {
			return 0, err
		}
		var other *esdbcluster.NotLeaderError
		if !errors.As(failed, &other) {
			return node, failed
		}
		named = other.Leader
	}
	return 0, errors.New("nodes name each other as the leader")
}

// classed classifies a call's error like the adapter's supervisor, and starts a new search for
// the leader after the same kinds of errors.
func (d *clusterConn) classed(ctx context.Context, at *leaderConn, err error) error {
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.Is(err, errCrashed), errors.Is(err, errPosition):
		return err
	case d.alive.Err() != nil:
		return eventlog.ErrClosed
	}
	err = failure(err)
	var f *eventstoredb.Failure
	if !errors.As(err, &f) {
		return err
	}
	switch f.Kind {
	case eventstoredb.Gone, eventstoredb.NotReady, eventstoredb.NotLeader, eventstoredb.CutOff:
		d.replace(at, err)
	}
	return err
}

// failure converts an error of the model or of the connection like the adapter's own classify
// converts the server's status.
func failure(err error) error {
	var conflict *esdbcluster.ConflictError
	var other *esdbcluster.NotLeaderError
	kind := eventstoredb.Gone
	switch {
	case errors.As(err, new(*eventstoredb.Failure)):
		return err
	case errors.As(err, &conflict) && !conflict.Exists:
		return &eventstoredb.WrongVersion{}
	case errors.As(err, &conflict):
		return &eventstoredb.WrongVersion{At: eventlog.Version(conflict.Revision + 1)}
	case errors.As(err, &other):
		kind = eventstoredb.NotLeader
	case errors.Is(err, esdbcluster.ErrNotReady):
		kind = eventstoredb.NotReady
	case errors.Is(err, esdbcluster.ErrCommitTimeout):
		kind = eventstoredb.TimedOut
	case errors.Is(err, esdbcluster.ErrSlow):
		kind = eventstoredb.SlowConsumer
	case errors.Is(err, context.DeadlineExceeded):
		kind = eventstoredb.Late
	}
	return &eventstoredb.Failure{Kind: kind, Err: err}
}

// replace drops a connection, unless another caller already has.
func (d *clusterConn) replace(at *leaderConn, why error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.current == at {
		d.current, d.why = nil, why
		if other := (*esdbcluster.NotLeaderError)(nil); errors.As(why, &other) {
			d.named = other.Leader
		}
	}
	at.retire()
}

// bounded is a call's context with the connection's own limit and end.
func (d *clusterConn) bounded(ctx context.Context) (context.Context, func()) {
	inner, cancel := context.WithTimeout(ctx, connLimit)
	stop := context.AfterFunc(d.alive, cancel)
	return inner, func() { stop(); cancel() }
}

// Append sends an append once. It waits for the cluster's answer.
func (d *clusterConn) Append(ctx context.Context, stream string, expected eventlog.Version, events []esdb.EventData) error {
	at, err := d.acquire(ctx)
	switch {
	case err != nil && ctx.Err() != nil:
		return &eventstoredb.Failure{Kind: eventstoredb.Away, Err: ctx.Err()}
	case err != nil:
		return err
	}
	inner, end := d.bounded(ctx)
	defer end()
	var p *esdbcluster.Pending
	err = d.ask(inner, &call{
		kind: writing, log: true, name: fmt.Sprintf("append %s %d %s at %d", stream, expected, events[0].EventType, at.node),
		do:    func() { p = d.cluster.append(sendingOf(ctx), at.node, stream, expected, proposals(events)) },
		until: func(answer func()) { p.Then(func(*esdbcluster.Record, error) { answer() }) },
	})
	if err == nil {
		_, err = p.Outcome()
	}
	if err = d.classed(ctx, at, err); errors.Is(err, eventlog.ErrClosed) {
		return fmt.Errorf("%w: %w", eventlog.ErrUnknown, err)
	}
	return err
}

// sendingOf is the call that sends an append.
func sendingOf(ctx context.Context) *sending {
	s, _ := ctx.Value(sendingKey{}).(*sending)
	return s
}

type sendingKey struct{}

// ReadStream returns at most count events of a stream.
func (d *clusterConn) ReadStream(ctx context.Context, stream string, o esdb.ReadStreamOptions, count uint64) ([]*esdb.RecordedEvent, error) {
	return d.read(ctx, fmt.Sprintf("read %s %v %v", stream, o.Direction, o.From), func(v esdbcluster.View) ([]*esdbcluster.Record, error) {
		return streamOf(v, stream, o, count), nil
	})
}

// ReadAll returns at most count events of the log.
func (d *clusterConn) ReadAll(ctx context.Context, o esdb.ReadAllOptions, count uint64) ([]*esdb.RecordedEvent, error) {
	return d.read(ctx, fmt.Sprintf("read all %v %v %d", o.Direction, o.From, count), func(v esdbcluster.View) ([]*esdbcluster.Record, error) {
		return d.cluster.logOf(v, o, count)
	})
}

func (d *clusterConn) read(ctx context.Context, name string, do func(esdbcluster.View) ([]*esdbcluster.Record, error)) ([]*esdb.RecordedEvent, error) {
	at, err := d.acquire(ctx)
	if err != nil {
		return nil, err
	}
	inner, end := d.bounded(ctx)
	defer end()
	var records []*esdbcluster.Record
	var failed error
	err = d.ask(inner, &call{kind: reading, log: true, name: fmt.Sprintf("%s at %d", name, at.node), do: func() {
		var v esdbcluster.View
		if v, failed = d.cluster.model.View(at.node, true); failed == nil {
			records, failed = do(v)
		}
	}})
	if err == nil {
		err = failed
	}
	if err != nil {
		return nil, d.classed(ctx, at, err)
	}
	return recordedEvents(records), nil
}

// Subscribe passes on the node's notifications until each or the node ends the subscription, or
// another connection replaces this one.
func (d *clusterConn) Subscribe(ctx context.Context, o esdb.SubscribeToAllOptions, each func(eventstoredb.Notification) error) error {
	at, err := d.acquire(ctx)
	if err != nil {
		return err
	}
	s, err := d.begin(ctx, at, o)
	if err != nil {
		return d.classed(ctx, at, err)
	}
	defer s.Close()
	inner, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(at.gone, cancel)()
	defer context.AfterFunc(d.alive, cancel)()
	for {
		var got []eventstoredb.Notification
		var failed error
		err := d.ask(inner, &call{
			kind: reading, log: true, name: fmt.Sprintf("next of log %v at %d", o.From, at.node), ready: s.ready,
			do: func() { got, failed = s.take() },
		})
		if err != nil {
			return d.classed(ctx, at, err)
		}
		for _, n := range got {
			if err := each(n); err != nil {
				return err
			}
		}
		if failed != nil {
			return d.classed(ctx, at, failed)
		}
	}
}

// begin starts a subscription at a node.
func (d *clusterConn) begin(ctx context.Context, at *leaderConn, o esdb.SubscribeToAllOptions) (s *following, err error) {
	inner, end := d.bounded(ctx)
	defer end()
	var failed error
	err = d.ask(inner, &call{kind: reading, log: true, name: fmt.Sprintf("subscribe %v at %d", o.From, at.node), do: func() {
		s, failed = d.cluster.follow(at.node, o)
	}})
	if err != nil {
		return nil, err
	}
	return s, failed
}
