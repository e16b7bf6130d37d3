package promises

import (
	"fmt"
	"slices"
	"time"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
	"github.com/tempo-watchtower/watchtower/eventlog"
)

func (j *Judge) broadcast(l *life, r eventlog.Recorded, e tx.Broadcast) {
	if !slices.ContainsFunc(e.Answers, func(a tx.Answer) bool { return a.Class == tx.Taken || a.Class == tx.Known }) {
		j.broken(P11, r.Stream, r.Position, "accepted, but no node reported that")
	}
	j.attempted(l, r, e.Attempt, true)
	l.taken, l.handed, l.cause = true, true, ""
	if l.known {
		delete(j.unfit, tx.AccountOf(l.accepted))
	}
	if !l.canceled {
		l.status = tx.StatusBroadcasting
	}
}

func (j *Judge) rejected(l *life, r eventlog.Recorded, e tx.Rejected) {
	j.attempted(l, r, e.Attempt, e.Class == tx.Unknown)
	l.handed = l.handed || e.Class == tx.Unknown
	l.cause = e.Cause
	if l.known && e.Class == tx.Retry && (e.Cause == tx.Funds || e.Cause == tx.KeyMissing) {
		j.unfit[tx.AccountOf(l.accepted)] = true
	}
	if !e.Permanent {
		if !l.canceled {
			l.status = tx.StatusRetry
		}
		return
	}
	// P11: permanent only if every node said so, and none ever accepted the bytes.
	if l.taken || slices.ContainsFunc(e.Answers, func(a tx.Answer) bool { return a.Class != tx.Permanent }) {
		j.broken(P11, r.Stream, r.Position, "permanently refused, though a node accepted it before (%t) or did not refuse it: %v", l.taken, e.Answers)
	}
	l.refused, l.status = true, tx.StatusInvalid
}

// attempted checks recorded attempts: their numbers rise (P25), and none follows an end (P12) or
// a cancel (P23). The exception is the first attempt to show that a node may have the bytes.
func (j *Judge) attempted(l *life, r eventlog.Recorded, n int, handed bool) {
	switch {
	case n <= l.attempt:
		j.broken(P25, r.Stream, r.Position, "attempt %d is recorded after attempt %d", n, l.attempt)
	case l.refused:
		j.broken(P12, r.Stream, r.Position, "attempt %d follows the end, %s", n, l.status)
	case l.verdict != tx.StatusAbsent:
		j.broken(P12, r.Stream, r.Position, "attempt %d follows the verdict %s", n, l.verdict)
	case l.canceled && (l.handed || !handed):
		j.broken(P23, r.Stream, r.Position, "attempt %d is recorded after the cancel", n)
	}
	if l.attempt == 0 && l.sends == 0 && l.known {
		j.figures.Late.Add(r.At.Sub(l.due())) // no send was seen: use the time of the answer
	}
	l.attempt = max(l.attempt, n)
}

// mined checks P13 for a verdict that changes without having been withdrawn.
func (j *Judge) mined(l *life, r eventlog.Recorded, e tx.Mined) {
	if l.verdict == tx.StatusExecuted {
		j.broken(P13, r.Stream, r.Position, "mined in %s, though its mining in %s was not withdrawn", e.Receipt.Block.Hash, l.block.Hash)
	}
	j.rest(l, r, tx.StatusExecuted, e.Receipt.Block)
	l.status = tx.StatusExecuted
}

// rest sets a verdict and its block.
func (j *Judge) rest(l *life, r eventlog.Recorded, verdict tx.Status, b chain.Block) {
	if l.verdict != tx.StatusAbsent && verdict != tx.StatusExecuted {
		j.broken(P12, r.Stream, r.Position, "%s follows the verdict %s", verdict, l.verdict)
	}
	l.verdict, l.block = verdict, b
	l.reopenedAt, l.lostAt = time.Time{}, time.Time{}
	if verdict != tx.StatusExecuted && !l.canceled && !l.refused {
		l.status = verdict
	}
}

func (j *Judge) stale(l *life, r eventlog.Recorded, e tx.StaleByNonce) {
	if l.known && (l.accepted.NonceKey.IsExpiring() || e.Current <= l.accepted.Nonce) {
		j.broken(P11, r.Stream, r.Position, "stale, though its nonce is %d and the chain's next nonce is %d", l.accepted.Nonce, e.Current)
	}
	j.rest(l, r, tx.StatusStale, e.Block)
}

func (j *Judge) expired(l *life, r eventlog.Recorded, e tx.Expired) {
	if l.known && !l.accepted.Window.ClosedAt(e.Block.Time) {
		j.broken(P11, r.Stream, r.Position, "expired by a block of time %d, its window ends at %d", e.Block.Time, l.accepted.Window.Before)
	}
	j.rest(l, r, tx.StatusExpired, e.Block)
}

// reorged checks P13: the withdrawn verdict was announced on that block, and the block has left
// the chain.
func (j *Judge) reorged(l *life, r eventlog.Recorded, e tx.Reorged) {
	j.cases.Add(P13)
	switch c := j.chainOf(l.key.Chain); {
	case l.verdict == tx.StatusAbsent:
		j.broken(P13, r.Stream, r.Position, "a verdict is withdrawn that it does not have")
	case l.block.Hash != e.Was.Hash:
		j.broken(P13, r.Stream, r.Position, "the verdict on %s is withdrawn, it rests on %s", e.Was.Hash, l.block.Hash)
	case e.Now.Hash == e.Was.Hash:
		j.broken(P13, r.Stream, r.Position, "the verdict is withdrawn in favour of the block that it rests on")
	case c != nil && !c.Left(e.Was.Hash) && isCanonical(c, e.Was):
		j.broken(P13, r.Stream, r.Position, "block %d, %s, never left the chain", e.Was.Number, e.Was.Hash)
	}
	switch unwanted := l.canceled || l.refused; {
	case e.Unwanted && !unwanted:
		j.broken(P14, r.Stream, r.Position, "neither its owner nor the nodes stopped it, but it is not to be sent again")
	case !e.Unwanted && unwanted:
		j.broken(P23, r.Stream, r.Position, "it was stopped, but is to be sent again")
	}
	l.verdict, l.block = tx.StatusAbsent, chain.Block{}
	l.lostAt = time.Time{}
	switch {
	case l.canceled:
		l.status = tx.StatusCanceled
	case l.refused:
		l.status = tx.StatusInvalid
	default:
		l.status, l.reopenedAt = tx.StatusBroadcasting, r.At
	}
}

