// Package safeguards checks that the safeguards of money hold. It gets the log's events in order
// and reports a violation at once, like package promise for transactions; both can run side by
// side. It follows the stops of keys and the budgets by rules of its own, independent of packages
// signer and budget, so that the judged code does not judge itself. It keeps the client of each
// intent.
//
// A signing process checks first whether it may sign, and records the attempt afterwards. A stop
// may be recorded in between, and is not violated by that attempt. Grace, by the store's clock,
// allows for this.
package safeguards

import (
	"fmt"
	"strings"
	"time"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/relay/budget"
	"github.com/tempo-watchtower/watchtower/domain/relay/intent"
	"github.com/tempo-watchtower/watchtower/domain/relay/lane"
	"github.com/tempo-watchtower/watchtower/domain/relay/safeguard"
	"github.com/tempo-watchtower/watchtower/domain/relay/signer"
	"github.com/tempo-watchtower/watchtower/eventlog"
	"github.com/tempo-watchtower/watchtower/proof/promises"
)

// Settings are the limits for safeguards.
type Settings struct {
	// Grace is how long after a stop an attempt allowed before it may still be recorded.
	Grace time.Duration
	// Gas is the least gas of any transaction, used to compare a reservation with an attempt's
	// fee: 21000 on chains like Ethereum. 0 skips the comparison.
	Gas uint64
}

// Judge judges the safeguards of one history. It is not safe for concurrent use.
type Judge struct {
	s      Settings
	lane   eventlog.Codec[lane.Event]
	intent eventlog.Codec[intent.Event]
	signer eventlog.Codec[signer.Event]
	halts  eventlog.Codec[safeguard.Event]
	budget eventlog.Codec[budget.Event]

	clients map[chain.IntentID]string
	ending  map[chain.IntentID]time.Time  // since when an intent is to end without effect
	halted  map[safeguard.Scope]time.Time // since when each scope is halted
	signers map[account]*key
	purses  map[chain.ID]*purse
	rows    map[chain.Sequence]row
	cases   promises.Cases
	found   []promises.Violation // by the current event
}

// New returns a judge of a history that begins with the first event of a log.
func New(s Settings) *Judge {
	return &Judge{
		s: s, lane: lane.Codec(), intent: intent.Codec(), signer: signer.Codec(), halts: safeguard.Codec(), budget: budget.Codec(),
		clients: map[chain.IntentID]string{}, ending: map[chain.IntentID]time.Time{}, halted: map[safeguard.Scope]time.Time{}, signers: map[account]*key{},
		purses: map[chain.ID]*purse{}, rows: map[chain.Sequence]row{},
	}
}

// Cases returns the cases of each promise so far.
func (j *Judge) Cases() promises.Cases { return j.cases }

// broken records a violation.
func (j *Judge) broken(p promises.Number, r eventlog.Recorded, format string, args ...any) {
	j.found = append(j.found, promises.Violation{Promise: p, Stream: r.Stream, Position: r.Position, Evidence: fmt.Sprintf(format, args...)})
}

// Event judges the next event of the log. Events that neither stop nor sign have no effect.
func (j *Judge) Event(r eventlog.Recorded) []promises.Violation {
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
		j.broken(promises.P30, r, "%v", err)
	}
	return j.found
}

func (j *Judge) ofLane(r eventlog.Recorded) error {
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

// ofIntent records an intent's client and whether it is to end without effect.
func (j *Judge) ofIntent(r eventlog.Recorded) error {
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
