package feed

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"

	"github.com/tempo-watchtower/watchtower/domain/consumer"
	"github.com/tempo-watchtower/watchtower/eventlog"
)

// Log is a subscriber's port to an event store. embedded.Feed, the Log of embedded.DB and of
// postgres.DB, eventstoredb.Log, and archive.Log before one of these implement it. For events
// that it no longer holds it returns an error, and never skips them. Subscribe ends with
// eventlog.ErrClosed when the store is closed; after any other error it is called again.
type Log interface {
	ReadStream(ctx context.Context, stream eventlog.Stream, after eventlog.Version) iter.Seq2[eventlog.Recorded, error]
	Subscribe(ctx context.Context, after eventlog.Position, f eventlog.Filter, max int) iter.Seq2[eventlog.Batch, error]
	Head(ctx context.Context) (eventlog.Position, error)
}

// Groups is the port to consumer groups' state. postgres.Groups and embedded.Groups implement
// it, and storetest.Groups is the contract.
type Groups interface {
	// Claim takes or renews the right to a group's events for ttl. held is false while another
	// holder's claim runs. The token grows with each new holder.
	Claim(ctx context.Context, group, holder string, ttl time.Duration) (c consumer.Claim, held bool, err error)
	// Yield ends a claim at once. Not holding it is no error.
	Yield(ctx context.Context, group string, token uint64) error
	// Save moves the checkpoint forward. Save, Park and Unpark return consumer.ErrSuperseded,
	// and write nothing, if the token is not the newest.
	Save(ctx context.Context, group string, token uint64, to eventlog.Position) error
	// Park records that a stream's event could not be processed, and replaces the stream's
	// earlier record.
	Park(ctx context.Context, group string, token uint64, p consumer.Parked) error
	// Unpark removes a stream's parked record.
	Unpark(ctx context.Context, group string, token uint64, stream eventlog.Stream) error
	// Parked lists the parked streams, with the commands to resume or skip.
	Parked(ctx context.Context, group string) ([]consumer.Parked, error)
}

// Options are a subscriber's settings. A zero field takes the default named beside it.
type Options struct {
	Log    Log
	Groups Groups
	Group  string // name of the consumer group

	Lanes    int // number of lanes, which work concurrently; 16
	InFlight int // most events read and not done, over all lanes; 2048

	Retries    int           // repeats of a nacked event before its stream is parked; 5
	RetryFirst time.Duration // pause before the first repeat, doubling; 100 ms
	RetryMost  time.Duration // the longest pause; 5 s
	// MostParked bounds the number of parked streams. When it is reached, the events are not
	// the cause, and nacked events are repeated without end; 100. If it is negative, no stream
	// is ever parked.
	MostParked int

	SaveEvery  time.Duration // longest time between two saves of the checkpoint; 100 ms
	SaveEvents int           // most events between them; 1000
	TTL        time.Duration // another process takes over this long after one dies; 3 s
	Grace      time.Duration // wait for acks at the end of a subscription; 2 s

	// FromEnd makes a new group begin at the end of the log instead of its beginning.
	FromEnd bool
	Upcast  Upcast       // nil delivers events as recorded
	Holder  string       // unique name of this process; host name, process id and a random number
	Logger  *slog.Logger // slog.DiscardHandler
}

func (o Options) withDefaults() (Options, error) {
	if o.Log == nil || o.Groups == nil || o.Group == "" {
		return o, errors.New("feed: a subscriber needs Log, Groups and the name of its group")
	}
	or := func(n *int, value int) {
		if *n == 0 {
			*n = value
		}
	}
	or(&o.Lanes, 16)
	or(&o.InFlight, 2048)
	or(&o.Retries, 5)
	or(&o.MostParked, 100)
	or(&o.SaveEvents, 1000)
	orTime := func(d *time.Duration, value time.Duration) {
		if *d == 0 {
			*d = value
		}
	}
	orTime(&o.RetryFirst, 100*time.Millisecond)
	orTime(&o.RetryMost, 5*time.Second)
	orTime(&o.SaveEvery, 100*time.Millisecond)
	orTime(&o.TTL, 3*time.Second)
	orTime(&o.Grace, 2*time.Second)
	if min(o.Lanes, o.InFlight, o.Retries, o.SaveEvents) < 0 || min(o.RetryFirst, o.RetryMost, o.SaveEvery, o.TTL, o.Grace) < 0 {
		return o, errors.New("feed: a setting is negative")
	}
	if o.Holder == "" {
		host, _ := os.Hostname() // only to make the name readable
		var random [8]byte
		rand.Read(random[:]) //nolint:errcheck // never fails
		o.Holder = fmt.Sprintf("%.100s/%d/%s", host, os.Getpid(), hex.EncodeToString(random[:]))
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return o, nil
}

// Subscriber is a message.Subscriber over an event store, for one consumer group. It is also a
// prometheus.Collector of its metrics.
type Subscriber struct {
	o Options

	mu      sync.Mutex
	closed  bool
	opened  int // number of subscriptions so far
	subs    map[*subscription]bool
	ended   map[string]counts // counters of ended subscriptions, by topic
	closing context.Context   //nolint:containedctx // ends all subscriptions at once
	close   context.CancelFunc
	running sync.WaitGroup
}

// New makes a subscriber. Close closes it.
func New(o Options) (*Subscriber, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	s := &Subscriber{o: o, subs: map[*subscription]bool{}, ended: map[string]counts{}}
	s.closing, s.close = context.WithCancel(context.Background())
	return s, nil
}

// errClosed is returned by a Subscribe after Close.
var errClosed = errors.New("feed: the subscriber is closed")

// Name is the name under which a group's checkpoint of a topic is stored.
func Name(group, topic string) string { return group + "/" + topic }

// Subscribe delivers the events of a topic, see [Filter], to the group. Of all subscriptions of
// one group to one topic, in any process, one at a time receives events; another takes over
// when it ends. The channel is closed when ctx ends, or the subscriber or the store is closed.
func (s *Subscriber) Subscribe(ctx context.Context, topic string) (<-chan *message.Message, error) {
	filter, err := Filter(topic)
	if err != nil {
		return nil, fmt.Errorf("feed: %w", err)
	}
	name := Name(s.o.Group, topic)
	if len(name) > consumer.MaxGroupBytes {
		return nil, fmt.Errorf("feed: the names of group and topic are longer than %d bytes together", consumer.MaxGroupBytes)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, errClosed
	}
	s.opened++
	sub := &subscription{
		o: s.o, name: name, topic: topic, filter: filter,
		holder: fmt.Sprintf("%s/%d", s.o.Holder, s.opened),
		out:    make(chan *message.Message),
		log:    s.o.Logger.With("group", s.o.Group, "topic", topic),
	}
	ctx, cancel := context.WithCancel(ctx)
	unlink := context.AfterFunc(s.closing, cancel)
	s.subs[sub] = true
	s.running.Go(func() {
		defer cancel()
		defer unlink()
		sub.run(ctx)
		s.over(sub)
		close(sub.out)
	})
	return sub.out, nil
}

// over keeps the counters of an ended subscription, so that counters never fall.
func (s *Subscriber) over(sub *subscription) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.subs, sub)
	kept := s.ended[sub.topic]
	kept.add(sub.counts())
	s.ended[sub.topic] = kept
}

// Close ends all subscriptions. It waits for the acks of delivered messages, at most for
// [Options.Grace], saves the checkpoints, and lets other processes take over. A second Close
// does nothing.
func (s *Subscriber) Close() error {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.close()
	s.running.Wait()
	return nil
}
