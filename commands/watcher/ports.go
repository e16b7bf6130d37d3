package watcher

import (
	"context"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/tx"
)

// Board is what the watcher needs of the work schema. Its rows are the due
// queue's; its blocks are the watcher's memory of the canonical chain.
type Board interface {
	// Find returns the rows of a chain with these hashes, in any phase.
	Find(ctx context.Context, id chain.ID, hashes []chain.Hash) ([]tx.Work, error)
	// Rivals returns open, watched and announced rows of these sequences with
	// nonces below the one given for each: another transaction has used them. The
	// announced ones come last, so that a limit leaves out those first.
	Rivals(ctx context.Context, used map[chain.Sequence]uint64, limit int) ([]tx.Work, error)
	// Verdicts returns rows in a phase whose verdict rests on a block of number
	// from..to, lowest first and by hash within a block; of block from only those
	// with a hash above after.
	Verdicts(ctx context.Context, id chain.ID, phase tx.Phase, from, to uint64, after chain.Hash, limit int) ([]tx.Work, error)
	// Expiring returns open and watched rows with 0 < ExpiresAt <= time.
	Expiring(ctx context.Context, id chain.ID, time uint64, limit int) ([]tx.Work, error)
	// Watched returns watched rows with a hash above after, in the order of their
	// hashes.
	Watched(ctx context.Context, id chain.ID, after chain.Hash, limit int) ([]tx.Work, error)
	// Waiting returns sequences with rows that wait for a nonce, longest unseen
	// first, and marks them seen.
	Waiting(ctx context.Context, id chain.ID, limit int) ([]chain.Sequence, error)
	// Wake makes rows due now: those of the sequences whose WaitNonce is at or
	// below the nonce given, so that a chain that stands still wakes nobody.
	Wake(ctx context.Context, now map[chain.Sequence]uint64) (int, error)
	// Advance makes rows never attempted due now whose EligibleAt the head's
	// block time has reached, though the wall clock has not: no other, or each
	// head would cancel their back-off.
	Advance(ctx context.Context, id chain.ID, blockTime uint64) (int, error)
	// DropSealed removes sealed rows whose block is below a number.
	DropSealed(ctx context.Context, id chain.ID, below uint64) (int, error)

	// Blocks returns the remembered canonical blocks, lowest first.
	Blocks(ctx context.Context, id chain.ID) ([]chain.Block, error)
	// Remember replaces the remembered blocks from the first of these upwards by
	// these, and forgets those below keep.
	Remember(ctx context.Context, id chain.ID, blocks []chain.Block, keep uint64) error
}

// Node reads a chain. Calls go to one endpoint that stays the same while it is
// healthy; an error says nothing about the chain.
type Node interface {
	// Head is the newest block.
	Head(ctx context.Context) (chain.Block, error)
	// Final is the newest block that can no longer leave the chain, as of a tip.
	Final(ctx context.Context, tip chain.Block) (chain.Block, error)
	// Newest is Head for whoever goes on to BlockByHash.
	Newest(ctx context.Context) (chain.Block, error)
	// BlockByHash returns a block and what it holds.
	BlockByHash(ctx context.Context, hash chain.Hash) (chain.Block, chain.Contents, error)
	// BlockAt returns the canonical block of a number, and its transactions' hashes.
	BlockAt(ctx context.Context, number uint64) (chain.Block, []chain.Hash, error)
	// BlockWhole is BlockAt with all that the block holds.
	BlockWhole(ctx context.Context, number uint64) (chain.Block, chain.Contents, error)
	// Receipts returns the receipts of a block's transactions among these.
	Receipts(ctx context.Context, block chain.Block, hashes []chain.Hash) (map[chain.Hash]chain.Receipt, error)
	// SureReceipts is Receipts for what is sealed by them: they are more than one
	// endpoint's word, or an error says that nothing is known yet.
	SureReceipts(ctx context.Context, block chain.Block, hashes []chain.Hash) (map[chain.Hash]chain.Receipt, error)
	// Nonces returns, for each sequence, the next nonce the chain wants, at a block.
	Nonces(ctx context.Context, at chain.Block, sequences []chain.Sequence) ([]uint64, error)
	// FindReceipt asks every healthy endpoint for one transaction's receipt. nil
	// without an error means that none has it of those that have come to the block
	// given, which is at least one, and that each could be asked.
	FindReceipt(ctx context.Context, hash chain.Hash, at chain.Block) (*chain.Receipt, error)
	// Shown makes sure that a block is not one endpoint's word alone. An error says
	// that nothing is known yet.
	Shown(ctx context.Context, block chain.Block) error
	// ShownFinal makes sure that it is not one endpoint's word alone that a block is
	// final. An error says that nothing is known yet.
	ShownFinal(ctx context.Context, final chain.Block) error
	// Heads sends a signal when there may be a new head; it ends with the context.
	Heads(ctx context.Context) <-chan struct{}
}
