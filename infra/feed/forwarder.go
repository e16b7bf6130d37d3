package feed

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"strconv"
	"sync"

	"github.com/ThreeDotsLabs/watermill/message"
)

// Forwarding selects the events to publish, and their target.
type Forwarding struct {
	Topic     string            // topic of the log, see Filter
	Publisher message.Publisher // Publish returns once the messages are safe
	To        string            // the publisher's topic

	// Partitions spreads streams over this many of the publisher's topics, TO-0, TO-1, …, so
	// that several consumers of a broker without keys can share the work. All events of a
	// stream are in one of them. 0 means no partitions: all are in TO.
	Partitions int
}

// Forwarder is a consumer that publishes each event, and acks when the publisher has confirmed
// it. So the log is an outbox: no event is lost in between, and events repeated after a crash
// have the same UUID. No stream is ever parked: publishing is retried until it succeeds.
type Forwarder struct {
	*Subscriber

	f Forwarding
}

// NewForwarder makes a forwarder for the group in the options.
func NewForwarder(o Options, f Forwarding) (*Forwarder, error) {
	if f.Publisher == nil || f.To == "" || f.Partitions < 0 {
		return nil, errors.New("feed: a forwarder needs a publisher, a topic, and 0 or more partitions")
	}
	if _, err := Filter(f.Topic); err != nil {
		return nil, fmt.Errorf("feed: %w", err)
	}
	o.MostParked = -1
	s, err := New(o)
	if err != nil {
		return nil, err
	}
	return &Forwarder{Subscriber: s, f: f}, nil
}

// Run forwards until ctx ends, which is no error, or the store is closed. It does not close the
// publisher.
func (f *Forwarder) Run(ctx context.Context) error {
	messages, err := f.Subscribe(ctx, f.f.Topic)
	if err != nil {
		return err
	}
	var lanes sync.WaitGroup
	for range f.o.Lanes {
		lanes.Go(func() {
			for m := range messages {
				f.publish(m)
			}
		})
	}
	lanes.Wait()
	if ctx.Err() == nil {
		return errors.New("feed: the store or the forwarder was closed")
	}
	return f.Close()
}

// publish publishes a copy of one message, which the publisher may change.
func (f *Forwarder) publish(m *message.Message) {
	if err := f.f.Publisher.Publish(f.to(m.Metadata[KeyPartitionKey]), m.CopyWithContext()); err != nil {
		if m.Context().Err() == nil {
			f.o.Logger.Warn("event could not be published, retrying", "id", m.UUID, "err", err)
		}
		Nack(m, err)
		return
	}
	m.Ack()
}

// to is the publisher's topic for a partition key. The hash never changes: consumers may rely
// on a stream's partition.
func (f *Forwarder) to(key string) string {
	if f.f.Partitions == 0 {
		return f.f.To
	}
	h := fnv.New32a()
	h.Write([]byte(key))
	return f.f.To + "-" + strconv.FormatUint(uint64(h.Sum32())%uint64(f.f.Partitions), 10)
}
