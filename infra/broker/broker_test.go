package broker_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill"
	wnats "github.com/ThreeDotsLabs/watermill-nats/v2/pkg/jetstream"
	"github.com/ThreeDotsLabs/watermill-redisstream/pkg/redisstream"
	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/redis/go-redis/v9"

	"github.com/tempo-watchtower/watchtower/eventlog"
	"github.com/tempo-watchtower/watchtower/infra/broker"
	"github.com/tempo-watchtower/watchtower/infra/embedded"
	"github.com/tempo-watchtower/watchtower/infra/feed"
	"github.com/tempo-watchtower/watchtower/infra/testenv"
	"github.com/tempo-watchtower/watchtower/infra/testenv/server"
)

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func soon(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// running is a broker that a test can stop and start.
type running struct {
	url         string
	stop, start func()
	subscriber  func() message.Subscriber
}

func runRedis(t *testing.T) running {
	s, err := server.NewRedis(testenv.Need(t, testenv.RedisBinVar))
	must(t, err)
	t.Cleanup(func() { must(t, s.Remove()) })
	start := func() { must(t, s.Start(soon(t))) }
	start()
	return running{url: s.URL(), stop: func() { must(t, s.Kill()) }, start: start, subscriber: func() message.Subscriber {
		o, err := redis.ParseURL(s.URL())
		must(t, err)
		client := redis.NewClient(o)
		t.Cleanup(func() { client.Close() }) //nolint:errcheck // the subscriber may have closed it
		sub, err := redisstream.NewSubscriber(redisstream.SubscriberConfig{Client: client, FanOutOldestId: "0-0"}, watermill.NopLogger{})
		must(t, err)
		return sub
	}}
}

func runNATS(t *testing.T) running {
	s := newNATS(t)
	url := s.url()
	return running{url: url, stop: s.stop, start: s.start, subscriber: func() message.Subscriber {
		conn, err := nats.Connect(url)
		must(t, err)
		t.Cleanup(conn.Close)
		sub, err := wnats.NewSubscriber(wnats.SubscriberConfig{
			Conn: conn, Logger: watermill.NopLogger{},
			ConfigureStream: func(topic string) jetstream.StreamConfig { return jetstream.StreamConfig{Name: topic} },
		})
		must(t, err)
		return sub
	}}
}

// newLog is a log with a number of streams, each with a number of events.
func newLog(t *testing.T, streams, each int) *embedded.Feed {
	t.Helper()
	dir := t.TempDir()
	db, err := embedded.Open(dir, embedded.Options{AllowDataLoss: true})
	must(t, err)
	for i := range streams {
		name := eventlog.Stream(fmt.Sprintf("tx-%d", i))
		events := make([]eventlog.Event, each)
		for v := range events {
			events[v] = eventlog.Event{ID: eventlog.DeriveID(name, eventlog.ID{}, v), Name: "test.happened.v1", Data: fmt.Appendf(nil, `{"n":%d}`, v)}
		}
		_, err := db.Log().Append(soon(t), name, 0, events...)
		must(t, err)
	}
	must(t, db.Close())
	f, err := embedded.OpenFeed(dir, embedded.FeedOptions{})
	must(t, err)
	t.Cleanup(func() { must(t, f.Close()) })
	return f
}

// Every event passes through a real broker, each stream's in order, although the forwarder is
// stopped halfway and NATS is away for a while.
func TestForward(t *testing.T) {
	for name, run := range map[string]func(*testing.T) running{"redis": runRedis, "nats": runNATS} {
		t.Run(name, func(t *testing.T) { forward(t, run(t), name == "nats") })
	}
}

func forward(t *testing.T, b running, keeps bool) {
	const streams, each, partitions = 12, 10, 3
	log := newLog(t, streams, each)
	publisher, err := broker.Open(soon(t), b.url, broker.Options{Keep: 100_000})
	must(t, err)
	t.Cleanup(func() { must(t, publisher.Close()) })
	halting := &halt{Publisher: publisher, after: streams * each / 3, halted: make(chan struct{})}
	run := func(p message.Publisher) (end func()) {
		f, err := feed.NewForwarder(feed.Options{Log: log, Groups: log.Groups(), Group: "forward", RetryMost: 50 * time.Millisecond},
			feed.Forwarding{Topic: feed.All, Publisher: p, To: "events", Partitions: partitions})
		must(t, err)
		ctx, cancel := context.WithCancel(context.Background())
		ended := make(chan error, 1)
		go func() { ended <- f.Run(ctx) }()
		return func() { cancel(); must(t, <-ended) }
	}
	end := run(halting)
	<-halting.halted
	if keeps { // only NATS: Redis keeps nothing here
		b.stop()
		b.start()
	}
	end()
	defer run(publisher)()

	merged := make(chan *message.Message)
	var reading sync.WaitGroup
	over := make(chan struct{})
	for p := range partitions {
		sub := b.subscriber()
		messages, err := sub.Subscribe(soon(t), fmt.Sprintf("events-%d", p))
		must(t, err)
		t.Cleanup(func() { must(t, sub.Close()) })
		reading.Go(func() {
			for {
				select {
				case m := <-messages:
					select {
					case merged <- m:
					case <-over:
						return
					}
				case <-over:
					return
				}
			}
		})
	}
	last, ids := collect(t, merged, streams*each)
	close(over)
	reading.Wait()
	want := map[string]int{}
	for i := range streams {
		want[fmt.Sprintf("tx-%d", i)] = each
	}
	if diff := cmp.Diff(want, last); diff != "" || len(ids) != streams*each {
		t.Errorf("%d ids\n%s", len(ids), diff)
	}
}

// collect receives messages until all events have come, in the order of each stream. A repeated
// message must have come before.
func collect(t *testing.T, messages <-chan *message.Message, all int) (last map[string]int, ids map[string]bool) {
	t.Helper()
	last, ids = map[string]int{}, map[string]bool{}
	ctx := soon(t)
	for len(ids) < all {
		select {
		case m := <-messages:
			o, err := feed.OriginOf(m)
			must(t, err)
			m.Ack()
			before := last[string(o.Stream)]
			again := int(o.Version) <= before
			if !again && int(o.Version) != before+1 || again != ids[m.UUID] {
				t.Errorf("%s version %d after %d", o.Stream, o.Version, before)
			}
			last[string(o.Stream)], ids[m.UUID] = max(before, int(o.Version)), true
			if want := fmt.Sprintf(`{"n":%d}`, o.Version-1); string(m.Payload) != want || m.Metadata.Get(feed.KeyPartitionKey) != string(o.Stream) {
				t.Errorf("%s, want %s; %v", m.Payload, want, m.Metadata)
			}
		case <-ctx.Done():
			t.Errorf("%d of %d events have come", len(ids), all)
			return last, ids
		}
	}
	return last, ids
}

// halt fails from a message on, like a forwarder that is dying.
type halt struct {
	message.Publisher

	mu     sync.Mutex
	after  int
	once   sync.Once
	halted chan struct{}
}

func (h *halt) Publish(topic string, messages ...*message.Message) error {
	h.mu.Lock()
	h.after--
	over := h.after < 0
	h.mu.Unlock()
	if over {
		h.once.Do(func() { close(h.halted) })
		return errors.New("the broker is away")
	}
	return h.Publisher.Publish(topic, messages...)
}

// JetStream drops duplicates, such as messages repeated after a crash.
func TestNATSDuplicates(t *testing.T) {
	b := runNATS(t)
	p, err := broker.Open(soon(t), b.url, broker.Options{})
	must(t, err)
	t.Cleanup(func() { must(t, p.Close()) })
	for _, id := range []string{"a", "a", "b"} {
		must(t, p.Publish("once", message.NewMessage(id, []byte("{}"))))
	}
	messages, err := b.subscriber().Subscribe(soon(t), "once")
	must(t, err)
	for _, want := range []string{"a", "b"} {
		m := <-messages
		if m.Ack(); m.UUID != want {
			t.Errorf("%s came, want %s", m.UUID, want)
		}
	}
}

// A removed stream is created again.
func TestNATSStreamGone(t *testing.T) {
	url := newNATS(t).url()
	publisher, err := broker.Open(soon(t), url, broker.Options{})
	must(t, err)
	t.Cleanup(func() { must(t, publisher.Close()) })
	must(t, publisher.Publish("events", message.NewMessage("1", []byte("{}"))))
	conn, err := nats.Connect(url)
	must(t, err)
	t.Cleanup(conn.Close)
	js, err := jetstream.New(conn)
	must(t, err)
	must(t, js.DeleteStream(soon(t), "events"))
	if err := publisher.Publish("events", message.NewMessage("2", []byte("{}"))); err == nil {
		t.Error("published to no stream")
	}
	must(t, publisher.Publish("events", message.NewMessage("2", []byte("{}"))))
}

func TestOpenRefuses(t *testing.T) {
	for _, url := range []string{"kafka://x", "", "redis://user:secret@127.0.0.1:1/x", "nats://127.0.0.1:1", "redis://127.0.0.1:1", "redis://:se%cret@x"} {
		p, err := broker.Open(soon(t), url, broker.Options{})
		if err == nil {
			t.Errorf("%s: no error", url)
			must(t, p.Close())
		} else if strings.Contains(err.Error(), "secret") {
			t.Errorf("a password is told: %v", err)
		}
	}
}
