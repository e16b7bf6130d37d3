package eventstoredb

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"github.com/EventStore/EventStore-Client-Go/v4/esdb"
	"github.com/EventStore/EventStore-Client-Go/v4/protos/streams"
	"google.golang.org/grpc"
	grpcmeta "google.golang.org/grpc/metadata"

	"github.com/tempo-watchtower/watchtower/eventlog"
)

// Server is the cluster's leader as the log uses it. Its errors are the caller's own
// context's, eventlog.ErrClosed, a *Failure, a *WrongVersion, or permanent. The supervisor is
// the real one; the simulation has another.
type Server interface {
	// Append sends an append once.
	Append(ctx context.Context, stream string, expected eventlog.Version, events []esdb.EventData) error
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
	At       eventlog.Position   // of the event or the checkpoint
	CaughtUp bool
}

// leading adds the header by which a node that does not lead refuses a call, and names the
// leader. The client library (4.0 to 4.2) puts it into the incoming context, which is
// never sent.
func leading(ctx context.Context) context.Context {
	return grpcmeta.AppendToOutgoingContext(ctx, "requires-leader", "true")
}

// notLeaderError is a node's answer that another node leads.
type notLeaderError struct {
	leader string // host and port; may be empty
	error
}

func (e *notLeaderError) Unwrap() error { return e.error }

// answered adds the leader's address to an error, if its trailers name one.
func answered(err error, trailer grpcmeta.MD) error {
	host, port := trailer.Get("leader-endpoint-host"), trailer.Get("leader-endpoint-port")
	if err == nil || len(host) == 0 || len(port) == 0 {
		return err
	}
	return &notLeaderError{net.JoinHostPort(host[0], port[0]), err}
}

// Append sends an append once. The server writes once it has the end of the request: an
// append whose sending breaks off is not written.
func (s *supervisor) Append(ctx context.Context, stream string, expected eventlog.Version, events []esdb.EventData) error {
	l, err := s.acquire(ctx)
	if err != nil && ctx.Err() != nil {
		return &Failure{Away, ctx.Err()}
	}
	if err != nil {
		return err
	}
	err = s.on(ctx, l, func(ctx context.Context, c streams.StreamsClient) error {
		var trailer grpcmeta.MD
		answer, err := sendAppend(ctx, c, &trailer, stream, expected, events)
		if err != nil {
			return answered(err, trailer)
		}
		return wrongVersion(answer)
	})
	if errors.Is(err, eventlog.ErrClosed) { // beside the call
		return fmt.Errorf("%w: %w", eventlog.ErrUnknown, err)
	}
	return err
}

func sendAppend(ctx context.Context, c streams.StreamsClient, trailer *grpcmeta.MD, stream string, expected eventlog.Version, events []esdb.EventData) (*streams.AppendResp, error) {
	call, err := c.Append(ctx, grpc.Trailer(trailer))
	if err != nil {
		return nil, &cutOffError{err}
	}
	err = call.Send(appendOptions(stream, expected))
	for i := 0; err == nil && i < len(events); i++ {
		err = call.Send(proposal(events[i]))
	}
	if err != nil {
		// A Send that fails tells io.EOF; the reason is the call's status.
		if _, status := call.CloseAndRecv(); status != nil {
			err = status
		}
		return nil, &cutOffError{err}
	}
	return call.CloseAndRecv()
}

// ReadStream reads a page of a stream.
func (s *supervisor) ReadStream(ctx context.Context, stream string, o esdb.ReadStreamOptions, count uint64) ([]*esdb.RecordedEvent, error) {
	return s.page(ctx, streamRequest(stream, o, count))
}

// ReadAll reads a page of the log.
func (s *supervisor) ReadAll(ctx context.Context, o esdb.ReadAllOptions, count uint64) ([]*esdb.RecordedEvent, error) {
	return s.page(ctx, allRequest(o, count))
}

func (s *supervisor) page(ctx context.Context, request *streams.ReadReq) (page []*esdb.RecordedEvent, err error) {
	l, err := s.acquire(ctx)
	if err != nil {
		return nil, err
	}
	err = s.on(ctx, l, func(ctx context.Context, c streams.StreamsClient) (err error) {
		page, err = readPage(ctx, c, request)
		return err
	})
	if err != nil {
		return nil, err
	}
	return page, nil
}

// readPage reads all events of a request; none of a stream that does not exist.
func readPage(ctx context.Context, c streams.StreamsClient, request *streams.ReadReq) (page []*esdb.RecordedEvent, err error) {
	var trailer grpcmeta.MD
	call, err := c.Read(ctx, request, grpc.Trailer(&trailer))
	if err != nil {
		return nil, err
	}
	for {
		m, err := call.Recv()
		switch {
		case errors.Is(err, io.EOF):
			return page, nil
		case err != nil:
			return nil, answered(err, trailer)
		case m.GetEvent().GetEvent() == nil:
			continue
		}
		e, err := recordedEvent(m.GetEvent().GetEvent())
		if err != nil {
			return nil, err
		}
		page = append(page, e)
	}
}

// Subscribe passes on the server's messages. It ends when its connection is retired: a
// node that stopped leading goes on serving the subscriptions that it has.
func (s *supervisor) Subscribe(ctx context.Context, o esdb.SubscribeToAllOptions, each func(Notification) error) error {
	l, err := s.acquire(ctx)
	if err != nil {
		return err
	}
	defer s.release(l)
	inner, cancel := context.WithCancel(leading(ctx))
	defer cancel()
	defer context.AfterFunc(s.alive, cancel)()
	defer context.AfterFunc(l.gone, cancel)()
	late := time.AfterFunc(s.limit, cancel) // unless the server confirms it
	defer late.Stop()
	var trailer grpcmeta.MD
	call, err := l.streams.Read(inner, subscriptionRequest(o), grpc.Trailer(&trailer))
	for first := true; err == nil; first = false {
		var m *streams.ReadResp
		if m, err = call.Recv(); err != nil {
			break
		}
		if first && !late.Stop() {
			err = errSlow
			break
		}
		var n Notification
		if n, err = notification(m); err == nil {
			if err := each(n); err != nil {
				return err
			}
		}
	}
	if errors.Is(err, io.EOF) {
		err = errEnded
	}
	return s.classed(ctx, l, answered(err, trailer))
}
