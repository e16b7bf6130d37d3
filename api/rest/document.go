package rest

import (
	"bytes"
	"errors"

	"github.com/tempo-watchtower/watchtower/commands"
	"github.com/tempo-watchtower/watchtower/domain/chain"
)

// Document reads one JSON document in one pass, and is told at each place which value to
// expect. Unlike encoding/json it refuses a name that occurs twice or in another case, an
// unknown name, null for a value, and invalid UTF-8.
type Document struct{ r reader }

// NewDocument returns a reader of data.
func NewDocument(data []byte) *Document { return &Document{reader{data: data}} }

// Member reads the value of one member of an object.
type Member struct {
	Name     string
	Read     func() error
	Optional bool
}

// Whole reads the document's one value with read, and refuses data after it.
func (d *Document) Whole(read func() error) error { return d.r.whole(read) }

// Object reads an object. Each of these members occurs at most once, and at least once unless
// it is optional; no other member may occur.
func (d *Document) Object(members ...Member) error {
	all, needed := make([]member, len(members)), make([]bool, len(members))
	for i, m := range members {
		all[i], needed[i] = member{m.Name, m.Read}, !m.Optional
	}
	return d.r.members(all, needed)
}

// Map reads an object with names that the client chose, each at most once.
func (d *Document) Map(read func(name string) error) error { return d.r.entries(read) }

// IsList reports whether the next value is a list.
func (d *Document) IsList() bool {
	d.r.skipSpace()
	return d.r.peek() == '['
}

// Count counts the elements of the next list, up to most+1, without decoding them.
func (d *Document) Count(most int) int { return CountElements(d.r.data[d.r.at:], most) }

// List reads a list; read is called for each of its elements.
func (d *Document) List(read func(i int) error) error { return d.r.list(read) }

// Text reads a string.
func (d *Document) Text() (string, error) {
	text, err := d.r.string()
	return string(text), err
}

// Bytes reads a string. The result may share the document's memory.
func (d *Document) Bytes() ([]byte, error) { return d.r.string() }

// Number reads a whole number of up to 64 bits, in plain digits.
func (d *Document) Number() (uint64, error) { return d.r.uint64() }

// Chain reads a chain as clients name it: by its number, or by CAIP-2 in a string. A chain without a
// number is refused as not served.
func (d *Document) Chain() (chain.ID, error) {
	d.r.skipSpace()
	switch c := d.r.peek(); {
	case c == '-' || c >= '0' && c <= '9':
		n, err := d.r.uint64()
		return chain.ID(n), err
	case c != '"':
		return 0, d.r.unlike("a number or a string such as eip155:1")
	}
	text, err := d.r.string()
	if err != nil {
		return 0, err
	}
	id, err := chain.ParseNamed(string(text))
	switch {
	case !bytes.Contains(text, []byte(":")): // a number in quotes is a mistake, as for every other number
		return 0, d.r.wrong("must be a number, or a chain by CAIP-2 such as eip155:1, not %s", Quote(text))
	case errors.Is(err, chain.ErrNoNumber):
		return 0, commands.ErrUnsupportedChain.At(pointerOf(d.r.path), "chain %s is not served here", Quote(text))
	case err != nil:
		return 0, d.r.wrong("must be a number, or a chain by CAIP-2 such as eip155:1, not %s", Quote(text))
	}
	return id, nil
}

// Flag reads true or false.
func (d *Document) Flag() (bool, error) { return d.r.bool() }

// Wrong returns a refusal for valid JSON that does not fit the request, and says where.
func (d *Document) Wrong(format string, args ...any) error { return d.r.wrong(format, args...) }
