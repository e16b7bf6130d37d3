package rest

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tempo-watchtower/watchtower/commands/tail"
)

// How long a request may wait. Proxies commonly cut a connection after a minute of silence.
const (
	waitDefault = 20 * time.Second
	waitMax     = 55 * time.Second
)

// Waited is the result of a wait.
type Waited struct {
	For     string `json:"for"`
	Reached bool   `json:"reached"`
	// Because says why the milestone is not reached: it no longer can be (ended), or the wait
	// ended first (timeout, stopping, busy, unavailable).
	Because string `json:"because,omitempty"`
}

// InVain reports whether the wait ended while the goal could still be reached.
func (w *Waited) InVain() bool { return w != nil && !w.Reached && w.Because != WaitHopeless }

// Reasons for a wait that did not reach its goal: see [WaitEnded] for more.
const (
	WaitHopeless    = "ended" // it can no longer be reached
	WaitBusy        = "busy"
	WaitUnavailable = "unavailable"
)

// ReadWait reads which of the names a request wants to wait for, and for how long. name is
// empty if the request does not wait.
func ReadWait(q url.Values, names ...string) (name string, timeout time.Duration, err error) {
	if !q.Has("wait") {
		if q.Has("timeout") {
			return "", 0, BadParameter("timeout", "timeout without wait")
		}
		return "", 0, nil
	}
	name, timeout = q.Get("wait"), waitDefault
	if !slices.Contains(names, name) {
		last := len(names) - 1
		return "", 0, BadParameter("wait", "wait must be %s or %s, not %s", strings.Join(names[:last], ", "), names[last], Quote(name))
	}
	if q.Has("timeout") {
		d, ok := readTimeout(q.Get("timeout"))
		if !ok || d < 0 || d > waitMax {
			return "", 0, BadParameter("timeout", "timeout must be from 0 to %d seconds, such as 20 or 1.5s, not %s",
				waitMax/time.Second, Quote(q.Get("timeout")))
		}
		timeout = d
	}
	return name, timeout, nil
}

// readTimeout reads seconds, or a duration with its unit.
func readTimeout(text string) (time.Duration, bool) {
	if n, err := strconv.ParseUint(text, 10, 16); err == nil {
		return time.Duration(n) * time.Second, true
	}
	d, err := time.ParseDuration(text)
	return d, err == nil && !strings.HasPrefix(text, "+")
}

// WaitEnded returns the reason why a wait ended early.
func WaitEnded(err error) string {
	switch {
	case errors.Is(err, tail.ErrLeaving):
		return "stopping"
	case errors.Is(err, tail.ErrTooManyWaiters):
		return WaitBusy
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return "timeout"
	}
	return WaitUnavailable
}

// idle lets a request wait longer than WriteTimeout, which is meant for clients that read
// slowly. The returned wake ends the wait. Deadlines of sockets use the machine's clock.
func (a *api) idle(w http.ResponseWriter, r *http.Request) (wake func()) {
	began := a.Now()
	return func() {
		on := exchangeOf(r)
		on.began = on.began.Add(a.Now().Sub(began))
		_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(a.Limits.WriteTimeout)) // if this fails, the usual deadline holds
	}
}
