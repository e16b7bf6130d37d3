package worker

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/tempo-watchtower/watchtower/commands"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
	"github.com/tempo-watchtower/watchtower/domain/relay/budget"
	"github.com/tempo-watchtower/watchtower/domain/relay/intent"
	"github.com/tempo-watchtower/watchtower/domain/relay/lane"
)

// settle records the chain's results for nonces. It records them with the intents first,
// because the lane forgets final nonces.
func (a *actor) settle(ctx context.Context) error {
	var mined, gone, lost, refused []standing
	for _, s := range a.slots() {
		switch {
		case s.stale || s.halted != "" || len(s.Attempts) == 0:
		case s.violated():
			a.halt(s, "the chain contradicts a final block")
		case a.isMined(s):
			mined = append(mined, s)
		case a.isGone(s):
			gone = append(gone, s)
		case s.isLost():
			lost = append(lost, s)
		case a.isRefused(s):
			refused = append(refused, s)
		}
	}
	var trouble error
	for _, step := range []func() error{
		func() error { return a.unland(ctx, gone) },
		func() error { return a.land(ctx, mined) },
		func() error { return a.lose(ctx, lost) },
		func() error { return a.refuse(ctx, refused) },
	} {
		err := step()
		if over := (overError{}); errors.As(err, &over) {
			return err
		}
		trouble = errors.Join(trouble, err)
	}
	return trouble
}

// halt leaves a nonce to an operator.
func (a *actor) halt(s standing, why string) {
	s.halted = why
	a.Log.Error("nonce is left to an operator", "lane", lane.Stream(a.ID), "nonce", s.Nonce, "intent", s.id, "why", why)
}

func (s standing) violated() bool {
	return slices.ContainsFunc(s.Attempts, func(m lane.Made) bool { return s.txs[m.Hash].Violated })
}

// executed returns the attempt that the chain contains.
func (s standing) executed() (lane.Made, delivered, bool) {
	for _, made := range s.Attempts {
		if d := s.txs[made.Hash]; d.Verdict == tx.StatusExecuted {
			return made, d, true
		}
	}
	return lane.Made{}, delivered{}, false
}

// isMined reports whether there is something new to record about a mined attempt.
func (a *actor) isMined(s standing) bool {
	made, d, ok := s.executed()
	if !ok {
		return false
	}
	it, list := s.job.intent.State, a.confirmations(d.Block)
	told := a.placed(s) && !a.gaveWay(s, made)
	return d.Sealed || s.Landed == nil || s.Landed.Hash != made.Hash || s.Landed.Block.Hash != d.Block.Hash ||
		told && (tells(it.Told, list) || it.End == nil && a.trusts(list))
}

// trusts reports whether these confirmations complete an intent before finality: there are
// at least Trusted of them, on a branch that nodes have reported since the lane was opened.
func (a *actor) trusts(list []chain.Block) bool {
	return a.Settings.Trusted > 0 && len(list) >= a.Settings.Trusted && a.met
}

// tells reports whether a list has blocks that were not announced.
func tells(told, list []chain.Block) bool {
	for i, b := range list {
		if i >= len(told) || told[i].Hash != b.Hash {
			return true
		}
	}
	return false
}

// isSteady reports whether the announced confirmations of the intent are final: all of
// them, not only its own block. Nodes have to confirm blocks below the remembered ones,
// since the remembered blocks may begin above the final block.
func (a *actor) isSteady(s standing) bool {
	told := s.job.intent.State.Told
	if !a.placed(s) || len(told) <= 1 {
		return true
	}
	last := told[len(told)-1]
	return last.Hash == s.job.proven || last.Number <= a.final && slices.Contains(a.blocks, last)
}

// isGone reports whether the block of an attempt was reorged out.
func (a *actor) isGone(s standing) bool {
	_, _, executed := s.executed()
	return !executed && (s.Landed != nil || a.placed(s) && s.job.intent.State.Receipt != nil)
}

// isLost reports whether the final chain has used the nonce with a transaction that is none
// of its attempts. Attempts that were never handed over are in no block.
func (s standing) isLost() bool {
	sealed := false
	for _, made := range s.Attempts {
		d := s.txs[made.Hash]
		if d.Status != tx.StatusAbsent && (d.Verdict != tx.StatusStale || !d.Sealed) {
			return false
		}
		sealed = sealed || d.Sealed
	}
	return sealed
}

