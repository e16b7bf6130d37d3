package worker

import (
	"errors"
	"fmt"

	"github.com/tempo-watchtower/watchtower/domain/relay/intent"
)

// The gas of a block is limited, and transactions of a lane land in nonce order: an intent
// with much gas delays all intents behind it by a block or more. Fair turns count intents;
// this file bounds their gas.

// clientGas bounds the gas that one client has in flight in a lane. Its first intent is
// always allowed. The bound is four of the largest transactions that Ethereum accepts
// (EIP-7825), about one block.
const clientGas = 1 << 26

// errHeavy: the client has too much gas in flight. The intent is claimed again later.
var errHeavy = errors.New("the client has too much gas in flight")

// light refuses requests that exceed the client's clientGas, counting intents in flight and
// the requests before. After one refusal it refuses all later requests of the same client,
// to keep their order. Entries of answers that are not nil already are skipped.
func (a *actor) light(requests []*intent.Request, answers []error) {
	flying, full := map[string]uint64{}, map[string]bool{}
	for _, s := range a.slots() {
		if s.id.IsZero() || s.Landed != nil || s.seen() {
			continue
		}
		r := s.job.intent.State.Requested.Request
		flying[r.Client] += weightOf(s.job, r)
	}
	for i, r := range requests {
		if answers[i] != nil {
			continue
		}
		had, more := flying[r.Client], weightOf(a.ready[i], *r)
		if full[r.Client] = full[r.Client] || had > 0 && had+more > clientGas; full[r.Client] {
			answers[i] = fmt.Errorf("%w: %d, and the intent needs %d", errHeavy, had, more)
			a.weighed = a.held.State.InFlight()
			continue
		}
		flying[r.Client] = had + more
	}
}

// weightOf returns the gas limit of an intent, or ordinaryGas if the limit is not known
// yet.
func weightOf(j *job, r intent.Request) uint64 {
	if weight := max(j.gas, r.Gas.Limit); weight != 0 {
		return weight
	}
	return ordinaryGas
}
