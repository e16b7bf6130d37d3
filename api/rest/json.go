package rest

import (
	"bytes"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// A reader reads one JSON document (RFC 8259) in one pass, and is told at each place which
// value to expect. Unlike encoding/json it refuses a name that occurs twice or in another case,
// an unknown name, null for a value, invalid UTF-8, lone surrogates, NUL, a byte order mark,
// and data after the end.
//
// It builds no tree and never looks into unwanted values. So a document costs no more memory
// than the values taken from it, and nesting costs nothing.
type reader struct {
	data []byte
	at   int
	path []string // of the value being read, as the parts of a JSON pointer (RFC 6901)
	// faults are the values so far that do not fit the request, at most [faultsMax].
	faults []Fault
}

// member reads the value of one member of an object.
type member struct {
	name string
	read func() error
}

// readDocument reads data as an object with each of these members once, in any order, and no
// other member.
func (r *reader) readDocument(members ...member) error {
	return r.whole(func() error { return r.object(members...) })
}

// whole reads data as one value.
func (r *reader) whole(read func() error) error {
	switch {
	case bytes.HasPrefix(r.data, []byte("\xef\xbb\xbf")):
		return ErrMalformedJSON.Because("the body begins with a byte order mark")
	case !utf8.Valid(r.data):
		return ErrMalformedJSON.Because("the body is not valid UTF-8")
	}
	if r.skipSpace(); r.at == len(r.data) {
		return ErrMalformedJSON.Because("the body is empty")
	}
	if err := read(); err != nil && !r.noted(err) {
		return err
	}
	if len(r.faults) > 0 {
		return &faulted{ErrInvalidRequest.Because("%s", r.faults[0].Detail), r.faults}
	}
	if r.skipSpace(); r.at != len(r.data) {
		return r.malformed("data after the end of the document")
	}
	return nil
}

// object reads an object with each of these members once.
func (r *reader) object(members ...member) error {
	needed := make([]bool, len(members))
	for i := range needed {
		needed[i] = true
	}
	return r.members(members, needed)
}

// members reads an object that has only these members, each at most once, and at least those
// with needed set.
func (r *reader) members(members []member, needed []bool) error {
	if err := r.begin('{', "an object"); err != nil {
		return err
	}
	read := make([]bool, len(members))
	err := r.elements('}', func(int) error {
		name, err := r.name()
		if err != nil {
			return err
		}
		i := indexOf(members, string(name))
		switch {
		case i < 0:
			return r.refuse(string(name), r.wrong("has an unknown member %s", Quote(name)))
		case read[i]:
			return r.refuse(string(name), r.wrong("has the member %s twice", Quote(name)))
		}
		read[i] = true
		return r.valued(members[i].name, members[i].read)
	})
	if err != nil {
		return err
	}
	for i, m := range members {
		if needed[i] && !read[i] {
			return r.wrong("lacks the member %q", m.name)
		}
	}
	return nil
}

// entries reads an object with arbitrary names, each at most once.
func (r *reader) entries(read func(name string) error) error {
	if err := r.begin('{', "an object"); err != nil {
		return err
	}
	seen := map[string]bool{}
	return r.elements('}', func(int) error {
		text, err := r.name()
		if err != nil {
			return err
		}
		name := string(text)
		if seen[name] {
			return r.refuse(name, r.wrong("has the member %s twice", Quote(name)))
		}
		seen[name] = true
		return r.valued(name, func() error { return read(name) })
	})
}

// name reads the name of a member.
func (r *reader) name() ([]byte, error) {
	if r.peek() != '"' {
		return nil, r.malformed("a member's name must be a string")
	}
	return r.text()
}

// valued reads the colon after a name, and the value.
func (r *reader) valued(name string, read func() error) error {
	if r.skipSpace(); r.peek() != ':' {
		return r.malformed("a colon is missing after a member's name")
	}
	r.at++
	return r.inside(name, read)
}

// list reads an array; read is called for each of its elements.
func (r *reader) list(read func(i int) error) error {
	if err := r.begin('[', "an array"); err != nil {
		return err
	}
	return r.elements(']', func(i int) error {
		return r.inside(strconv.Itoa(i), func() error { return read(i) })
	})
}

// string reads a string. The result may share the document's memory.
func (r *reader) string() ([]byte, error) {
	if err := r.expect('"', "a string"); err != nil {
		return nil, err
	}
	return r.text()
}

// uint64 reads a number written in plain digits.
func (r *reader) uint64() (uint64, error) {
	r.skipSpace()
	if c := r.peek(); c != '-' && (c < '0' || c > '9') {
		return 0, r.unlike("a number")
	}
	from := r.at
	for strings.IndexByte("+-.eE0123456789", r.peek()) >= 0 {
		r.at++
	}
	literal := string(r.data[from:r.at])
	n, err := strconv.ParseUint(literal, 10, 64)
	if err != nil || literal != strconv.FormatUint(n, 10) {
		return 0, r.wrong("must be a whole number from 0 to 2^64-1, in plain digits")
	}
	return n, nil
}

// bool reads true or false.
func (r *reader) bool() (bool, error) {
	r.skipSpace()
	for _, word := range []string{"true", "false"} {
		if r.word(word) {
			r.at += len(word)
			return word == "true", nil
		}
	}
	return false, r.unlike("a boolean")
}

// elements reads comma-separated elements and the closing bracket.
func (r *reader) elements(closing byte, read func(i int) error) error {
	if r.skipSpace(); r.peek() == closing {
		r.at++
		return nil
	}
	for i := 0; ; i++ {
		r.skipSpace()
		if err := read(i); err != nil {
			return err
		}
		r.skipSpace()
		switch r.peek() {
		case ',':
			r.at++
		case closing:
			r.at++
			return nil
		default:
			return r.malformed("a comma or %q is missing", string(closing))
		}
	}
}

// text reads a string that starts at the current opening quote.
func (r *reader) text() ([]byte, error) {
	r.at++
	from := r.at
	for ; r.at < len(r.data); r.at++ {
		switch c := r.data[r.at]; {
		case c == '"':
			plain := r.data[from:r.at]
			r.at++
			return plain, nil
		case c == '\\':
			return r.escaped(bytes.Clone(r.data[from:r.at]))
		case c < 0x20:
			return nil, r.malformed("a control character in a string")
		}
	}
	return nil, r.malformed("a string does not end")
}

// escaped reads the rest of a string from its first backslash.
func (r *reader) escaped(text []byte) ([]byte, error) {
	for r.at < len(r.data) {
		c := r.data[r.at]
		r.at++
		switch {
		case c == '"':
			return text, nil
		case c < 0x20:
			return nil, r.malformed("a control character in a string")
		case c != '\\':
			text = append(text, c)
			continue
		}
		var err error
		if text, err = r.escape(text); err != nil {
			return nil, err
		}
	}
	return nil, r.malformed("a string does not end")
}

// escape reads the part of an escape after the backslash.
func (r *reader) escape(text []byte) ([]byte, error) {
	const letters, meaning = `"\/bfnrt`, "\"\\/\b\f\n\r\t"
	c := r.peek()
	if i := strings.IndexByte(letters, c); i >= 0 {
		r.at++
		return append(text, meaning[i]), nil
	}
	u, ok := r.unit()
	switch {
	case !ok:
		return nil, r.malformed("an unknown escape in a string")
	case u == 0:
		return nil, r.malformed("a NUL character in a string")
	case !utf16.IsSurrogate(u):
		return utf8.AppendRune(text, u), nil
	}
	if r.peek() == '\\' {
		r.at++
		if low, ok := r.unit(); ok {
			if pair := utf16.DecodeRune(u, low); pair != utf8.RuneError {
				return utf8.AppendRune(text, pair), nil
			}
		}
	}
	return nil, r.malformed("half a surrogate pair in a string")
}

// unit reads u and four hex digits: one UTF-16 code unit.
func (r *reader) unit() (rune, bool) {
	const length = len("u0000")
	if r.peek() != 'u' || len(r.data)-r.at < length {
		return 0, false
	}
	n, err := strconv.ParseUint(string(r.data[r.at+1:r.at+length]), 16, 16)
	r.at += length
	return rune(n), err == nil
}

func (r *reader) begin(bracket byte, what string) error {
	if err := r.expect(bracket, what); err != nil {
		return err
	}
	r.at++
	return nil
}

func (r *reader) expect(c byte, what string) error {
	if r.skipSpace(); r.peek() != c {
		return r.unlike(what)
	}
	return nil
}

// peek returns the next byte, or 0 at the end; no token begins with NUL.
func (r *reader) peek() byte {
	if r.at == len(r.data) {
		return 0
	}
	return r.data[r.at]
}

func (r *reader) skipSpace() {
	for r.at < len(r.data) && strings.IndexByte(" \t\r\n", r.data[r.at]) >= 0 {
		r.at++
	}
}

func (r *reader) word(w string) bool { return bytes.HasPrefix(r.data[r.at:], []byte(w)) }

func indexOf(members []member, name string) int {
	for i, m := range members {
		if m.name == name {
			return i
		}
	}
	return -1
}
