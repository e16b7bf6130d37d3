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

// Quota bounds how many things of each client are in a queue: its open intents, or its webhook
// deliveries. It counts them in the store, which all replicas share, at most once a second per
// client. It adds those of the intents that this process has accepted since and in the second
// before, because the store may not have them yet. So a client can exceed its quota by the
// intents that other replicas accept within that second. It can also exceed it by intents that
// a queue fed more than a second late does not have.
type Quota struct {
	Limit int
	Name  string // of the setting
	// Thing and Things are the word for what is counted: one and several.
	Thing, Things string
	// Count counts a client's things in the queue, up to most.
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

// Take takes n places for one more intent of a client, or refuses with
// [access.ErrQuotaExceeded]. The caller calls back if no intent was created.
func (q *Quota) Take(ctx context.Context, client string, n int) (back func(), err error) {
	if q == nil || n == 0 {
		return func() {}, nil
	}
	w := q.of(client)
	if err := q.count(ctx, client, w); err != nil {
		return nil, err
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if used := w.used(); used+n > q.Limit {
		q.tell()
		return nil, access.ErrQuotaExceeded.Because("the client has %s, %s allows %d", q.counted(used, n), q.Name, q.Limit)
	}
	w.recent += n
	q.tell()
	return func() {
		q.mu.Lock()
		defer q.mu.Unlock()
		recent := min(n, w.recent)
		w.recent -= recent
		w.before -= min(n-recent, w.before)
	}, nil
}

// counted words the use of a client, and how much more an intent has if that is not one.
func (q *Quota) counted(used, more int) string {
	text := fmt.Sprintf("%d %s", used, q.Things)
	if used == 1 {
		text = "1 " + q.Thing
	}
	if more > 1 {
		text += fmt.Sprintf(", and the intent has %d more", more)
	}
	return text
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
		return fmt.Errorf("count for %s: %w", q.Name, err)
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
		return fmt.Errorf("count for %s: %w", q.Name, err)
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
