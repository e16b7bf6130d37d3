package history

import (
	"fmt"
	"strings"

	"github.com/tempo-watchtower/watchtower/domain/relay/intent"
	"github.com/tempo-watchtower/watchtower/domain/relay/lane"
	"github.com/tempo-watchtower/watchtower/domain/relay/signer"
)

// whyIntent explains an event of an intent.
func whyIntent(before, after intent.State, e intent.Event) string {
	switch e := e.(type) {
	case intent.Requested:
		return "The client's request was accepted. It waits for a nonce in a lane of " + e.Request.From.Name() + "."
	case intent.Assigned:
		return fmt.Sprintf("Lane holder %d gave it nonce %d of %s: assignment %d.", e.Token, e.Place.Nonce, e.Place.Signer, e.Assignment)
	case intent.TakenOver:
		return fmt.Sprintf("The lane has a new holder with token %d, which continues with the same nonce.", e.Token)
	case intent.Requeued:
		return requeued(e)
	case intent.Attempted:
		return attemptedIntent(e)
	case intent.CancelRequested:
		return "It is to end without effect (" + withDetail(string(e.Reason), e.Detail) + "). It may be signed already, so it ends when a block decides."
	case intent.SpeedUpRequested:
		return "The client asked for at least " + e.Fee.String() + " per unit of gas from the next attempt on."
	case intent.YieldRequested:
		return "An operator asked for its nonce back, for which nothing was signed: " + e.Detail + "."
	case intent.GiveWayRequested:
		return "A no-op is to replace it, so that later nonces do not wait: " + e.Detail + ". Then it waits for another nonce."
	case intent.Announced:
		return announced(e)
	case intent.Reorged:
		return fmt.Sprintf("Block %d, on which its end rested, left the chain. The end is withdrawn.", e.Was.Number)
	case intent.Completed:
		if e.Despite != "" {
			return fmt.Sprintf("Block %d contains it for good, although it was to end without effect (%s): it was mined before that could stop it.", e.Block.Number, e.Despite)
		}
		return fmt.Sprintf("Block %d, which contains its transaction %s, counts as final.", e.Block.Number, e.Hash)
	case intent.Failed:
		return "It is not carried out: " + withDetail(string(e.Reason), e.Detail) + "."
	case intent.Canceled:
		return "It ended without effect, as its client asked."
	}
	return ""
}

func requeued(e intent.Requeued) string {
	switch e.Evidence.Kind {
	case intent.Released:
		return "It gave its nonce back before anything was signed, and waits for another."
	case intent.Rival:
		return fmt.Sprintf("Final block %d used its nonce with another transaction. None of its attempts can be mined, so it waits for another nonce.", e.Evidence.Block.Number)
	case intent.Lapsed:
		return fmt.Sprintf("The validity of every attempt ended before final block %d, and the chain has none of them. It waits for another nonce.", e.Evidence.Block.Number)
	case intent.Filled:
		return fmt.Sprintf("Final block %d used its nonce with the no-op that it gave way to. It waits for another nonce.", e.Evidence.Block.Number)
	}
	return "It lost its nonce, and waits for another."
}

func attemptedIntent(e intent.Attempted) string {
	kind := map[intent.AttemptKind]string{
		intent.First: "the first at its nonce", intent.Bump: "the same at a higher fee", intent.NoOp: "a no-op that uses its nonce up instead",
	}[e.Kind]
	return fmt.Sprintf("Attempt %d was signed, %s: %s. From here on any node may have it.", e.Attempt, kind, e.Hash)
}

func announced(e intent.Announced) string {
	switch {
	case e.Kind == intent.AboutReceipt && e.Receipt == nil:
		return "No block contains it any more; the client was told so."
	case e.Kind == intent.AboutReceipt:
		return fmt.Sprintf("Block %d contains attempt %s, with receipt status %d.", e.Receipt.Block.Number, e.Hash, e.Receipt.Status)
	case e.NewFork:
		return fmt.Sprintf("Other blocks replaced those reported before; all %d were reported again.", len(e.Confirmations))
	}
	return fmt.Sprintf("%d more blocks on top of it were reported.", len(e.Confirmations))
}

