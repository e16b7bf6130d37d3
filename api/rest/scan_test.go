package rest

import (
	"context"
	"errors"
	"iter"
	"log/slog"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tempo-watchtower/watchtower/api/rest/resttest"
	"github.com/tempo-watchtower/watchtower/commands/tail"
	"github.com/tempo-watchtower/watchtower/domain/access"
	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
	"github.com/tempo-watchtower/watchtower/eventlog"
)

// slowLog is a log of which each read takes until the test lets it go on.
type slowLog struct {
	reads, streams atomic.Int64 // that are under way
	proceed        chan struct{}
	appended       chan eventlog.Batch // batches, as the tail gets them
}

func (l *slowLog) wait(ctx context.Context, n *atomic.Int64) error {
	n.Add(1)
	defer n.Add(-1)
	select {
	case <-l.proceed:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (l *slowLog) ReadAll(ctx context.Context, after eventlog.Position, _ eventlog.Filter, _ int) iter.Seq2[eventlog.Batch, error] {
	return func(yield func(eventlog.Batch, error) bool) {
		err := l.wait(ctx, &l.reads)
		yield(eventlog.Batch{Next: after + 1}, err)
	}
}

func (l *slowLog) ReadStream(ctx context.Context, _ eventlog.Stream, _ eventlog.Version) iter.Seq2[eventlog.Recorded, error] {
	return func(yield func(eventlog.Recorded, error) bool) {
		if err := l.wait(ctx, &l.streams); err != nil {
			yield(eventlog.Recorded{}, err)
		}
	}
}

func (l *slowLog) Version(context.Context, eventlog.Stream) (eventlog.Version, error) { return 0, nil }

func (l *slowLog) Subscribe(ctx context.Context, _ eventlog.Position, _ eventlog.Filter, _ int) iter.Seq2[eventlog.Batch, error] {
	return func(yield func(eventlog.Batch, error) bool) {
		for {
			select {
			case batch := <-l.appended:
				if !yield(batch, nil) {
					return
				}
			case <-ctx.Done():
				yield(eventlog.Batch{}, ctx.Err())
				return
			}
		}
	}
}

func (l *slowLog) Head(context.Context) (eventlog.Position, error) { return slowHead, nil }

func (l *slowLog) Append(context.Context, eventlog.Stream, eventlog.Version, ...eventlog.Event) (eventlog.Appended, error) {
	return eventlog.Appended{}, errors.New("nothing is appended")
}

const slowHead = 1000

// stream makes a stream of a client at a position of the log. An event is shown without a
// look-up if its name is "known".
func (l *slowLog) stream(a *api, end *tail.Tail, client string, at eventlog.Position) *following {
	on := &exchange{api: a, key: &access.Key{Client: client}}
	s := Stream{Tail: end, Head: l.Head, Show: func(ctx context.Context, e eventlog.Recorded) (any, error) {
		if e.Name == "known" {
			return e.Name, nil
		}
		if err := LookUp(ctx); err != nil {
			return nil, err
		}
		for _, err := range l.ReadStream(ctx, e.Stream, 0) {
			return nil, err
		}
		return e.Name, nil
	}}
	return &following{api: a, on: on, Stream: s, at: at}
}

// Streams of two clients read the log at once, one of each: others find a connection to the log,
// however many streams there are. Events in memory are shown at once, unless their
// owners are looked up.
func TestScansTakePlaces(t *testing.T) {
	resttest.TakeTurns(t, NewScans, HolderOf, scanPlaces, scanShare, 0)
	synctest.Test(t, func(t *testing.T) {
		l := &slowLog{proceed: make(chan struct{}), appended: make(chan eventlog.Batch)}
		ctx, stop := context.WithCancel(t.Context())
		defer synctest.Wait()
		defer stop()
		end := tail.New(l, tx.Codec(), slog.New(slog.DiscardHandler))
		a := newAPI(Config{Limits: DefaultLimits(), Now: time.Now})
		go end.Run(ctx)
		defer end.Listen()()
		synctest.Wait() // its memory begins at the head

		const each, clients = 20, 3
		finished := make(chan stretch, clients*each)
		read := func(f *following) {
			found, err := f.read(ctx)
			if err == nil {
				finished <- found
			}
		}
		for i := range each {
			for _, client := range []string{"flood", "shop", "bank"}[:clients] {
				go read(l.stream(a, end, client, eventlog.Position(i)))
			}
		}
		synctest.Wait()
		if n := l.reads.Load(); n != scanPlaces {
			t.Errorf("%d streams read the log at once, want %d", n, scanPlaces)
		}
		l.appended <- eventlog.Batch{Events: []eventlog.Recorded{{Position: slowHead + 1, Event: eventlog.Event{Name: "known"}}}, Next: slowHead + 1}
		synctest.Wait()
		live, err := l.stream(a, end, "flood", slowHead).read(ctx)
		if err != nil || len(live.events) != 1 {
			t.Errorf("a live event: %d shown, %v", len(live.events), err)
		}
		l.appended <- eventlog.Batch{Events: []eventlog.Recorded{{Position: slowHead + 2, Event: eventlog.Event{Name: "unknown"}}}, Next: slowHead + 2}
		synctest.Wait()
		go read(l.stream(a, end, "desk", slowHead+1))
		synctest.Wait()
		if n := l.streams.Load(); n != 0 {
			t.Errorf("%d owners are looked up without a place", n)
		}
		close(l.proceed)
		for range clients*each + 1 {
			<-finished
		}
		resttest.AllFree(t, a.Scans, HolderOf, scanPlaces)
	})
}
