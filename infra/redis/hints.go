// Package redis notifies the replicas' workers through Redis of due work, sooner than polling
// the due queue does. It also grants leases, see [Leases].
//
// Two sorted sets per chain hold hashes of transactions, scored by their due time in Unix
// seconds: watchtower:ready:{chain} for first attempts, watchtower:retry:{chain} for repeats. A
// replica with an idle worker removes due members from the sets, and if there were any, wakes
// the worker to look at the due queue. The sets decide nothing: the worker leases rows of the
// queue, and members are never read. So any failure of Redis, and any content of the sets,
// changes only how soon the queue is looked at. It is looked at no more than once per look at
// the sets.
//
// Updates of the sets never block callers: hints go into a bounded buffer, from which one
// goroutine writes. Hints that Redis does not accept in time are dropped; the queue has the
// work.
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
	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
)

// Limits.
const (
	dialTimeout = time.Second
	callTimeout = 500 * time.Millisecond // for one round trip
	look        = 20 * time.Millisecond  // interval between looks at the sets
	pendingMax  = 50_000                 // hints buffered for the writer
	writeMax    = 1000                   // hints per write
	keepMax     = 100_000                // members per set: the soonest
	rebuildMax  = 10_000                 // rows added by the first fill
	refreshMax  = 1000                   // rows added by each later fill
	refresh     = 15 * time.Second       // interval between fills
)

// Options are the settings of Hints.
type Options struct {
	URL    string // redis:// or rediss://, see [Check]
	Chains []chain.ID
	Now    func() time.Time
	Log    *slog.Logger
}

// Hints is one process's access to the sets. Its methods may be called at any time and never
// block, except Ping, Run and Rebuild.
type Hints struct {
	client  *goredis.Client
	chains  []chain.ID
	now     func() time.Time
	log     *slog.Logger
	breaker breaker

	mu      sync.Mutex
	pending []hint
	bell    chan struct{} // signals pending hints

	written, dropped, woken, failures atomic.Uint64
}

// hint is a transaction's due time; without one, it is not to be sent.
type hint struct {
	chain chain.ID
	hash  chain.Hash
	retry bool
	due   time.Time
}

// Check returns the fault in a URL. Its errors do not show the URL, which may hold a password.
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

// connect prepares connections to a server with a time limit per round trip.
func connect(url string, call time.Duration) (*goredis.Client, error) {
	client, err := options(url)
	if err != nil {
		return nil, fmt.Errorf("the Redis URL %w", err)
	}
	// The library logs lost connections to standard error by itself. We get them as errors, and
	// log one line.
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

// Open prepares the connection. It is made when needed, so an unreachable Redis is no error.
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

// Close closes the connections. Run must have returned.
func (h *Hints) Close() error { return h.client.Close() }

// Ping checks whether Redis can be reached.
func (h *Hints) Ping(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, dialTimeout+callTimeout)
	defer cancel()
	return h.client.Ping(ctx).Err()
}

// Stats are counts since the start.
type Stats struct {
	Up       bool   // the last round trips succeeded
	Written  uint64 // hints accepted by Redis
	Dropped  uint64 // hints not sent, or not accepted
	Woken    uint64 // looks at the due queue caused by hints
	Failures uint64 // failed round trips
}

// Stats returns the counts.
func (h *Hints) Stats() Stats {
	return Stats{
		Up: h.breaker.closed(), Written: h.written.Load(), Dropped: h.dropped.Load(),
		Woken: h.woken.Load(), Failures: h.failures.Load(),
	}
}

// Applied makes hints of changes to the due queue.
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

// Done makes hints of workers' reports.
func (h *Hints) Done(done []tx.Done) {
	hints := make([]hint, len(done))
	for i, d := range done {
		hints[i] = hint{chain: d.Chain, hash: d.Hash, retry: true, due: d.NextAt}
	}
	h.add(hints)
}

// add buffers hints for the writer, as far as there is room.
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

// taken returns the buffered hints and empties the buffer.
func (h *Hints) taken() []hint {
	h.mu.Lock()
	defer h.mu.Unlock()
	hints := h.pending
	h.pending = nil
	return hints
}
