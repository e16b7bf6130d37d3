package commands

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/tempo-watchtower/watchtower/domain/access"
	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
	"github.com/tempo-watchtower/watchtower/eventlog"
)

// Quota limits the transactions that each client has waiting in the due queue. The use is
// the count in the queue, which all replicas share, plus the transactions that this process
// has accepted and the queue has not folded yet. So a client may exceed its quota by the
// transactions that other replicas accept between two counts and until the queue folds
// them. The excess is at most one quota per replica.
type Quota struct {
	Limit tx.Usage
	// Count returns a client's use of the queue, and the position up to which the queue has
	// folded the log, both at the same moment.
	Count func(ctx context.Context, client string) (tx.Usage, eventlog.Position, error)
	Now   func() time.Time
	// Used, when set, is called with the largest use among clients counted within the last
	// minute.
	Used func(most tx.Usage)

	mu      sync.Mutex
	clients map[string]*account
}

const (
	countFresh   = time.Second            // age up to which a count allows an acceptance
	countAgain   = 100 * time.Millisecond // age up to which a count allows a refusal
	countClients = 10_000                 // clients whose counts are kept; idle clients are dropped first
)

// account is one client's use.
type account struct {
	turn    Turn      // serializes counting
	at      time.Time // time of the count; zero: never counted
	counted tx.Usage
	open    map[*Reservation]bool // reserved here, and not known to be counted
	sum     tx.Usage              // of open
}

// Reservation is one transaction's place in its client's quota.
type Reservation struct {
	quota    *Quota
	account  *account
	usage    tx.Usage
	position eventlog.Position // of its Accepted; 0: not accepted yet
}

// Take reserves a place for a transaction of this many bytes, or returns
// [access.ErrQuotaExceeded]. The caller ends the reservation with Keep or Return.
func (q *Quota) Take(ctx context.Context, client string, bytes int) (*Reservation, error) {
	a := q.of(client)
	for _, fresh := range []time.Duration{countFresh, countAgain} {
		if err := q.count(ctx, client, a, fresh); err != nil {
			return nil, err
		}
		if r := q.reserve(a, tx.Usage{Transactions: 1, Bytes: int64(bytes)}); r != nil {
			return r, nil
		}
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	used := a.counted.Add(a.sum, 1)
	if used.Transactions >= q.Limit.Transactions {
		return nil, access.ErrQuotaExceeded.Because("the client has %s waiting, quota.transactions allows %d",
			Counted(used.Transactions, "transaction"), q.Limit.Transactions)
	}
	return nil, access.ErrQuotaExceeded.Because("the client has %s of transactions waiting, and this one has %d; quota.bytes allows %d",
		Counted(used.Bytes, "byte"), bytes, q.Limit.Bytes)
}

// Counted formats a number with its noun: 1 intent, 2 intents.
func Counted[N int | int64](n N, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}

// Keep notes the log position of the transaction's Accepted. The reservation ends when the
// queue has folded that position. It does nothing on a nil reservation.
func (r *Reservation) Keep(at eventlog.Position) {
	if r == nil {
		return
	}
	r.quota.mu.Lock()
	defer r.quota.mu.Unlock()
	r.position = at
}

// Return gives the place back. It does nothing on a nil reservation.
func (r *Reservation) Return() {
	if r == nil {
		return
	}
	r.quota.mu.Lock()
	defer r.quota.mu.Unlock()
	r.account.end(r)
}

func (a *account) end(r *Reservation) {
	if a.open[r] {
		delete(a.open, r)
		a.sum = a.sum.Add(r.usage, -1)
	}
}

func (q *Quota) of(client string) *account {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.clients == nil {
		q.clients = map[string]*account{}
	}
	a := q.clients[client]
	if a == nil {
		if len(q.clients) >= countClients {
			maps.DeleteFunc(q.clients, func(_ string, a *account) bool { return len(a.open) == 0 && q.Now().Sub(a.at) > countFresh })
		}
		a = &account{turn: NewTurn(), open: map[*Reservation]bool{}}
		q.clients[client] = a
	}
	return a
}

func (q *Quota) reserve(a *account, more tx.Usage) *Reservation {
	q.mu.Lock()
	defer q.mu.Unlock()
	used := a.counted.Add(a.sum, 1).Add(more, 1)
	if used.Transactions > q.Limit.Transactions || used.Bytes > q.Limit.Bytes {
		return nil
	}
	r := &Reservation{quota: q, account: a, usage: more}
	a.open[r], a.sum = true, a.sum.Add(more, 1)
	return r
}

// count refreshes a count that is older than fresh. Reservations that the queue has folded
// since are in the new count.
func (q *Quota) count(ctx context.Context, client string, a *account, fresh time.Duration) error {
	end, err := a.turn.Take(ctx)
	if err != nil {
		return fmt.Errorf("count a client's transactions: %w", err)
	}
	defer end()
	q.mu.Lock()
	age := q.Now().Sub(a.at)
	known := !a.at.IsZero() && age >= 0 && age < fresh
	q.mu.Unlock()
	if known {
		return nil
	}
	counted, folded, err := q.Count(ctx, client)
	if err != nil {
		return fmt.Errorf("count a client's transactions: %w", err)
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	a.at, a.counted = q.Now(), counted
	for _, r := range slices.Collect(maps.Keys(a.open)) {
		if r.position > 0 && r.position <= folded {
			a.end(r)
		}
	}
	q.tell()
	return nil
}

// tell reports the largest use among recent clients.
func (q *Quota) tell() {
	if q.Used == nil {
		return
	}
	var most tx.Usage
	for _, a := range q.clients {
		if used := a.counted.Add(a.sum, 1); q.Now().Sub(a.at) < time.Minute {
			most = tx.Usage{Transactions: max(most.Transactions, used.Transactions), Bytes: max(most.Bytes, used.Bytes)}
		}
	}
	q.Used(most)
}
