package rest

import (
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/tempo-watchtower/watchtower/eventlog"
)

// readQuery refuses unknown names: a misspelt filter must not list everything. Only status may
// occur more than once.
func readQuery(r *http.Request, known ...string) (url.Values, error) {
	values, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return nil, ErrInvalidFilter.Because("the query is not well escaped")
	}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		switch {
		case !slices.Contains(known, name):
			return nil, ErrInvalidFilter.Because("there is no parameter %s, only: %s", Quote(name), strings.Join(known, ", "))
		case len(values[name]) > 1 && name != "status":
			return nil, ErrInvalidFilter.Because("%s is given more than once", name)
		}
	}
	return values, nil
}

// span reads where a stream begins and ends. A client that was disconnected repeats its first
// request and adds the Last-Event-ID header.
func span(r *http.Request, q url.Values) (s Span, err error) {
	if s.UntilHead = q.Get("until") == "head"; !s.UntilHead && q.Has("until") {
		if s.Until, err = readPosition("until", q.Get("until")); err != nil {
			return s, err
		}
	}
	switch last := r.Header.Values("Last-Event-ID"); {
	case len(last) > 0:
		s.After, err = readPosition("Last-Event-ID", last[0])
	case q.Has("after"):
		s.After, err = readPosition("after", q.Get("after"))
	}
	return s, err
}

func readPosition(what, text string) (*eventlog.Position, error) {
	n, err := strconv.ParseUint(text, 10, 63)
	if err != nil {
		return nil, ErrInvalidFilter.Because("%s must be a position, not %s", what, Quote(text))
	}
	at := eventlog.Position(n)
	return &at, nil
}

// positionText is a position in the form in which clients return it.
func positionText(p eventlog.Position) string { return fmt.Sprint(uint64(p)) }