func isCanonical(c Chain, b chain.Block) bool {
	at, ok := c.At(b.Number)
	return ok && at.Hash == b.Hash
}

// finalized checks P11: the sealed verdict was announced on this block, and is true.
func (j *Judge) finalized(l *life, r eventlog.Recorded, e tx.Finalized) {
	switch {
	case l.verdict == tx.StatusAbsent || l.verdict != e.Verdict || l.block.Hash != e.Block.Hash:
		j.broken(P11, r.Stream, r.Position, "sealed as %s on %s, but it is %q on %s", e.Verdict, e.Block.Hash, l.verdict, l.block.Hash)
	case e.By.Number < e.Block.Number:
		j.broken(P11, r.Stream, r.Position, "block %d is sealed by block %d", e.Block.Number, e.By.Number)
	case l.known:
		if c := j.chainOf(l.key.Chain); c != nil {
			j.cases.Add(P11)
			if why := Untrue(c, l.accepted, e); why != "" {
				j.broken(P11, r.Stream, r.Position, "%s", why)
			}
		}
	}
	if e.Verdict == tx.StatusExecuted && l.known && !l.accepted.NonceKey.IsExpiring() {
		j.alone(l, r)
	}
	l.sealed = true
}

// alone checks P10: no two transactions are finally executed with one nonce, unless the chain
// reverted its own finality for one.
func (j *Judge) alone(l *life, r eventlog.Recorded) {
	nonce := laneOf(l.accepted)
	other, used := j.lanes[nonce]
	j.cases.Add(P10)
	j.lanes[nonce] = l.key
	if !used || other == l.key || j.ended[other].violated {
		return
	}
	if c := j.chainOf(l.key.Chain); c != nil {
		if _, mined := c.Receipt(other.Hash); !mined {
			return
		}
	}
	j.broken(P10, r.Stream, r.Position, "nonce %d of %s was used by %s too", l.accepted.Nonce, l.accepted.Sender, other.Hash)
}

// Untrue returns why a sealed verdict contradicts a chain; empty if it does not.
func Untrue(c Chain, a tx.Accepted, e tx.Finalized) string {
	if !c.Final(e.Block) {
		return fmt.Sprintf("%s is sealed on block %d, %s, which is not final", e.Verdict, e.Block.Number, e.Block.Hash)
	}
	if !isCanonical(c, e.Block) {
		return "" // the chain reverted its own finality
	}
	receipt, mined := c.Receipt(a.Hash)
	switch {
	case e.Verdict == tx.StatusExecuted && !mined:
		return "sealed as executed, and the chain does not have it"
	case e.Verdict == tx.StatusExecuted && receipt.Block.Hash != e.Block.Hash:
		return fmt.Sprintf("sealed in block %s, and it is in %s", e.Block.Hash, receipt.Block.Hash)
	case e.Verdict != tx.StatusExecuted && mined:
		return fmt.Sprintf("sealed as %s, and it is in block %d", e.Verdict, receipt.Block.Number)
	}
	if e.Verdict == tx.StatusStale {
		s := chain.Sequence{Chain: a.Chain, Sender: a.Sender, Key: a.NonceKey}
		if next, known := c.Next(s); known && next <= a.Nonce {
			return fmt.Sprintf("sealed as stale, but the chain's next nonce is %d, and its own is %d", next, a.Nonce)
		}
	}
	return ""
}

// alarm checks P11 for a violation of finality: the chain did contradict itself.
func (j *Judge) alarm(key Key, p ended, r eventlog.Recorded, e tx.FinalityViolated) {
	c := j.chainOf(key.Chain)
	if c == nil || !isCanonical(c, e.Was) || c.Left(e.Was.Hash) {
		return
	}
	receipt, mined := c.Receipt(key.Hash)
	if executed := p.verdict == tx.StatusExecuted; executed && mined && receipt.Block.Hash == e.Was.Hash || !executed && !mined {
		j.broken(P11, r.Stream, r.Position, "a finality violation, though the chain agrees with the sealed verdict on %s", e.Was.Hash)
	}
}

func (j *Judge) canceledLocally(l *life, r eventlog.Recorded, e tx.CanceledLocally) {
	switch {
	case l.canceled:
		j.broken(P25, r.Stream, r.Position, "it is canceled again")
	case l.refused:
		j.broken(P12, r.Stream, r.Position, "a cancel follows the end, %s", l.status)
	case e.Verdict != l.verdict:
		j.broken(P23, r.Stream, r.Position, "canceled as %q, but its verdict is %q", e.Verdict, l.verdict)
	}
	l.canceled, l.cancelAt = true, r.At
	if l.verdict == tx.StatusAbsent {
		l.status = tx.StatusCanceled
	}
	if g := l.canceledBy; g != nil {
		delete(g.owed, l.key)
		l.canceledBy = nil
	}
}
