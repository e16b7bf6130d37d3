package auditor

import (
	"fmt"
	"strings"
	"time"

	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
	"github.com/tempo-watchtower/watchtower/eventlog"
)

// transaction folds a transaction, and explains its events.
type transaction struct {
	codec eventlog.Codec[tx.Event]
	plan  tx.Schedule
	is    tx.State

	attempt int    // the last one recorded
	outcome string // its result
	lost    string // the block that has left the chain since the last attempt
}

func (t *transaction) state() any { return t.is }

func (t *transaction) add(r eventlog.Recorded, step *Step) error {
	e, err := t.codec.Decode(r.Name, r.Data)
	if err != nil {
		return err
	}
	step.Why = t.why(e, step)
	t.is = t.is.Evolve(e)
	return nil
}

// why explains an event; the state is from before the event.
func (t *transaction) why(e tx.Event, step *Step) string {
	switch e := e.(type) {
	case tx.Accepted:
		return fmt.Sprintf("It was accepted for delivery. Nothing is sent before %s.", seconds(e.EligibleAt))
	case tx.Broadcast:
		step.Answers = e.Answers
		return t.attempted(e.Attempt, e.At, tx.Summarise(e.Answers, false), "Nodes may drop transactions that they accepted, so the same bytes are sent again at growing intervals until a block contains the transaction")
	case tx.Rejected:
		step.Answers = e.Answers
		o := tx.Outcome{Class: e.Class, Cause: e.Cause, Message: e.Reason}
		if e.Permanent {
			why := t.begins(e.Attempt) + " Every node said that it can never be executed: " + said(o) + ". It is not sent again, but blocks are still searched for it."
			t.ends(e.Attempt, "a refusal for good")
			return why
		}
		return t.attempted(e.Attempt, e.At, o, follows(o))
	case tx.Mined:
		status := "executed"
		if e.Receipt.Status == 0 {
			status = "executed and reverted"
		}
		return fmt.Sprintf("Block %d contains it: it was %s. It is not sent again unless that block leaves the chain.", e.Receipt.Block.Number, status)
	case tx.StaleByNonce:
		return fmt.Sprintf("At block %d another transaction has used its nonce: the chain's next nonce is %d. It can never be executed.", e.Block.Number, e.Current)
	case tx.Expired:
		return fmt.Sprintf("The time of block %d is past its validBefore, and no block contains it.", e.Block.Number)
	case tx.Reorged:
		t.lost = fmt.Sprintf("block %d, on which its verdict rested, has left the chain", e.Was.Number)
		if e.Unwanted {
			return upper(t.lost) + ". It is not sent, because its owner canceled it or every node refused it."
		}
		return upper(t.lost) + ". It is sent again."
	default:
		return housekeeping(e)
	}
}

func housekeeping(e tx.Event) string {
	switch e := e.(type) {
	case tx.Finalized:
		return fmt.Sprintf("Block %d is final: the verdict %s is sealed.", e.Block.Number, e.Verdict)
	case tx.FinalityViolated:
		return fmt.Sprintf("The chain contradicts a sealed verdict: %s was sealed on block %d. An operator must decide.", e.Verdict, e.Was.Number)
	case tx.CanceledLocally:
		return "It was canceled here (" + e.Reason + "): its bytes are not sent again. A node that already has them may still execute it."
	case tx.Resubmitted:
		return fmt.Sprintf("Another client, %q, submitted the same bytes and is now an owner too.", e.Client)
	case tx.GroupDoubted:
		return "The chain does not confirm that its access key may sign for the sender (" + e.Reason + "), so it is not yet a member of its group. The chain is queried again."
	case tx.GroupConfirmed:
		return fmt.Sprintf("Block %d confirms its access key, so it may join its group.", e.Block.Number)
	case tx.PayloadErased:
		return "Its signed bytes were erased."
	case tx.Retired:
		return "Its retention has ended: its rows are removed from the read models."
	}
	return ""
}

