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

	"github.com/tempo-watchtower/watchtower/eventlog"
)

// Append adds events to a stream that is at the expected version, with the promises of the
// port. An append of unknown outcome is settled here: Append reads whether the events
// stand, and sends the same events again, until the caller's deadline or the log's limit.
// The server answers an append that stands already as it answers a new one; so the last
// event carries a mark of this call, and is read back.
func (l *Log) Append(ctx context.Context, stream eventlog.Stream, expected eventlog.Version, events ...eventlog.Event) (eventlog.Appended, error) {
	if err := admissible(stream, events); err != nil {
		return eventlog.Appended{}, err
	}
	return during(l, func() (eventlog.Appended, error) {
		if ctx.Err() != nil {
			return eventlog.Appended{}, ctx.Err()
		}
		mark, err := l.mark()
		if err != nil {
			return eventlog.Appended{}, err
		}
		proposed, size, err := propose(events, mark)
		if err != nil {
			return eventlog.Appended{}, err
		}
		if size > l.maxAppend {
			return eventlog.Appended{}, fmt.Errorf("%w: %d bytes for %s, but the server accepts at most %d", eventlog.ErrTooLarge, size, stream, l.maxAppend)
		}
		l.crash(beforeAppend)
		a := &appending{Log: l, stream: stream, expected: expected, events: proposed}
		last, err := a.run(ctx)
		if err != nil {
			return eventlog.Appended{}, fmt.Errorf("append to %s: %w", stream, err)
		}
		return l.appended(last, mark)
	})
}

// appended describes an append by its last event.
func (l *Log) appended(last *esdb.RecordedEvent, mark string) (eventlog.Appended, error) {
	at, err := positionOf(last)
	if err != nil {
		return eventlog.Appended{}, err
	}
	_, written, err := readMeta(last)
	if err != nil {
		return eventlog.Appended{}, err
	}
	l.seen.note(at, at)
	return eventlog.Appended{Version: eventlog.Version(last.EventNumber + 1), Position: at, Repeated: written != mark}, nil
}

// markBytes are enough for no two calls to draw the same mark.
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

// appending is one append until its outcome is known.
type appending struct {
	*Log
	stream   eventlog.Stream
	expected eventlog.Version
	events   []esdb.EventData
	unsure   bool // an earlier send may have been written, or may still be
}

// run sends the append until its events stand or cannot stand, or until ctx ends or the
// log's limit is over. It returns the last event as the server recorded it.
func (a *appending) run(ctx context.Context) (*esdb.RecordedEvent, error) {
	inner, cancel := a.bounded(ctx)
	defer cancel()
	for wait := retryFirst; ; wait = min(2*wait, retryMost) {
		last, err := a.once(inner)
		if err == nil || !unsettled(err) {
			return last, err
		}
		if pause(inner, wait) != nil {
			return nil, a.gaveUp(ctx, err)
		}
	}
}

// gaveUp is the error of an append that is not settled when its time is over.
func (a *appending) gaveUp(ctx context.Context, err error) error {
	switch {
	case a.unsure:
		return fmt.Errorf("%w: %w", eventlog.ErrUnknown, err)
	case ctx.Err() != nil:
		return ctx.Err()
	case !Transient(err): // the end of the log's limit
		return &Failure{Late, err}
	}
	return err
}

// unsettled reports whether the same append, sent again, may have another outcome.
func unsettled(err error) bool {
	return Transient(err) || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled)
}

// unknown marks an error as one after which the events may stand.
func (a *appending) unknown(err error) error {
	if !a.unsure {
		return err
	}
	return fmt.Errorf("%w: %w", eventlog.ErrUnknown, err)
}

// once is one try: it looks for the events if an earlier try may have written them, sends
// them, and looks again.
func (a *appending) once(ctx context.Context) (*esdb.RecordedEvent, error) {
	if a.unsure {
		if last, err := a.look(ctx); err == nil || !unsettled(err) {
			return last, err
		}
	}
	last, err := a.send(ctx)
	if last != nil {
		return last, nil
	}
	var wrong *WrongVersion
	var conflict *eventlog.ConflictError
	kind, transient := kindOf(err)
	switch {
	case err == nil:
		a.crash(afterAppend)
		return a.confirm(ctx)
	case errors.As(err, &wrong):
		return a.conflict(ctx, wrong)
	case errors.As(err, &conflict), errors.Is(err, eventlog.ErrUnknown), transient && kind.unwritten():
		return nil, err
	case transient, ctx.Err() != nil:
		a.unsure = true
		return nil, err
	case grpcCode(err) == codes.InvalidArgument && says(err, "append size"):
		return nil, fmt.Errorf("%w: %w", eventlog.ErrTooLarge, err)
	case !refused(err):
		a.unsure = true
	}
	return nil, a.unknown(err)
}

// lookBeside is the time without an answer after which the stream is read beside a send.
// The next reads follow after growing pauses, up to retryMost.
const lookBeside = 100 * time.Millisecond

