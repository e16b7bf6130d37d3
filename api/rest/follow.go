package rest

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"os"
	"time"

	"github.com/tempo-watchtower/watchtower/commands/tail"
	"github.com/tempo-watchtower/watchtower/domain/access"
	"github.com/tempo-watchtower/watchtower/eventlog"
)

// followBatch is how many events a stream reads at once.
const followBatch = 100

// Stream is the part of the log that is streamed to one client.
type Stream struct {
	Span
	Tail *tail.Tail
	Head func(ctx context.Context) (eventlog.Position, error)
	// Stored is the filter that the store applies. Show may still reject events that pass it.
	Stored eventlog.Filter
	// Names is how closely Stored selects transactions or intents.
	Names Names
	// Reaches reports whether the client owns any of the events that are recorded now and pass
	// Stored. If it owns none, the stream skips them. Nil means that each event is looked at.
	// It calls [LookUp] too.
	Reaches func(ctx context.Context) (bool, error)
	// Show returns the client's view of an event; nil when the client does not own it.
	// It calls [LookUp] before it reads a stream for that.
	Show func(ctx context.Context, e eventlog.Recorded) (any, error)
}

// Names is how closely a stream's filter names transactions or intents. The charge for a stream
// must not reveal whether a named transaction exists and belongs to another client.
type Names int

const (
	// NamesNone: the filter selects all of them, or all of a chain. Each look-up costs a unit
	// of the client's look-up rate, which no answer shows.
	NamesNone Names = iota
	// NamesOne: the filter names one. It is looked up first, for one unit; further look-ups
	// cost nothing.
	NamesOne
	// NamesFew: the filter names an id prefix or a group. Each event of the log that is passed
	// counts [fewWeight] times, whether it matches or not. Look-ups cost nothing.
	NamesFew
)

// fewWeight pays for the look-ups of a filter with an id prefix. One id in sixteen has the same
// first digit, so a hundred events may need six look-ups.
const fewWeight = 8

// Span is where a stream begins and ends.
type Span struct {
	After     *eventlog.Position // nil: start at the end of the log
	Until     *eventlog.Position // nil: never ends
	UntilHead bool               // end at the end of the log as of the request
}

// streamed serves an event stream. It stores only a position for the client: new events come
// from the memory that all streams share, older ones from the store.
func (a *api) streamed(w http.ResponseWriter, r *http.Request, s Stream) error {
	ctx, cancel := a.work(r)
	defer cancel()
	head, err := s.Head(ctx)
	switch {
	case err != nil:
		return err
	case s.After == nil:
		s.After = &head
	case *s.After > head:
		return BadParameter("after", "the log ends at position %d", head)
	}
	if s.UntilHead {
		s.Until = &head
	}
	on := exchangeOf(r)
	leave, err := a.openStream(on)
	if err != nil {
		return err
	}
	defer leave()
	select {
	case a.follows <- struct{}{}:
		defer func() { <-a.follows }()
	default:
		return ErrTooManyStreams.Because("%d streams are open", cap(a.follows))
	}
	defer on.place.rest()() // streams count apart
	f := &following{api: a, on: on, Stream: s, at: *s.After, head: head, out: newFeed(w, r, a.Limits.StreamWrite)}
	defer a.idle(w, r)()
	if r.Method == http.MethodHead {
		f.out.header()
		return nil
	}
	ended, err := f.run(r.Context())
	on.note(slog.Int("sent", f.sent), slog.Uint64("position", uint64(f.at)), slog.String("ended", ended))
	if !f.out.begun {
		return err
	}
	on.err = err // the status was sent, so no problem can be
	return nil
}

// errShutOut ends a stream whose client is no longer admitted.
var errShutOut = errors.New("the client's key is no longer valid")

// following is the state of one client's stream.
type following struct {
	*api
	Stream
	on   *exchange
	at   eventlog.Position // every event up to here was sent or filtered out
	out  *feed
	head eventlog.Position // the log's end when the request came
	skip eventlog.Position // nothing up to here is the client's
	sent int
	debt
}

// run sends until the client has gone, the process is about to stop, the client may
// not come in any more, or the log cannot be read, and says which. However it ends,
// the client can go on from there. A client without debts is told nothing before the first
// stretch is read, so that a log which cannot be read is still answered with a problem.
func (f *following) run(ctx context.Context) (ended string, err error) {
	const slow, unread = "client is too slow", "log cannot be read"
	defer f.Stream.Tail.Listen()()
	heartbeat := time.NewTicker(f.Limits.StreamSilence)
	defer heartbeat.Stop()
	more := make(chan struct{}) // always ready
	close(more)
	grown := f.Stream.Tail.Grown()
	next, err := f.first(ctx)
	switch {
	case ctx.Err() != nil:
		return gone, nil
	case err != nil:
		return unread, err
	case f.out.begin(f.at) != nil:
		return gone, nil
	}
	for {
		if f.over() {
			if f.out.end(f.at) != nil {
				return gone, nil
			}
			return "all was sent", nil
		}
		before := f.sent
		if err == nil {
			err = f.send(next)
		}
		var left *clientError
		switch {
		case errors.As(err, &left) && errors.Is(left, os.ErrDeadlineExceeded):
			return slow, nil
		case left != nil, ctx.Err() != nil:
			return gone, nil
		case errors.Is(err, errShutOut):
			return shutOut, nil
		case err != nil:
			return unread, err
		case f.sent > before:
			heartbeat.Reset(f.Limits.StreamSilence)
		}
		if !next.live || f.over() {
			grown = more
		}
		if ended := f.rest(ctx, grown, heartbeat.C); ended != "" {
			return ended, nil
		}
		grown = f.Stream.Tail.Grown()
		next, err = f.read(ctx)
	}
}

// Reasons for the end of a stream that two functions use.
const gone, shutOut = "client has gone", "client is shut out"

// rest waits until the log has grown and the client has paid for the scanned events, or until
// it has sent a due heartbeat. It returns the reason if the stream ends.
func (f *following) rest(ctx context.Context, grown <-chan struct{}, heartbeat <-chan time.Time) (ended string) {
	for {
		var paid <-chan time.Time
		wait := f.pay()
		more := grown
		if wait > 0 {
			paid, more = time.After(wait), nil
		}
		select {
		case <-ctx.Done():
			return gone
		case <-f.Stream.Tail.Leaving():
			_ = f.out.mark(f.at) // an error changes nothing, as the stream ends
			return "stopping"
		case <-heartbeat:
			if !f.still(f.on, access.Read) {
				return shutOut
			}
			if f.out.mark(f.at) != nil {
				return gone
			}
			if wait == 0 {
				return ""
			}
		case <-paid:
		case <-more:
			return ""
		}
	}
}

// over reports whether the stream has reached the requested end.
func (f *following) over() bool { return f.Until != nil && f.at >= *f.Until }

// stretch is the result of reading a part of the log for a client.
type stretch struct {
	events []shownEvent
	next   eventlog.Position // once events are sent, everything up to here is covered
	live   bool              // it reaches the end of the log
}

// shownEvent is an event as shown to a client.
type shownEvent struct {
	at    eventlog.Position
	shown any
}

// send sends a stretch.
func (f *following) send(s stretch) error {
	for _, e := range s.events {
		if !f.still(f.on, access.Read) {
			return errShutOut
		}
		size, err := f.out.event(e.at, e.shown)
		if err != nil {
			return err
		}
		f.oweBytes(size)
		f.at = e.at
		f.sent++
	}
	f.at = s.next
	if len(s.events) == 0 {
		return nil
	}
	return f.out.flush()
}
