// Package redis tells the replicas' workers through Redis what has come due, sooner
// than their next look at the due queue would; and it keeps leases, see [Leases].
//
// Two sorted sets for each chain hold hashes of transactions, by the time in Unix
// seconds at which they are due: watchtower:ready:{chain} those never attempted,
// watchtower:retry:{chain} those to be attempted again. A replica whose worker is
// idle takes members whose time has come out of the sets, and if there were any, has
// the worker look at the due queue. What is in the sets decides nothing: the worker
// leases what the queue has, and members are never even read. So whatever happens to
// Redis, and whatever is put there, changes only how soon the queue is looked at, and
// no more often than once for each look at the sets.
//
// Nothing about the sets makes its callers wait: what they say goes into a bounded memory, from
// which one goroutine writes. What Redis does not take in time is dropped; the queue
// has it.
package redis

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	goredis "github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/tx"
)

// Limits.
const (
	dialTimeout = time.Second
	callTimeout = 500 * time.Millisecond // of one round trip
	look        = 20 * time.Millisecond  // between looks at the sets
	pendingMax  = 50_000                 // hints kept for the writer
	writeMax    = 1000                   // hints written at once
	keepMax     = 100_000                // members kept in a set: the soonest
	rebuildMax  = 10_000                 // rows a rebuild begins with
	refreshMax  = 1000                   // rows it adds later
	refresh     = 15 * time.Second       // how often it does
)

// Options are what hints are made from.
type Options struct {
	URL    string // redis:// or rediss://, as [Check] has it
	Chains []chain.ID
	Now    func() time.Time
	Log    *slog.Logger
}

// Hints is one process's part in the sets. Its methods may be called at any time and
// never wait, but for Ping, Run and Rebuild.
type Hints struct {
	client  *goredis.Client
	chains  []chain.ID
	now     func() time.Time
	log     *slog.Logger
	breaker breaker

	mu      sync.Mutex
	pending []hint
	bell    chan struct{} // there are pending hints

	written, dropped, woken, failures atomic.Uint64
}

// hint is news of one transaction: due at a time, or, with none, not to be sent.
type hint struct {
	chain chain.ID
	hash  chain.Hash
	retry bool
	due   time.Time
}

// Check says what is wrong with a URL. Its errors do not show it, for it may hold a
// password.
func Check(text string) error {
	_, err := options(text)
	return err
}

func options(text string) (*goredis.Options, error) {
	u, err := url.Parse(text)
	switch {
	case err != nil:
		return nil, errors.New("is not a URL (special characters of a password must be percent-encoded)")
	case u.Scheme != "redis" && u.Scheme != "rediss":
		return nil, errors.New("must be redis://… or, with TLS, rediss://…")
	case u.Hostname() == "":
		return nil, errors.New("names no host")
	case u.RawQuery != "" || u.Fragment != "":
		return nil, errors.New("must end with the number of the database")
	}
	if db := strings.Trim(u.Path, "/"); db != "" {
		if _, err := strconv.ParseUint(db, 10, 16); err != nil {
			return nil, errors.New("has a path that is not the number of a database")
		}
	}
	o, err := goredis.ParseURL(text)
	if err != nil {
		return nil, errors.New("is not a Redis URL")
	}
	return o, nil
}

// connect prepares connections to a server, of which each round trip is bounded.
func connect(url string, call time.Duration) (*goredis.Client, error) {
	client, err := options(url)
	if err != nil {
		return nil, fmt.Errorf("the Redis URL %w", err)
	}
	// The library would write about lost connections to standard error by itself; we
	// are told of them by errors, and log one line.
	logging.Disable()
	client.DialTimeout, client.ReadTimeout, client.WriteTimeout, client.PoolTimeout = dialTimeout, call, call, call
	client.ContextTimeoutEnabled = true
	client.MaxRetries = -1 // the next look, hint or renewal is the retry
	client.DialerRetries = 1
	client.Protocol, client.DisableIdentity = 2, true
	client.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	client.PoolSize, client.MaxIdleConns = 4, 4
	return goredis.NewClient(client), nil
}

// Open prepares the connection; it is made when it is needed, so a Redis that is down
// is no error.
func Open(o Options) (*Hints, error) {
	client, err := connect(o.URL, callTimeout)
	if err != nil {
		return nil, err
	}
	return &Hints{
		client: client, chains: o.Chains, now: o.Now, log: o.Log,
		bell: make(chan struct{}, 1), breaker: breaker{now: o.Now},
	}, nil
}

// Close ends the connections. Run must have returned.
func (h *Hints) Close() error { return h.client.Close() }

// Ping answers whether Redis can be reached.
func (h *Hints) Ping(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, dialTimeout+callTimeout)
	defer cancel()
	return h.client.Ping(ctx).Err()
}

// Stats are figures since the start.
type Stats struct {
	Up       bool   // the last round trips went well
	Written  uint64 // hints that Redis took
	Dropped  uint64 // hints that it was not given, or did not take
	Woken    uint64 // looks at the due queue that hints caused
	Failures uint64 // round trips that failed
}

// Stats answers how it goes.
func (h *Hints) Stats() Stats {
	return Stats{
		Up: h.breaker.closed(), Written: h.written.Load(), Dropped: h.dropped.Load(),
		Woken: h.woken.Load(), Failures: h.failures.Load(),
	}
}

// Applied tells what was put into the due queue.
func (h *Hints) Applied(changes []tx.Change) {
	hints := make([]hint, 0, len(changes))
	for _, c := range changes {
		n := hint{chain: c.Chain, hash: c.Hash}
		switch {
		case c.Open != nil:
			n.due = c.Open.NextAt
		case c.Attempt != nil:
			n.retry, n.due = true, c.Attempt.NextAt
		case c.Reopen != nil && c.Reopen.To == tx.Open:
			n.retry, n.due = true, c.Reopen.At
		}
		hints = append(hints, n)
	}
	h.add(hints)
}

// Done tells what workers have told the due queue.
func (h *Hints) Done(done []tx.Done) {
	hints := make([]hint, len(done))
	for i, d := range done {
		hints[i] = hint{chain: d.Chain, hash: d.Hash, retry: true, due: d.NextAt}
	}
	h.add(hints)
}

// add leaves hints to the writer, as many as there is room for.
func (h *Hints) add(hints []hint) {
	if len(hints) == 0 {
		return
	}
	h.mu.Lock()
	room := pendingMax - len(h.pending)
	if room < len(hints) {
		h.dropped.Add(uint64(len(hints) - room))
		hints = hints[:room]
	}
	h.pending = append(h.pending, hints...)
	h.mu.Unlock()
	select {
	case h.bell <- struct{}{}:
	default:
	}
}

// taken hands the pending hints over.
func (h *Hints) taken() []hint {
	h.mu.Lock()
	defer h.mu.Unlock()
	hints := h.pending
	h.pending = nil
	return hints
}