// send sends the events. A server drops the repeat of an append that it has written and
// not committed yet, without an answer, and says so after CommitTimeoutMs. Any send may be
// such a repeat: an earlier call, or another process, may have sent the same events. So the
// stream is read beside a send that is not answered soon, and the events that are found
// there are the answer; others at their place are a conflict.
func (a *appending) send(ctx context.Context) (*esdb.RecordedEvent, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	answer := make(chan error, 1)
	go func() { answer <- a.server.Append(ctx, a.prefix+string(a.stream), a.expected, a.events) }()
	wait := lookBeside
	look := time.NewTimer(wait)
	defer look.Stop()
	for {
		select {
		case err := <-answer:
			return nil, err
		case <-look.C:
		}
		var conflict *eventlog.ConflictError
		if last, err := a.look(ctx); err == nil || errors.As(err, &conflict) {
			cancel()
			<-answer
			return last, err
		}
		wait = min(2*wait, retryMost)
		look.Reset(wait)
	}
}

// confirm reads the last event of an append that was answered.
func (a *appending) confirm(ctx context.Context) (*esdb.RecordedEvent, error) {
	n := len(a.events)
	page, err := a.read(ctx, a.expected+eventlog.Version(n-1), 1)
	if err == nil && len(page) == 1 && page[0].EventID == a.events[n-1].EventID {
		return page[0], nil
	}
	a.unsure = true
	if err == nil {
		err = &Failure{Behind, errors.New("the append was acknowledged, but its events are missing")}
	}
	return nil, err
}

// errAhead is the cause when the leader counts a write that cannot be read.
var errAhead = errors.New("the leader counts an uncommitted write")

// conflict judges the server's refusal by the stream's readable version. If the stream is
// at the expected version, the leader counts an uncommitted write, and that may
// yet be lost with the leader: the append is tried again. It looks for the events in any
// case: an earlier call of the same append may have been written meanwhile.
func (a *appending) conflict(ctx context.Context, wrong *WrongVersion) (*esdb.RecordedEvent, error) {
	if last, err := a.look(ctx); err == nil || !errors.Is(err, errFree) {
		return last, err
	}
	at, err := a.version(ctx, a.stream)
	switch {
	case err != nil:
		return nil, err
	case at < a.expected && !a.unsure:
		return nil, &eventlog.ConflictError{Stream: a.stream, Expected: a.expected, Actual: at}
	case at < a.expected && wrong.At < a.expected:
		// The leader has written nothing at the place, committed or not. An earlier send
		// may still be on its way, and nothing here can tell how long.
		return nil, fmt.Errorf("%w: %v", eventlog.ErrUnknown, wrong) //nolint:errorlint // it is no outcome
	}
	return nil, &Failure{Behind, errors.Join(errAhead, wrong)}
}

// errFree is the cause when nothing stands at the append's place yet.
var errFree = errors.New("the events are not committed yet")

// look reads the append's place in the stream. It returns the last of the events if they
// stand there, a conflict if other events do, and a Failure if nothing stands there yet.
func (a *appending) look(ctx context.Context) (*esdb.RecordedEvent, error) {
	page, err := a.read(ctx, a.expected, uint64(len(a.events)))
	if err != nil {
		return nil, err
	}
	if len(page) == 0 {
		return nil, &Failure{Behind, errFree}
	}
	same := len(page) == len(a.events)
	for i := 0; same && i < len(page); i++ {
		same = page[i].EventID == a.events[i].EventID
	}
	if same {
		return page[len(page)-1], nil
	}
	at, err := a.version(ctx, a.stream)
	if err != nil {
		return nil, err
	}
	return nil, &eventlog.ConflictError{Stream: a.stream, Expected: a.expected, Actual: at}
}

// read reads the stream after a version, once.
func (a *appending) read(ctx context.Context, after eventlog.Version, count uint64) ([]*esdb.RecordedEvent, error) {
	if after >= maxVersion {
		return nil, nil
	}
	return a.streamPage(ctx, a.stream, after, count)
}

// admissible refuses events that the port's limits or the server rule out.
func admissible(stream eventlog.Stream, events []eventlog.Event) error {
	switch {
	case len(stream) > eventlog.MaxStreamBytes:
		return fmt.Errorf("%w: stream name of %d bytes", eventlog.ErrTooLarge, len(stream))
	case len(events) > eventlog.MaxAppend:
		return fmt.Errorf("%w: %d events", eventlog.ErrTooLarge, len(events))
	case stream == "" || system(string(stream)) || !storable(string(stream)):
		return fmt.Errorf("%q is not a valid stream name", stream)
	case len(events) == 0:
		return errors.New("an append without events")
	}
	for _, e := range events {
		switch {
		case len(e.Data) > eventlog.MaxEventBytes:
			return fmt.Errorf("%w: event of %d bytes", eventlog.ErrTooLarge, len(e.Data))
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
