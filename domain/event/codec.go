package event

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
)

// Codec turns facts of type E into named JSON and back. Names are for ever: none
// is derived from a Go type, reused or removed.
type Codec[E any] struct {
	decode map[string]func([]byte) (E, error)
	name   map[reflect.Type]string // of the shapes that are written today
}

// Shape is one event name with its Go shape.
type Shape[E any] struct {
	name    string
	written reflect.Type // nil for a retired shape
	decode  func([]byte) (E, error)
}

// As is the shape written today under name.
func As[E any, T any](name string) Shape[E] {
	var zero T
	if _, ok := any(zero).(E); !ok {
		panic(fmt.Sprintf("event: %T under %s is not of the codec's type", zero, name))
	}
	return Shape[E]{name, reflect.TypeFor[T](), func(data []byte) (E, error) {
		var e T
		err := unmarshal(data, &e)
		return any(e).(E), err
	}}
}

// From is a retired shape: read, never written. up turns it into today's.
func From[E any, T any](name string, up func(T) E) Shape[E] {
	return Shape[E]{name, nil, func(data []byte) (e E, err error) {
		var old T
		if err = unmarshal(data, &old); err != nil {
			return e, err
		}
		return up(old), nil
	}}
}

// unmarshal is strict: a field that this version of the program does not know
// would be a fact silently dropped.
func unmarshal(data []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	return d.Decode(into)
}

// NewCodec collects shapes. A name or a Go type that occurs twice panics.
func NewCodec[E any](shapes ...Shape[E]) Codec[E] {
	c := Codec[E]{map[string]func([]byte) (E, error){}, map[reflect.Type]string{}}
	for _, s := range shapes {
		if c.decode[s.name] != nil {
			panic("event: name used twice: " + s.name)
		}
		c.decode[s.name] = s.decode
		if s.written == nil {
			continue
		}
		if c.name[s.written] != "" {
			panic(fmt.Sprintf("event: %s written under two names", s.written))
		}
		c.name[s.written] = s.name
	}
	return c
}

// Names lists every name the codec reads, sorted.
func (c Codec[E]) Names() []string {
	names := make([]string, 0, len(c.decode))
	for n := range c.decode {
		names = append(names, n)
	}
	slices.Sort(names)
	return names
}

// Encode names a fact and writes it down. An unregistered type panics.
func (c Codec[E]) Encode(fact E) (name string, data []byte, err error) {
	name = c.name[reflect.TypeOf(fact)]
	if name == "" {
		panic(fmt.Sprintf("event: %T has no name", fact))
	}
	data, err = json.Marshal(fact)
	return name, data, err
}

// Decode reads a recorded fact. An unknown name or shape is an error: whoever
// folds must stop there rather than go on without it.
func (c Codec[E]) Decode(name string, data []byte) (E, error) {
	decode := c.decode[name]
	if decode == nil {
		var none E
		return none, fmt.Errorf("unknown event %s", name)
	}
	e, err := decode(data)
	if err != nil {
		// Not wrapped: what is wrong with recorded data is not to be taken for what may
		// be wrong with a connection, such as an end that was not expected.
		return e, fmt.Errorf("event %s: %v", name, err) //nolint:errorlint // see above
	}
	return e, nil
}
