package rest

// How a [reader] refuses a document: which values do not fit, and where.

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/tempo-watchtower/watchtower/eventlog"
)

// inside reads a value with read, which may find that the value does not fit the request. The
// document is read on behind it, so that the client learns of all such values at once.
func (r *reader) inside(name string, read func() error) error {
	from := r.at
	r.path = append(r.path, name)
	err := read()
	r.path = r.path[:len(r.path)-1]
	if err == nil || !r.noted(err) {
		return err
	}
	if r.at = from; len(r.faults) == faultsMax || !r.skip() {
		return err
	}
	return nil
}

// refuse notes a fault of the member whose name was just read, and reads its value.
func (r *reader) refuse(name string, fault error) error {
	if len(name) <= quotedMax {
		var refused *eventlog.Refused
		if errors.As(fault, &refused) {
			refused.Pointer = pointerOf(append(slices.Clip(r.path), name))
		}
	}
	return r.valued(name, func() error { return fault })
}

// faultsMax is the most faults of one document that an answer lists.
const faultsMax = 16

// noted notes the fault that an error made by wrong reports, once. It reports whether err is such an
// error.
func (r *reader) noted(err error) bool {
	var refused *eventlog.Refused
	if !errors.As(err, &refused) || refused.Refusal != ErrInvalidRequest || refused.Pointer == "" {
		return false
	}
	if f := (Fault{Pointer: refused.Pointer, Detail: refused.Detail}); len(r.faults) < faultsMax && !slices.Contains(r.faults, f) {
		r.faults = append(r.faults, f)
	}
	return true
}

// skip moves past a value of a document that is refused anyway, so it checks only strings and the
// number of brackets. It reports whether the value has an end.
func (r *reader) skip() bool {
	r.skipSpace()
	for depth := 0; r.at < len(r.data); {
		switch r.data[r.at] {
		case '"':
			if _, err := r.text(); err != nil {
				return false
			}
			r.at--
		case '{', '[':
			depth++
		case '}', ']':
			if depth == 0 {
				return true // of the object or list that holds the value
			}
			depth--
		case ',':
			if depth == 0 {
				return true
			}
		}
		r.at++
		if depth == 0 && r.at < len(r.data) && strings.IndexByte(",}] \t\r\n", r.data[r.at]) >= 0 {
			return true
		}
	}
	return false
}

// unlike refuses a value of another kind than wanted, or text that is no value.
func (r *reader) unlike(wanted string) error {
	found := ""
	switch c := r.peek(); {
	case c == '{':
		found = "an object"
	case c == '[':
		found = "an array"
	case c == '"':
		found = "a string"
	case c == '-' || c >= '0' && c <= '9':
		found = "a number"
	case r.word("null"):
		found = "null"
	case r.word("true"), r.word("false"):
		found = "a boolean"
	default:
		return r.malformed("a value is missing or misspelt")
	}
	return r.wrong("must be %s, not %s", wanted, found)
}

// malformed refuses text that is not JSON.
func (r *reader) malformed(format string, args ...any) error {
	return ErrMalformedJSON.Because("byte %d: %s", r.at, fmt.Sprintf(format, args...))
}

// wrong refuses valid JSON that does not fit the request, and says where.
func (r *reader) wrong(format string, args ...any) error {
	pointer := pointerOf(r.path)
	place := "the document"
	if len(r.path) > 0 {
		place = strings.TrimPrefix(pointer, "#")
	}
	return ErrInvalidRequest.At(pointer, "%s %s", place, fmt.Sprintf(format, args...))
}

// pointerOf returns a path as a JSON pointer in its form for URIs (RFC 6901, section 6). A name that
// is too long to be repeated ends the pointer.
func pointerOf(path []string) string {
	escape := strings.NewReplacer("~", "~0", "/", "~1")
	var out strings.Builder
	out.WriteByte('#')
	for _, name := range path {
		if len(name) > quotedMax {
			break
		}
		out.WriteString("/" + url.PathEscape(escape.Replace(name)))
	}
	return out.String()
}

// cut returns a client's text, or its beginning if it is long.
func cut(s string) string {
	return strings.ToValidUTF8(s[:min(len(s), quotedMax)], "\uFFFD")
}

// quotedMax is how many bytes of the client's text an answer repeats.
const quotedMax = 64

// Quote quotes a client's text for an answer, and cuts it if it is long.
func Quote[T ~string | ~[]byte](s T) string {
	if len(s) > quotedMax {
		return fmt.Sprintf("%q…", string(s)[:quotedMax])
	}
	return fmt.Sprintf("%q", string(s))
}
