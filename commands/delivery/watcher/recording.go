package watcher

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
	"github.com/tempo-watchtower/watchtower/domain/fair"
)

const (
	recordWait   = 250 * time.Millisecond // how long a step waits until results are recorded
	recordRows   = 20_000                 // receipts that may wait to be recorded while more blocks are read
	sealRows     = 4 * rowsMax            // final verdicts that may wait to be recorded while more are read
	recordBlocks = 128                    // blocks above the first one whose receipts are not all recorded
)

// entry is a result that is to be recorded in the log.
type entry struct {
	row    tx.Work
	block  chain.Block // the block that it rests on
	record func(context.Context) error
}

// recording records results, one of each client in turn: a client with many transactions in a block
// delays neither another client's nor the next blocks. Results of one block may be recorded after
// those of later blocks.
type recording struct {
	again   bool // entries that failed are tried again in the next step
	running sync.WaitGroup
	mu      sync.Mutex
	queue   fair.Queue[entry]
	waiting map[chain.Hash]entry // queued, being recorded, or to be tried again; by transaction
	failed  []entry              // to be tried again
	busy    map[chain.Hash]int   // entries that are being recorded, by block
	workers int
	idle    chan struct{} // closed when nothing is queued or being recorded
	began   time.Time     // when idle was made
	slow    bool          // it took longer than recordWait until idle was closed last
	trouble error         // of the first entry that failed since it was read last
}

func newRecording(again bool) *recording {
	idle := make(chan struct{})
	close(idle)
	return &recording{again: again, waiting: map[chain.Hash]entry{}, busy: map[chain.Hash]int{}, idle: idle}
}

// receipt returns the entry that a block contains one of our transactions.
func (r *run) receipt(row tx.Work, receipt chain.Receipt) entry {
	return entry{row, receipt.Block, func(ctx context.Context) error {
		return r.command(ctx, row.Hash, tx.SeeReceipt{Receipt: receipt, At: r.Now()})
	}}
}

// begin queues entries, and those that are to be tried again, and waits a little until all are
// recorded. It does not wait if that took longer the last time, or entries are still waiting: they
// would delay the next block.
func (q *recording) begin(ctx context.Context, some []entry) {
	q.mu.Lock()
	late := q.slow || len(q.waiting) > len(q.failed)
	again := q.failed
	q.failed = nil
	for _, e := range again {
		q.add(e)
	}
	for _, e := range some {
		if was, known := q.waiting[e.row.Hash]; !known || was.block.Hash != e.block.Hash {
			q.add(e)
		}
	}
	for q.workers < commandsMax && q.workers < len(q.waiting) {
		q.workers++
		q.running.Go(func() { q.work(ctx) })
	}
	idle := q.idle
	q.mu.Unlock()
	if late {
		return
	}
	wait := time.NewTimer(recordWait)
	defer wait.Stop()
	select {
	case <-idle:
	case <-wait.C:
	}
}

// work records queued entries until there are none.
func (q *recording) work(ctx context.Context) {
	for {
		e, ok := q.take()
		if !ok {
			return
		}
		err := errors.New("did not end")
		func() {
			defer func() { q.done(e, err) }()
			err = e.record(ctx)
		}()
	}
}

// add queues an entry. The lock is held.
func (q *recording) add(e entry) {
	if q.queue.Empty() && len(q.busy) == 0 {
		q.idle, q.began = make(chan struct{}), time.Now()
	}
	q.queue.Add(e.row.Client, e)
	q.waiting[e.row.Hash] = e
}

// take returns the next entry: the first one of the client whose turn it is.
func (q *recording) take() (e entry, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if e, ok = q.queue.Next(); !ok {
		q.workers--
		return e, false
	}
	q.busy[e.block.Hash]++
	return e, true
}

func (q *recording) done(e entry, err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	block := e.block.Hash
	if q.busy[block]--; q.busy[block] == 0 {
		delete(q.busy, block)
	}
	switch {
	case q.waiting[e.row.Hash].block.Hash != block: // its block has left the chain
	case err != nil && q.again:
		q.failed = append(q.failed, e)
	default:
		delete(q.waiting, e.row.Hash)
	}
	if err != nil && q.trouble == nil {
		q.trouble = fmt.Errorf("block %d: %w", e.block.Number, err)
	}
	q.rest()
}

// rest tells those that wait if nothing is left to do. The lock is held.
func (q *recording) rest() {
	if !q.queue.Empty() || len(q.busy) > 0 {
		return
	}
	select {
	case <-q.idle:
	default:
		close(q.idle)
		q.slow = time.Since(q.began) > recordWait
	}
}

// keep forgets the entries of all blocks but these, and waits until none of the others is being
// recorded: their verdicts are revoked afterwards.
func (q *recording) keep(ctx context.Context, blocks map[chain.Hash]bool) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	stays := func(e entry) bool { return blocks[e.block.Hash] }
	q.queue.Keep(stays)
	q.failed = slices.DeleteFunc(q.failed, func(e entry) bool { return !stays(e) })
	for hash, e := range q.waiting {
		if !stays(e) {
			delete(q.waiting, hash)
		}
	}
	q.rest()
	for {
		gone := false
		for block := range q.busy {
			gone = gone || !blocks[block]
		}
		if !gone {
			return nil
		}
		q.mu.Unlock()
		timer := time.NewTimer(time.Millisecond)
		select {
		case <-timer.C:
		case <-ctx.Done():
		}
		timer.Stop()
		q.mu.Lock()
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
}

// news returns the error of an entry that could not be recorded since the last call.
func (q *recording) news() error {
	q.mu.Lock()
	defer q.mu.Unlock()
	err := q.trouble
	q.trouble = nil
	return err
}

// below returns the lowest block whose entries are not all recorded.
func (q *recording) below() uint64 {
	q.mu.Lock()
	defer q.mu.Unlock()
	lowest := uint64(math.MaxUint64)
	for _, e := range q.waiting {
		lowest = min(lowest, e.block.Number)
	}
	return lowest
}

// count returns the number of entries that wait to be recorded.
func (q *recording) count() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.waiting)
}

// full reports whether a block has to wait until more of the entries are recorded.
func (q *recording) full(block uint64) bool {
	rows := q.count()
	return rows > 0 && (rows >= recordRows || block > q.below()+recordBlocks)
}

// has reports whether an entry of a transaction waits to be recorded.
func (q *recording) has(hash chain.Hash) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	_, has := q.waiting[hash]
	return has
}

// hashes lists the transactions of these sequences with entries that wait to be recorded.
func (q *recording) hashes(of map[chain.Sequence]uint64) (hashes []chain.Hash) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for hash, e := range q.waiting {
		if _, asked := of[e.row.Named()]; asked {
			hashes = append(hashes, hash)
		}
	}
	return hashes
}
