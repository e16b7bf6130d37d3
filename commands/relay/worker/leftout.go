package worker

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
	"github.com/tempo-watchtower/watchtower/domain/relay/fee"
)

// Blocks may leave out a transaction that a node has taken: a pool may check less than a block
// does, and some endpoints take anything. An example is an intent with too little gas for its
// data. It offers enough, so a higher fee does not help, and all later nonces wait. It gives way
// too. As a node has taken it, it may still be mined until a final block has used its nonce. So
// the no-op only competes with it.

// leftOutMost is the number of stalls after which the first waiting nonce's intent gives way. A
// stall counts if there are new blocks since the one before, and a node has taken an attempt that
// offers what gas costs. See [actor.stallsFor] for less patience.
const leftOutMost = 4

// countStall counts a stall of the first waiting nonce.
func (a *actor) countStall(ctx context.Context, s standing) error {
	if !a.front.grew || !a.isReplaceable(s) {
		return nil
	}
	if err := a.read(ctx, s); err != nil { // lanes get no news of transactions that nodes take
		return err
	}
	offers, err := a.isOffering(ctx, s)
	if offers {
		a.front.leftOut++
	}
	return err
}

// isOffering reports whether a node has taken an attempt that offers what gas costs now.
func (a *actor) isOffering(ctx context.Context, s standing) (bool, error) {
	for _, made := range slices.Backward(s.Attempts) {
		if !s.isTaken(made.Hash) {
			continue
		}
		_, err := a.Fees.Offer(ctx, fee.Terms{NoOp: true, Legacy: a.Format.Type == 0, Sender: a.ID.Sender, MaxFee: made.Fee.MaxFee})
		return err == nil, unlessRefused(err)
	}
	return false, nil
}

// isTaken reports whether a node has ever taken an attempt.
func (s standing) isTaken(hash chain.Hash) bool {
	_, taken := s.txs[hash].Recorded[string(tx.Taken)]
	return taken
}

// isLeftOut reports whether blocks have left the first waiting nonce's intent out for so long
// that it gives way.
func (a *actor) isLeftOut(s standing) bool {
	return a.front.nonce == s.Nonce && a.front.leftOut >= a.stallsFor(s)
}

// stallsFor returns the number of stalls after which an intent gives way. It is [leftOutMost],
// halved for each time that the intent gave way before, or that blocks lately left out an intent
// of its client. It is 1 if an endpoint refuses an attempt for good.
func (a *actor) stallsFor(s standing) int {
	if s.denial() != "" {
		return 1
	}
	before := max(len(s.job.intent.State.GaveWay), a.penalties[clientOf(s.job)].leftOut)
	return max(leftOutMost>>before, 1)
}

// isLeftOutWith reports whether an intent gives way with the front of its client, as blocks leave
// that out, and lately left out another one of the client's. After the first, the client's other
// intents stay: most clients make one such mistake. An intent that later intents of its ordering
// group wait for stays too: it would fail.
func (a *actor) isLeftOutWith(s, front standing) bool {
	return a.isLeftOut(front) && a.penalties[clientOf(front.job)].leftOut > 0 && a.followers(s) == 0
}

// whyLeftOut returns why an intent gives way that blocks leave out.
func (s standing) whyLeftOut() string {
	if denial := s.denial(); denial != "" {
		return fmt.Sprintf("%s, and a node refuses it: %s", reasonLeftOut, denial)
	}
	return reasonLeftOut
}

// denials are endpoints' words, by endpoint, if the last recorded answer refuses the content of a
// transaction for good. It is no verdict: another endpoint may have taken the transaction.
type denials map[string]string

// see folds the answers to a broadcast.
func (d *denials) see(answers []tx.Answer) {
	for _, answer := range answers {
		switch {
		case answer.Class == tx.Permanent && answer.Cause == "":
			if *d == nil {
				*d = denials{}
			}
			(*d)[answer.Endpoint] = answer.Message
		case answer.Class != tx.Unknown: // no answer says nothing
			delete(*d, answer.Endpoint)
		}
	}
}

// denial returns an endpoint's words if one refuses an attempt at the nonce for good; empty if
// none does.
func (s standing) denial() string {
	for _, made := range slices.Backward(s.Attempts) {
		if d := s.txs[made.Hash].denials; len(d) > 0 {
			return d[slices.Min(slices.Collect(maps.Keys(d)))]
		}
	}
	return ""
}
