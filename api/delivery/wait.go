package delivery

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/tempo-watchtower/watchtower/api/rest"
	"github.com/tempo-watchtower/watchtower/commands"
	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
)

// A milestone is a stage in a transaction's life that a request can wait for.
type milestone struct {
	name string
	// reached reports whether the transaction has reached the milestone.
	reached func(tx.State) bool
	// hopeless reports whether the milestone is not reached and, as things are, will not be.
	hopeless func(tx.State) bool
}

// milestones are in the order of a transaction's life. accepted, submitted, mined and completed have
// the same names and meanings for intents of the relay.
var milestones = [...]milestone{
	{"accepted", func(s tx.State) bool { return s.Status != tx.StatusAbsent }, func(tx.State) bool { return false }},
	{"submitted", tx.State.Taken, unsent},
	{"mined", executed, unsent},
	{"completed", func(s tx.State) bool { return s.Sealed && executed(s) }, tx.State.Settled},
	// The names of version 0.1.
	{"broadcast", func(s tx.State) bool { return s.Handed || executed(s) }, unsent},
	{"executed", executed, unsent},
	{"final", func(s tx.State) bool { return s.Sealed }, tx.State.Settled}, // with any verdict
}

func executed(s tx.State) bool { return s.Verdict == tx.StatusExecuted }

// unsent reports whether the bytes are sent no more.
func unsent(s tx.State) bool { return s.Status != tx.StatusAbsent && !s.Sendable() }

// wait is the milestone to wait for, and the timeout.
type wait struct {
	milestone
	timeout time.Duration
}

// wait reads the milestone that a request wants to wait for; nil if it does not wait.
func (p parameters) wait() (*wait, error) {
	names := make([]string, len(milestones))
	for i, m := range milestones {
		names[i] = m.name
	}
	name, timeout, err := rest.ReadWait(p.values, names...)
	if err != nil || name == "" {
		return nil, err
	}
	return &wait{milestones[slices.Index(names, name)], timeout}, nil
}

// waitFor waits for one transaction.
func (a *api) waitFor(r rest.Request, wanted wait, t tx.Accepted) *rest.Waited {
	all := []commands.Submission{{State: tx.State{Accepted: t}}}
	return a.waitForAll(r, wanted, all)[0]
}

// waitForAll waits for every accepted transaction in turn, and stores the states that it has
// seen in all. This takes as long as the longest wait.
func (a *api) waitForAll(r rest.Request, wanted wait, all []commands.Submission) []*rest.Waited {
	wake, room := r.Rest()
	wake = sync.OnceFunc(wake)
	defer wake()
	waiting, stop := context.WithTimeout(r.Context(), wanted.timeout)
	defer stop()
	out := make([]*rest.Waited, len(all))
	for i := range all {
		if all[i].Err != nil {
			continue
		}
		if !room {
			out[i] = &rest.Waited{For: wanted.name, Because: rest.WaitBusy}
			continue
		}
		t := all[i].State.Accepted
		over := func(s tx.State) bool { return wanted.reached(s) || wanted.hopeless(s) }
		s, err := a.Tail.Await(waiting, t.Chain, t.Hash, over)
		if s.Status != tx.StatusAbsent {
			all[i].State = s
		}
		out[i] = &rest.Waited{For: wanted.name}
		if err != nil {
			if out[i].Because = rest.WaitEnded(err); out[i].Because == rest.WaitUnavailable {
				a.Log.WarnContext(r.Context(), "wait ended early", "request", r.ID(), "tx", t.Hash.String(), "err", err)
			}
		}
	}
	wake() // the time of the wait is not the work's
	a.lookAgain(r, wanted, all, out)
	return out
}

// lookAgain sets the result of each wait. If one transaction took up all the time, the later
// ones were not looked at since they were accepted, and may have reached the milestone.
func (a *api) lookAgain(r rest.Request, wanted wait, all []commands.Submission, out []*rest.Waited) {
	ctx, cancel := r.Work()
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
			waited.Because = rest.WaitHopeless
		}
	}
}
