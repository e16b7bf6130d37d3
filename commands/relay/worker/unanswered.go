package worker

import (
	"context"
	"slices"
	"time"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
)

// A node, or a proxy before it, may close the connection without an answer because of a transaction's
// content. That alone looks like an outage, in which no intent is to blame. It is none if the same node
// takes another client's transaction of the lane meanwhile.

const (
	// unansweredLeast is the number of attempts of delivery without an answer before the nodes'
	// answers to other transactions count.
	unansweredLeast = 4
	// witnessesMax is the number of other clients whose transactions are read in one poll, to find a
	// transaction that a node has taken.
	witnessesMax = 8
)

// replies are the nodes' recorded answers to the broadcasts of a transaction.
type replies struct {
	attempts int       // number of the last recorded attempt, if none has been taken
	lostAt   time.Time // time of the first attempt without an answer, if none has been taken
	lostBy   []string  // endpoints that gave none
	takenAt  time.Time // last recorded time at which a node took it
	takenBy  []string  // endpoints that took it then
}

// see folds an event of the transaction.
func (r *replies) see(e tx.Event) {
	switch e := e.(type) {
	case tx.Broadcast:
		*r = replies{takenAt: e.At, takenBy: namesOf(e.Answers, tx.Taken, tx.Known)}
	case tx.Rejected:
		if r.attempts = e.Attempt; e.Class != tx.Unknown {
			return
		}
		if r.lostAt.IsZero() {
			r.lostAt = e.At
		}
		r.lostBy = append(r.lostBy, namesOf(e.Answers, tx.Unknown)...)
		slices.Sort(r.lostBy)
		r.lostBy = slices.Compact(r.lostBy)
	}
}

// namesOf returns the endpoints with answers of these classes.
func namesOf(answers []tx.Answer, classes ...tx.Class) (names []string) {
	for _, answer := range answers {
		if slices.Contains(classes, answer.Class) {
			names = append(names, answer.Endpoint)
		}
	}
	return names
}

// shows reports whether the node that took a transaction is one that gave another no answer before.
func (r replies) shows(lost replies) bool {
	return r.takenAt.After(lost.lostAt) && slices.ContainsFunc(r.takenBy, func(name string) bool { return slices.Contains(lost.lostBy, name) })
}

// passing is the last result of [actor.isPassedOver].
type passing struct {
	of chain.Hash
	at time.Time
	is bool
}

// isPassedOver reports whether nodes give no answer to the last attempt at the front, which none of them
// has ever taken, and one of these nodes has taken another client's transaction of the lane meanwhile.
// It looks once in each poll: lanes get no news of transactions that nodes take.
func (a *actor) isPassedOver(ctx context.Context, s standing) (bool, error) {
	hash, now := s.last().Hash, a.Now()
	if last := s.txs[hash]; !s.isUntaken() || last.refusal.Class != tx.Unknown || last.replies.attempts < unansweredLeast {
		a.passing = passing{}
		return false, nil
	}
	if a.passing.of == hash && now.Sub(a.passing.at) < a.Settings.Poll {
		return a.passing.is, nil
	}
	if err := a.read(ctx, s); err != nil {
		return false, err
	}
	is, err := false, error(nil)
	if last := s.txs[hash]; s.isUntaken() && last.refusal.Class == tx.Unknown {
		is, err = a.isWitnessed(ctx, s, last.replies)
	}
	a.passing = passing{hash, now, is}
	return is, err
}

// isWitnessed reports whether a node that lost the front has taken another client's transaction since.
func (a *actor) isWitnessed(ctx context.Context, front standing, lost replies) (bool, error) {
	read := map[string]bool{clientOf(front.job): true}
	for _, s := range a.slots() {
		if len(s.Attempts) == 0 || s.id.IsZero() || clientOf(s.job) == clientOf(front.job) {
			continue
		}
		hash := s.last().Hash
		if s.txs[hash].replies.shows(lost) {
			return true, nil
		}
		if client := clientOf(s.job); read[client] || len(read) > witnessesMax {
			continue
		}
		d, err := a.readTx(ctx, hash)
		if err != nil {
			return false, err
		}
		if s.txs[hash] = d; d.replies.shows(lost) {
			return true, nil
		}
		read[clientOf(s.job)] = true
	}
	return false, nil
}

// isLikeFront reports whether nodes were sent an intent's transaction, and none has ever taken an
// attempt, as with the front of its client.
func (a *actor) isLikeFront(ctx context.Context, s, front standing) (bool, error) {
	if !front.isTried() || !front.isUntaken() {
		return false, nil
	}
	if err := a.read(ctx, s); err != nil {
		return false, err
	}
	return s.isTried() && s.isUntaken(), nil
}

// isTried reports whether the result of a broadcast is recorded.
func (s standing) isTried() bool {
	return slices.ContainsFunc(hashes(s.Slot), func(hash chain.Hash) bool { return len(s.txs[hash].Recorded) > 0 })
}
