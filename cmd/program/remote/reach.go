package remote

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
)

// reach sends a client's requests. It reports when the service becomes unreachable and when it
// is reachable again. Repeated failures are reported once.
type reach struct {
	next    http.RoundTripper
	ctx     context.Context //nolint:containedctx // whose end is nobody's failure; a request has one that ends before
	to      io.Writer
	program string
	state   string // last reported state; empty before the first report
}

// The states that reach reports.
const (
	reached     = "reachable again"
	unreachable = "not reachable, retrying"
	unready     = "reachable but not ready, retrying"
)

// passing are the status codes after which a client retries.
var passing = []int{ //nolint:gochecknoglobals // a constant
	http.StatusRequestTimeout, http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout,
}

// RoundTrip is called for one request at a time: a client that follows events sends one after
// the other.
func (r *reach) RoundTrip(req *http.Request) (*http.Response, error) {
	res, err := r.next.RoundTrip(req)
	switch {
	case err != nil && r.ctx.Err() == nil:
		if errors.Is(err, context.Canceled) {
			r.say(req.URL, unreachable, "no response in time")
		} else {
			r.say(req.URL, unreachable, err.Error())
		}
	case err != nil:
	case res.StatusCode == http.StatusOK:
		if r.state != "" {
			r.say(req.URL, reached, "")
		}
	case slices.Contains(passing, res.StatusCode):
		r.say(req.URL, unready, res.Status)
	}
	return res, err
}

func (r *reach) say(of *url.URL, state, why string) {
	if r.state == state {
		return
	}
	r.state = state
	if why != "" {
		state += ": " + why
	}
	fmt.Fprintf(r.to, "%s: %s://%s: %s\n", r.program, of.Scheme, of.Host, state) //nolint:errcheck // the events are what counts
}
