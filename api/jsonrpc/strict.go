package jsonrpc

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"unicode/utf8"
)

// strict refuses text that is not one JSON text (RFC 8259), and text that programs read
// differently: invalid UTF-8, or a member that is there twice, at any depth.
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

// open is an object or array that has begun and not ended.
type open struct {
	object bool
	names  int                 // where its names begin in the scan's list
	seen   map[string]struct{} // its names, once there are more than namesListed
}

// namesListed is up to how many names of one object are compared one by one.
const namesListed = 16

// repeated finds a member that an object has twice. The text is valid JSON. The scan
// allocates for objects with many members and for escaped names only.
func repeated(text []byte) (name []byte, twice bool) {
	var all []open
	var names [][]byte
	isName := false // the next string names a member
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

// has reports whether the object has a member of this name already. list ends with the
// object's names.
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

// endOf finds the closing quote of a string whose characters begin at a place.
func endOf(text []byte, at int) int {
	for text[at] != '"' {
		if text[at] == '\\' {
			at++
		}
		at++
	}
	return at
}

// unescaped is what a string in quotes says.
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
