// Package retryafter reads how long an HTTP answer asks to wait. It is a leaf: all who
// speak HTTP with servers that may be busy read it here.
package retryafter

import (
	"net/http"
	"strconv"
	"time"
)

// Of is how long an answer asks to wait before the next request; 0 when it does not, or
// in words that are none. It may be years: whoever waits bounds it.
//
// Source: RFC 9110 section 10.2.3. A date counts from the answer's own Date, for the
// server's clock may be another than ours.
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
