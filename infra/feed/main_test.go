package feed_test

import (
	"context"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"go.uber.org/goleak"

	"github.com/tempo-watchtower/watchtower/eventlog"
	"github.com/tempo-watchtower/watchtower/infra/embedded"
	"github.com/tempo-watchtower/watchtower/infra/feed"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience bounds the waits of a test.
const patience = 30 * time.Second

func soon(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	return ctx
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// stage is a log with its consumers' state.
type stage struct {
	t    testing.TB
	db   *embedded.DB
	feed *embedded.Feed
}

func newStage(t testing.TB) *stage {
	t.Helper()
	dir := t.TempDir()
	db, err := embedded.Open(dir, embedded.Options{AllowDataLoss: true})
	must(t, err)
	t.Cleanup(func() { must(t, db.Close()) })
	f, err := embedded.OpenFeed(dir, embedded.FeedOptions{})
	must(t, err)
	t.Cleanup(func() { must(t, f.Close()) })
	return &stage{t, db, f}
}

// happened appends n events to a stream that has after events, and returns their new number.
func (s *stage) happened(stream eventlog.Stream, after eventlog.Version, n int) eventlog.Version {
	s.t.Helper()
	events := make([]eventlog.Event, n)
	for i := range events {
		number := int(after) + i + 1
		events[i] = eventlog.Event{
			ID: eventlog.DeriveID(stream, eventlog.ID{1}, number), Name: "test.happened.v1", Data: fmt.Appendf(nil, `{"n":%d}`, number),
			Meta: eventlog.Meta{Correlation: eventlog.ID{2}, Causation: eventlog.ID{3}, Actor: "test", Trace: "00-1-2-01"},
		}
	}
	_, err := s.db.Log().Append(soon(s.t), stream, after, events...)
	must(s.t, err)
	return after + eventlog.Version(n)
}

// options are a group's options, with short pauses.
func (s *stage) options(group string) feed.Options {
	return feed.Options{
		Log: s.db.Log(), Groups: s.feed.Groups(), Group: group,
		RetryFirst: time.Millisecond, RetryMost: 5 * time.Millisecond, SaveEvery: 5 * time.Millisecond, TTL: 600 * time.Millisecond, Grace: 100 * time.Millisecond,
		Logger: slog.New(slog.NewTextHandler(s.t.Output(), nil)),
	}
}

// subscriber makes a subscriber that the test's cleanup closes.
func (s *stage) subscriber(o feed.Options) *feed.Subscriber {
	s.t.Helper()
	sub, err := feed.New(o)
	must(s.t, err)
	s.t.Cleanup(func() { must(s.t, sub.Close()) })
	return sub
}

// subscribe subscribes to a topic with these options.
func (s *stage) subscribe(o feed.Options, topic string) (*feed.Subscriber, <-chan *message.Message) {
	s.t.Helper()
	sub := s.subscriber(o)
	messages, err := sub.Subscribe(context.Background(), topic)
	must(s.t, err)
	return sub, messages
}

// consume subscribes a group to all events.
func (s *stage) consume(group string) (*feed.Subscriber, <-chan *message.Message) {
	s.t.Helper()
	return s.subscribe(s.options(group), feed.All)
}

// ack takes the next message and acks it.
func ack(t testing.TB, messages <-chan *message.Message) {
	t.Helper()
	m, _ := next(t, messages)
	m.Ack()
}

// next returns the next message.
func next(t testing.TB, messages <-chan *message.Message) (*message.Message, feed.Origin) {
	t.Helper()
	select {
	case m, ok := <-messages:
		if !ok {
			t.Fatal("the channel was closed")
		}
		o, err := feed.OriginOf(m)
		must(t, err)
		return m, o
	case <-soon(t).Done():
		t.Fatal("no message")
	}
	panic("unreachable")
}

// ended waits until the channel is closed, and acks all messages before.
func ended(t testing.TB, messages <-chan *message.Message) {
	t.Helper()
	for {
		select {
		case m, ok := <-messages:
			if !ok {
				return
			}
			m.Ack()
		case <-soon(t).Done():
			t.Fatal("the channel is still open")
		}
	}
}

// eventually asks until the answer is yes, or fails.
func eventually(t testing.TB, what string, yes func() bool) {
	t.Helper()
	ctx := soon(t)
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for !yes() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatal("not in time: ", what)
		}
	}
}

// position is the group's checkpoint of a topic.
func (s *stage) position(group, topic string) eventlog.Position {
	s.t.Helper()
	all, err := s.feed.Groups().Groups(soon(s.t))
	must(s.t, err)
	for _, g := range all {
		if g.Name == feed.Name(group, topic) {
			return g.Position
		}
	}
	return 0
}
