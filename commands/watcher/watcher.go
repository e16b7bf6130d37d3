// Package watcher brings the chain's news into the log: receipts, used nonces,
// time, blocks that left the chain, and finality.
//
// It knows the chain by positive evidence only. A receipt that is missing, a lower
// head or a timeout is a node that lags; a transaction is un-mined when another
// block stands where its block stood.
package watcher

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"time"

	"github.com/tempo-watchtower/watchtower/commands"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/event"
	"github.com/tempo-watchtower/watchtower/domain/tx"
)

// Bounds of one step.
const (
	walkMax      = 256  // blocks walked back from a head
	stretch      = 128  // blocks taken in at once when the head is far above
	aheadMin     = 8    // blocks that are worth reading several at once
	aheadMax     = 16   // of these read at once
	gapMax       = 4096 // blocks between the known ones and a head before they are skipped
	rowsMax      = 1000 // rows looked at in one go
	waitingMax   = 64   // waiting sequences asked for in one block
	commandsMax  = 64   // commands under way at once
	triesMax     = 64   // looks at a transaction that moves on meanwhile
	finalityPast = 64   // blocks below the final one in which a contradiction is still noticed
	orphanSteps  = 16   // steps during which a block that left is checked again
	unsettledMax = 4096 // sequences kept in mind whose rivals could not be settled
)

// Watcher watches one chain. One replica at a time runs it, by lease; what it
// records would bear two.
type Watcher struct {
	Chain        chain.ID
	Node         Node
	Board        Board
	Transactions commands.Transactions
	Poll         time.Duration // look for a head at least so often
	Now          func() time.Time
	Random       io.Reader
	// Moved is called after a step with the head; for health and metrics.
	Moved func(head, final chain.Block)
	Crash func(point string)
	Log   *slog.Logger
}

// run is a watcher's memory while it holds its lease.
type run struct {
	*Watcher
	blocks  []chain.Block // canonical, lowest first, each the parent of the next
	final   chain.Block
	doubted chain.Hash // a rival of the tip at equal height, seen once
	orphans []orphan
	unsaved *uint64              // the lowest number in blocks that the board does not have yet
	told    chain.Hash           // the last head that readTip was done for
	more    bool                 // more expired than one step takes
	asked   asked                // for the final block
	sure    chain.Block          // the last final block that was more than one endpoint's word
	turn    turn                 // where finalize goes on
	round   round                // where readWatched goes on
	ahead   map[chain.Hash]block // read ahead of the walk that meets them, by approach
	trouble string               // what the log was told last; empty when all is well
	// unsettled are sequences in which a nonce was used and the rivals could not be
	// settled then.
	unsettled map[chain.Sequence]bool
}

// turn is a place among the verdicts: after a hash in a block.
type turn struct {
	number uint64
	after  chain.Hash
}

// orphan is a block that left the chain. Rows that rest on it may reach the board
// some steps later, so it is kept in mind for a while.
type orphan struct {
	was, now chain.Block
	steps    int
}

// Run watches until ctx ends. Trouble with nodes or the store is logged and the
// step tried again at the next head or poll.
func (w *Watcher) Run(ctx context.Context) error {
	blocks, err := w.Board.Blocks(ctx, w.Chain)
	if err != nil {
		return err
	}
	r := w.start(blocks)
	heads := w.Node.Heads(ctx)
	tick := time.NewTicker(w.Poll)
	defer tick.Stop()
	for {
		if err := r.step(ctx); ctx.Err() == nil {
			r.tell(err)
		}
		tick.Reset(w.Poll) // heads that come in time leave nothing to look for
		select {
		case <-ctx.Done():
			return ctx.Err()
		case _, on := <-heads:
			if !on {
				heads = nil // it has ended: the poll alone goes on
			}
		case <-tick.C:
		}
		if ctx.Err() != nil {
			return ctx.Err() // also when there is a head: it is another's to read by now
		}
	}
}

