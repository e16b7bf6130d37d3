package feed

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"

	"github.com/tempo-watchtower/watchtower/eventlog"
)

// Keys of a message's metadata. A key is missing if the event has no value for it.
const (
	KeyName         = "name"          // the event's name with its version: tx.accepted.v1
	KeyRecordedName = "recorded_name" // the name in the log, if Options.Upcast has changed it
	KeyStream       = "stream"
	KeyVersion      = "version"       // the stream's version after this event; the first has 1
	KeyPosition     = "position"      // position in the log
	KeyPartitionKey = "partition_key" // the stream, within which events stay in order
	KeyAt           = "at"            // time of recording, RFC 3339
	KeyActor        = "actor"
	KeyCorrelation  = "correlation" // id of the request or event that started the chain
	KeyCausation    = "causation"   // id of the event that caused this one
	KeyTrace        = "trace"       // W3C traceparent
)

// Upcast converts the name and data of a recorded event to a newer shape. It returns them
// unchanged if no conversion applies. It must not change data in place. An error counts as a
// nack.
type Upcast func(name string, data []byte) (newName string, newData []byte, err error)

// newMessage makes the message of an event.
func newMessage(ctx context.Context, r eventlog.Recorded, up Upcast) (*message.Message, error) {
	name, data := r.Name, []byte(r.Data)
	if up != nil {
		var err error
		if name, data, err = up(r.Name, r.Data); err != nil {
			return nil, fmt.Errorf("upcast %s: %w", r.Name, err)
		}
	}
	m := message.NewMessage(r.ID.String(), data)
	metadata := make(message.Metadata, 10)
	metadata[KeyName] = name
	if name != r.Name {
		metadata[KeyRecordedName] = r.Name
	}
	stream := string(r.Stream)
	metadata[KeyStream], metadata[KeyPartitionKey] = stream, stream
	metadata[KeyVersion] = strconv.FormatUint(uint64(r.Version), 10)
	metadata[KeyPosition] = strconv.FormatUint(uint64(r.Position), 10)
	metadata[KeyAt] = r.At.Format(time.RFC3339Nano)
	if r.Meta.Actor != "" {
		metadata[KeyActor] = r.Meta.Actor
	}
	if !r.Meta.Correlation.IsZero() {
		metadata[KeyCorrelation] = r.Meta.Correlation.String()
	}
	if !r.Meta.Causation.IsZero() {
		metadata[KeyCausation] = r.Meta.Causation.String()
	}
	if r.Meta.Trace != "" {
		metadata[KeyTrace] = r.Meta.Trace
	}
	m.Metadata = metadata
	m.SetContext(ctx)
	return m, nil
}

// Origin is the place of a message's event in the log, from the metadata.
type Origin struct {
	Stream   eventlog.Stream
	Version  eventlog.Version
	Position eventlog.Position
	Name     string
}

// OriginOf reads a message's metadata, which may have come through a broker.
func OriginOf(m *message.Message) (Origin, error) {
	version, err := strconv.ParseUint(m.Metadata[KeyVersion], 10, 64)
	if err != nil {
		return Origin{}, fmt.Errorf("message %s: %s: %w", m.UUID, KeyVersion, err)
	}
	position, err := strconv.ParseUint(m.Metadata[KeyPosition], 10, 64)
	if err != nil {
		return Origin{}, fmt.Errorf("message %s: %s: %w", m.UUID, KeyPosition, err)
	}
	o := Origin{eventlog.Stream(m.Metadata[KeyStream]), eventlog.Version(version), eventlog.Position(position), m.Metadata[KeyName]}
	if o.Stream == "" || o.Name == "" {
		return Origin{}, fmt.Errorf("message %s: no %s or no %s", m.UUID, KeyStream, KeyName)
	}
	return o, nil
}

// cause is the reason of a nack. It is passed in the message's context, because Watermill's
// Nack takes no reason.
type cause struct {
	mu  sync.Mutex
	err error
}

type causeKey struct{}

func (c *cause) note(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.err = err
}

func (c *cause) get() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

// Nack nacks a message with a reason, which the stream's row shows if the stream is parked.
func Nack(m *message.Message, why error) bool {
	noteCause(m, why)
	return m.Nack()
}

func noteCause(m *message.Message, why error) {
	if c, ok := m.Context().Value(causeKey{}).(*cause); ok {
		c.note(why)
	}
}

// Causes is a middleware of message.Router that passes a handler's errors as reasons, like
// [Nack]. Without it a parked stream shows only that a message was nacked. Add it before all
// others, so that it sees their errors.
func Causes(handle message.HandlerFunc) message.HandlerFunc {
	return func(m *message.Message) ([]*message.Message, error) {
		produced, err := handle(m)
		if err != nil {
			noteCause(m, err)
		}
		return produced, err
	}
}
