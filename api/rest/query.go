package rest

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/tempo-watchtower/watchtower/domain/chain"
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
			return nil, BadParameter(cut(name), "there is no parameter %s, only: %s", Quote(name), strings.Join(known, ", "))
		case len(values[name]) > 1 && name != "status":
			return nil, BadParameter(name, "%s is given more than once", name)
		}
	}
	return values, nil
}

// lastEventID is the header by which a client continues a stream.
const lastEventID = "Last-Event-ID"

// span reads where a stream begins and ends. A client that was disconnected repeats its first
// request and adds the Last-Event-ID header.
func span(r *http.Request, q url.Values) (s Span, err error) {
	if s.UntilHead = q.Get("until") == "head"; !s.UntilHead && q.Has("until") {
		if s.Until, err = readPosition("until", q.Get("until")); err != nil {
			return s, err
		}
	}
	switch last := r.Header.Values(lastEventID); {
	case len(last) > 0:
		s.After, err = readPosition(lastEventID, last[0])
	case q.Has("after"):
		s.After, err = readPosition("after", q.Get("after"))
	}
	return s, err
}

// ReadAfter reads after which number a page of numbered events begins: after the cursor of the page
// before, or after the number in the parameter after, which noun describes. Without either it is 0.
// The text list tells one list from another: see [Request.Cursor].
func (r Request) ReadAfter(q url.Values, noun, list string) (uint64, error) {
	switch {
	case q.Has("after") && q.Has("cursor"):
		return 0, BadParameter("cursor", "after and cursor exclude each other")
	case q.Has("cursor"):
		at, err := r.ReadCursor(q.Get("cursor"), list)
		return uint64(at), err
	case !q.Has("after"):
		return 0, nil
	}
	n, err := strconv.ParseUint(q.Get("after"), 10, 63)
	if err != nil {
		return 0, BadParameter("after", "after must be %s, not %s", noun, Quote(q.Get("after")))
	}
	return n, nil
}

// ReadChain reads the parameter chainId of a query: a number, or CAIP-2; 0 if it is missing.
func ReadChain(q url.Values) (chain.ID, error) {
	if !q.Has("chainId") {
		return 0, nil
	}
	id, err := chain.ParseNamed(q.Get("chainId"))
	switch {
	case errors.Is(err, chain.ErrNoNumber):
		return 0, BadParameter("chainId", "chain %s is not served here", Quote(q.Get("chainId")))
	case err != nil:
		return 0, BadParameter("chainId", "chainId %s is neither a positive decimal number nor a chain by CAIP-2, such as eip155:1", Quote(q.Get("chainId")))
	}
	return id, nil
}

func readPosition(what, text string) (*eventlog.Position, error) {
	n, err := strconv.ParseUint(text, 10, 63)
	if err != nil {
		refused := ErrInvalidFilter.Because("%s must be a position, not %s", what, Quote(text))
		if what == lastEventID {
			return nil, inHeader(what, refused)
		}
		return nil, InParameter(what, refused)
	}
	at := eventlog.Position(n)
	return &at, nil
}

// positionText is a position in the form in which clients return it.
func positionText(p eventlog.Position) string { return fmt.Sprint(uint64(p)) }