// tell logs what keeps the chain from being followed when it begins, changes and ends,
// and not at each head while it lasts.
func (r *run) tell(trouble error) {
	text := ""
	if trouble != nil {
		text = trouble.Error()
	}
	switch {
	case text == r.trouble:
		return
	case trouble != nil:
		r.Log.Warn("watch step failed", "chain", r.Chain, "err", trouble)
	default:
		r.Log.Info("watching again", "chain", r.Chain)
	}
	r.trouble = text
}

// start begins with what an earlier run remembered.
func (w *Watcher) start(blocks []chain.Block) *run {
	return &run{Watcher: w, blocks: blocks, unsettled: map[chain.Sequence]bool{}}
}

// step brings the log up to the chain's head and finality. Each part is tried
// again by the next step; trouble with the head's does not hold up finality.
func (r *run) step(ctx context.Context) error {
	head, err := r.Node.Newest(ctx)
	if err != nil {
		return fmt.Errorf("head: %w", err)
	}
	if err := r.approach(ctx, head); err != nil {
		return err
	}
	if err := r.take(ctx, head); err != nil {
		return err
	}
	r.age()
	var news error
	if tip := r.tip(); r.told != tip.Hash {
		if news = r.readTip(ctx, tip); news == nil && !r.more {
			r.told = tip.Hash
		}
	}
	if err := r.finalize(ctx); err != nil {
		return errors.Join(news, err)
	}
	if r.Moved != nil {
		r.Moved(r.tip(), r.final)
	}
	return news
}

func (r *run) tip() chain.Block {
	if len(r.blocks) == 0 {
		return chain.Block{}
	}
	return r.blocks[len(r.blocks)-1]
}

// take brings the memory up to a head, and withdraws what rests on blocks that left.
func (r *run) take(ctx context.Context, head chain.Block) error {
	if head.Hash != r.tip().Hash {
		if err := r.follow(ctx, head); err != nil {
			return err
		}
	}
	if err := r.disown(ctx); err != nil {
		return err
	}
	// After disown: a process that takes over from here must find the fork itself.
	return r.remember(ctx)
}

// follow walks from a new head to what is known, and takes the new blocks in.
func (r *run) follow(ctx context.Context, head chain.Block) error {
	fresh, base, err := r.walk(ctx, head)
	if err != nil || len(fresh) == 0 {
		return err
	}
	left := r.blocks[base:]
	joins := base > 0 && fresh[0].Parent == r.blocks[base-1].Hash
	if len(left) > 0 || !joins {
		// What others mined is not un-mined on one node's word, and watching does not
		// begin where none but one has a block: nothing would ever meet it.
		if err := r.Node.Shown(ctx, head); err != nil {
			return fmt.Errorf("a fork, or a beginning: %w", err)
		}
	}
	first := fresh[0].Number
	if base > 0 && len(left) > 0 {
		first = r.blocks[base-1].Number // the board forgets what it has above that
	}
	if r.unsaved == nil || first < *r.unsaved {
		r.unsaved = &first
	}
	r.blocks = r.blocks[:base:base]
	for _, b := range fresh {
		r.blocks = append(r.blocks, b.Block)
	}
	for _, b := range left {
		r.orphans = append(r.orphans, orphan{was: b, now: r.replacement(b)})
		r.Log.Warn("block left the chain", "chain", r.Chain, "number", b.Number, "hash", b.Hash)
	}
	for _, b := range fresh {
		if err := r.read(ctx, b); err != nil {
			// Forget the blocks that were not read, so that the next step reads them.
			r.forget(b.Block)
			return fmt.Errorf("block %d: %w", b.Number, err)
		}
	}
	return nil
}

// replacement is what stands where a block stood, or the tip when nothing does yet.
func (r *run) replacement(was chain.Block) chain.Block {
	for _, b := range r.blocks {
		if b.Number == was.Number {
			return b
		}
	}
	return r.tip()
}

// forget drops a block and those above it from memory.
func (r *run) forget(from chain.Block) {
	for i, b := range r.blocks {
		if b.Hash == from.Hash {
			r.blocks = r.blocks[:i:i]
			return
		}
	}
}

