// Package memory is the store of simulated worlds: every storage port, in memory, without
// goroutines, and fast. It passes the contract of all adapters, see infra/storetest.
package memory

import (
	"context"
	"sync"
	"time"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
	"github.com/tempo-watchtower/watchtower/domain/payload"
	"github.com/tempo-watchtower/watchtower/domain/relay/intent"
	"github.com/tempo-watchtower/watchtower/domain/request"
	"github.com/tempo-watchtower/watchtower/eventlog"
)

// Options configure a store.
type Options struct {
	Now    func() time.Time // the store's clock; nil is time.Now
	Window int              // maximum of open transactions of a sequence in work; 0: 16
}

// Store implements all storage ports. It is safe for concurrent use.
type Store struct {
	*data
	closing chan struct{}
	once    sync.Once
}

// data survives the Store that is open on it.
type data struct {
	now    func() time.Time
	window int

	mu          sync.Mutex
	events      []eventlog.Recorded       // by position
	streams     map[eventlog.Stream][]int // indexes in events
	grown       chan struct{}             // closed when events grows; nil without waiting readers
	payloads    map[payload.Ref]kept
	checkpoints map[string]eventlog.Position
	leases      map[string]lease
	requests    map[request.Name]*remembered
	blocks      map[chain.ID][]chain.Block // lowest first
	books       map[chain.ID]*book
	holds       map[tx.Account]*hold
	used        map[string]tx.Usage // usage by client
	turns       map[chain.ID]tx.Turns
	intents     []intent.Entry // by position
	boxes       []*box         // by endpoint
	lastLetter  int
	lastRow     int64
	turn        int64 // number of the last turn of a waiting sequence
}

const defaultWindow = 16

// Open creates an empty store.
func Open(o Options) *Store {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Window == 0 {
		o.Window = defaultWindow
	}
	return (&data{
		now: o.Now, window: o.Window,
		streams: map[eventlog.Stream][]int{}, payloads: map[payload.Ref]kept{},
		checkpoints: map[string]eventlog.Position{}, leases: map[string]lease{},
		requests: map[request.Name]*remembered{}, blocks: map[chain.ID][]chain.Block{},
		books: map[chain.ID]*book{}, holds: map[tx.Account]*hold{}, used: map[string]tx.Usage{},
		turns: map[chain.ID]tx.Turns{},
	}).open()
}

func (d *data) open() *Store { return &Store{data: d, closing: make(chan struct{})} }

// Reopen closes the store and opens its data again.
func (s *Store) Reopen() *Store {
	s.Close() //nolint:errcheck // never fails
	return s.data.open()
}

// Close ends subscriptions; further calls return eventlog.ErrClosed.
func (s *Store) Close() error {
	s.once.Do(func() { close(s.closing) })
	return nil
}

// Ping reports whether the store is open.
func (s *Store) Ping(ctx context.Context) error { return s.enter(ctx, func() {}) }

// enter runs f exclusively, unless the store is closed or the caller's context has ended.
func (s *Store) enter(ctx context.Context, f func()) error {
	select {
	case <-s.closing:
		return eventlog.ErrClosed
	default:
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	f()
	return nil
}

// micro is a time with the precision of databases: in UTC, in microseconds.
func micro(t time.Time) time.Time {
	if t.IsZero() {
		return t
	}
	return time.UnixMicro(tx.StoredTime(t).UnixMicro()).UTC()
}

// LoseWork deletes the data derived from the log: the queues, checkpoints, leases, and
// remembered requests. The store must not be in use.
func (s *Store) LoseWork() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.checkpoints, s.leases = map[string]eventlog.Position{}, map[string]lease{}
	s.requests, s.blocks = map[request.Name]*remembered{}, map[chain.ID][]chain.Block{}
	s.books, s.holds, s.used = map[chain.ID]*book{}, map[tx.Account]*hold{}, map[string]tx.Usage{}
	s.intents, s.boxes = nil, nil
}
