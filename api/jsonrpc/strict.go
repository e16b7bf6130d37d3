package jsonrpc

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"unicode/utf8"
)

// strict refuses text that is not one JSON text (RFC 8259), and text that parsers read
// differently: invalid UTF-8, or a repeated member at any depth.
func strict(body []byte) error {
	if !utf8.Valid(body) {
		return errors.New("invalid UTF-8")
	}
	if !json.Valid(body) {
		return errors.New("not JSON")
	}
	if name, twice := repeated(body); twice {
		return fmt.Errorf("the member %.40q is there twice", name)
	}
	return nil
}

// open is an object or array whose end has not been scanned.
type open struct {
	object bool
	names  int                 // start of its names in the scan's list
	seen   map[string]struct{} // its names, once there are more than namesListed
}

// namesListed is the most names of one object that are compared one by one.
const namesListed = 16

// repeated finds a repeated member of an object. The text must be valid JSON. The scan
// allocates only for objects with many members and for escaped names.
func repeated(text []byte) (name []byte, twice bool) {
	var all []open
	var names [][]byte
	isName := false // the next string is a member's name
	for i := 0; i < len(text); i++ {
		switch c := text[i]; c {
		case '{', '[':
			all = append(all, open{object: c == '{', names: len(names)})
			isName = c == '{'
		case '}', ']':
			last := len(all) - 1
			names, all = names[:all[last].names], all[:last]
		case ',':
			isName = all[len(all)-1].object
		case '"':
			end := endOf(text, i+1)
			if !isName {
				i = end
				continue
			}
			name, isName = unescaped(text[i:end+1]), false
			top := &all[len(all)-1]
			if top.has(name, names) {
				return name, true
			}
			names, i = append(names, name), end
		}
	}
	return nil, false
}

// has reports whether the object already has a member of this name. list ends with the object's
// names.
func (o *open) has(name []byte, list [][]byte) bool {
	own := list[o.names:]
	if len(own) < namesListed {
		for _, other := range own {
			if bytes.Equal(other, name) {
				return true
			}
		}
		return false
	}
	if o.seen == nil {
		o.seen = make(map[string]struct{}, 2*namesListed)
		for _, other := range own {
			o.seen[string(other)] = struct{}{}
		}
	}
	_, twice := o.seen[string(name)]
	o.seen[string(name)] = struct{}{}
	return twice
}

// endOf returns the index of the closing quote of a string whose characters begin at at.
func endOf(text []byte, at int) int {
	for text[at] != '"' {
		if text[at] == '\\' {
			at++
		}
		at++
	}
	return at
}

// unescaped decodes a quoted string.
func unescaped(quoted []byte) []byte {
	if bytes.IndexByte(quoted, '\\') < 0 {
		return quoted[1 : len(quoted)-1]
	}
	var s string
	if err := json.Unmarshal(quoted, &s); err != nil {
		panic(fmt.Sprintf("jsonrpc: a string of valid JSON: %v", err))
	}
	return []byte(s)
}
