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

// parameters are a request's query parameters, all with known names.
type parameters struct{ values url.Values }

// readParameters refuses unknown names: a misspelt filter must not list everything. Only status
// may occur more than once.
func readParameters(r *http.Request, known ...string) (parameters, error) {
	values, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return parameters{}, ErrInvalidFilter.Because("the query is not well escaped")
	}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		switch {
		case !slices.Contains(known, name):
			return parameters{}, ErrInvalidFilter.Because("there is no parameter %s, only: %s", Quote(name), strings.Join(known, ", "))
		case len(values[name]) > 1 && name != "status":
			return parameters{}, ErrInvalidFilter.Because("%s is given more than once", name)
		}
	}
	return parameters{values}, nil
}

func (p parameters) one(name string) string { return p.values.Get(name) }

// span reads where a stream begins and ends. A client that was disconnected repeats its first
// request and adds the Last-Event-ID header.
func (p parameters) span(r *http.Request) (s Span, err error) {
	if s.UntilHead = p.one("until") == "head"; !s.UntilHead && p.values.Has("until") {
		if s.Until, err = readPosition("until", p.one("until")); err != nil {
			return s, err
		}
	}
	switch last := r.Header.Values("Last-Event-ID"); {
	case len(last) > 0:
		s.After, err = readPosition("Last-Event-ID", last[0])
	case p.values.Has("after"):
		s.After, err = readPosition("after", p.one("after"))
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
