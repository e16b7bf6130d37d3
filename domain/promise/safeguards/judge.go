// Package safeguards decides whether what keeps money safe has held. It is fed the events
// of the log in their order and names the first bad one at once, as package promise does
// for transactions; the two can be fed side by side. What stops a key and
// what a budget has left is followed by rules of its own, not by those of packages signer
// and budget: what is judged does not judge itself. Of each intent its client is kept.
//
// Whoever signs looks first whether it may, and records afterwards that it has. What is
// thrown in between is in the log before the signature, and was not broken by it: so
// much time is given, by the store's clock.
package safeguards

import (
	"fmt"
	"strings"
	"time"

	"github.com/tempo-watchtower/watchtower/domain/budget"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/event"
	"github.com/tempo-watchtower/watchtower/domain/intent"
	"github.com/tempo-watchtower/watchtower/domain/lane"
	"github.com/tempo-watchtower/watchtower/domain/promise"
	"github.com/tempo-watchtower/watchtower/domain/safeguard"
	"github.com/tempo-watchtower/watchtower/domain/signer"
)

// Settings say by which measure safeguards are judged.
type Settings struct {
	// Grace is how long after something was stopped what had been allowed before may
	// still be recorded.
	Grace time.Duration
	// Gas is the least that any transaction takes, so that what is reserved can be held
	// against the fee that an attempt offers: 21000 on chains of Ethereum's kind. 0 leaves
	// that out.
	Gas uint64
}

// Judge judges the safeguards of one history. It is not safe for use by several
// goroutines.
type Judge struct {
	s      Settings
	lane   event.Codec[lane.Event]
	intent event.Codec[intent.Event]
	signer event.Codec[signer.Event]
	halts  event.Codec[safeguard.Event]
	budget event.Codec[budget.Event]

	clients map[chain.IntentID]string
	ending  map[chain.IntentID]time.Time  // since when an open one is to end without effect
	halted  map[safeguard.Scope]time.Time // since when
	signers map[account]*key
	purses  map[chain.ID]*purse
	rows    map[chain.Sequence]row
	cases   promise.Cases
	found   []promise.Violation // by the event at hand
}

// New makes a judge of a history that begins with the first event of a log.
func New(s Settings) *Judge {
	return &Judge{
		s: s, lane: lane.Codec(), intent: intent.Codec(), signer: signer.Codec(), halts: safeguard.Codec(), budget: budget.Codec(),
		clients: map[chain.IntentID]string{}, ending: map[chain.IntentID]time.Time{}, halted: map[safeguard.Scope]time.Time{}, signers: map[account]*key{},
		purses: map[chain.ID]*purse{}, rows: map[chain.Sequence]row{},
	}
}

// Cases are those of each promise so far.
func (j *Judge) Cases() promise.Cases { return j.cases }

// broken notes a violation.
func (j *Judge) broken(p promise.Number, r event.Recorded, format string, args ...any) {
	j.found = append(j.found, promise.Violation{Promise: p, Stream: r.Stream, Position: r.Position, Evidence: fmt.Sprintf(format, args...)})
}

// Event judges the next event of the log. Those that neither stop nor sign add nothing.
func (j *Judge) Event(r event.Recorded) []promise.Violation {
	j.found = nil
	var err error
	switch name := string(r.Stream); {
	case strings.HasPrefix(name, signer.StreamPrefix):
		err = j.ofSigner(r)
	case r.Stream == safeguard.Stream:
		err = j.ofSwitches(r)
	case strings.HasPrefix(name, budget.StreamPrefix):
		err = j.ofBudget(r)
	case strings.HasPrefix(name, intent.StreamPrefix):
		err = j.ofIntent(r)
	case strings.HasPrefix(name, lane.StreamPrefix):
		err = j.ofLane(r)
	}
	if err != nil {
		j.broken(promise.P30, r, "%v", err)
	}
	return j.found
}

func (j *Judge) ofLane(r event.Recorded) error {
	id, err := lane.ParseStream(r.Stream)
	if err != nil {
		return err
	}
	e, err := j.lane.Decode(r.Name, r.Data)
	if err != nil {
		return err
	}
	if _, takes := e.(lane.Reserved); takes {
		j.takes(r, account{id.Chain, id.Sender})
	}
	if made, signs := e.(lane.Attempted); signs {
		j.signs(r, account{id.Chain, id.Sender}, made)
		j.signsFor(r, id.Chain, made)
	}
	j.holds(r, id, e)
	return nil
}

// ofIntent learns whose it is, and whether it is to be carried out.
func (j *Judge) ofIntent(r event.Recorded) error {
	id, err := intent.ParseStream(r.Stream)
	if err != nil {
		return err
	}
	e, err := j.intent.Decode(r.Name, r.Data)
	if err != nil {
		return err
	}
	switch e := e.(type) {
	case intent.Requested:
		j.clients[id] = e.Request.Client
	case intent.CancelRequested:
		j.ending[id] = r.At
	}
	return nil
}