// whyLane explains an event of a lane.
func whyLane(before, after lane.State, e lane.Event) string {
	switch e := e.(type) {
	case lane.Opened:
		was := "Nobody held it before."
		if before.Holder != "" {
			was = fmt.Sprintf("Before, %s held it, with token %d: its writes are refused from here on.", before.Holder, before.Token)
		}
		return fmt.Sprintf("%s holds the lane, with token %d. %s", e.Holder, e.Token, was)
	case lane.Advanced:
		return fmt.Sprintf("The chain expects nonce %d, by %s. The cursor goes there from %d.", e.Witness.Nonce, strings.Join(e.Witness.Endpoints, ", "), e.From)
	case lane.Reserved:
		return fmt.Sprintf("%d intents got new nonces from %d on, and %d got nonces that were free again.", len(e.Intents), e.First, len(e.Reissued))
	case lane.Released:
		return fmt.Sprintf("Intent %s gave nonce %d back, for which nothing was signed: %s.", e.Intent, e.Nonce, e.Reason)
	case lane.Filled:
		return fmt.Sprintf("No intent holds nonce %d, and higher nonces wait for it: a no-op is to use it.", e.Nonce)
	case lane.Attempted:
		what := "for intent " + e.Intent.String()
		if e.Intent.IsZero() {
			what = "as a no-op"
		}
		return fmt.Sprintf("Attempt %d at nonce %d was signed %s, for at most %s per unit of gas.", e.Number, e.Nonce, what, e.Fee.MaxFee)
	case lane.Landed:
		if e.Final {
			return fmt.Sprintf("Final block %d contains an attempt at nonce %d: the nonce is closed.", e.Block.Number, e.Nonce)
		}
		return fmt.Sprintf("Block %d contains an attempt at nonce %d.", e.Block.Number, e.Nonce)
	case lane.Unlanded:
		return fmt.Sprintf("Block %d left the chain: %d nonces are open again.", e.Was.Number, len(e.Nonces))
	case lane.Lost:
		return fmt.Sprintf("The final chain used nonce %d with a transaction that was not signed here. The nonce is closed.", e.Nonce)
	case lane.Reclaimed:
		return fmt.Sprintf("The cursor had skipped %d nonces that the chain still expects, from %d on: they are used after all.", e.Count, e.Witness.Nonce)
	}
	return ""
}

// whySigner explains an event of a signer.
func whySigner(_, after signer.State, e signer.Event) string {
	switch e := e.(type) {
	case signer.Registered:
		return "Its key is here, and it belongs to the pools " + listed(e.Pools) + "."
	case signer.Paused:
		return ordered(e.Actor, "paused it: it signs nothing", e.Reason)
	case signer.Draining:
		return ordered(e.Actor, "drains it: it gets no new intents", e.Reason)
	case signer.Drained:
		return "All its nonces are used and final."
	case signer.Resumed:
		return ordered(e.Actor, "resumed it", e.Reason)
	case signer.ThresholdSet:
		return ordered(e.Actor, "set its least balance to "+e.Threshold.String(), e.Reason)
	case signer.ThresholdLearned:
		return "A transaction that it could not pay cost " + e.Threshold.String() + ": that is its least balance now."
	case signer.BalanceLow:
		return "Its balance " + e.Balance.String() + " is below " + e.Threshold.String() + ": it gets no new intents."
	case signer.BalanceRestored:
		return "Its balance " + e.Balance.String() + " is enough again."
	case signer.Failed:
		return fmt.Sprintf("Failure %d in a row: %s.", e.Number, withDetail(string(e.Kind), e.Detail))
	case signer.Recovered:
		return fmt.Sprintf("It signed again, after %d failures.", e.Failures)
	case signer.Disabled:
		return fmt.Sprintf("It failed %d times in a row (%s), of at most %d: it signs nothing until an operator resumes it.", e.Failures, e.Kind, e.Limit)
	}
	return ""
}

// ordered is the sentence for an operator's change.
func ordered(actor, did, reason string) string {
	if reason == "" {
		return actor + " " + did + "."
	}
	return actor + " " + did + ", because: " + reason + "."
}

func withDetail(code, detail string) string {
	if detail == "" {
		return code
	}
	return code + ", " + detail
}

func listed(names []string) string {
	if len(names) == 0 {
		return "of none"
	}
	return strings.Join(names, ", ")
}
