package eventlog

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
)

// Codec encodes facts of type E as named JSON and decodes them. Names are permanent: none is
// derived from a Go type, reused or removed.
type Codec[E any] struct {
	decode map[string]func([]byte) (E, error)
	name   map[reflect.Type]string // of the current shapes
}

// Shape is an event name with its Go type.
type Shape[E any] struct {
	name    string
	written reflect.Type // nil for a retired shape
	decode  func([]byte) (E, error)
}

// As returns the current shape for name.
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

// From returns a retired shape, which is decoded but never encoded. up converts it to the current
// shape.
func From[E any, T any](name string, up func(T) E) Shape[E] {
	return Shape[E]{name, nil, func(data []byte) (e E, err error) {
		var old T
		if err = unmarshal(data, &old); err != nil {
			return e, err
		}
		return up(old), nil
	}}
}

// unmarshal refuses unknown fields: dropping a field that this version does not know would lose a
// fact.
func unmarshal(data []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	return d.Decode(into)
}

// NewCodec returns a codec of shapes. It panics if a name or a Go type occurs twice.
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

// Names returns every name that the codec decodes, sorted.
func (c Codec[E]) Names() []string {
	names := make([]string, 0, len(c.decode))
	for n := range c.decode {
		names = append(names, n)
	}
	slices.Sort(names)
	return names
}

// Encode returns a fact's name and JSON. It panics on an unregistered type.
func (c Codec[E]) Encode(fact E) (name string, data []byte, err error) {
	name = c.name[reflect.TypeOf(fact)]
	if name == "" {
		panic(fmt.Sprintf("event: %T has no name", fact))
	}
	data, err = json.Marshal(fact)
	return name, data, err
}

// Decode decodes a recorded fact. An unknown name or shape is an error: a caller that folds
// events must stop there rather than skip it.
func (c Codec[E]) Decode(name string, data []byte) (E, error) {
	decode := c.decode[name]
	if decode == nil {
		var none E
		return none, fmt.Errorf("unknown event %s", name)
	}
	e, err := decode(data)
	if err != nil {
		// Not wrapped: an error in recorded data must not look like a connection error, such as
		// an unexpected EOF.
		return e, fmt.Errorf("event %s: %v", name, err) //nolint:errorlint // see above
	}
	return e, nil
}
