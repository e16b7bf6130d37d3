package simulation

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/tempo-watchtower/watchtower/cmd/program/app"
	"github.com/tempo-watchtower/watchtower/eventlog"
	"github.com/tempo-watchtower/watchtower/infra/eventstoredb"
)

// clusterLog is a replica's log in a cluster: the service's own adapter for EventStoreDB. Its
// answers are compared with the events that the cluster has committed.
type clusterLog struct {
	*eventstoredb.Log
	*replica
	cluster *cluster
}

// log opens a replica's log.
func (c *cluster) log(r *replica) clusterLog {
	l := eventstoredb.New(c.connection(r), c.prefix, eventstoredb.Options{Random: r, Logger: c.world.log.With("replica", r.id), Crash: r.pass})
	return clusterLog{l, r, c}
}

// closeMost is the maximum time for open calls when a replica stops.
const closeMost = time.Minute

// close closes the log. The calls of a killed replica have already ended.
func (l clusterLog) close() {
	ctx, cancel := context.WithTimeout(context.Background(), closeMost)
	defer cancel()
	l.Close(ctx) //nolint:errcheck,gosec // as when a process ends
}

// beside replaces the store's own log.
func (l clusterLog) beside(s app.Storage) app.Storage {
	store := s
	s.Log, s.Ago = l, l.Ago
	s.Transient = func(err error) bool { return eventstoredb.Transient(err) || store.Transient(err) }
	s.Ping = func(ctx context.Context) error { return errors.Join(l.Ping(ctx), store.Ping(ctx)) }
	return s
}

// fail reports a wrong answer.
func (l clusterLog) fail(what, format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	l.tell("wrong answer of the log: "+text, func() { l.world.judge.fail(what, "%s: %s", l.replica.id, text) })
}

// Append appends events. It checks that an acknowledged append is committed as answered, and
// that a refused one is not.
func (l clusterLog) Append(ctx context.Context, stream eventlog.Stream, expected eventlog.Version, events ...eventlog.Event) (eventlog.Appended, error) {
	by := &sending{by: l.replica}
	a, err := l.Log.Append(context.WithValue(ctx, sendingKey{}, by), stream, expected, events...)
	if l.dead.Load() {
		return a, err
	}
	last := events[len(events)-1].ID
	stands, found := l.stream(stream, a.Version-1)
	var conflict *eventlog.ConflictError
	switch {
	case err == nil && (!found || stands.ID != last || stands.Position != a.Position || a.Version != expected+eventlog.Version(len(events))):
		l.fail("P1", "append to %s at version %d: answered %+v, and %+v is there", stream, expected, a, stands)
	case errors.As(err, &conflict):
		if conflict.Actual == expected {
			l.fail("P25", "append to %s at version %d: a conflict with the version expected", stream, expected)
		}
		if _, found := l.stream(stream, conflict.Actual-1); conflict.Actual > 0 && !found {
			l.fail("P25", "append to %s at version %d: a conflict with version %d, which nobody can read", stream, expected, conflict.Actual)
		}
		if e, found := l.stream(stream, expected); found && e.ID == events[0].ID {
			l.fail("P25", "append to %s at version %d: a conflict, and its own events are there", stream, expected)
		}
		by.refuse()
	case err != nil && !errors.Is(err, eventlog.ErrUnknown) && by.refuse():
		l.fail("P25", "append to %s at version %d: %v, and its events are there", stream, expected, err)
	}
	return a, err
}

// stream is the committed event after a version of a stream.
func (l clusterLog) stream(stream eventlog.Stream, after eventlog.Version) (eventlog.Recorded, bool) {
	for e, err := range l.world.store.ReadStream(context.Background(), stream, after) {
		return e, err == nil
	}
	return eventlog.Recorded{}, false
}

// ReadStream reads a stream, and checks for all events present at its beginning.
func (l clusterLog) ReadStream(ctx context.Context, stream eventlog.Stream, after eventlog.Version) iter.Seq2[eventlog.Recorded, error] {
	return func(yield func(eventlog.Recorded, error) bool) {
		least := after
		for range l.world.store.ReadStream(context.Background(), stream, after) {
			least++
		}
		for e, err := range l.Log.ReadStream(ctx, stream, after) {
			if err == nil {
				want, _ := l.stream(stream, after)
				l.compare("P24", e, want)
				after = e.Version
			}
			if !yield(e, err) || err != nil {
				return
			}
		}
		if after < least {
			l.fail("P24", "read of %s: it ends with version %d, and version %d was there", stream, after, least)
		}
	}
}

