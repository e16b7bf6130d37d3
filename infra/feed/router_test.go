package feed_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill"
	"github.com/ThreeDotsLabs/watermill/components/cqrs"
	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/ThreeDotsLabs/watermill/message/router/middleware"

	"github.com/tempo-watchtower/watchtower/eventlog"
	"github.com/tempo-watchtower/watchtower/infra/feed"
)

// routed runs a router until the test ends.
func routed(t *testing.T, prepare func(*message.Router)) {
	t.Helper()
	r, err := message.NewRouter(message.RouterConfig{CloseTimeout: patience}, watermill.NopLogger{})
	must(t, err)
	prepare(r)
	ended := make(chan error, 1)
	go func() { ended <- r.Run(context.Background()) }()
	select {
	case <-r.Running():
	case <-soon(t).Done():
		t.Fatal("the router does not run")
	}
	t.Cleanup(func() {
		must(t, r.Close())
		must(t, <-ended)
	})
}

// The router starts a goroutine per message, and each stream still stays in order.
func TestRouter(t *testing.T) {
	s := newStage(t)
	const streams, each = 30, 10
	for i := range streams {
		s.happened(eventlog.Stream(fmt.Sprintf("tx-%d", i)), 0, each)
	}
	handled := make(chan feed.Origin, streams*each)
	o := s.options("g")
	o.Retries = 1
	routed(t, func(r *message.Router) {
		r.AddMiddleware(feed.Causes, middleware.Recoverer, middleware.CorrelationID)
		r.AddNoPublisherHandler("test", feed.All, s.subscriber(o), func(m *message.Message) error {
			o, err := feed.OriginOf(m)
			if err != nil {
				return err
			}
			if o.Stream == "tx-7" && o.Version == 4 {
				panic("it cannot be handled")
			}
			handled <- o
			return nil
		})
	})
	last := map[eventlog.Stream]eventlog.Version{}
	for range streams*each - 7 {
		select {
		case o := <-handled:
			if o.Version != last[o.Stream]+1 {
				t.Fatalf("%s: version %d after %d", o.Stream, o.Version, last[o.Stream])
			}
			last[o.Stream] = o.Version
		case <-soon(t).Done():
			t.Fatal("no message")
		}
	}
	eventually(t, "the stream is parked", func() bool { return len(s.parked("g")) == 1 })
	if p := s.parked("g")[0]; p.Stream != "tx-7" || p.Version != 4 || p.Error == "the message was nacked" {
		t.Errorf("parked: %+v", p)
	}
}

type happened struct{ N int }

type unheard struct{}

// The CQRS component gets events by name, in order.
func TestEventGroupProcessor(t *testing.T) {
	s := newStage(t)
	s.happened("tx-a", 0, 5)
	_, err := s.db.Log().Append(soon(t), "tx-a", 5, eventlog.Event{ID: eventlog.ID{9}, Name: "test.other.v1", Data: []byte(`{}`)})
	must(t, err)
	s.happened("tx-a", 6, 1)
	handled := make(chan int, 10)
	routed(t, func(r *message.Router) {
		p, err := cqrs.NewEventGroupProcessorWithConfig(r, cqrs.EventGroupProcessorConfig{
			GenerateSubscribeTopic: func(cqrs.EventGroupProcessorGenerateSubscribeTopicParams) (string, error) { return "name:test.", nil },
			SubscriberConstructor: func(p cqrs.EventGroupProcessorSubscriberConstructorParams) (message.Subscriber, error) {
				return s.subscriber(s.options(p.EventGroupName)), nil
			},
			AckOnUnknownEvent: true,
			Marshaler:         feed.NewMarshaler(feed.As[happened]("test.happened.v1"), feed.As[unheard]("test.unheard.v1")),
		})
		must(t, err)
		failed := false
		must(t, p.AddHandlersGroup("group",
			cqrs.NewGroupEventHandler(func(_ context.Context, e *happened) error {
				if e.N == 3 && !failed {
					failed = true
					return errors.New("not yet")
				}
				handled <- e.N
				return nil
			}),
			cqrs.NewGroupEventHandler(func(context.Context, *unheard) error { return errors.New("nobody appended that") }),
		))
	})
	for _, want := range []int{1, 2, 3, 4, 5, 7} {
		select {
		case n := <-handled:
			if n != want {
				t.Fatalf("event %d, want %d", n, want)
			}
		case <-time.After(patience):
			t.Fatal("no event")
		}
	}
	eventually(t, "the checkpoint", func() bool { return s.position("group", "name:test.") == 7 })
}

func TestMarshaler(t *testing.T) {
	m := feed.NewMarshaler(feed.As[happened]("test.happened.v1"))
	made, err := m.Marshal(&happened{N: 3})
	must(t, err)
	var back happened
	must(t, m.Unmarshal(made, &back))
	if back.N != 3 || m.NameFromMessage(made) != "test.happened.v1" || m.Name(happened{}) != "test.happened.v1" {
		t.Errorf("%v, %s", back, m.NameFromMessage(made))
	}
	for what, mistake := range map[string]func(){
		"an unknown type": func() { m.Name(unheard{}) },
		"a name twice":    func() { feed.NewMarshaler(feed.As[happened]("a"), feed.As[unheard]("a")) },
		"a type twice":    func() { feed.NewMarshaler(feed.As[happened]("a"), feed.As[happened]("b")) },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: no panic", what)
				}
			}()
			mistake()
		}()
	}
}
