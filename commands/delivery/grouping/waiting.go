package grouping

import (
	"cmp"
	"container/heap"
	"sync"
	"time"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
	"github.com/tempo-watchtower/watchtower/domain/fair"
)

// waiting are the claims to ask about, by client: a client with many claims delays no other
// client's.
type waiting struct {
	poll time.Duration // the first pause after a failed question

	mu      sync.Mutex
	clients map[string]*ofClient
	turn    string // the client that got the last place
}

// ofClient are one client's claims.
type ofClient struct {
	claims asked
	busy   bool          // a question is in progress
	until  time.Time     // no question before, after a failed question
	length time.Duration // of the last pause after a failed question
}

// claim is a waiting claim: when it is asked about again, and its last pause.
type claim struct {
	tx.Claim
	client string
	until  time.Time
	length time.Duration
}

func newWaiting(poll time.Duration) waiting {
	return waiting{poll: poll, clients: map[string]*ofClient{}}
}

func (w *waiting) add(c *claim) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.put(c)
}

// put is add. The caller holds the lock.
func (w *waiting) put(c *claim) {
	of := w.clients[c.client]
	if of == nil {
		of = &ofClient{}
		w.clients[c.client] = of
	}
	heap.Push(&of.claims, c)
}

// question is one client's claims that are asked about together.
type question struct {
	client string
	claims []*claim
}

// take removes at most limit due claims, one of each client before a second of any, with at most
// keysMax access keys of each client. It passes over clients that rest after a failed question or
// whose last question is in progress, so that at most clientsMax questions are in progress. finish
// must be called for each question.
func (w *waiting) take(now time.Time, limit int) (questions []question) {
	w.mu.Lock()
	defer w.mu.Unlock()
	var ready []string
	free := clientsMax
	for name, of := range w.clients {
		switch {
		case of.busy:
			free--
		case !now.Before(of.until) && of.claims.due(now):
			ready = append(ready, name)
		}
	}
	ready = fair.InTurn(w.turn, ready)
	ready = ready[:min(len(ready), free, limit)]
	due := map[string][]*claim{}
	for _, name := range ready {
		due[name] = w.clients[name].claims.take(now, limit)
	}
	taken := map[string][]*claim{}
	for _, c := range fair.Deal(w.turn, limit, due) {
		taken[c.client] = append(taken[c.client], c)
	}
	for _, name := range ready {
		w.clients[name].busy, w.turn = true, name
		questions = append(questions, question{name, taken[name]})
		for _, c := range due[name][len(taken[name]):] { // not their turn any more
			w.put(c)
		}
	}
	return questions
}

// finish adds the claims left after a question of a client. If no node answered, the client's
// next question waits: the pauses grow up to restMax.
func (w *waiting) finish(name string, left []*claim, answered bool, now time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	of := w.clients[name]
	of.busy = false
	if answered {
		of.until, of.length = time.Time{}, 0
	} else {
		of.length = min(max(2*of.length, w.poll), restMax)
		of.until = now.Add(of.length)
	}
	for _, c := range left {
		w.put(c)
	}
	if len(of.claims) == 0 {
		delete(w.clients, name)
	}
}

// asked is a heap of one client's claims: the earliest due first, then the oldest.
type asked []*claim

// due reports whether any claim is due.
func (a asked) due(now time.Time) bool { return len(a) > 0 && !now.Before(a[0].until) }

// take removes due claims, at most limit, with at most keysMax access keys.
func (a *asked) take(now time.Time, limit int) (taken []*claim) {
	keys := map[chain.AccessKey]bool{}
	for a.due(now) && len(taken) < limit && (keys[(*a)[0].Key] || len(keys) < keysMax) {
		c := heap.Pop(a).(*claim)
		keys[c.Key] = true
		taken = append(taken, c)
	}
	return taken
}

func (a asked) Len() int { return len(a) }

func (a asked) Less(i, j int) bool {
	return cmp.Or(a[i].until.Compare(a[j].until), cmp.Compare(a[i].Position, a[j].Position)) < 0
}

func (a asked) Swap(i, j int) { a[i], a[j] = a[j], a[i] }

func (a *asked) Push(c any) { *a = append(*a, c.(*claim)) }

func (a *asked) Pop() any {
	last := len(*a) - 1
	c := (*a)[last]
	(*a)[last] = nil
	*a = (*a)[:last]
	return c
}
