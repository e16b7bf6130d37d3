// Package watcher records the chain's news in the log: receipts, used nonces, time, reorgs,
// and finality.
//
// It relies on positive evidence only. A missing receipt, a lower head or a timeout only
// means that a node lags. A transaction counts as reorged when another block has replaced
// its block.
//
// It imports commands, domain and eventlog, and no other process manager.
package watcher

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/tempo-watchtower/watchtower/commands"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
	"github.com/tempo-watchtower/watchtower/eventlog"
	"github.com/tempo-watchtower/watchtower/eventlog/handler"
)

// Bounds of one step.
const (
	walkMax      = 256  // blocks walked back from a head
	stretch      = 128  // blocks processed at once when the head is far above
	aheadMin     = 8    // gap from which blocks are read concurrently
	aheadMax     = 16   // concurrent reads of blocks
	blocksMax    = 8    // blocks processed concurrently
	gapMax       = 4096 // gap to a head beyond which blocks are skipped
	rowsMax      = 1000 // rows per query
	waitingMax   = 64   // waiting sequences asked for per block
	commandsMax  = 64   // concurrent commands
	triesMax     = 64   // attempts to record a result while a transaction's stream moves on
	finalityPast = 64   // blocks below the final one in which a contradiction is still detected
	orphanSteps  = 16   // steps during which a reorged block is checked again
	unsettledMax = 4096 // remembered sequences with unsettled rivals
)

// Watcher watches one chain. One replica at a time should run it, by lease; recording twice
// is harmless.
type Watcher struct {
	Chain chain.ID
	Node  Node
	// For returns the reader in a client's name, for reads that the number of the client's
	// transactions decides. nil: Node.
	For          func(client string) Lookup
	Board        Board
	Transactions commands.Transactions
	Poll         time.Duration // longest interval between reads of the head
	Now          func() time.Time
	// Moved is called after a step with the head; for health and metrics.
	Moved func(head, final chain.Block)
	Crash func(point string)
	Log   *slog.Logger
}

// run is a watcher's memory while it holds its lease.
type run struct {
	*Watcher
	blocks    []chain.Block // canonical, lowest first, each the parent of the next
	final     chain.Block
	doubted   chain.Hash // a rival of the tip at equal height, seen once
	orphans   []orphan
	unsaved   *uint64              // lowest number in blocks that the board does not have yet
	expired   chain.Hash           // last head by which all expired transactions are settled
	told      chain.Hash           // last head for which the rest of readTip has finished
	asked     asked                // last answer for the final block
	sure      chain.Block          // last final block that more than one endpoint confirmed
	turn      turn                 // where finalize continues
	round     round                // where readWatched continues
	ahead     map[chain.Hash]block // blocks read ahead of the walk, by approach
	trouble   string               // last logged error; empty: none
	unsettled unsettled
	settlers  settlers
	// recording records receipts. The board gets a block once its receipts and those of all blocks
	// below are recorded. The next process reads the other blocks again. sealing records that
	// executed transactions are final; the board keeps a transaction until that is recorded.
	recording, sealing *recording
}

// turn is a place among the verdicts: after a hash in a block.
type turn struct {
	number uint64
	after  chain.Hash
}

// orphan is a reorged block. Rows that rest on it may reach the board some steps later, so
// it is remembered for a while.
type orphan struct {
	was, now chain.Block
	steps    int
}

// Run watches until ctx ends. Errors of nodes or the store are logged, and the step is
// retried at the next head or poll.
func (w *Watcher) Run(ctx context.Context) error {
	blocks, err := w.Board.Blocks(ctx, w.Chain)
	if err != nil {
		return err
	}
	r := w.start(blocks)
	defer r.settlers.running.Wait()
	defer r.recording.running.Wait()
	defer r.sealing.running.Wait()
	heads := w.Node.Heads(ctx)
	tick := time.NewTicker(w.Poll)
	defer tick.Stop()
	for {
		if err := r.step(ctx); ctx.Err() == nil {
			r.tell(err)
		}
		tick.Reset(w.Poll) // no poll while heads arrive in time
		select {
		case <-ctx.Done():
			return ctx.Err()
		case _, on := <-heads:
			if !on {
				heads = nil // it has ended: only the poll remains
			}
		case <-tick.C:
		}
		if ctx.Err() != nil {
			return ctx.Err() // even with a new head: another replica reads it by now
		}
	}
}

// tell logs an error when it begins, changes and ends, not at each head while it lasts.
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

// start begins with the blocks that an earlier run remembered.
func (w *Watcher) start(blocks []chain.Block) *run {
	return &run{Watcher: w, blocks: blocks, unsettled: unsettled{sequences: map[chain.Sequence]bool{}}, recording: newRecording(true), sealing: newRecording(false)}
}

