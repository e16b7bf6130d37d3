// Package scheduler is the process manager that turns events into a due queue, and due work
// into attempts. It imports commands, domain and eventlog, and no other process manager.
package scheduler

import (
	"fmt"
	"time"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
)

// Plan returns the change to the due queue that an event about a transaction causes.
// recorded is the event's time by the store's clock. ok is false for events without a
// change.
func Plan(schedule tx.Schedule, lead time.Duration, id chain.ID, hash chain.Hash, e tx.Event, recorded time.Time) (c tx.Change, ok bool) {
	c = tx.Change{Chain: id, Hash: hash}
	switch e := e.(type) {
	case tx.Accepted:
		c.Open = &tx.Work{
			Chain: e.Chain, Hash: e.Hash, Sender: e.Sender, NonceKey: e.NonceKey, Nonce: e.Nonce,
			Account: tx.AccountOf(e), Client: e.Client, Bytes: e.Bytes, Claimed: e.Claims(),
			EligibleAt: e.Opens(), ExpiresAt: e.Window.Before,
			Phase: tx.Open, NextAt: tx.FirstDue(e.Opens(), lead, recorded),
		}
	case tx.Broadcast:
		c.Attempt = attempted(schedule, hash, e.Attempt, e.At, tx.Outcome{Class: tx.Taken})
	case tx.Rejected:
		if e.Permanent {
			// A node may have accepted an earlier attempt whose reply was lost, and execute
			// a transaction that the others refuse.
			c.Watch = true
			break
		}
		c.Attempt = attempted(schedule, hash, e.Attempt, e.At, tx.Outcome{Class: e.Class, Cause: e.Cause, Message: e.Reason})
	case tx.Mined:
		c.Announce = &tx.Verdict{Status: tx.StatusExecuted, Block: e.Receipt.Block}
	case tx.StaleByNonce:
		c.Announce = &tx.Verdict{Status: tx.StatusStale, Block: e.Block}
	case tx.Expired:
		c.Announce = &tx.Verdict{Status: tx.StatusExpired, Block: e.Block}
	case tx.Reorged:
		c.Reopen = &tx.Reopened{To: tx.Open, At: e.At, Lead: lead}
		if e.Unwanted {
			c.Reopen.To = tx.Watched
		}
	case tx.Finalized:
		c.Seal = &tx.Verdict{Status: e.Verdict, Block: e.Block}
	case tx.CanceledLocally:
		if e.Verdict != tx.StatusAbsent {
			return c, false // an announced verdict stays; a reorg would mark it as unwanted
		}
		c.Watch = true
	case tx.FinalityViolated, tx.Retired:
		c.Close = true
	case tx.GroupConfirmed:
		c.Confirm = true
	case tx.Resubmitted, tx.PayloadErased, tx.GroupDoubted:
		return c, false
	default:
		panic(fmt.Sprintf("scheduler: unknown event %T", e))
	}
	return c, true
}

func attempted(s tx.Schedule, hash chain.Hash, n int, at time.Time, o tx.Outcome) *tx.Attempted {
	return &tx.Attempted{Number: n, At: at, NextAt: s.Next(hash, n, o, at, 0), Note: o.String()}
}
