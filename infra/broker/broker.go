// Package broker makes Watermill publishers for the brokers of `watchtower forward`: Redis
// Streams and NATS JetStream. Both confirm published messages.
package broker

import (
	"context"
	"fmt"
	"net/url"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
)

// Options are the settings of a publisher.
type Options struct {
	// Keep is about how many messages the broker keeps per stream; 0 keeps all. It does not
	// change an existing NATS stream.
	Keep int64
}

// Time limits for a broker that does not answer.
const (
	dialTimeout    = 5 * time.Second
	publishTimeout = 5 * time.Second
	reconnectWait  = 250 * time.Millisecond
)

// Open makes a publisher to redis://, rediss://, nats:// or tls:// (NATS with TLS). Close
// closes its connections. An unreachable broker is an error of Open now, and of Publish later.
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
