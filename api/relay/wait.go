package relay

import (
	"context"
	"net/url"
	"slices"
	"sync"
	"time"

	"github.com/tempo-watchtower/watchtower/api/rest"
	"github.com/tempo-watchtower/watchtower/commands/relay/intake"
	"github.com/tempo-watchtower/watchtower/commands/tail"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
	"github.com/tempo-watchtower/watchtower/domain/relay/intent"
	"github.com/tempo-watchtower/watchtower/eventlog/handler"
)

// A milestone is a stage in an intent's life that a request can wait for.
type milestone struct {
	name string
	// reached reports whether the intent has reached the milestone.
	reached func(intent.State) bool
	// taken, when true, also needs an attempt that a node has taken.
	taken bool
}

// milestones are in the order of an intent's life. An intent that ended without reaching a
// milestone never reaches it. All but assigned have the same names and meanings for transactions of
// delivery.
func milestones() []milestone {
	return []milestone{
		{name: "accepted", reached: func(intent.State) bool { return true }},
		{name: "assigned", reached: func(s intent.State) bool { return s.Place != nil }},
		{name: "submitted", reached: intent.State.Landed, taken: true},
		{name: "mined", reached: intent.State.Landed},
		{name: "completed", reached: func(s intent.State) bool { return s.End != nil && s.End.Status == intent.StatusCompleted }},
	}
}

// wait is the milestone to wait for, and the timeout.
type wait struct {
	milestone
	timeout time.Duration
}

// readWait reads the milestone that a request wants to wait for; nil if it does not wait.
func readWait(q url.Values) (*wait, error) {
	var names []string
	for _, m := range milestones() {
		names = append(names, m.name)
	}
	name, timeout, err := rest.ReadWait(q, names...)
	if err != nil || name == "" {
		return nil, err
	}
	return &wait{milestones()[slices.Index(names, name)], timeout}, nil
}

// waitForAll waits for every accepted intent in turn, and stores the states that it has seen in
// all. This takes as long as the longest wait.
func (d *desk) waitForAll(r rest.Request, wanted *wait, all []intake.Answer) []*rest.Waited {
	out := make([]*rest.Waited, len(all))
	if wanted == nil {
		return out
	}
	wake, room := r.Rest()
	wake = sync.OnceFunc(wake)
	defer wake()
	ctx, stop := context.WithTimeout(r.Context(), wanted.timeout)
	defer stop()
	for i := range all {
		if all[i].Err != nil {
			continue
		}
		out[i] = &rest.Waited{For: wanted.name}
		if !room {
			out[i].Because = rest.WaitBusy
		} else if err := d.Tail.Until(ctx, d.look(*wanted, &all[i], out[i])); err != nil {
			out[i].Because = rest.WaitEnded(err)
		}
	}
	wake()
	d.lookAgain(r, *wanted, all, out)
	return out
}

// look returns a function that brings an intent's state up to date, and reports whether the wait is
// over. It reads new events alone: of the intent, and of the transactions that the milestone depends
// on. It sets w.Reached.
func (d *desk) look(wanted wait, seen *intake.Answer, w *rest.Waited) func(context.Context, *tail.Wait) (bool, error) {
	delivered := map[chain.Hash]handler.Result[tx.State]{}
	return func(ctx context.Context, waits *tail.Wait) (bool, error) {
		known := handler.Result[intent.State]{State: seen.State, Version: seen.Version}
		known, err := tail.Refresh(ctx, waits, stream(seen.State.Requested.ID), known, d.Intake.Refresh)
		if err != nil {
			return false, err
		}
		s := known.State
		seen.State, seen.Version = s, known.Version
		if w.Reached = wanted.reached(s); !w.Reached && wanted.taken {
			for _, hash := range s.Sent() {
				of := tx.Stream(s.Requested.Request.Chain, hash)
				if delivered[hash], err = d.Tail.Transaction(ctx, waits, of, delivered[hash]); err != nil {
					return false, err
				}
				w.Reached = w.Reached || delivered[hash].State.Taken()
			}
		}
		return w.Reached || s.End != nil, nil
	}
}

// lookAgain sets the result of each wait. If one intent took up all the time, the later ones
// were not looked at since they were accepted, and may have reached the milestone.
func (d *desk) lookAgain(r rest.Request, wanted wait, all []intake.Answer, out []*rest.Waited) {
	ctx, cancel := r.Work()
	defer cancel()
	for i, w := range out {
		if w == nil {
			continue
		}
		if w.Because != "" {
			if _, err := d.look(wanted, &all[i], w)(ctx, nil); err != nil {
				d.API.Log.WarnContext(ctx, "the intent could not be read after a wait", "request", r.ID(), "intent", all[i].State.Requested.ID.String(), "err", err)
			}
		}
		switch {
		case w.Reached:
			w.Because = ""
		case all[i].State.End != nil:
			w.Because = rest.WaitHopeless
		}
	}
}