// Version reads a stream's version, and checks that it is not below the version at its beginning.
func (l clusterLog) Version(ctx context.Context, stream eventlog.Stream) (eventlog.Version, error) {
	least, before := l.world.store.Version(context.Background(), stream)
	at, err := l.Log.Version(ctx, stream)
	most, after := l.world.store.Version(context.Background(), stream)
	if errors.Join(before, err, after) == nil && (at < least || at > most) {
		l.fail("P24", "the version of %s is %d, when it was %d before and is %d now", stream, at, least, most)
	}
	return at, err
}

// compare reports an event that differs from the expected event.
func (l clusterLog) compare(what string, got, want eventlog.Recorded) {
	same := got.ID == want.ID && got.Name == want.Name && bytes.Equal(got.Data, want.Data) && got.Meta == want.Meta &&
		got.Stream == want.Stream && got.Version == want.Version && got.Position == want.Position && got.At.Equal(want.At)
	if !same {
		l.fail(what, "a reader is shown %s %d %s at %d, not %s %d %s at %d",
			got.Stream, got.Version, got.ID, got.Position, want.Stream, want.Version, want.ID, want.Position)
	}
}

// ReadAll reads the log, and checks for all events up to the head at its beginning.
func (l clusterLog) ReadAll(ctx context.Context, after eventlog.Position, f eventlog.Filter, most int) iter.Seq2[eventlog.Batch, error] {
	return func(yield func(eventlog.Batch, error) bool) {
		head, at := l.world.head(), after
		for b, err := range l.Log.ReadAll(ctx, after, f, most) {
			if err == nil {
				at = l.batch(at, f, b)
			}
			if err == nil && b.Live && at < head {
				l.fail("P20", "read of the log after %d: it ends at %d, and the head was %d", after, at, head)
			}
			if !yield(b, err) || err != nil {
				return
			}
		}
	}
}

// Subscribe reads the log, and waits at its head.
func (l clusterLog) Subscribe(ctx context.Context, after eventlog.Position, f eventlog.Filter, most int) iter.Seq2[eventlog.Batch, error] {
	return func(yield func(eventlog.Batch, error) bool) {
		at := after
		for b, err := range l.Log.Subscribe(ctx, after, f, most) {
			if err == nil {
				at = l.batch(at, f, b)
			}
			if !yield(b, err) || err != nil {
				return
			}
		}
	}
}

// batch compares a batch with the committed events after a position up to the batch's end,
// and returns that end.
func (l clusterLog) batch(after eventlog.Position, f eventlog.Filter, b eventlog.Batch) eventlog.Position {
	if b.Next < after {
		l.fail("P20", "a reader at %d is sent back to %d", after, b.Next)
		return b.Next
	}
	n := 0
	for all, err := range l.world.store.ReadAll(context.Background(), after, f, len(b.Events)+1) {
		if err != nil {
			l.fail("P20", "a reader has come to %d, and the head is %d", after, l.world.head())
			return b.Next
		}
		for _, want := range all.Events {
			if want.Position > b.Next {
				break
			}
			if n == len(b.Events) {
				l.fail("P20", "a reader that has come from %d to %d was not shown %s %d at %d", after, b.Next, want.Stream, want.Version, want.Position)
				return b.Next
			}
			l.compare("P20", b.Events[n], want)
			n++
		}
		if all.Next >= b.Next {
			break
		}
	}
	if n < len(b.Events) {
		l.fail("P20", "a reader that has come from %d to %d was shown %d events, not %d", after, b.Next, len(b.Events), n)
	}
	return b.Next
}

// Head returns the position of the last event, and checks that it is not below the head at its
// beginning.
func (l clusterLog) Head(ctx context.Context) (eventlog.Position, error) {
	least := l.world.head()
	head, err := l.Log.Head(ctx)
	if most := l.world.head(); err == nil && (head < least || head > most) {
		l.fail("P20", "the head is %d, when it was %d before and is %d now", head, least, most)
	}
	return head, err
}
