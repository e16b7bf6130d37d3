package api

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tempo-watchtower/watchtower/commands"
	"github.com/tempo-watchtower/watchtower/commands/tail"
	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
)

// How long a request may wait. Proxies commonly cut a connection after a minute of silence.
const (
	waitDefault = 20 * time.Second
	waitMax     = 55 * time.Second
)

// A milestone is a stage in a transaction's life that a request can wait for.
type milestone struct {
	name string
	// reached reports whether the transaction has reached the milestone.
	reached func(tx.State) bool
	// hopeless reports whether the milestone is not reached and, as things are, will not be.
	hopeless func(tx.State) bool
}

// milestones are in the order of a transaction's life.
var milestones = [...]milestone{
	{
		"accepted",
		func(s tx.State) bool { return s.Status != tx.StatusAbsent },
		func(tx.State) bool { return false },
	},
	{
		"broadcast",
		func(s tx.State) bool { return s.Handed || s.Verdict == tx.StatusExecuted },
		func(s tx.State) bool { return s.Status != tx.StatusAbsent && !s.Sendable() },
	},
	{
		"executed",
		func(s tx.State) bool { return s.Verdict == tx.StatusExecuted },
		func(s tx.State) bool { return s.Status != tx.StatusAbsent && !s.Sendable() },
	},
	{
		"final", // with any verdict
		func(s tx.State) bool { return s.Sealed },
		func(s tx.State) bool { return s.Settled() },
	},
}

// wait is the milestone to wait for, and the timeout.
type wait struct {
	milestone
	timeout time.Duration
}

// waited is the result of a wait.
type waited struct {
	For     string `json:"for"`
	Reached bool   `json:"reached"`
	// Because says why the milestone is not reached: it no longer can be (ended), or the wait
	// ended first (timeout, stopping, busy, unavailable).
	Because string `json:"because,omitempty"`
}

// inVain reports whether the wait ended while the milestone could still be reached.
func (w *waited) inVain() bool { return w != nil && !w.Reached && w.Because != becauseEnded }

const (
	becauseEnded       = "ended"
	becauseBusy        = "busy"
	becauseUnavailable = "unavailable"
)

// wait reads the milestone that a request wants to wait for; nil if it does not wait.
func (p parameters) wait() (*wait, error) {
	names := make([]string, len(milestones))
	for i, m := range milestones {
		names[i] = m.name
	}
	name, timeout, err := p.awaited(names)
	if err != nil || name == "" {
		return nil, err
	}
	return &wait{milestones[slices.Index(names, name)], timeout}, nil
}

// awaited reads which of the names a request wants to wait for, and for how long. The name is
// empty if the request does not wait.
func (p parameters) awaited(names []string) (name string, timeout time.Duration, err error) {
	if !p.values.Has("wait") {
		if p.values.Has("timeout") {
			return "", 0, ErrInvalidFilter.Because("timeout without wait")
		}
		return "", 0, nil
	}
	name, timeout = p.one("wait"), waitDefault
	if !slices.Contains(names, name) {
		last := len(names) - 1
		return "", 0, ErrInvalidFilter.Because("wait must be %s or %s, not %s", strings.Join(names[:last], ", "), names[last], quote(name))
	}
	if p.values.Has("timeout") {
		d, ok := readTimeout(p.one("timeout"))
		if !ok || d < 0 || d > waitMax {
			return "", 0, ErrInvalidFilter.Because("timeout must be from 0 to %d seconds, such as 20 or 1.5s, not %s",
				waitMax/time.Second, quote(p.one("timeout")))
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

// waitFor waits for one transaction.
func (a *api) waitFor(w http.ResponseWriter, r *http.Request, wanted wait, t tx.Accepted) *waited {
	all := []commands.Submission{{State: tx.State{Accepted: t}}}
	return a.waitForAll(w, r, wanted, all)[0]
}

// waitForAll waits for every accepted transaction in turn, and stores the states that it has
// seen in all. This takes as long as the longest wait.
func (a *api) waitForAll(w http.ResponseWriter, r *http.Request, wanted wait, all []commands.Submission) []*waited {
	defer a.idle(w, r)()
	waiting, stop := context.WithTimeout(r.Context(), wanted.timeout)
	defer stop()
	out := make([]*waited, len(all))
	leave, room := exchangeOf(r).rest()
	defer leave()
	for i := range all {
		if all[i].Err != nil {
			continue
		}
		if !room {
			out[i] = &waited{For: wanted.name, Because: becauseBusy}
			continue
		}
		t := all[i].State.Accepted
		over := func(s tx.State) bool { return wanted.reached(s) || wanted.hopeless(s) }
		s, err := a.Tail.Await(waiting, t.Chain, t.Hash, over)
		if s.Status != tx.StatusAbsent {
			all[i].State = s
		}
		out[i] = &waited{For: wanted.name}
		if err != nil {
			if out[i].Because = because(err); out[i].Because == becauseUnavailable {
				a.Log.WarnContext(r.Context(), "wait ended early", "request", exchangeOf(r).id, "tx", t.Hash.String(), "err", err)
			}
		}
	}
	a.lookAgain(r, wanted, all, out)
	return out
}

// lookAgain sets the result of each wait. If one transaction took up all the time, the later
// ones were not looked at since they were accepted, and may have reached the milestone.
func (a *api) lookAgain(r *http.Request, wanted wait, all []commands.Submission, out []*waited) {
	ctx, cancel := a.work(r)
	defer cancel()
	for i, waited := range out {
		if waited == nil {
			continue
		}
		if waited.Because != "" {
			t := all[i].State.Accepted
			if loaded, err := a.Submit.Transactions.Load(ctx, tx.Stream(t.Chain, t.Hash)); err == nil {
				all[i].State = loaded.State
			}
		}
		switch s := all[i].State; {
		case wanted.reached(s):
			waited.Reached, waited.Because = true, ""
		case wanted.hopeless(s):
			waited.Because = becauseEnded
		}
	}
}

func because(err error) string {
	switch {
	case errors.Is(err, tail.ErrLeaving):
		return "stopping"
	case errors.Is(err, tail.ErrTooManyWaiters):
		return becauseBusy
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return "timeout"
	}
	return becauseUnavailable
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
