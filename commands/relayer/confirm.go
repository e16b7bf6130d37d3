package relayer

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/tempo-watchtower/watchtower/commands"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/intent"
	"github.com/tempo-watchtower/watchtower/domain/lane"
	"github.com/tempo-watchtower/watchtower/domain/tx"
)

// settle records what the chain has done with nonces: with the intents first, for the
// lane forgets what it is told for good.
func (a *actor) settle(ctx context.Context) error {
	var mined, gone, lost, refused []standing
	for _, s := range a.slots() {
		switch {
		case s.stale || s.halted != "" || len(s.Attempts) == 0:
		case s.violated():
			a.halt(s, "the chain contradicts what it had finally said")
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
	a.Log.Error("nonce is left alone", "lane", lane.Stream(a.ID), "nonce", s.Nonce, "intent", s.id, "why", why)
}

func (s standing) violated() bool {
	return slices.ContainsFunc(s.Attempts, func(m lane.Made) bool { return s.txs[m.Hash].Violated })
}

// executed finds the attempt that the chain holds.
func (s standing) executed() (lane.Made, delivered, bool) {
	for _, made := range s.Attempts {
		if d := s.txs[made.Hash]; d.Verdict == tx.StatusExecuted {
			return made, d, true
		}
	}
	return lane.Made{}, delivered{}, false
}

// isMined reports whether there is something new to record of an attempt in a block.
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

// trusts reports whether an intent has come out that so many blocks have confirmed: if they
// are known to be the chain's, as nodes tell of it now.
func (a *actor) trusts(list []chain.Block) bool {
	return a.Settings.Trusted > 0 && len(list) >= a.Settings.Trusted && a.met
}

// tells reports whether a list has what was not told.
func tells(told, list []chain.Block) bool {
	for i, b := range list {
		if i >= len(told) || told[i].Hash != b.Hash {
			return true
		}
	}
	return false
}

// isSteady reports whether what was told of the intent cannot change any more: not the
// block that holds it alone is final, but all that were told with it. Of what lies below
// the blocks that are remembered nodes have to say so: these may begin above the final one.
func (a *actor) isSteady(s standing) bool {
	told := s.job.intent.State.Told
	if !a.placed(s) || len(told) <= 1 {
		return true
	}
	last := told[len(told)-1]
	return last.Hash == s.job.proven || last.Number <= a.final && slices.Contains(a.blocks, last)
}

// isGone reports whether the block has left the chain in which an attempt was.
func (a *actor) isGone(s standing) bool {
	_, _, executed := s.executed()
	return !executed && (s.Landed != nil || a.placed(s) && s.job.intent.State.Receipt != nil)
}

// isLost reports whether the final chain has used the nonce, and by none of its
// attempts. Those that nobody was handed are in no block.
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

// isRefused reports whether delivery will not go on with what was signed for the intent:
// all endpoints have refused it for ever, or somebody has stopped it there.
func (a *actor) isRefused(s standing) bool {
	it := s.job.intent.State
	d := s.txs[s.Attempts[len(s.Attempts)-1].Hash]
	return a.placed(s) && it.End == nil && !it.ToNoOp() &&
		(d.Status == tx.StatusInvalid || d.Status == tx.StatusCanceled)
}

// confirmations are the blocks from one on, as many as are announced.
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

// land records attempts that are in blocks.
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

// announce records with an intent where the chain has it.
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

// unland records that blocks have left the chain. The intents are told first, in any
// order; the lane once for each block.
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
			continue // another nonce's was in the same block
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

// instead is the block that the chain has in the place of one which left it. Delivery
// has recorded that when it took the transaction's verdict back.
func (s standing) instead(was chain.Block) (now chain.Block, err error) {
	for _, made := range s.Attempts {
		if d := s.txs[made.Hash]; d.was.Hash == was.Hash || now.IsZero() {
			now = d.now
		}
	}
	if now.IsZero() || now.Hash == was.Hash {
		return now, fmt.Errorf("nobody has said what stands in the place of block %d, %s", was.Number, was.Hash)
	}
	return now, nil
}

// lose records that somebody else has used nonces for good: their intents are given
// others.
func (a *actor) lose(ctx context.Context, lost []standing) error {
	if len(lost) == 0 {
		return nil
	}
	w, err := a.Node.Next(ctx, a.ID, true)
	if err != nil {
		return fmt.Errorf("the nonce that the final chain wants: %w", err)
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

// ruleOut takes an intent's place from it, whose nonce the chain has used by a final
// block. An attempt that the intent hears of later is handed to nobody.
func (a *actor) ruleOut(ctx context.Context, s standing, by chain.Block) error {
	if err := a.readIntent(ctx, s); err != nil || !a.placed(s) {
		return err
	}
	origin, err := a.origin()
	if err != nil {
		return err
	}
	s.stale, s.unread = true, true // whatever comes of it
	lost := intent.Requeue{
		Assignment: s.job.intent.State.Assignment, Token: uint64(a.token), Evidence: intent.Evidence{Kind: intent.Rival, Block: by}, At: a.Now(),
	}
	s.job.intent, err = a.Intents.HandleOnce(ctx, intent.Stream(s.id), s.job.intent, lost, origin)
	return err
}

// refusalOf says why delivery will not go on with a transaction.
func refusalOf(d delivered) string {
	if d.why == "" {
		return "delivery: " + string(d.Status)
	}
	return fmt.Sprintf("delivery: %s: %s", d.Status, d.why)
}

// refuse ends intents that delivery will not go on with. A no-op takes their nonce then.
func (a *actor) refuse(ctx context.Context, refused []standing) error {
	return each(a, refused, func(s standing) error {
		d := s.txs[s.Attempts[len(s.Attempts)-1].Hash]
		if err := a.readIntent(ctx, s); err != nil || !a.isRefused(s) {
			return err
		}
		return a.tellIntent(ctx, s.job, intent.Fail{Reason: intent.Refused, Detail: refusalOf(d), At: a.Now()})
	})
}
