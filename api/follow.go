package api

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"os"
	"time"

	"github.com/tempo-watchtower/watchtower/commands/tail"
	"github.com/tempo-watchtower/watchtower/domain/access"
	"github.com/tempo-watchtower/watchtower/domain/event"
)

// followBatch is how many events are read at once, for each stream.
const followBatch = 100

// follow answers GET /v1/events: what is recorded, as it is recorded, for as long
// as the client listens.
func (a *api) follow(w http.ResponseWriter, r *http.Request) error {
	wanted, span, err := readFollow(r)
	if err != nil {
		return err
	}
	v := a.viewer(exchangeOf(r))
	s := Stream{
		Span: span, Tail: a.Tail, Head: a.Submit.Transactions.Store.Head, Stored: wanted.stored(),
		Show: func(ctx context.Context, e event.Recorded) (any, error) {
			v.alone = !a.Access.keys().Closed() // the first key ends that
			e, passes, err := a.passes(ctx, wanted, v, e)
			if err != nil || !passes {
				return nil, err
			}
			return followedOf(e), nil
		},
	}
	a.name(&s, wanted, v)
	return a.streamed(w, r, s)
}

// Stream is a part of the log that one client is shown, for as long as it listens.
type Stream struct {
	Span
	Tail *tail.Tail
	Head func(ctx context.Context) (event.Position, error)
	// Stored is what the store can spare us; what it lets through may not be wanted.
	Stored event.Filter
	// Names says whether Stored names transactions or intents.
	Names Names
	// Reaches reports whether anything of what is recorded by now and Stored lets through is the
	// client's. Nil means that each event is looked at. If nothing is, the stream goes on after it.
	// It calls [LookUp] too.
	Reaches func(ctx context.Context) (bool, error)
	// Show is what the client is shown of an event; nil when it is none of the client's.
	// It calls [LookUp] before it reads a stream for that.
	Show func(ctx context.Context, e event.Recorded) (any, error)
}

// Names is how closely a stream's filter names transactions or intents. A client must not learn
// from what it pays for whether one that it names exists and is another's.
type Names int

const (
	// NamesNone: the filter lets all of them through, or all of a chain. A look-up costs a unit
	// of the client's rate for look-ups, which no answer tells of.
	NamesNone Names = iota
	// NamesOne: one of them. It is looked up first, for one unit. Further look-ups cost nothing.
	NamesOne
	// NamesFew: those whose ids begin alike, or a group's. Each event of the log that is passed counts
	// [fewWeight] times, whether it is one of theirs or not. Look-ups cost nothing.
	NamesFew
)

// fewWeight pays for the look-ups of a filter that names the beginning of ids: one of sixteen has
// the same first digit, so that of a hundred events six may have to be looked up.
const fewWeight = 8

// Span is where a stream begins and ends.
type Span struct {
	After     *event.Position // nil: the end of the log
	Until     *event.Position // nil: never
	UntilHead bool            // Until is the end of the log as it is
}

// streamed shows a stream. It holds nothing for a client but a position: what is new
// comes from the memory that all streams share, what is not from the store.
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
		return ErrInvalidFilter.Because("the log ends at position %d", head)
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
		return ErrTooManyStreams.Because("%d are open", cap(a.follows))
	}
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
	on.err = err // it is too late for a problem
	return nil
}

// errShutOut ends a stream whose client may not come in any more.
var errShutOut = errors.New("the client may not come in any more")

// following is one client's way along the log.
type following struct {
	*api
	Stream
	on   *exchange
	at   event.Position // everything up to here was sent or did not pass
	out  *feed
	head event.Position // the log's end when the request came
	skip event.Position // nothing up to here is the client's
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
	more := make(chan struct{}) // always says go
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

// The ends of a stream that two functions name.
const gone, shutOut = "client has gone", "client is shut out"

// rest waits until the log has grown and the client has paid for what was scanned, or
// until a heartbeat is due, which it sends. It returns why the stream ends, if it does.
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
			_ = f.out.mark(f.at) // the client learns it anyhow
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

// over is said of a stream that has come to the end that was asked for.
func (f *following) over() bool { return f.Until != nil && f.at >= *f.Until }

// stretch is what a part of the log holds for a client.
type stretch struct {
	events []shownEvent
	next   event.Position // with them, everything up to here is told
	live   bool           // it has come to the end of what there is
}

// shownEvent is an event as a client is shown it.
type shownEvent struct {
	at    event.Position
	shown any
}

// send sends a stretch.
func (f *following) send(s stretch) error {
	for _, e := range s.events {
		if !f.still(f.on, access.Read) {
			return errShutOut
		}
		if err := f.out.event(e.at, e.shown); err != nil {
			return err
		}
		f.at = e.at
		f.sent++
	}
	f.at = s.next
	if len(s.events) == 0 {
		return nil
	}
	return f.out.flush()
}
