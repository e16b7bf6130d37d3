package promises

import (
	"bytes"
	"slices"
	"strings"
	"time"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
)

// Finish makes the checks that need the whole history. The judge may continue afterwards.
func (j *Judge) Finish(e End) []Violation {
	j.durable()
	for _, l := range j.sorted() {
		j.notLost(l, e)
	}
	j.carried(e)
	if e.Quiet {
		j.cleared()
	}
	j.agrees(e)
	if t := j.s.Timely; t > 0 && j.figures.Late.Quantile(0.99) > t {
		j.broken(P16, "", 0, "of %d first attempts one in a hundred was more than %s late: %s", j.figures.Late.Count, t, j.figures.Late)
	}
	return j.tell()
}

// durable checks P1: an acknowledged acceptance is in the log.
func (j *Judge) durable() {
	keys := make([]Key, 0, len(j.acked))
	for key := range j.acked {
		keys = append(keys, key)
	}
	slices.SortFunc(keys, func(a, b Key) int { return strings.Compare(a.Hash.String(), b.Hash.String()) })
	for _, key := range keys {
		j.broken(P1, key.stream(), 0, "acknowledged at %s, but the log does not have it", j.acked[key].UTC().Format(time.RFC3339Nano))
	}
}

// notLost checks P2: a transaction has ended or is scheduled. Once Quiet, it has ended, unless it
// never expires and its row shows why it waits.
func (j *Judge) notLost(l *life, e End) {
	var row tx.Work
	var queued bool
	j.cases.Add(P2)
	if e.Queue != nil && e.Now.Sub(l.newestAt) >= e.Behind {
		row, queued = e.Queue(l.key.Chain, l.key.Hash)
		why := Queued(l.phase(), l.block, row, queued)
		if why == "" {
			why = overdue(row, e.Now, j.s.Recovery)
		}
		if why != "" {
			j.broken(P2, l.key.stream(), l.position, "it is %s, but %s", l.status, why)
			return
		}
	}
	if !e.Quiet || l.over() {
		return
	}
	if waits := queued && row.Phase == tx.Open && waiting(row); l.known && l.accepted.Window.Before == 0 && waits {
		return
	}
	j.broken(P2, l.key.stream(), l.position, "no faults are active, but it is still %s after %d attempts", l.status, max(l.attempt, l.sends))
}

// phase returns the expected phase of the transaction in the due queue.
func (l *life) phase() tx.Phase {
	switch {
	case l.verdict != tx.StatusAbsent:
		return tx.Announced
	case l.canceled || l.refused:
		return tx.Watched
	}
	return tx.Open
}

// Queued returns the error in the due queue's row of a transaction, given its phase by the
// events; empty if there is none.
func Queued(phase tx.Phase, block chain.Block, row tx.Work, there bool) string {
	switch {
	case !there:
		return "the queue has no row for it"
	case row.Phase != phase:
		return "the queue has it as " + string(row.Phase)
	case (phase == tx.Announced || phase == tx.Sealed) && row.Block.Hash != block.Hash:
		return "the queue has it on block " + row.Block.Hash.String()
	}
	return ""
}

// overdue returns the error in an open row's due time; empty if there is none. patience is how
// long a row may stay due, and how far in the future an eligible row may be due.
func overdue(row tx.Work, now time.Time, patience time.Duration) string {
	switch {
	case row.Phase != tx.Open || waiting(row):
		return ""
	case row.NextAt.Before(now.Add(-patience)):
		return "it has been due since " + row.NextAt.UTC().Format(time.RFC3339Nano)
	case row.NextAt.After(now.Add(patience)) && time.Unix(int64(min(row.EligibleAt, 1<<33)), 0).Before(now):
		return "though it is eligible, it is not due before " + row.NextAt.UTC().Format(time.RFC3339Nano)
	}
	return ""
}

// waiting reports whether an open row shows why it waits: for its predecessors, a lower nonce, or
// its account.
func waiting(row tx.Work) bool {
	return row.Parked || row.WaitNonce != 0 || !row.HeldSince.IsZero()
}

// carried checks P23: each canceled member of a group was canceled itself, or had ended. Recent
// cancels are left out, because carrying them out takes a moment.
func (j *Judge) carried(e End) {
	for _, l := range j.sorted() {
		g := l.canceledBy
		if g == nil || l.over() {
			continue
		}
		j.cases.Add(P23)
		if by := g.owed[l.key]; e.Quiet || e.Now.Sub(by.At) > j.s.Recovery {
			j.broken(P23, by.Stream, by.Position, "%s was a member, and is %s", l.key.Hash, l.status)
		}
	}
}

// cleared checks P23 once Quiet: the bytes of canceled transactions are erased, and each
// transaction of a group has joined it, so that a cancel finds it. No simulation fills a group
// ([group.MembersMax]).
func (j *Judge) cleared() {
	keys := make([]Key, 0, len(j.open)+len(j.ended))
	for key := range j.open {
		keys = append(keys, key)
	}
	for key := range j.ended {
		keys = append(keys, key)
	}
	slices.SortFunc(keys, func(a, b Key) int { return bytes.Compare(a.Hash[:], b.Hash[:]) })
	for _, key := range keys {
		l, past, _ := j.find(key)
		canceled, erased, grouped, joined := past.canceled, past.erased, past.grouped && !past.pending, past.joined
		if l != nil {
			canceled, erased, grouped, joined = l.canceled, l.erased, l.accepted.Group != nil && !l.pending(), l.joined
		}
		if canceled {
			j.cases.Add(P23)
		}
		if canceled && !erased {
			j.broken(P23, key.stream(), 0, "it was canceled, but its bytes are kept")
		}
		if grouped && !joined {
			j.broken(P23, key.stream(), 0, "it belongs to a group that it has not joined, so no cancel finds it")
		}
	}
}

// agrees compares the chain with the log: each executed transaction ended as executed (P11), was
// noticed once Quiet (P2), and alone used its nonce (P10).
func (j *Judge) agrees(e End) {
	for id, c := range j.chains() {
		used := map[lane]chain.Hash{}
		for hash, receipt := range c.Executed() {
			key := Key{id, hash}
			l, past, over := j.find(key)
			switch {
			case over && past.sealed && !past.violated && past.verdict != tx.StatusExecuted:
				j.broken(P11, key.stream(), 0, "block %d has it, and it is sealed as %s", receipt.Block.Number, past.verdict)
			case l == nil || !l.known:
				continue
			case e.Quiet && (l.verdict != tx.StatusExecuted || l.block.Hash != receipt.Block.Hash):
				j.broken(P2, key.stream(), l.position, "block %d, %s, has it, and it is %s on block %d", receipt.Block.Number, receipt.Block.Hash, l.status, l.block.Number)
			}
			if l != nil && !l.accepted.NonceKey.IsExpiring() {
				nonce := laneOf(l.accepted)
				j.cases.Add(P10)
				if other, twice := used[nonce]; twice {
					j.broken(P10, key.stream(), l.position, "the chain has executed %s with the same nonce", other)
				}
				used[nonce] = hash
			}
		}
	}
}

// chains returns the chains of the history whose truth is known.
func (j *Judge) chains() map[chain.ID]Chain {
	all := map[chain.ID]Chain{}
	add := func(key Key) {
		if _, met := all[key.Chain]; !met {
			all[key.Chain] = j.chainOf(key.Chain)
		}
	}
	for key := range j.open {
		add(key)
	}
	for key := range j.ended {
		add(key)
	}
	for id, c := range all {
		if c == nil {
			delete(all, id)
		}
	}
	return all
}
