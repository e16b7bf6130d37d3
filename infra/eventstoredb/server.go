package eventstoredb

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/EventStore/EventStore-Client-Go/v4/esdb"
	"google.golang.org/grpc/codes"
	grpcmeta "google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/tempo-watchtower/watchtower/domain/event"
)

// Server is the cluster's leader as the log uses it. Its errors are the caller's own
// context's, event.ErrClosed, a *Failure, a *WrongVersion, or permanent. The supervisor is
// the real one; the simulation has another.
type Server interface {
	// Append sends an append once.
	Append(ctx context.Context, stream string, expected event.Version, events []esdb.EventData) error
	// ReadStream returns at most count events; none if there is no stream.
	ReadStream(ctx context.Context, stream string, o esdb.ReadStreamOptions, count uint64) ([]*esdb.RecordedEvent, error)
	// ReadAll returns at most count events, the server's own among them.
	ReadAll(ctx context.Context, o esdb.ReadAllOptions, count uint64) ([]*esdb.RecordedEvent, error)
	// Subscribe calls each in the order of positions until each or the server ends it.
	Subscribe(ctx context.Context, o esdb.SubscribeToAllOptions, each func(Notification) error) error
	// Kill ends every call.
	Kill()
	// Close waits for calls to end, until ctx does.
	Close(ctx context.Context) error
}

// Notification is one message of a subscription.
type Notification struct {
	Event    *esdb.RecordedEvent // nil for a checkpoint
	At       event.Position      // of the event or the checkpoint
	CaughtUp bool
}

// leading adds the header by which a node that does not lead refuses a call, and names the
// leader. The client (4.0 to 4.2) puts it into the incoming context, which is never sent.
func leading(ctx context.Context) context.Context {
	return grpcmeta.AppendToOutgoingContext(ctx, "requires-leader", "true")
}

// Append sends an append once. The call's context does not end with the caller's: the
// client would read memory that gRPC is still writing. A caller that leaves lets the call end by
// itself.
func (s *supervisor) Append(ctx context.Context, stream string, expected event.Version, events []esdb.EventData) error {
	limit := s.limit
	options := esdb.AppendToStreamOptions{ExpectedRevision: esdb.NoStream{}, Deadline: &limit}
	if expected > 0 {
		options.ExpectedRevision = esdb.Revision(uint64(min(expected, maxVersion)) - 1)
	}
	c, err := s.acquire(ctx)
	if err != nil && ctx.Err() != nil {
		return &Failure{Away, ctx.Err()}
	}
	if err != nil {
		return err
	}
	_, err = on(ctx, s, c, func(ctx context.Context, c *esdb.Client) (*esdb.WriteResult, error) {
		return c.AppendToStream(context.WithoutCancel(ctx), stream, options, events...)
	})
	if errors.Is(err, event.ErrClosed) { // beside the call
		return fmt.Errorf("%w: %w", event.ErrUnknown, err)
	}
	return err
}

func (s *supervisor) ReadStream(ctx context.Context, stream string, o esdb.ReadStreamOptions, count uint64) ([]*esdb.RecordedEvent, error) {
	return call(ctx, s, func(ctx context.Context, c *esdb.Client) ([]*esdb.RecordedEvent, error) {
		return receive(c.ReadStream(ctx, stream, o, count))
	})
}

func (s *supervisor) ReadAll(ctx context.Context, o esdb.ReadAllOptions, count uint64) ([]*esdb.RecordedEvent, error) {
	return call(ctx, s, func(ctx context.Context, c *esdb.Client) ([]*esdb.RecordedEvent, error) {
		return receive(c.ReadAll(ctx, o, count))
	})
}

// receive takes everything that a read yields. Links whose event is gone are left out.
func receive(r *esdb.ReadStream, err error) (page []*esdb.RecordedEvent, _ error) {
	if err != nil {
		return nil, err
	}
	defer r.Close()
	for {
		e, err := r.Recv()
		switch {
		case errors.Is(err, io.EOF), err != nil && noStream(err):
			return page, nil
		case err != nil:
			return nil, err
		case e.Event != nil:
			page = append(page, e.Event)
		}
	}
}

// Subscribe passes on the server's messages. It ends when its client is retired: a node
// that stopped leading goes on serving the subscriptions that it has.
func (s *supervisor) Subscribe(ctx context.Context, o esdb.SubscribeToAllOptions, each func(Notification) error) (err error) {
	c, err := s.acquire(ctx)
	if err != nil {
		return err
	}
	defer s.release(c)
	ended := false // by each
	defer func() {
		if p := recover(); p != nil {
			err = &panicError{p}
		}
		if err != nil && !ended {
			err = s.classed(ctx, c, err)
		}
	}()
	// Until the server has answered, ctx does not end the call: the client would read memory
	// that gRPC is still writing.
	began, cancel := context.WithCancel(leading(context.WithoutCancel(ctx)))
	defer cancel()
	late := time.AfterFunc(s.limit, cancel)
	subscription, err := c.SubscribeToAll(began, o)
	if !late.Stop() {
		err = errSlow
	}
	if err != nil {
		return err
	}
	defer subscription.Close() //nolint:errcheck // never fails
	defer context.AfterFunc(ctx, cancel)()
	defer context.AfterFunc(c.gone, cancel)()
	for {
		got, err := received(subscription.Recv())
		if err != nil {
			return err
		}
		if err := each(got); err != nil {
			ended = true
			return err
		}
	}
}

// received translates a message of a subscription; the zero Notification for a message of
// no interest.
func received(e *esdb.SubscriptionEvent) (Notification, error) {
	switch {
	case e.SubscriptionDropped != nil:
		if err := e.SubscriptionDropped.Error; err != nil {
			return Notification{}, err
		}
		return Notification{}, status.Error(codes.Unavailable, "the subscription was dropped")
	case e.CaughtUp != nil:
		return Notification{CaughtUp: true}, nil
	case e.CheckPointReached != nil:
		return Notification{At: event.Position(e.CheckPointReached.Commit)}, nil
	case e.EventAppeared != nil && e.EventAppeared.Event != nil:
		return Notification{Event: e.EventAppeared.Event, At: event.Position(e.EventAppeared.Event.Position.Commit)}, nil
	}
	return Notification{}, nil
}

// Kill ends every call, and the search for nodes.
func (s *supervisor) Kill() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.kill()
}
