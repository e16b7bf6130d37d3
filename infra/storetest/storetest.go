// Package storetest is the contract that every adapter of the storage ports must pass. The
// ports are declared next to the code that calls them. The interfaces here have the same
// methods, so that an adapter's tests need only this package.
//
// A suite opens a fresh, empty store for each of its cases.
package storetest

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"iter"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
	"github.com/tempo-watchtower/watchtower/domain/payload"
	"github.com/tempo-watchtower/watchtower/eventlog"
)

// Opened is a store under test.
type Opened[P any] struct {
	// Port is the store, fresh and empty. The factory closes it with the test.
	Port P
	// Close closes the store as the program does at its end. A second call is no error.
	Close func() error
	// Reopen closes the store and opens the same data again.
	Reopen func() P
	// Clock is the store's clock. The zero Clock is real time.
	Clock Clock
	// Window is the parking window of a queue.
	Window int
	// Medium returns every byte on the store's medium. If it cannot be read, Medium is nil and
	// the cases that need it are skipped.
	Medium func() []byte
}

// Clock shows a store's time and can advance it.
type Clock struct {
	Now    func() time.Time
	Elapse func(d time.Duration) // returns when d has passed
	// Grain is the unit to which the store truncates times, if it is above a microsecond.
	Grain time.Duration
}

// MovedClock is a clock that a test advances. It also runs by itself.
func MovedClock() Clock {
	var ahead atomic.Int64
	return Clock{
		Now:    func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) },
		Elapse: func(d time.Duration) { ahead.Add(int64(d)) },
	}
}

func (c Clock) orReal() Clock {
	if c.Now == nil {
		c.Now, c.Elapse = time.Now, func(d time.Duration) { <-time.After(d) }
	}
	return c
}

// Log is the event store.
type Log interface {
	Append(ctx context.Context, stream eventlog.Stream, expected eventlog.Version, events ...eventlog.Event) (eventlog.Appended, error)
	ReadStream(ctx context.Context, stream eventlog.Stream, after eventlog.Version) iter.Seq2[eventlog.Recorded, error]
	Version(ctx context.Context, stream eventlog.Stream) (eventlog.Version, error)
	ReadAll(ctx context.Context, after eventlog.Position, f eventlog.Filter, max int) iter.Seq2[eventlog.Batch, error]
	Subscribe(ctx context.Context, after eventlog.Position, f eventlog.Filter, max int) iter.Seq2[eventlog.Batch, error]
	Head(ctx context.Context) (eventlog.Position, error)
}

// PayloadRows stores sealed payloads.
type PayloadRows interface {
	Put(ctx context.Context, rows []payload.Sealed) error
	Get(ctx context.Context, id chain.ID, hash chain.Hash) (payload.Sealed, error)
	Erase(ctx context.Context, id chain.ID, hashes []chain.Hash) error
	EraseOrphan(ctx context.Context, ref payload.Ref, before time.Time) error
	Orphans(ctx context.Context, before time.Time, after payload.Ref, limit int) ([]payload.Ref, error)
}

// CheckpointRows stores readers' positions.
type CheckpointRows interface {
	Checkpoint(ctx context.Context, reader string) (eventlog.Position, error)
	MoveCheckpoint(ctx context.Context, reader string, from, to eventlog.Position) error
}

// LeaseRows grants leases.
type LeaseRows interface {
	Acquire(ctx context.Context, name, holder string, ttl time.Duration) (held bool, err error)
	Release(ctx context.Context, name, holder string) error
}

// WorkRows is the due queue together with the watcher's open transactions: one adapter is both.
// Its checkpoints are moved by Apply.
type WorkRows interface {
	CheckpointRows

	Apply(ctx context.Context, reader string, from, to eventlog.Position, changes []tx.Change) error
	Lease(ctx context.Context, id chain.ID, holder string, ttl time.Duration, limit, repeats int) (work []tx.Work, until time.Duration, err error)
	Done(ctx context.Context, holder string, done []tx.Done) error
	Soon(ctx context.Context, id chain.ID, limit int) ([]tx.Work, error)
	Unfilled(ctx context.Context, after tx.Ref, limit int) ([]tx.Ref, error)
	Find(ctx context.Context, id chain.ID, hashes []chain.Hash) ([]tx.Work, error)
	Depth(ctx context.Context, id chain.ID) (tx.Depth, error)

	Usage(ctx context.Context, reader, client string) (tx.Usage, eventlog.Position, error)
	NextFree(ctx context.Context, s chain.Sequence, from uint64, clients []string) (uint64, error)
	Rivals(ctx context.Context, used map[chain.Sequence]uint64, mined []chain.Hash, limit int) (rows []tx.Work, unread []chain.Sequence, err error)
	Watched(ctx context.Context, id chain.ID, after chain.Hash, limit int) ([]tx.Work, error)
	Verdicts(ctx context.Context, id chain.ID, phase tx.Phase, from, to uint64, after chain.Hash, limit int) ([]tx.Work, error)
	Expiring(ctx context.Context, id chain.ID, time uint64, each, limit int) ([]tx.Work, error)
	Waiting(ctx context.Context, id chain.ID, limit int) ([]chain.Sequence, error)
	Wake(ctx context.Context, now map[chain.Sequence]uint64) (int, error)
	Advance(ctx context.Context, id chain.ID, blockTime uint64) (int, error)
	DropSealed(ctx context.Context, id chain.ID, below uint64) (int, error)

	Blocks(ctx context.Context, id chain.ID) ([]chain.Block, error)
	Remember(ctx context.Context, id chain.ID, blocks []chain.Block, keep uint64) error
}

// patience bounds the waits of each case before it fails.
const patience = time.Minute

func soon(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	return ctx
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func freshID() (id eventlog.ID) {
	rand.Read(id[:]) //nolint:errcheck // never fails
	return id
}

// hash makes a hash that differs for each n.
func hash(n int) (h chain.Hash) {
	binary.BigEndian.PutUint64(h[:8], uint64(n)*0x9e3779b97f4a7c15) // spread over the key space
	binary.BigEndian.PutUint64(h[24:], uint64(n))
	return h
}

func address(n int) (a chain.Address) {
	binary.BigEndian.PutUint64(a[12:], uint64(n))
	return a
}

// facts makes events with fresh ids.
func facts(n int) []eventlog.Event { return named("test.happened.v1", n) }

func named(name string, n int) []eventlog.Event {
	events := make([]eventlog.Event, n)
	for i := range events {
		events[i] = eventlog.Event{ID: freshID(), Name: name, Data: []byte(fmt.Sprintf(`{"n":%d}`, i))}
	}
	return events
}
