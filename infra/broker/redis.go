package broker

import (
	"context"
	"errors"
	"fmt"

	"github.com/ThreeDotsLabs/watermill"
	"github.com/ThreeDotsLabs/watermill-redisstream/pkg/redisstream"
	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/redis/go-redis/v9"
)

// openRedis makes a publisher to Redis Streams: each topic is a stream, each message an entry
// in Watermill's form (fields payload, metadata and _watermill_message_uuid).
func openRedis(ctx context.Context, to string, o Options) (message.Publisher, error) {
	options, err := redis.ParseURL(to)
	if err != nil {
		return nil, errors.New("broker: the URL of Redis cannot be read") //nolint:nilerr // the error may show its password
	}
	options.DialTimeout, options.WriteTimeout, options.ReadTimeout = dialTimeout, publishTimeout, publishTimeout
	options.ContextTimeoutEnabled = true
	options.DisableIdentity = true                    // old servers do not support CLIENT SETINFO
	options.MaxRetries, options.DialerRetries = -1, 1 // only the forwarder retries
	client := redis.NewClient(options)
	if err := client.Ping(ctx).Err(); err != nil {
		return nil, errors.Join(fmt.Errorf("broker: Redis does not respond: %w", err), client.Close())
	}
	return redisstream.NewPublisher(redisstream.PublisherConfig{Client: client, DefaultMaxlen: o.Keep}, watermill.NopLogger{})
}
