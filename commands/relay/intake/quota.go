package intake

import (
	"context"
	"fmt"
	"maps"
	"sync"
	"time"

	"github.com/tempo-watchtower/watchtower/commands"
	"github.com/tempo-watchtower/watchtower/domain/access"
)

// Quota bounds how many intents of each client wait. It counts them in the store, which all
// replicas share, at most once a second per client. It adds the intents that this process
// has accepted since and in the second before, because the store may not have them yet. So
// a client can exceed its quota by the intents that other replicas accept within that
// second. It can also exceed it by intents that a queue fed more than a second late does
// not have.
type Quota struct {
	Limit int
	// Count counts a client's intents that have not ended, up to most.
	Count func(ctx context.Context, client string, most int) (int, error)
	Now   func() time.Time
	// Used, when set, is called with the largest use among recent clients.
	Used func(used int)

	mu      sync.Mutex
	clients map[string]*waiting
}

// quotaFresh is how long a count stays valid.
const quotaFresh = time.Second

// quotaClients bounds for how many clients counts are kept. Idle clients are dropped first.
const quotaClients = 10_000

// waiting is one client's use.
type waiting struct {
	turn    commands.Turn // serializes counting
	at      time.Time     // time of the count; zero: never counted
	counted int
	recent  int // accepted here since the count
	before  int // accepted here between the last two counts
}

func (w *waiting) used() int { return w.counted + w.recent + w.before }

// Take takes a place for one more intent of a client, or refuses with
// [access.ErrQuotaExceeded]. The caller calls back if no intent was created.
func (q *Quota) Take(ctx context.Context, client string) (back func(), err error) {
	w := q.of(client)
	if err := q.count(ctx, client, w); err != nil {
		return nil, err
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if used := w.used(); used >= q.Limit {
		q.tell()
		return nil, access.ErrQuotaExceeded.Because("the client has %s, quota.intents allows %d", commands.Counted(used, "open intent"), q.Limit)
	}
	w.recent++
	q.tell()
	return func() {
		q.mu.Lock()
		defer q.mu.Unlock()
		if w.recent > 0 {
			w.recent--
		} else if w.before > 0 {
			w.before--
		}
	}, nil
}

func (q *Quota) of(client string) *waiting {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.clients == nil {
		q.clients = map[string]*waiting{}
	}
	w := q.clients[client]
	if w == nil {
		if len(q.clients) >= quotaClients {
			maps.DeleteFunc(q.clients, func(_ string, w *waiting) bool { return q.Now().Sub(w.at) > 2*quotaFresh })
		}
		w = &waiting{turn: commands.NewTurn()}
		q.clients[client] = w
	}
	return w
}

// count refreshes a count that is older than quotaFresh.
func (q *Quota) count(ctx context.Context, client string, w *waiting) error {
	end, err := w.turn.Take(ctx)
	if err != nil {
		return fmt.Errorf("count a client's intents: %w", err)
	}
	defer end()
	q.mu.Lock()
	age := q.Now().Sub(w.at)
	fresh := !w.at.IsZero() && age >= 0 && age < quotaFresh
	recent := w.recent
	q.mu.Unlock()
	if fresh {
		return nil
	}
	n, err := q.Count(ctx, client, q.Limit+1)
	if err != nil {
		return fmt.Errorf("count a client's intents: %w", err)
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if w.recent -= recent; age > 2*quotaFresh { // they were accepted within a second of the count before
		recent = 0
	}
	w.at, w.counted, w.before = q.Now(), n, recent
	return nil
}

// tell reports the largest use among recent clients.
func (q *Quota) tell() {
	if q.Used == nil {
		return
	}
	most := 0
	for _, w := range q.clients {
		if q.Now().Sub(w.at) < time.Minute {
			most = max(most, w.used())
		}
	}
	q.Used(most)
}
