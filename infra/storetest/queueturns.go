package storetest

import (
	"fmt"
	"testing"
	"time"

	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
)

// dueOf is a due row of a client, on its own account.
func (q *queue) dueOf(client string, n int, due time.Duration) tx.Work {
	w := q.row(n, address(n), 0)
	w.Client, w.NextAt = client, q.clock.Now().Add(-due).UTC().Truncate(time.Microsecond)
	w.Account = tx.Account{byte(n >> 8), byte(n), 15: 1}
	return w
}

// flood opens rows of a client that have been due for an hour.
func (q *queue) flood(client string, from, to int) {
	q.t.Helper()
	var rows []tx.Work
	for n := from; n < to; n++ {
		rows = append(rows, q.dueOf(client, n, time.Hour))
	}
	q.apply(opens(rows...)...)
}

// counted counts rows by client.
func counted(rows []tx.Work) map[string]int {
	n := map[string]int{}
	for _, w := range rows {
		n[w.Client]++
	}
	return n
}

func (q *queue) wantCounts(what string, rows []tx.Work, want map[string]int) {
	q.t.Helper()
	if got := counted(rows); fmt.Sprint(got) != fmt.Sprint(want) {
		q.t.Errorf("%s: rows by client are %v, want %v", what, got, want)
	}
}

// firstsInTurn checks that a client's flood delays another's first attempts only by its share,
// and that no share is left unused.
func firstsInTurn(t *testing.T, q *queue) {
	q.flood("b", 1000, 1400)
	q.apply(opens(q.dueOf("a", 1, 0), q.dueOf("a", 2, 0), q.dueOf("c", 3, 0))...)
	q.wantCounts("six of three clients", q.lease("w", time.Hour, 6), map[string]int{"a": 2, "b": 3, "c": 1})
	q.wantCounts("of one client", q.lease("w", time.Hour, 6), map[string]int{"b": 6})
	q.apply(opens(q.dueOf("a", 4, 0), q.dueOf("a", 5, 0), q.dueOf("a", 6, 0))...)
	got := map[string]int{}
	for range 6 { // with one free slot they take turns
		for client, n := range counted(q.lease("w", time.Hour, 1)) {
			got[client] += n
		}
	}
	if got["a"] != 3 || got["b"] != 3 {
		t.Errorf("one by one: %v", got)
	}
	q.wantCounts("the rest at once", q.lease("w", time.Hour, 1000), map[string]int{"b": 400 - 3 - 6 - 3})
}

// repeatsInTurn does the same for repeats, next to first attempts.
func repeatsInTurn(t *testing.T, q *queue) {
	q.flood("b", 1000, 1100)
	q.flood("a", 1, 5)
	at := q.clock.Now()
	var tried []tx.Change
	for _, n := range append(numbers(1000, 1100), numbers(1, 5)...) {
		tried = append(tried, on(n, func(c *tx.Change) {
			c.Attempt = &tx.Attempted{Number: 1, At: at.Add(-time.Minute), NextAt: at.Add(-time.Second)}
		}))
	}
	q.apply(tried...)
	lease := func(limit, repeats int) []tx.Work {
		t.Helper()
		work, _, err := q.Lease(soon(t), 1, "w", time.Hour, limit, repeats)
		check(t, err)
		return work
	}
	q.wantCounts("repeats", lease(8, 4), map[string]int{"a": 2, "b": 2})
	q.apply(opens(q.dueOf("c", 9, 0))...)
	q.wantCounts("a first attempt beside them", lease(4, 2), map[string]int{"a": 1, "b": 1, "c": 1})
	q.wantCounts("one has more", lease(6, 6), map[string]int{"a": 1, "b": 5})
}

// probesInTurn checks that probes of accounts on hold, however many a client has, take no more
// than the client's share.
func probesInTurn(t *testing.T, q *queue) {
	q.flood("b", 1000, 1040)
	var done []tx.Done
	for _, w := range q.lease("w", time.Hour, 100) {
		done = append(done, tx.Done{
			Chain: 1, Hash: w.Hash, Attempts: 1, NextAt: q.clock.Now().Add(-time.Second), Account: w.Account, Standing: tx.Unable,
		})
	}
	check(t, q.Done(soon(t), "w", done))
	q.flood("a", 1, 4)
	q.wantCounts("probes beside first attempts", q.lease("w", time.Hour, 6), map[string]int{"a": 3, "b": 3})
	q.wantCounts("probes alone", q.lease("w", time.Hour, 6), map[string]int{"b": 6})
}
