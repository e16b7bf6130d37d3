package main

import (
	"time"

	"github.com/tempo-watchtower/watchtower/cmd/program/verify"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/relay/fee"
	"github.com/tempo-watchtower/watchtower/eventlog"
	"github.com/tempo-watchtower/watchtower/proof/promises"
	"github.com/tempo-watchtower/watchtower/proof/promises/intents"
	"github.com/tempo-watchtower/watchtower/proof/promises/lanes"
	"github.com/tempo-watchtower/watchtower/proof/promises/safeguards"
)

const verifyHelp = `

It also judges lanes, intents and safeguards: no nonce was assigned twice, no former holder
of a lane wrote to it, each intent was carried out once, and budgets and halts were kept.
"relayer projections verify" compares the read model of intents with the log.`

// stopGrace is the time after a halt, or after a signer was stopped, in which signatures allowed
// before may still be recorded.
const stopGrace = time.Minute

// judges judge the relay's promises, from the log alone.
func judges() []verify.Judge {
	nonces, wishes := lanes.New(lanes.Settings{}), intents.New()
	kept := safeguards.New(safeguards.Settings{Grace: stopGrace, Gas: fee.GasMin})
	return []verify.Judge{
		judged{nonces.Event, func() []promises.Violation { return nonces.Finish(time.Now()) }},
		judged{wishes.Event, func() []promises.Violation { return wishes.Finish(nobody, false) }},
		judged{kept.Event, func() []promises.Violation { return nil }},
	}
}

// nobody returns no chain: delivery's checks compare the transactions with the chain.
func nobody(chain.ID) promises.Chain { return nil }

// judged adapts a judge of the domain.
type judged struct {
	event  func(eventlog.Recorded) []promises.Violation
	finish func() []promises.Violation
}

// Event judges an event.
func (j judged) Event(r eventlog.Recorded) []promises.Violation { return j.event(r) }

// Finish returns the violations that show only at the end.
func (j judged) Finish() []promises.Violation { return j.finish() }
