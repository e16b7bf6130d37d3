package watcher

import (
	"context"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
)

// Board is the part of the work schema that the watcher uses: the rows of the due queue,
// and the watcher's memory of the canonical chain.
type Board interface {
	// Find returns the rows of a chain with these hashes, in any phase.
	Find(ctx context.Context, id chain.ID, hashes []chain.Hash) ([]tx.Work, error)
	// Rivals returns open and watched rows of these sequences with nonces below the
	// one given for each, for another transaction has used them, but for the rows with
	// the hashes in mined. At most limit rows are shared out among the sequences that
	// have such rows: one sequence's rows leave none of another's out. unread are the
	// sequences with more rows than are returned. Rows that only claim to be of a
	// sequence come after its own.
	Rivals(ctx context.Context, used map[chain.Sequence]uint64, mined []chain.Hash, limit int) (rows []tx.Work, unread []chain.Sequence, err error)
	// Verdicts returns rows in a phase whose verdict rests on a block in from..to, lowest
	// block first and by hash within a block. Within block from, it returns only hashes above
	// after.
	Verdicts(ctx context.Context, id chain.ID, phase tx.Phase, from, to uint64, after chain.Hash, limit int) ([]tx.Work, error)
	// Expiring returns open and watched rows with 0 < ExpiresAt <= time: at most limit rows, of
	// each client at most `each`, the earliest ones. A second row of a client comes after the
	// first ones of all others.
	Expiring(ctx context.Context, id chain.ID, time uint64, each, limit int) ([]tx.Work, error)
	// Watched returns watched rows with a hash above after, in the order of their hashes.
	Watched(ctx context.Context, id chain.ID, after chain.Hash, limit int) ([]tx.Work, error)
	// Waiting returns sequences with rows that wait for a nonce, longest unseen first, and
	// marks them seen.
	Waiting(ctx context.Context, id chain.ID, limit int) ([]chain.Sequence, error)
	// Wake makes the rows of these sequences due now whose WaitNonce is at or below the
	// given nonce. So a halted chain wakes no rows.
	Wake(ctx context.Context, now map[chain.Sequence]uint64) (int, error)
	// Advance makes rows due now that were never attempted and whose EligibleAt the head's
	// block time has reached, even before the wall clock. It skips attempted rows: each
	// head would cancel their backoff.
	Advance(ctx context.Context, id chain.ID, blockTime uint64) (int, error)
	// DropSealed removes sealed rows whose block is below a number.
	DropSealed(ctx context.Context, id chain.ID, below uint64) (int, error)

	// Blocks returns the remembered canonical blocks, lowest first.
	Blocks(ctx context.Context, id chain.ID) ([]chain.Block, error)
	// Remember replaces the remembered blocks from the first of these upwards, and forgets
	// blocks below keep.
	Remember(ctx context.Context, id chain.ID, blocks []chain.Block, keep uint64) error
}

// Lookup is the part of a chain that shows how one transaction ended.
type Lookup interface {
	// Head returns the newest block.
	Head(ctx context.Context) (chain.Block, error)
	// BlockAt returns the canonical block of a number, and its transactions' hashes.
	BlockAt(ctx context.Context, number uint64) (chain.Block, []chain.Hash, error)
	// Receipts returns the receipts of a block's transactions among these hashes.
	Receipts(ctx context.Context, block chain.Block, hashes []chain.Hash) (map[chain.Hash]chain.Receipt, error)
	// Nonces returns, for each sequence, the next nonce the chain wants, at a block.
	Nonces(ctx context.Context, at chain.Block, sequences []chain.Sequence) ([]uint64, error)
	// SureNonces is Nonces for a caller that concludes something from a nonce that is still
	// free: more than one endpoint agrees on each nonce, of zero, too.
	SureNonces(ctx context.Context, at chain.Block, sequences []chain.Sequence) ([]uint64, error)
	// FindReceipt asks every healthy endpoint for one transaction's receipt. nil without an
	// error means that all endpoints could be asked, at least one has reached the given
	// block, and of these none has the receipt.
	FindReceipt(ctx context.Context, hash chain.Hash, at chain.Block) (*chain.Receipt, error)
	// Shown checks that more than one endpoint confirms a block. An error means that this
	// is unknown.
	Shown(ctx context.Context, block chain.Block) error
}

// Node reads a chain. Calls go to one endpoint that stays the same while it is healthy. An
// error means nothing about the chain.
type Node interface {
	Lookup
	// Final returns the newest final block, as of a tip.
	Final(ctx context.Context, tip chain.Block) (chain.Block, error)
	// Newest is Head for a caller that then calls BlockByHash.
	Newest(ctx context.Context) (chain.Block, error)
	// BlockByHash returns a block and its contents.
	BlockByHash(ctx context.Context, hash chain.Hash) (chain.Block, chain.Contents, error)
	// BlockWhole is BlockAt with the block's whole contents.
	BlockWhole(ctx context.Context, number uint64) (chain.Block, chain.Contents, error)
	// SureReceipts is Receipts for sealing: more than one endpoint agrees on each receipt,
	// or it returns an error.
	SureReceipts(ctx context.Context, block chain.Block, hashes []chain.Hash) (map[chain.Hash]chain.Receipt, error)
	// ShownFinal checks that more than one endpoint confirms that a block is final. An
	// error means that this is unknown.
	ShownFinal(ctx context.Context, final chain.Block) error
	// Heads sends a signal when there may be a new head; it ends with the context.
	Heads(ctx context.Context) <-chan struct{}
}
