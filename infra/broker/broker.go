// Package broker makes Watermill publishers for the brokers that `watchtower forward`
// knows: Redis Streams and NATS JetStream. Each confirms what it publishes.
package broker

import (
	"context"
	"fmt"
	"net/url"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
)

// Options are what may differ.
type Options struct {
	// Keep is about how many messages a stream of the broker's keeps; 0 keeps all. It
	// does not change a NATS stream that is there already.
	Keep int64
}

// Patience with a broker that does not answer.
const (
	dialTimeout    = 5 * time.Second
	publishTimeout = 5 * time.Second
	reconnectWait  = 250 * time.Millisecond
)

// Open makes a publisher to redis://, rediss://, nats:// or tls:// (NATS with TLS). Its
// Close closes the connections. A broker that cannot be reached now is an error; later it
// is one of Publish.
func Open(ctx context.Context, to string, o Options) (message.Publisher, error) {
	u, err := url.Parse(to)
	if err != nil {
		return nil, fmt.Errorf("broker: the URL cannot be read") //nolint:errorlint // the error would show its password
	}
	switch u.Scheme {
	case "redis", "rediss":
		return openRedis(ctx, to, o)
	case "nats", "tls":
		return openNATS(ctx, to, o)
	}
	return nil, fmt.Errorf("broker: %q is neither redis, rediss, nats nor tls", u.Scheme)
}
