package rest

import (
	"context"
	"net/http"
	"strings"
	"time"
)

// absentStep is the grid of times at which a request by id is answered that found nothing to show:
// a whole number of steps after the search began. A search for another client's thing reads more
// than a search for an unknown id: its stream, or a page of it. That takes a fraction of a
// millisecond, or a few milliseconds if the stream is long or the machine is busy.
const absentStep = 10 * time.Millisecond

// A search is the look-up of one thing by its id. Things of other clients are not shown, and the
// time of the answer must not tell them from unknown ids.
type search struct {
	of    *exchange
	began time.Time
}

// search begins a search now.
func (on *exchange) search() search { return search{on, on.api.Now()} }

// foundNothing waits until the search has taken a whole number of steps, or ctx ends. The caller
// holds no place, lock or connection. The request does not count as in progress meanwhile.
func (s search) foundNothing(ctx context.Context) {
	leave, _ := s.of.rest() // without room it counts as in progress
	defer leave()
	took := max(s.of.api.Now().Sub(s.began), 0)
	s.of.api.pause(ctx, absentStep-took%absentStep)
}

// pause waits for d, or until ctx ends.
func (a *api) pause(ctx context.Context, d time.Duration) {
	if a.Pause != nil {
		a.Pause(ctx, d)
		return
	}
	over := time.NewTimer(d)
	defer over.Stop()
	select {
	case <-over.C:
	case <-ctx.Done():
	}
}

// hidden holds the problem of a request by id back that found nothing to show: see [search].
func (t route) hidden(r *http.Request, on *exchange, err error) {
	if strings.Contains(t.path, "{") && on.api.problem(err).Status == http.StatusNotFound {
		on.sought.foundNothing(r.Context())
	}
}
