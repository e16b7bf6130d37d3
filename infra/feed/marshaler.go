package feed

import (
	"encoding/json"
	"fmt"
	"reflect"

	"github.com/ThreeDotsLabs/watermill"
	"github.com/ThreeDotsLabs/watermill/message"
)

// Marshaler lets Watermill's CQRS component read events: it is a cqrs.CommandEventMarshaler
// that knows the Go type for each name. The component's own marshaler would use the Go package
// path as the name.
type Marshaler struct{ names map[reflect.Type]string }

// Shape is an event's name with the Go type of its data.
type Shape struct {
	name string
	of   reflect.Type
}

// As is the shape of events with a name.
func As[T any](name string) Shape { return Shape{name, reflect.TypeFor[T]()} }

// NewMarshaler collects shapes. It panics if a name or a type occurs twice.
func NewMarshaler(shapes ...Shape) Marshaler {
	m := Marshaler{map[reflect.Type]string{}}
	seen := map[string]bool{}
	for _, s := range shapes {
		if m.names[s.of] != "" || seen[s.name] {
			panic(fmt.Sprintf("feed: %s or %s is given twice", s.name, s.of))
		}
		m.names[s.of], seen[s.name] = s.name, true
	}
	return m
}

// Name is the event name of a value, or of a pointer to it. It panics on an unknown type, which
// would never be handled.
func (m Marshaler) Name(v any) string {
	t := reflect.TypeOf(v)
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	name := m.names[t]
	if name == "" {
		panic(fmt.Sprintf("feed: %s has no event name", t))
	}
	return name
}

// NameFromMessage is the name of a message's event.
func (Marshaler) NameFromMessage(m *message.Message) string { return m.Metadata[KeyName] }

// Unmarshal reads a message's event. It ignores fields that the type does not have.
func (Marshaler) Unmarshal(m *message.Message, v any) error { return json.Unmarshal(m.Payload, v) }

// Marshal makes a message of a program's own event, for another publisher: only Watchtower
// writes the log.
func (m Marshaler) Marshal(v any) (*message.Message, error) {
	data, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	made := message.NewMessage(watermill.NewUUID(), data)
	made.Metadata.Set(KeyName, m.Name(v))
	return made, nil
}
