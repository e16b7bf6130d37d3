package worker

import (
	"context"
	"fmt"
	"slices"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
	"github.com/tempo-watchtower/watchtower/domain/relay/intent"
	"github.com/tempo-watchtower/watchtower/domain/relay/lane"
)

// refresh reads the nonces with news. News of a transaction does not concern the intent,
// which only its holder and its client write to.
func (a *actor) refresh(ctx context.Context) error {
	news, called, measured := a.box.empty()
	a.claim = a.claim || measured
	if a.OnlyAsked {
		called = a.calls.take(called, a.claim, a.Now())
	}
	a.claim, a.called = a.claim || called, called || measured
	var read []standing
	for _, s := range a.slots() {
		s.unread = s.unread || news.all || news.wanted[s.Nonce]
		s.stale = s.stale || s.unread || news.sent[s.Nonce]
		if s.stale {
			read = append(read, s)
		}
	}
	return each(a, read, func(s standing) error { return a.read(ctx, s) })
}

func (a *actor) read(ctx context.Context, s standing) (err error) {
	if s.unread && !s.id.IsZero() {
		if err := a.readIntent(ctx, s); err != nil {
			return err
		}
	}
	for _, made := range s.Attempts {
		if s.txs[made.Hash], err = a.readTx(ctx, made.Hash); err != nil {
			return err
		}
	}
	s.stale, s.unread, s.news = false, false, true
	return nil
}

// readIntent reads the intent of a nonce. If the intent knows an attempt at this place that
// the lane's state lacks, another holder has worked on the lane since. The actor then ends:
// otherwise it could take that holder's transaction for a rival's.
func (a *actor) readIntent(ctx context.Context, s standing) error {
	read, err := a.Intents.Load(ctx, intent.Stream(s.id))
	if err != nil {
		return err // the known state stays: an unknown intent would count as an intent without a nonce
	}
	s.job.intent = read
	it := read.State
	if !a.placed(s) {
		return nil
	}
	for _, made := range it.Attempts {
		ours := slices.ContainsFunc(s.Attempts, func(m lane.Made) bool { return m.Hash == made.Hash })
		if made.Assignment == it.Assignment && !ours {
			return overError{lane.ErrFenced.Because("%s, at nonce %d, belongs to another holder", made.Hash, s.Nonce)}
		}
	}
	return nil
}

// readTx folds a transaction's stream, and keeps its latest reorg and refusal.
func (a *actor) readTx(ctx context.Context, hash chain.Hash) (d delivered, err error) {
	stream := tx.Stream(a.Chain, hash)
	for r, err := range a.Transactions.Store.ReadStream(ctx, stream, 0) {
		if err != nil {
			return d, fmt.Errorf("read %s: %w", stream, err)
		}
		e, err := a.Transactions.Codec.Decode(r.Name, r.Data)
		if err != nil {
			return d, fmt.Errorf("%s version %d: %w", stream, r.Version, err)
		}
		switch e := e.(type) {
		case tx.Reorged:
			d.was, d.now = e.Was, e.Now
		case tx.Rejected:
			d.denials.see(e.Answers)
			d.lacks, d.refusal = e.Cause == tx.Funds, tx.Outcome{Class: e.Class, Cause: e.Cause, Message: e.Reason}
			d.httpStatus = contentStatus(e.Answers)
			if d.why = ""; e.Permanent {
				d.why = e.Reason
			}
		case tx.Broadcast:
			d.denials.see(e.Answers)
			d.lacks, d.refusal, d.httpStatus = false, tx.Outcome{}, 0
		}
		d.replies.see(e)
		d.State = d.State.Evolve(e)
	}
	return d, nil
}
