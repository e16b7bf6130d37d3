package watcher

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"time"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
)

const (
	recordWait   = 250 * time.Millisecond // how long a step waits until receipts are recorded
	recordRows   = 20_000                 // receipts that may wait to be recorded while more blocks are read
	recordBlocks = 128                    // blocks above the first one whose receipts are not all recorded
)

// mined is a transaction of ours that a block contains.
type mined struct {
	row     tx.Work
	receipt chain.Receipt
}

// recording records receipts, one of each client in turn: a client with many transactions in a block
// delays neither another client's nor the next blocks. Receipts of one block may be recorded after
// those of later blocks. The board gets a block when its receipts and those below are recorded, so
// the next process reads the others again.
type recording struct {
	running sync.WaitGroup
	mu      sync.Mutex
	queues  map[string][]mined   // by client
	turns   []string             // clients with a queue, in the order of their turns
	waiting map[chain.Hash]mined // queued, being recorded, or failed; by transaction
	failed  []mined              // to be tried again in the next step
	busy    map[chain.Hash]int   // receipts that are being recorded, by block
	workers int
	idle    chan struct{} // closed when nothing is queued or being recorded
	trouble error         // of the receipts that failed since it was read last
}

func newRecording() *recording {
	idle := make(chan struct{})
	close(idle)
	return &recording{queues: map[string][]mined{}, waiting: map[chain.Hash]mined{}, busy: map[chain.Hash]int{}, idle: idle}
}

// record queues receipts, and those that have failed, and waits a little until all are recorded. It
// does not wait if receipts were waiting already: they would delay the next block.
func (r *run) record(ctx context.Context, some []mined) {
	q := r.recording
	q.mu.Lock()
	late := len(q.waiting) > len(q.failed)
	again := q.failed
	q.failed = nil
	for _, m := range again {
		q.queue(m)
	}
	for _, m := range some {
		if was, known := q.waiting[m.row.Hash]; !known || was.receipt.Block.Hash != m.receipt.Block.Hash {
			q.queue(m)
		}
	}
	for q.workers < commandsMax && q.workers < len(q.waiting) {
		q.workers++
		q.running.Go(func() { r.recordAll(ctx) })
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

// recordAll records queued receipts until there are none.
func (r *run) recordAll(ctx context.Context) {
	for {
		m, ok := r.recording.take()
		if !ok {
			return
		}
		err := errors.New("did not end")
		func() {
			defer func() { r.recording.done(m, err) }()
			err = r.command(ctx, m.row.Hash, tx.SeeReceipt{Receipt: m.receipt, At: r.Now()})
		}()
	}
}

// queue adds a receipt to its client's. The lock is held.
func (q *recording) queue(m mined) {
	if len(q.turns) == 0 && len(q.busy) == 0 {
		q.idle = make(chan struct{})
	}
	client := m.row.Client
	if len(q.queues[client]) == 0 {
		q.turns = append(q.turns, client)
	}
	q.queues[client], q.waiting[m.row.Hash] = append(q.queues[client], m), m
}

// take returns the next receipt: the first one of the client whose turn it is.
func (q *recording) take() (m mined, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.turns) == 0 {
		q.workers--
		return m, false
	}
	client := q.turns[0]
	q.turns = q.turns[1:]
	m, q.queues[client] = q.queues[client][0], q.queues[client][1:]
	if len(q.queues[client]) > 0 {
		q.turns = append(q.turns, client)
	} else {
		delete(q.queues, client)
	}
	q.busy[m.receipt.Block.Hash]++
	return m, true
}

func (q *recording) done(m mined, err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	block := m.receipt.Block.Hash
	if q.busy[block]--; q.busy[block] == 0 {
		delete(q.busy, block)
	}
	switch {
	case q.waiting[m.row.Hash].receipt.Block.Hash != block: // its block has left the chain
	case err == nil:
		delete(q.waiting, m.row.Hash)
	default:
		q.failed = append(q.failed, m)
		if q.trouble == nil {
			q.trouble = fmt.Errorf("block %d: %w", m.receipt.Block.Number, err)
		}
	}
	q.rest()
}

// rest tells those that wait if nothing is left to do. The lock is held.
func (q *recording) rest() {
	if len(q.turns) > 0 || len(q.busy) > 0 {
		return
	}
	select {
	case <-q.idle:
	default:
		close(q.idle)
	}
}

// keep forgets the receipts of all blocks but these, and waits until none of the others is being
// recorded: their verdicts are revoked afterwards.
func (q *recording) keep(ctx context.Context, blocks map[chain.Hash]bool) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	stays := func(m mined) bool { return blocks[m.receipt.Block.Hash] }
	turns := q.turns
	q.turns = nil
	for _, client := range turns {
		if q.queues[client] = kept(q.queues[client], stays); len(q.queues[client]) > 0 {
			q.turns = append(q.turns, client)
		} else {
			delete(q.queues, client)
		}
	}
	q.failed = kept(q.failed, stays)
	for hash, m := range q.waiting {
		if !stays(m) {
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

func kept(all []mined, stays func(mined) bool) (some []mined) {
	for _, m := range all {
		if stays(m) {
			some = append(some, m)
		}
	}
	return some
}

// news returns the error of a receipt that could not be recorded since the last call.
func (q *recording) news() error {
	q.mu.Lock()
	defer q.mu.Unlock()
	err := q.trouble
	q.trouble = nil
	return err
}

// below returns the lowest block whose receipts are not all recorded.
func (q *recording) below() uint64 {
	q.mu.Lock()
	defer q.mu.Unlock()
	lowest := uint64(math.MaxUint64)
	for _, m := range q.waiting {
		lowest = min(lowest, m.receipt.Block.Number)
	}
	return lowest
}

// full reports whether a block has to wait until more receipts are recorded.
func (q *recording) full(block uint64) bool {
	q.mu.Lock()
	rows := len(q.waiting)
	q.mu.Unlock()
	return rows > 0 && (rows >= recordRows || block > q.below()+recordBlocks)
}

// has reports whether the receipt of a transaction waits to be recorded.
func (q *recording) has(hash chain.Hash) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	_, has := q.waiting[hash]
	return has
}

// hashes lists the transactions of these sequences whose receipts wait to be recorded.
func (q *recording) hashes(of map[chain.Sequence]uint64) (hashes []chain.Hash) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for hash, m := range q.waiting {
		if _, asked := of[m.row.Named()]; asked {
			hashes = append(hashes, hash)
		}
	}
	return hashes
}