// isRefused reports whether delivery has given up on the intent's last attempt: all
// endpoints have refused it for good, or it was canceled there.
func (a *actor) isRefused(s standing) bool {
	it := s.job.intent.State
	d := s.txs[s.Attempts[len(s.Attempts)-1].Hash]
	return a.placed(s) && it.End == nil && !it.ToNoOp() &&
		(d.Status == tx.StatusInvalid || d.Status == tx.StatusCanceled)
}

// confirmations returns the blocks from one on, as many as are announced.
func (a *actor) confirmations(from chain.Block) []chain.Block {
	list := []chain.Block{from}
	i := slices.IndexFunc(a.blocks, func(b chain.Block) bool { return b.Hash == from.Hash })
	if i < 0 {
		return list
	}
	for _, b := range a.blocks[i+1:] {
		last := list[len(list)-1]
		if len(list) >= min(max(a.Settings.Confirmations, a.Settings.Trusted), intent.ConfirmationsMax) || b.Parent != last.Hash || b.Number != last.Number+1 {
			break
		}
		list = append(list, b)
	}
	return list
}

// land records mined attempts.
func (a *actor) land(ctx context.Context, mined []standing) error {
	landings := make([]lane.Landing, len(mined))
	for _, s := range mined {
		made, d, _ := s.executed()
		a.claim = a.claim || d.Sealed && a.gaveWay(s, made) // it waits for another nonce
	}
	trouble := commands.Each(len(mined), a.Settings.AtOnce, func(i int) error {
		s := mined[i]
		made, d, _ := s.executed()
		if a.placed(s) || !made.Intent.IsZero() {
			if err := a.announce(ctx, s, made, d); err != nil {
				return err
			}
		}
		landings[i] = lane.Landing{Nonce: s.Nonce, Hash: made.Hash, Block: d.Block, Status: d.Receipt.Status, Final: d.Sealed && a.isSteady(s)}
		return nil
	})
	landings = slices.DeleteFunc(landings, func(l lane.Landing) bool { return l.Hash.IsZero() })
	if len(landings) == 0 {
		return trouble
	}
	a.crash("intents.settled")
	if err := a.paid(ctx, mined, landings); err != nil {
		return errors.Join(trouble, err)
	}
	for some := range slices.Chunk(landings, lane.BatchMax) {
		if err := a.command(ctx, lane.Land{Token: a.token, Landings: some, At: a.Now()}); err != nil {
			return errors.Join(trouble, err)
		}
	}
	a.crash("lane.settled")
	a.forget(mined)
	return trouble
}

// announce records with an intent which block contains it.
func (a *actor) announce(ctx context.Context, s standing, made lane.Made, d delivered) error {
	if a.gaveWay(s, made) {
		return a.filled(ctx, s, made, d)
	}
	list := a.confirmations(d.Block)
	err := a.tellIntent(ctx, s.job, intent.Announce{
		Hash: made.Hash, Receipt: *d.Receipt, Confirmations: list, Settled: d.Sealed || a.trusts(list), At: a.Now(),
	})
	if errors.Is(err, intent.ErrContradicted) || errors.Is(err, intent.ErrUnknownAttempt) {
		a.halt(s, err.Error())
	}
	return err
}

// unland records reorged blocks: with the intents first, in any order, then with the lane,
// once per block.
func (a *actor) unland(ctx context.Context, gone []standing) error {
	if len(gone) == 0 {
		return nil
	}
	trouble := commands.Each(len(gone), a.Settings.AtOnce, func(i int) error {
		s := gone[i]
		was := s.job.intent.State.Receipt
		if !a.placed(s) || was == nil {
			return nil
		}
		now, err := s.instead(was.Block)
		if err != nil {
			return err
		}
		return a.tellIntent(ctx, s.job, intent.LoseBlock{Was: was.Block, Now: now, At: a.Now()})
	})
	if trouble != nil {
		return trouble
	}
	a.crash("intents.settled")
	for _, s := range gone {
		slot, open := a.held.State.Slot(s.Nonce)
		if !open || slot.Landed == nil {
			continue // another nonce of the same block has covered it
		}
		was := slot.Landed.Block
		now, err := s.instead(was)
		if err != nil {
			return err
		}
		if err := a.command(ctx, lane.Unland{Token: a.token, Was: was, Now: now, At: a.Now()}); err != nil {
			return err
		}
	}
	a.crash("lane.settled")
	return nil
}

// instead returns the block that replaced a reorged block. Delivery has recorded it when it
// revoked the transaction's verdict.
func (s standing) instead(was chain.Block) (now chain.Block, err error) {
	for _, made := range s.Attempts {
		if d := s.txs[made.Hash]; d.was.Hash == was.Hash || now.IsZero() {
			now = d.now
		}
	}
	if now.IsZero() || now.Hash == was.Hash {
		return now, fmt.Errorf("the block that replaced block %d, %s, is unknown", was.Number, was.Hash)
	}
	return now, nil
}

