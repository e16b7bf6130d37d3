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

// followBatch is how many events a stream reads at once.
const followBatch = 100

// follow answers GET /v1/events: it streams events as they are recorded, for as long as the
// client listens.
func (a *api) follow(w http.ResponseWriter, r *http.Request) error {
	wanted, span, err := readFollow(r)
	if err != nil {
		return err
	}
	v := a.viewer(exchangeOf(r))
	s := Stream{
		Span: span, Tail: a.Tail, Head: a.Submit.Transactions.Store.Head, Stored: wanted.stored(),
		Show: func(ctx context.Context, e event.Recorded) (any, error) {
			v.alone = !a.Access.keys().Closed() // keys may be created while the stream is open
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

// Stream is the part of the log that is streamed to one client.
type Stream struct {
	Span
	Tail *tail.Tail
	Head func(ctx context.Context) (event.Position, error)
	// Stored is the filter that the store applies. Show may still reject events that pass it.
	Stored event.Filter
	// Names is how closely Stored selects transactions or intents.
	Names Names
	// Reaches reports whether any event that is recorded by now and passes Stored is the
	// client's. If none is, the stream skips to the present end of the log. Nil means that
	// every event is checked.
	Reaches func(ctx context.Context) (bool, error)
	// Show returns the event as shown to the client, or nil if the client may not see it. It
	// calls [LookedUp] when it has to read a stream of the log.
	Show func(ctx context.Context, e event.Recorded) (any, error)
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
	After     *event.Position // nil: start at the end of the log
	Until     *event.Position // nil: never ends
	UntilHead bool            // end at the end of the log as of the request
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
	defer on.place.rest()() // streams count apart
	f := &following{api: a, on: on, Stream: s, at: *s.After, out: newFeed(w, r, a.Limits.StreamWrite)}
	if s.Reaches != nil { // after the head was read, so that no event of the client's is skipped
		reaches, err := s.Reaches(ctx)
		if err != nil {
			return err
		}
		if f.owed = scanUnit; !reaches {
			f.skip = head
		}
	}
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
var errShutOut = errors.New("the client may not come in any more")

// following is the state of one client's stream.
type following struct {
	*api
	Stream
	on   *exchange
	at   event.Position // every event up to here was sent or filtered out
	out  *feed
	skip event.Position // no event up to here is the client's
	sent int
	owed int // scanned events that are not yet paid for
	// looked is the number of look-ups not yet paid for. They are charged to a separate bucket
	// with the client's rate. No header shows that bucket, so the client cannot learn from it
	// whether another client owns a transaction or caused it to be cached.
	looked int
}

// scanUnit is how many events of the log a stream passes for one unit of rate, whether they
// match its filter or not. The request itself pays for the first unit.
const scanUnit = 100

// lookups is the context key of the look-up counter.
type lookups struct{}

// LookedUp records that a stream of the log is read in order to show an event. The client pays
// one unit of its look-up rate, unless its filter names the subject: see [Names].
func LookedUp(ctx context.Context) {
	if n, counted := ctx.Value(lookups{}).(*int); counted {
		*n++
	}
}

// pay charges the client for scanned events, and returns how long the stream must wait until
// the client can pay. A client that has used up its rate is served at that rate: the stream
// goes on, and its marks show the progress.
func (f *following) pay() time.Duration {
	p := f.on.payer
	if p.rate.PerSecond == 0 {
		f.owed, f.looked = 0, 0
		return 0
	}
	for f.owed >= scanUnit {
		n := min(f.owed/scanUnit, p.rate.Burst)
		if q := f.limiter.take(f.Now(), p.client, p.rate, n); q.wait > 0 {
			return q.wait
		}
		f.owed -= n * scanUnit
	}
	p.client.lookUps = true
	for f.looked > 0 {
		n := min(f.looked, p.rate.Burst)
		if q := f.limiter.take(f.Now(), p.client, p.rate, n); q.wait > 0 {
			return q.wait
		}
		f.looked -= n
	}
	return 0
}

// run sends events until the client has gone, the process stops, the client is no longer
// admitted, or the log cannot be read. It returns which of these ended the stream; the client
// can resume from there in every case. The first stretch is read before the status is written,
// so a log that cannot be read is still answered with a problem.
func (f *following) run(ctx context.Context) (ended string, err error) {
	const slow, unread = "client is too slow", "log cannot be read"
	defer f.Stream.Tail.Listen()()
	heartbeat := time.NewTicker(f.Limits.StreamSilence)
	defer heartbeat.Stop()
	more := make(chan struct{}) // always ready
	close(more)
	grown := f.Stream.Tail.Grown()
	next, err := f.read(ctx)
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
	next   event.Position // once events are sent, everything up to here is covered
	live   bool           // it reaches the end of the log
}

// shownEvent is an event as shown to a client.
type shownEvent struct {
	at    event.Position
	shown any
}

// read returns the next stretch. If Show fails for an event, the events before it are returned
// as a stretch of their own, so the stream is held up only while Show fails.
func (f *following) read(ctx context.Context) (stretch, error) {
	if f.over() {
		return stretch{next: f.at}, nil
	}
	if f.at < f.skip {
		next := f.skip
		if f.Until != nil {
			next = min(next, *f.Until)
		}
		f.owed += int(next - f.at)
		return stretch{next: next}, nil
	}
	looked := 0
	defer func() {
		if f.Names == NamesNone {
			f.looked += looked
		}
	}()
	reading, cancel := context.WithTimeout(context.WithValue(ctx, lookups{}, &looked), f.Limits.WorkTimeout)
	defer cancel()
	batch, err := f.Stream.Tail.Read(reading, f.at, f.Stored, followBatch)
	if err != nil {
		return stretch{}, err
	}
	passed := int(batch.Next - f.at)
	if f.Names == NamesFew {
		passed *= fewWeight
	}
	f.owed += passed
	found, at := stretch{next: batch.Next, live: batch.Live}, f.at
	for _, e := range batch.Events {
		if f.Until != nil && e.Position > *f.Until {
			found.next = *f.Until
			break
		}
		shown, err := f.Show(reading, e)
		switch {
		case err != nil && at > f.at:
			found.next, found.live = at, false
			return found, nil
		case err != nil:
			return stretch{}, err
		case shown != nil:
			found.events = append(found.events, shownEvent{e.Position, shown})
		}
		at = e.Position
	}
	return found, nil
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