// remember makes the memory outlive this process, and bounds it.
func (r *run) remember(ctx context.Context) error {
	if r.unsaved == nil || len(r.blocks) == 0 {
		return nil
	}
	keep := uint64(0)
	if r.final.Number > finalityPast {
		keep = r.final.Number - finalityPast
	}
	for len(r.blocks) > 1 && (r.blocks[0].Number < keep || len(r.blocks) > gapMax) {
		r.blocks = r.blocks[1:]
	}
	var changed []chain.Block
	for _, b := range r.blocks {
		if b.Number >= *r.unsaved {
			changed = append(changed, b)
		}
	}
	if err := r.Board.Remember(ctx, r.Chain, changed, r.blocks[0].Number); err != nil {
		return err
	}
	r.unsaved = nil
	return nil
}

// command carries one command out; a refusal is the aggregate's right and no error.
func (r *run) command(ctx context.Context, hash chain.Hash, c tx.Command) error {
	return r.Watcher.command(ctx, hash, c)
}

// command carries out what was seen, if it is still so when others have recorded
// something meanwhile.
func (w *Watcher) command(ctx context.Context, hash chain.Hash, c tx.Command) error {
	origin, err := commands.Begin(w.Random, event.Meta{Actor: "watcher"})
	if err != nil {
		return err
	}
	if w.Crash != nil {
		w.Crash("verdict")
	}
	stream := tx.Stream(w.Chain, hash)
	for tries := range triesMax {
		r, err := w.Transactions.Load(ctx, stream)
		if err != nil {
			return err
		}
		if old, err := w.outdated(ctx, r.State, c, tries > 0); err != nil || old {
			return err
		}
		_, err = w.Transactions.HandleOnce(ctx, stream, r, c, origin)
		var conflict *event.ConflictError
		switch {
		case errors.As(err, &conflict):
		case commands.IsRefusal(err):
			w.Log.Debug("refused", "tx", hash, "command", fmt.Sprintf("%T", c), "why", err)
			return nil
		default:
			return err
		}
	}
	return fmt.Errorf("%s moved on %d times while it was looked at", stream, triesMax)
}

// outdated reports whether the chain has another block by now where a receipt was seen,
// or holds the transaction elsewhere. It is asked when somebody has recorded another
// verdict, or something while we looked: a process that stood still for a while brings
// old news, which must not undo the new. The stream was loaded before, so what is
// recorded from here on is a conflict.
func (w *Watcher) outdated(ctx context.Context, s tx.State, c tx.Command, moved bool) (bool, error) {
	seen, receipt := c.(tx.SeeReceipt)
	block := seen.Receipt.Block
	if !receipt || s.Block.Hash == block.Hash || s.Verdict == tx.StatusAbsent && !moved {
		return false, nil
	}
	at, _, err := w.Node.BlockAt(ctx, block.Number)
	if err != nil {
		return false, fmt.Errorf("block %d: %w", block.Number, err)
	}
	if at.Hash != block.Hash || s.Verdict != tx.StatusExecuted {
		return at.Hash != block.Hash, nil
	}
	was, _, err := w.Node.BlockAt(ctx, s.Block.Number)
	if err != nil {
		return false, fmt.Errorf("block %d: %w", s.Block.Number, err)
	}
	if was.Hash != s.Block.Hash {
		return false, nil
	}
	// Both blocks stand, and only one of them can hold it: the other was a lie.
	truth, err := w.receiptOf(ctx, s.Accepted.Hash, block)
	if err != nil {
		return false, fmt.Errorf("receipt of %s, said to be in two blocks: %w", s.Accepted.Hash, err)
	}
	return truth == nil || truth.Block.Hash != block.Hash, nil
}

// each runs f for each item, some at a time.
func each[T any](items []T, f func(T) error) error {
	return commands.Each(len(items), commandsMax, func(i int) error { return f(items[i]) })
}