// lose records nonces that another transaction has used for good. Their intents get new
// nonces.
func (a *actor) lose(ctx context.Context, lost []standing) error {
	if len(lost) == 0 {
		return nil
	}
	w, err := a.reads().Next(ctx, a.ID, true)
	if err != nil {
		return fmt.Errorf("the next nonce at the final block: %w", err)
	}
	lost = slices.DeleteFunc(lost, func(s standing) bool { return s.Nonce >= w.Nonce }) // the node is behind
	losses := make([]lane.Loss, len(lost))
	trouble := commands.Each(len(lost), a.Settings.AtOnce, func(i int) error {
		s := lost[i]
		if a.placed(s) {
			if err := a.ruleOut(ctx, s, w.Block); err != nil {
				return err
			}
		}
		losses[i] = lane.Loss{Nonce: s.Nonce, Absent: hashes(s.Slot)}
		return nil
	})
	losses = slices.DeleteFunc(losses, func(l lane.Loss) bool { return l.Absent == nil })
	if len(losses) == 0 {
		return trouble
	}
	a.crash("intents.settled")
	for some := range slices.Chunk(losses, lane.BatchMax) {
		if err := a.command(ctx, lane.Lose{Token: a.token, Losses: some, Witness: w, At: a.Now()}); err != nil {
			return errors.Join(trouble, err)
		}
	}
	a.crash("lane.settled")
	a.forget(lost)
	a.claim = true
	return trouble
}

// ruleOut takes an intent's place from it after a final block used the nonce. An attempt
// that the intent learns of later is never handed over.
func (a *actor) ruleOut(ctx context.Context, s standing, by chain.Block) error {
	err := a.readIntent(ctx, s)
	if err != nil || !a.placed(s) {
		return err
	}
	s.stale, s.unread = true, true // after any outcome
	lost := intent.Requeue{
		Assignment: s.job.intent.State.Assignment, Token: uint64(a.token), Evidence: intent.Evidence{Kind: intent.Rival, Block: by}, At: a.Now(),
	}
	s.job.intent, err = a.Intents.DoOnce(ctx, intent.Stream(s.id), s.job.intent, lost, aboutIntent(s.job.intent.State))
	return err
}

// refusalOf returns why delivery has given up on a transaction.
func refusalOf(d delivered) string {
	if d.why == "" {
		return "delivery: " + string(d.Status)
	}
	return fmt.Sprintf("delivery: %s: %s", d.Status, d.why)
}

// refuse ends intents that delivery has given up on. A no-op then takes their nonce.
func (a *actor) refuse(ctx context.Context, refused []standing) error {
	return each(a, refused, func(s standing) error {
		d := s.txs[s.Attempts[len(s.Attempts)-1].Hash]
		if err := a.readIntent(ctx, s); err != nil || !a.isRefused(s) {
			return err
		}
		return a.tellIntent(ctx, s.job, intent.Fail{Reason: intent.Refused, Detail: refusalOf(d), At: a.Now()})
	})
}

// paid settles the cost of final landings.
func (a *actor) paid(ctx context.Context, mined []standing, landings []lane.Landing) error {
	if a.Guard == nil {
		return nil
	}
	told := map[uint64]lane.Landing{}
	for _, l := range landings {
		told[l.Nonce] = l
	}
	var spent []budget.Spent
	signed := false // since the signer failed last
	for _, s := range mined {
		landing, is := told[s.Nonce]
		made, d, _ := s.executed()
		if landing.Final {
			spent = append(spent, budget.Spent{Purpose: purposeOf(s), Sum: costOf(s, made, *d.Receipt)})
		}
		signed = signed || is && made.At.After(a.failing)
	}
	if signed {
		if err := a.Guard.Succeeded(ctx, a.ID); err != nil {
			return err
		}
	}
	if len(spent) == 0 {
		return nil
	}
	err := a.spend(ctx, spent, nil)
	a.crash("budget.settled")
	return err
}

func (a *actor) spend(ctx context.Context, spent []budget.Spent, holes []uint64) error {
	for some := range slices.Chunk(spent, budget.BatchMax) {
		err := a.Guard.Settle(ctx, a.ID, a.token, some, holes)
		if errors.Is(err, budget.ErrFenced) {
			return overError{err}
		}
		if err != nil {
			return fmt.Errorf("settle the spent amounts: %w", err)
		}
	}
	return nil
}
