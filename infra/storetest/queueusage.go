package storetest

import (
	"testing"

	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
	"github.com/tempo-watchtower/watchtower/eventlog"
)

// usage checks that the queue counts each client's waiting rows through all phases, and returns
// the position up to which it has counted.
func usage(t *testing.T, q *queue) {
	wants := func(what, client string, transactions, bytes int64) {
		t.Helper()
		got, at, err := q.Usage(soon(t), feeder, client)
		check(t, err)
		if want := (tx.Usage{Transactions: transactions, Bytes: bytes}); got != want || at != q.at {
			t.Errorf("%s: client %q uses %+v at %d, want %+v at %d", what, client, got, at, want, q.at)
		}
	}
	wants("nothing there", "a", 0, 0)
	var rows []tx.Work
	for n := range 5 {
		w := q.row(n, address(n), 0)
		w.Client, w.Bytes = []string{"a", "b"}[n%2], 100+n
		rows = append(rows, w)
	}
	away := rows[0]
	away.Chain = 2
	q.apply(append(opens(rows...), opens(away)...)...)
	wants("opened", "a", 4, 100+102+104+100)
	wants("opened", "b", 2, 101+103)
	q.apply(opens(rows...)...)
	wants("opened again", "a", 4, 100+102+104+100)
	q.apply(watched(0), announce(2, block(1)), closed(3))
	wants("canceled, announced", "a", 3, 104+100)
	wants("closed", "b", 1, 101)
	q.apply(reopen(2, tx.Open, q.clock.Now()), seal(0, block(2)), seal(1, block(2)))
	wants("reopened, sealed", "a", 3, 102+104+100)
	wants("sealed", "b", 0, 0)
	passing := q.row(9, address(9), 0)
	passing.Client, passing.Bytes = "b", 7
	q.apply(append(opens(passing), announce(9, block(3)))...)
	wants("opened and announced at once", "b", 0, 0)
	q.apply(closed(0), closed(0), closed(4), closed(9))
	wants("closed", "a", 2, 102+100)
	_, err := q.DropSealed(soon(t), 1, 100)
	check(t, err)
	wants("sealed ones dropped", "b", 0, 0)
	furtherUsage(t, q, wants)
	if _, at, err := q.Usage(soon(t), "nobody", "a"); err != nil || at != eventlog.Position(0) {
		t.Errorf("a reader that there is not is at %d: %v", at, err)
	}
}

// furtherUsage checks that an open row counts for each client that has submitted it.
func furtherUsage(t *testing.T, q *queue, wants func(what, client string, transactions, bytes int64)) {
	var rows []tx.Work
	for n := 20; n < 24; n++ {
		w := q.row(n, address(n), 0)
		w.Client, w.Bytes = "first", n
		rows = append(rows, w)
	}
	q.apply(append(opens(rows[:3]...), append(q.joins(20, "c", "d", "c"), q.joins(21, "c", "first")...)...)...)
	q.apply(append(q.joins(20, "c"), q.joins(22, "c")...)...)
	q.apply(append(opens(rows[3]), append(q.joins(23, "c"), announce(23, block(1)))...)...)
	wants("shared", "first", 3, 20+21+22)
	wants("joined", "c", 3, 20+21+22)
	wants("joined beside another", "d", 1, 20)
	q.apply(announce(20, block(1)), watched(21))
	wants("joined, then announced and canceled", "c", 1, 22)
	wants("joined beside another, then announced", "d", 0, 0)
	q.apply(reopen(20, tx.Open, q.clock.Now()), announce(23, block(1)))
	wants("joined and reopened", "c", 2, 20+22)
	q.apply(closed(22))
	wants("joined and closed", "c", 1, 20)
	q.apply(append(q.joins(23, "d"), seal(20, block(2)), seal(21, block(2)), seal(23, block(2)))...)
	wants("joined and sealed", "c", 0, 0)
	wants("joined what is announced", "d", 0, 0)
	_, err := q.DropSealed(soon(t), 1, 100)
	check(t, err)
	wants("joined and dropped", "c", 0, 0)
}
