package feed

import (
	"encoding/json"
	"fmt"
	"reflect"

	"github.com/ThreeDotsLabs/watermill"
	"github.com/ThreeDotsLabs/watermill/message"
)

// Marshaler lets Watermill's CQRS component read events: it is a
// cqrs.CommandEventMarshaler that knows the Go type of each name. The component's own would take the path of the Go package for the name.
type Marshaler struct{ names map[reflect.Type]string }

// Shape is an event's name with the Go type that its data is read into.
type Shape struct {
	name string
	of   reflect.Type
}

// As is the shape of the events of a name.
func As[T any](name string) Shape { return Shape{name, reflect.TypeFor[T]()} }

// NewMarshaler collects shapes. A name or a type that occurs twice panics.
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

// Name is the event name of a value, or of a pointer to it. A type that was not given
// panics: it would never be handled.
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

// Unmarshal reads a message's event. Fields that the type does not have are left out.
func (Marshaler) Unmarshal(m *message.Message, v any) error { return json.Unmarshal(m.Payload, v) }

// Marshal makes a message of an event of one's own, for another publisher: the log is
// written by Watchtower alone.
func (m Marshaler) Marshal(v any) (*message.Message, error) {
	data, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	made := message.NewMessage(watermill.NewUUID(), data)
	made.Metadata.Set(KeyName, m.Name(v))
	return made, nil
}
