package eventstoredb

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/EventStore/EventStore-Client-Go/v4/esdb"
	"google.golang.org/grpc/codes"

	"github.com/tempo-watchtower/watchtower/domain/event"
)

// Append adds events to a stream that is at the expected version; see the port for what
// it promises. The server answers an append that stands already as it answers one that
// is new; so the last event carries a mark of the try, and is read back.
func (l *Log) Append(ctx context.Context, stream event.Stream, expected event.Version, events ...event.Event) (event.Appended, error) {
	if err := admissible(stream, events); err != nil {
		return event.Appended{}, err
	}
	return during(l, func() (event.Appended, error) {
		if ctx.Err() != nil {
			return event.Appended{}, ctx.Err()
		}
		mark, err := l.mark()
		if err != nil {
			return event.Appended{}, err
		}
		proposed, size, err := propose(events, mark)
		if err != nil {
			return event.Appended{}, err
		}
		if size > l.maxAppend {
			return event.Appended{}, fmt.Errorf("%w: %d bytes for %s, and the server takes %d", event.ErrTooLarge, size, stream, l.maxAppend)
		}
		l.crash(beforeAppend)
		if err := l.append(ctx, stream, expected, proposed); err != nil {
			return event.Appended{}, err
		}
		l.crash(afterAppend)
		return l.confirm(ctx, stream, expected+event.Version(len(events)), mark)
	})
}

// markBytes are enough for no two tries to have the same.
const markBytes = 9

func (l *Log) mark() (string, error) {
	l.drawn.Lock()
	defer l.drawn.Unlock()
	b := make([]byte, markBytes)
	if _, err := io.ReadFull(l.random, b); err != nil {
		return "", fmt.Errorf("mark an append: %w", err)
	}
	return hex.EncodeToString(b), nil
}

// againMost is how often an append is sent again that was plainly not written: it met a
// node that does not lead, or a stream that came to the expected version just then.
const againMost = 5

func (l *Log) append(ctx context.Context, stream event.Stream, expected event.Version, events []esdb.EventData) error {
	for wait := retryFirst; ; wait *= 2 {
		err := l.send(ctx, stream, expected, events)
		again := false
		switch {
		case err == nil:
			return nil
		case codeOf(err) == esdb.ErrorCodeWrongExpectedVersion:
			if err, again = l.conflict(ctx, stream, expected, err); !again {
				return err
			}
		case codeOf(err) == esdb.ErrorCodeNotLeader, astray(err):
			again = true
		default:
			return unsure(stream, err)
		}
		if wait > retryFirst<<againMost || pause(ctx, wait) != nil {
			return fmt.Errorf("append to %s: %w", stream, err)
		}
	}
}

// send sends an append. Its context does not end when the caller's does: then the client
// would read what gRPC is writing. Whoever leaves, leaves it to end by itself.
func (l *Log) send(ctx context.Context, stream event.Stream, expected event.Version, events []esdb.EventData) error {
	limit := callLimit
	options := esdb.AppendToStreamOptions{ExpectedRevision: esdb.NoStream{}, Deadline: new(time.Duration)}
	*options.Deadline = limit
	if expected > 0 {
		options.ExpectedRevision = esdb.Revision(uint64(min(expected, maxVersion)) - 1)
	}
	_, err := call(ctx, l.server, limit, func(ctx context.Context, c *esdb.Client) (*esdb.WriteResult, error) {
		return c.AppendToStream(context.WithoutCancel(ctx), l.prefix+string(stream), options, events...)
	})
	return err
}

// conflict is the error of a stream that is not at the expected version; again says that
// by now it is.
func (l *Log) conflict(ctx context.Context, stream event.Stream, expected event.Version, err error) (_ error, again bool) {
	at, ok := found(err)
	if !ok {
		if at, err = l.version(ctx, stream); err != nil {
			return fmt.Errorf("append to %s: %w", stream, err), false
		}
	}
	return &event.ConflictError{Stream: stream, Expected: expected, Actual: at}, at == expected
}

// unsure classes the error of an append: unless it is plain that the server did not
// write, nobody knows.
func unsure(stream event.Stream, err error) error {
	switch {
	case grpcCode(err) == codes.InvalidArgument && strings.Contains(err.Error(), "Append Size"):
		return fmt.Errorf("append to %s: %w: %w", stream, event.ErrTooLarge, err)
	case unwritten(err):
		return fmt.Errorf("append to %s: %w", stream, err)
	}
	return fmt.Errorf("append to %s: %w: %w", stream, event.ErrUnknown, err)
}

// confirm reads the last event of an append that stands.
func (l *Log) confirm(ctx context.Context, stream event.Stream, version event.Version, mark string) (event.Appended, error) {
	page, err := retry(ctx, func() ([]*esdb.ResolvedEvent, error) { return l.streamPage(ctx, stream, version-1, 1) })
	if err == nil && (len(page) == 0 || page[0].Event == nil || page[0].Event.EventNumber != uint64(version-1)) {
		err = errors.New("it is not there")
	}
	if err != nil {
		return event.Appended{}, fmt.Errorf("append to %s: %w: it was answered, but not read back: %w", stream, event.ErrUnknown, err)
	}
	at, err := positionOf(page[0].Event)
	if err != nil {
		return event.Appended{}, err
	}
	_, tried, err := readMeta(page[0].Event)
	if err != nil {
		return event.Appended{}, err
	}
	l.seen.note(at, at)
	return event.Appended{Version: version, Position: at, Repeated: tried != mark}, nil
}

// admissible refuses what the store must not take, or what the server would not.
func admissible(stream event.Stream, events []event.Event) error {
	switch {
	case len(stream) > event.MaxStreamBytes:
		return fmt.Errorf("%w: stream name of %d bytes", event.ErrTooLarge, len(stream))
	case len(events) > event.MaxAppend:
		return fmt.Errorf("%w: %d events", event.ErrTooLarge, len(events))
	case stream == "" || system(string(stream)) || !storable(string(stream)):
		return fmt.Errorf("%q is no name of a stream", stream)
	case len(events) == 0:
		return errors.New("an append without events")
	}
	for _, e := range events {
		switch {
		case len(e.Data) > event.MaxEventBytes:
			return fmt.Errorf("%w: event of %d bytes", event.ErrTooLarge, len(e.Data))
		case e.Name == "" || system(e.Name) || e.ID.IsZero():
			return fmt.Errorf("event %s has the name %q", e.ID, e.Name)
		case !storable(e.Name) || !storable(e.Meta.Actor) || !storable(e.Meta.Trace):
			return fmt.Errorf("event %s has text that is not UTF-8, or holds a zero", e.ID)
		}
	}
	return nil
}

// system reports whether the name of a stream or of an event is one of the server's own.
func system(name string) bool { return strings.HasPrefix(name, "$") }

// storable reports whether a string is text that the protocol carries.
func storable(s string) bool { return utf8.ValidString(s) && !strings.Contains(s, "\x00") }
