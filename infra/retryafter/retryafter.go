// Package retryafter reads the pause that an HTTP answer asks for. It has no dependencies
// within the project: every HTTP client of servers that may be busy uses it.
package retryafter

import (
	"net/http"
	"strconv"
	"time"
)

// Of is the pause that an answer asks for before the next request; 0 if there is none, or it is
// malformed. It may be years: the caller must bound it.
//
// Source: RFC 9110 section 10.2.3. A date counts from the answer's own Date, because the
// server's clock may differ from ours.
func Of(h http.Header) time.Duration {
	text := h.Get("Retry-After")
	if seconds, err := strconv.ParseUint(text, 10, 31); err == nil {
		return time.Duration(seconds) * time.Second
	}
	when, err := http.ParseTime(text)
	if err != nil {
		return 0
	}
	now, err := http.ParseTime(h.Get("Date"))
	if err != nil {
		return 0
	}
	return max(when.Sub(now), 0)
}