// attempted explains an attempt: its reason, its outcome and the next step.
func (t *transaction) attempted(n int, at time.Time, o tx.Outcome, follows string) string {
	due := t.plan.Next(t.is.Accepted.Hash, n, o, at, t.is.Accepted.Window.Before)
	why := fmt.Sprintf("%s Result: %s. %s; the next attempt is due about %s later.", t.begins(n), said(o), follows, due.Sub(at).Round(time.Millisecond))
	t.ends(n, said(o))
	return why
}

// begins explains why an attempt was made.
func (t *transaction) begins(n int) string {
	text := fmt.Sprintf("Attempt %d", n)
	switch between := n - t.attempt - 1; {
	case t.lost != "":
		return text + " was made because " + t.lost + "."
	case t.attempt == 0 && n == 1:
		return text + " was made because its time had come."
	case t.attempt == 0:
		return fmt.Sprintf("%s was made. No earlier outcome is recorded.", text)
	case between > 0:
		return fmt.Sprintf("%s was made because of the result of attempt %d: %s. The %d attempts between them repeated earlier outcomes, which are recorded only once.", text, t.attempt, t.outcome, between)
	}
	return fmt.Sprintf("%s was made because of the result of attempt %d: %s.", text, t.attempt, t.outcome)
}

func (t *transaction) ends(n int, outcome string) {
	t.attempt, t.outcome, t.lost = n, outcome, ""
}

// said describes the outcome of an attempt.
func said(o tx.Outcome) string {
	text := map[tx.Class]string{
		tx.Taken: "a node accepted the bytes, or already had them", tx.Known: "a node already had the bytes",
		tx.Retry: "no node accepted the bytes", tx.Permanent: "the nodes refused it",
		tx.Unknown: "a response was lost, so a node may have the bytes",
	}[o.Class]
	if c := reason(o.Cause); c != "" {
		text += ": " + c
	}
	if o.Message != "" {
		text += fmt.Sprintf(" (%q)", o.Message)
	}
	return text
}

// reason describes a cause that nodes report; empty for others.
func reason(c tx.Cause) string {
	return map[tx.Cause]string{
		tx.NonceTooLow: "its nonce is used up", tx.NonceTooHigh: "a transaction before it in its sequence is missing",
		tx.TooEarly: "its window has not opened by the node's clock", tx.TooLate: "its window closes too soon for the node",
		tx.Funds: "the account cannot pay", tx.Fee: "its fee is below the node's current minimum",
		tx.FeeCap:      "its gas limit times its fee is above the node's own limit",
		tx.Underpriced: "the node's pool has another transaction with the same nonce", tx.PoolFull: "the node's pool is full",
		tx.KeyMissing: "the access key is not authorized yet", tx.Replayed: "a transaction with this expiring nonce was executed",
		tx.RateLimited: "the node asks for a pause", tx.Unreachable: "the node could not be reached in time",
	}[c]
}

// follows describes the next step after an unsuccessful attempt.
func follows(o tx.Outcome) string {
	switch {
	case o.Class == tx.Unknown:
		return "The same bytes are sent again, which does no harm if a node has them"
	case o.Cause == tx.NonceTooHigh:
		return "It is tried again when the transaction before it is mined"
	case o.Cause == tx.Funds || o.Cause == tx.KeyMissing:
		return "Its account is on hold: it is tried again when a probe by one of the account's transactions succeeds"
	case o.Cause == tx.NonceTooLow:
		return "Its receipt is looked up, and it is tried again until a block contains it"
	}
	return "The error may be transient, so it is tried again"
}

func upper(text string) string { return strings.ToUpper(text[:1]) + text[1:] }

// seconds formats a timestamp of the chain.
func seconds(at uint64) string {
	const farFuture = 1 << 33
	return time.Unix(int64(min(at, farFuture)), 0).UTC().Format(time.RFC3339)
}
