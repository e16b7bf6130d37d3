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
// replicas share, at most once a second for each client, and adds those that this process has
// accepted meanwhile and in the second before: the store may not have them yet. So a client
// can exceed its quota by what the other replicas accept of it within that second, and by
// what a queue that is fed more than a second late does not have.
type Quota struct {
	Limit int
	// Count counts a client's intents that have not come out, up to a number.
	Count func(ctx context.Context, client string, most int) (int, error)
	Now   func() time.Time
	// Used, when set, is called with the use of the client that uses most, of those that
	// asked lately.
	Used func(used int)

	mu      sync.Mutex
	clients map[string]*waiting
}

// quotaFresh is how long a count is good.
const quotaFresh = time.Second

// quotaClients bounds for how many clients counts are kept. The idle ones go first.
const quotaClients = 10_000

// waiting is what is known of a client.
type waiting struct {
	turn    commands.Turn // one counts at a time
	at      time.Time     // of the count; zero: none
	counted int
	recent  int // accepted here since the count,
	before  int // and between the count before and that one
}

func (w *waiting) used() int { return w.counted + w.recent + w.before }

// Take refuses ([access.ErrQuotaExceeded]) one more intent of a client that has as many as it
// can have. The caller returns it when it has come to nothing.
func (q *Quota) Take(ctx context.Context, client string) (back func(), err error) {
	w := q.of(client)
	if err := q.count(ctx, client, w); err != nil {
		return nil, err
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if used := w.used(); used >= q.Limit {
		q.tell()
		open := commands.Counted(used, "intent") + map[bool]string{true: " that has", false: " that have"}[used == 1]
		return nil, access.ErrQuotaExceeded.Because("the client has %s not come out, quota.intents allows %d", open, q.Limit)
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

// count counts anew what was counted long ago.
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

// tell says how much the client uses that uses most.
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
