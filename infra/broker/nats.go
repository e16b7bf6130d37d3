package broker

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/ThreeDotsLabs/watermill"
	wnats "github.com/ThreeDotsLabs/watermill-nats/v2/pkg/jetstream"
	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// natsPublisher publishes to JetStream. A topic is a subject. If no stream has it, a stream of
// that name is made, on disk.
type natsPublisher struct {
	*wnats.Publisher

	js   jetstream.JetStream
	keep int64

	mu    sync.Mutex
	known map[string]bool // topics with a stream
}

func openNATS(ctx context.Context, to string, o Options) (message.Publisher, error) {
	// No reconnect buffer: messages given up, which another process may have published since,
	// must not be sent after a reconnect.
	conn, err := nats.Connect(to, nats.Name("watchtower"), nats.Timeout(dialTimeout), nats.MaxReconnects(-1), nats.ReconnectWait(reconnectWait), nats.ReconnectBufSize(-1))
	if err != nil {
		return nil, fmt.Errorf("broker: NATS does not respond: %w", err)
	}
	js, err := jetstream.New(conn, jetstream.WithDefaultTimeout(publishTimeout))
	if err != nil {
		conn.Close()
		return nil, fmt.Errorf("broker: JetStream: %w", err)
	}
	if _, err := js.AccountInfo(ctx); err != nil {
		conn.Close()
		return nil, fmt.Errorf("broker: the NATS server has no JetStream: %w", err)
	}
	inner, err := wnats.NewPublisher(wnats.PublisherConfig{
		Conn: conn, Logger: watermill.NopLogger{},
		ConfigureStream: func(topic string) jetstream.StreamConfig { return jetstream.StreamConfig{Name: topic} },
	})
	if err != nil {
		conn.Close()
		return nil, fmt.Errorf("broker: JetStream: %w", err)
	}
	return &natsPublisher{Publisher: inner, js: js, keep: o.Keep, known: map[string]bool{}}, nil
}

// Publish publishes messages under their UUIDs, so that JetStream drops duplicates within its
// window, two minutes unless configured.
func (p *natsPublisher) Publish(topic string, messages ...*message.Message) error {
	for _, m := range messages {
		if err := p.makeStream(m.Context(), topic); err != nil {
			return err
		}
		m.Metadata.Set(nats.MsgIdHdr, m.UUID)
		if err := p.Publisher.Publish(topic, m); err != nil {
			p.forget(topic)
			return err
		}
	}
	return nil
}

// forget makes the topic's stream be looked up again: it may have been removed.
func (p *natsPublisher) forget(topic string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.known, topic)
}

// makeStream makes sure that a stream stores messages of a topic.
func (p *natsPublisher) makeStream(ctx context.Context, topic string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.known[topic] {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, publishTimeout)
	defer cancel()
	_, err := p.js.StreamNameBySubject(ctx, topic)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		keep := p.keep
		if keep == 0 {
			keep = -1
		}
		_, err = p.js.CreateStream(ctx, jetstream.StreamConfig{Name: topic, Subjects: []string{topic}, MaxMsgs: keep})
	}
	if err != nil {
		return fmt.Errorf("stream %s: %w", topic, err)
	}
	p.known[topic] = true
	return nil
}
