package intent

import (
	"fmt"
	"slices"
	"time"

	"github.com/tempo-watchtower/watchtower/domain/chain"
)

// ConfirmationsMax bounds the number of confirmations announced for one block.
const ConfirmationsMax = 256

func (s State) announce(c Announce) ([]Event, error) {
	made, known := s.attempt(c.Hash)
	switch {
	case !known:
		return nil, ErrUnknownAttempt.Because("%s is not an attempt of it", c.Hash)
	case s.Place == nil || made.Assignment != s.Assignment:
		return nil, ErrContradicted.Because("%s is in block %d, but was ruled out for good", c.Hash, c.Receipt.Block.Number)
	case made.Kind == NoOp && s.GivesWay():
		return nil, ErrNotCanceling.Because("the no-op %s took its nonce, but it is not canceled", c.Hash)
	}
	list, err := chainOf(c)
	if err != nil {
		return nil, err
	}
	same := s.Receipt != nil && s.Mined == c.Hash && s.Receipt.Block.Hash == c.Receipt.Block.Hash
	t := telling{s: s}
	if s.End != nil && !same {
		t.add(Reorged{s.End.Block, c.Receipt.Block, c.At})
	}
	if !same {
		t.receipt(c.Hash, &c.Receipt, c.At)
	}
	t.confirmations(c.Hash, list, c.At)
	if c.Settled && t.s.End == nil {
		t.add(t.s.settled(made, *t.s.Receipt, c.At))
	}
	return t.events, nil
}

// chainOf returns the announcement's confirmations, at most ConfirmationsMax. It refuses a list
// that does not begin with the receipt's block, or whose blocks do not follow one another.
func chainOf(c Announce) ([]chain.Block, error) {
	list := c.Confirmations[:min(len(c.Confirmations), ConfirmationsMax)]
	if len(list) == 0 || list[0].Hash != c.Receipt.Block.Hash || list[0].IsZero() {
		return nil, ErrBrokenList.Because("the first block must be the block that contains %s", c.Hash)
	}
	for i, b := range list[1:] {
		if b.Parent != list[i].Hash || b.Number != list[i].Number+1 || b.IsZero() {
			return nil, ErrBrokenList.Because("block %d, %s, is not a child of block %d, %s", b.Number, b.Hash, list[i].Number, list[i].Hash)
		}
	}
	return list, nil
}

func (s State) loseBlock(c LoseBlock) ([]Event, error) {
	i := slices.IndexFunc(s.Told, func(b chain.Block) bool { return b.Hash == c.Was.Hash })
	switch {
	case c.Now.IsZero() || c.Now.Hash == c.Was.Hash:
		panic(fmt.Sprintf("intent: %+v does not contradict %+v", c.Now, c.Was))
	case i < 0:
		return nil, nil
	}
	t := telling{s: s}
	if i == 0 {
		if s.End != nil {
			t.add(Reorged{s.End.Block, c.Now, c.At})
		}
		t.receipt(s.Mined, nil, c.At)
	}
	t.add(Announced{Sequence: t.next(), Kind: AboutConfirmations, Hash: s.Mined, Confirmations: some(s.Told[:i]), NewFork: true, At: c.At})
	return t.events, nil
}

// telling collects the events of one command. Each event builds on the state after the last.
type telling struct {
	s      State
	events []Event
}

func (t *telling) add(e Event) { t.events, t.s = append(t.events, e), t.s.Evolve(e) }

func (t *telling) next() uint64 { return t.s.Sequence + 1 }

func (t *telling) receipt(hash chain.Hash, r *chain.Receipt, at time.Time) {
	t.add(Announced{Sequence: t.next(), Kind: AboutReceipt, Hash: hash, Receipt: r, At: at})
}

// confirmations announces the new blocks of a list. A list that is a prefix of the announced one
// comes from a node that is behind, and adds nothing.
func (t *telling) confirmations(hash chain.Hash, list []chain.Block, at time.Time) {
	told := t.s.Told
	common := 0
	for common < min(len(told), len(list)) && told[common].Hash == list[common].Hash {
		common++
	}
	fork := common < min(len(told), len(list))
	if fork {
		common = 0
	}
	if common < len(list) {
		t.add(Announced{
			Sequence: t.next(), Kind: AboutConfirmations, Hash: hash,
			Confirmations: slices.Clone(list[common:]), NewFork: fork, At: at,
		})
	}
}

// some returns a copy of blocks, nil if there are none.
func some(blocks []chain.Block) []chain.Block {
	if len(blocks) == 0 {
		return nil
	}
	return slices.Clone(blocks)
}

// settled returns the end event for an attempt in a settled block.
func (s State) settled(a Attempted, r chain.Receipt, at time.Time) Event {
	switch {
	case a.Kind == NoOp:
		return s.stopped(a.Hash, r.Block, at)
	case r.Status == 0:
		return Failed{Sequence: s.Sequence + 1, Reason: Reverted, Hash: a.Hash, Block: r.Block, At: at}
	}
	despite := s.Stop.Reason
	if despite == Deadline && !s.Requested.Request.passed(r.Block.Time) {
		despite = "" // it landed in time, but was found after the deadline
	}
	return Completed{s.Sequence + 1, a.Hash, r.Block, despite, at}
}

// stopped returns the end event of an intent that ends without effect, for its stop reason.
func (s State) stopped(hash chain.Hash, block chain.Block, at time.Time) Event {
	if s.Stop.Reason == Withdrawn {
		return Canceled{s.Sequence + 1, s.Stop.Detail, hash, block, at}
	}
	return Failed{s.Sequence + 1, s.Stop.Reason, s.Stop.Detail, hash, block, at}
}
