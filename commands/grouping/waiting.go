package grouping

import (
	"cmp"
	"container/heap"
	"time"

	"github.com/tempo-watchtower/watchtower/domain/fair"
	"github.com/tempo-watchtower/watchtower/domain/tx"
)

// waiting are the claims to ask about, by client: a client with many claims delays no other
// client's.
type waiting struct {
	clients map[string]*asked
	turn    string // the client that got the last place
}

// claim is a waiting claim: when it is asked about again, and its last pause.
type claim struct {
	tx.Claim
	client string
	until  time.Time
	length time.Duration
}

func newWaiting() waiting { return waiting{clients: map[string]*asked{}} }

func (w *waiting) add(c *claim) {
	of := w.clients[c.client]
	if of == nil {
		of = &asked{}
		w.clients[c.client] = of
	}
	heap.Push(of, c)
}

// take removes at most limit due claims, one of each client before a second of any.
func (w *waiting) take(now time.Time, limit int) []*claim {
	due := map[string][]*claim{}
	for client, of := range w.clients {
		for len(*of) > 0 && len(due[client]) < limit && !now.Before((*of)[0].until) {
			due[client] = append(due[client], heap.Pop(of).(*claim))
		}
	}
	dealt := fair.Deal(w.turn, limit, due)
	taken := map[string]int{}
	for _, c := range dealt {
		taken[c.client]++
		w.turn = c.client
	}
	for client, all := range due {
		for _, c := range all[taken[client]:] { // not their turn any more
			w.add(c)
		}
	}
	for client, of := range w.clients {
		if len(*of) == 0 {
			delete(w.clients, client)
		}
	}
	return dealt
}

// asked is a heap of one client's claims: the earliest due first, then the oldest.
type asked []*claim

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