// step brings the log up to the chain's head and finality. The next step retries each part;
// an error at the head does not delay finality.
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
	if tip := r.tip(); r.expired != tip.Hash || r.told != tip.Hash {
		news = r.readTip(ctx, tip)
	}
	err = r.finalize(ctx)
	if news = errors.Join(news, r.recording.news(), r.sealing.news()); err != nil {
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

// take brings the memory up to a head, and revokes verdicts on reorged blocks.
func (r *run) take(ctx context.Context, head chain.Block) error {
	if head.Hash != r.tip().Hash {
		if err := r.follow(ctx, head); err != nil {
			return err
		}
	} else {
		r.recording.begin(ctx, nil)
	}
	if err := r.disown(ctx); err != nil {
		return err
	}
	// After disown: a process that takes over from here must find the fork itself.
	return r.remember(ctx)
}

// follow walks from a new head to the known blocks, and processes the new blocks.
func (r *run) follow(ctx context.Context, head chain.Block) error {
	fresh, base, err := r.walk(ctx, head)
	if err != nil || len(fresh) == 0 {
		return err
	}
	left := r.blocks[base:]
	joins := base > 0 && fresh[0].Parent == r.blocks[base-1].Hash
	if len(left) > 0 || !joins {
		// A single node can neither revoke mined transactions nor set the block at which
		// watching begins: if no other node had that block, no later head would meet it.
		if err := r.Node.Shown(ctx, head); err != nil {
			return fmt.Errorf("find a fork or the first block: %w", err)
		}
	}
	if err := r.recording.keep(ctx, hashesOf(r.blocks[:base], fresh)); err != nil {
		return err
	}
	if len(left) > 0 {
		if err := r.sealing.keep(ctx, nil); err != nil { // each verdict is looked at again
			return err
		}
	}
	first := fresh[0].Number
	if base > 0 && len(left) > 0 {
		first = r.blocks[base-1].Number // the board forgets its blocks above that
	}
	if r.unsaved == nil || first < *r.unsaved {
		r.unsaved = &first
	}
	r.blocks = r.blocks[:base:base]
	for _, b := range left {
		r.orphans = append(r.orphans, orphan{was: b, now: replacement(b, fresh)})
		r.Log.Warn("block left the chain", "chain", r.Chain, "number", b.Number, "hash", b.Hash)
	}
	return r.readBlocks(ctx, fresh, len(left) == 0)
}

func hashesOf(known []chain.Block, fresh []block) map[chain.Hash]bool {
	all := make(map[chain.Hash]bool, len(known)+len(fresh))
	for _, b := range known {
		all[b.Hash] = true
	}
	for _, b := range fresh {
		all[b.Hash] = true
	}
	return all
}

// replacement returns the new block with the number of a former block, or else the highest new block.
func replacement(was chain.Block, fresh []block) chain.Block {
	for _, b := range fresh {
		if b.Number == was.Number {
			return b.Block
		}
	}
	return fresh[len(fresh)-1].Block
}

// remember saves the memory for the next process, and bounds it. Blocks from the first one on whose
// receipts are not all recorded are left for a later call: the next process has to read them.
func (r *run) remember(ctx context.Context) error {
	if r.unsaved == nil || len(r.blocks) == 0 {
		return nil
	}
	keep := uint64(0)
	if r.final.Number > finalityPast {
		keep = r.final.Number - finalityPast
	}
	end := r.recording.below()
	for len(r.blocks) > 1 && r.blocks[1].Number < end && (r.blocks[0].Number < keep || len(r.blocks) > gapMax) {
		r.blocks = r.blocks[1:]
	}
	var changed []chain.Block
	for _, b := range r.blocks {
		if b.Number >= *r.unsaved && b.Number < end {
			changed = append(changed, b)
		}
	}
	if len(changed) == 0 {
		return nil
	}
	if err := r.Board.Remember(ctx, r.Chain, changed, r.blocks[0].Number); err != nil {
		return err
	}
	if r.unsaved = nil; end <= r.tip().Number {
		r.unsaved = &end
	}
	return nil
}

// command handles one command; a refusal is no error.
func (r *run) command(ctx context.Context, hash chain.Hash, c tx.Command) error {
	return r.Watcher.command(ctx, hash, c)
}

// command records an observation, if it still holds after others' concurrent records.
func (w *Watcher) command(ctx context.Context, hash chain.Hash, c tx.Command) error {
	origin, err := handler.Begin(w.Transactions.Random, eventlog.Meta{Actor: "watcher"})
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
		var conflict *eventlog.ConflictError
		switch {
		case errors.As(err, &conflict):
		case commands.IsRefusal(err):
			w.Log.Debug("refused", "tx", hash, "command", fmt.Sprintf("%T", c), "why", err)
			return nil
		default:
			return err
		}
	}
	return fmt.Errorf("%s got new events %d times during the check", stream, triesMax)
}

// outdated reports whether the block of a seen receipt was replaced, or the transaction is
// mined elsewhere. It asks if another verdict was recorded, or if the stream moved during
// the check: a process that was suspended could otherwise overwrite newer results. The
// stream was loaded before, so a later record is a conflict.
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
	// Both blocks are canonical, and only one of them can hold the transaction: one report
	// was false.
	truth, err := w.receiptOf(ctx, w.Node, s.Accepted.Hash, block)
	if err != nil {
		return false, fmt.Errorf("receipt of %s, reported in two blocks: %w", s.Accepted.Hash, err)
	}
	return truth == nil || truth.Block.Hash != block.Hash, nil
}

// each runs f for each item, commandsMax at a time.
func each[T any](items []T, f func(T) error) error {
	return commands.Each(len(items), commandsMax, func(i int) error { return f(items[i]) })
}
