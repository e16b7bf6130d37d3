package memory

import (
	"cmp"
	"context"
	"iter"
	"maps"
	"slices"
	"time"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
)

const (
	horizon   = tx.Horizon // maximum for the second result of Lease
	asideMax  = 1000       // maximum number of rows of accounts on hold that one Lease sets aside
	grantsMax = 1 << 20    // maximum number of an account's rows released at once
)

// hold is an account on hold, whose rows are set aside.
type hold struct {
	account tx.Account
	client  string
	chain   chain.ID
	since   time.Time
	until   time.Time // when one row may go again
	grants  int       // further rows that may go
}

// leasing is a Lease in progress.
type leasing struct {
	*data
	book   *book
	chain  chain.ID
	now    time.Time
	holder string
	ttl    time.Duration
	aside  []place

	work  []tx.Work
	until time.Duration
}

// Lease leases due rows of a chain to a holder; see scheduler.Queue.
func (s *Store) Lease(ctx context.Context, id chain.ID, holder string, ttl time.Duration, limit, repeats int) (work []tx.Work, until time.Duration, err error) {
	err = s.enter(ctx, func() {
		l := &leasing{data: s.data, book: s.book(id), chain: id, now: micro(s.now()), holder: holder, ttl: ttl}
		l.run(limit, repeats)
		work, until = l.work, l.until
	})
	return work, until, err
}

func (l *leasing) run(limit, repeats int) {
	again := 0
	turns := l.turns[l.chain]
	turns.Serve(limit, repeats, l.ready(), func(shares []tx.Share) (taken []tx.Share, _ error) { //nolint:errcheck // never fails
		for _, s := range shares {
			got := l.share(s)
			again += got.Repeats
			taken = append(taken, got)
		}
		return taken, nil
	})
	l.turns[l.chain] = turns
	slices.SortStableFunc(l.work, func(a, b tx.Work) int { return a.NextAt.Compare(b.NextAt) })
	for _, p := range l.aside {
		l.book.update(p.row, func() {
			if p.turn != nil {
				p.turn.heldSince = l.now
			} else {
				p.HeldSince = l.now
			}
		})
	}
	l.next(again >= repeats)
}

// ready finds the clients with due rows.
func (l *leasing) ready() (ready []tx.Ready) {
	clients := map[string]bool{} // value: whether it has repeats
	for client, x := range l.book.first {
		if len(x.items) > 0 && !x.items[0].due().After(l.now) {
			clients[client] = false
		}
	}
	for _, h := range l.holds {
		if _, met := clients[h.client]; !met && h.chain == l.chain && !h.until.After(l.now) {
			clients[h.client] = false
		}
	}
	for client, x := range l.book.again {
		if len(x.items) > 0 && !x.items[0].due().After(l.now) {
			clients[client] = true
		}
	}
	for client := range l.book.sharing() {
		for _, p := range l.book.places(client) {
			if !p.due().After(l.now) {
				clients[client] = clients[client] || p.Attempts > 0
			}
		}
	}
	for _, client := range slices.Sorted(maps.Keys(clients)) {
		ready = append(ready, tx.Ready{Client: client, Repeats: clients[client]})
	}
	return ready
}

// share leases one client's rows: probes first.
func (l *leasing) share(may tx.Share) (got tx.Share) {
	got.Client = may.Client
	before := len(l.work)
	l.probe(may.Client, may.Rows)
	limit := may.Rows - (len(l.work) - before)
	due := l.due(may.Client, false, limit)
	due = append(due, l.due(may.Client, true, min(limit, may.Repeats))...)
	slices.SortStableFunc(due, func(a, b place) int { return a.nextAt().Compare(b.nextAt()) })
	for _, p := range due[:min(max(limit, 0), len(due))] {
		if p.Attempts > 0 {
			got.Repeats++
		}
		l.take(p)
	}
	got.Rows = len(l.work) - before
	return got
}

// due finds rows that are due in a client's turn, repeats or first attempts, first due first,
// skipping rows of accounts on hold.
func (l *leasing) due(client string, again bool, limit int) (found []place) {
	aside := len(l.aside)
	for p := range l.places(client, again) {
		if len(found) >= limit || len(l.aside)-aside >= asideMax || p.due().After(l.now) {
			break
		}
		if l.holds[p.account()] == nil {
			found = append(found, p)
		} else if !slices.Contains(l.aside, p) {
			l.aside = append(l.aside, p)
		}
	}
	return found
}

// places yields the rows of one kind in a client's turn, first due first.
func (l *leasing) places(client string, again bool) iter.Seq[place] {
	x := l.book.first[client]
	if again {
		x = l.book.again[client]
	}
	var own []*row
	if x != nil {
		own = x.items
	}
	others := slices.DeleteFunc(l.book.places(client), func(p place) bool { return p.Attempts > 0 != again })
	return func(yield func(place) bool) {
		for len(own)+len(others) > 0 {
			var next place
			if len(others) == 0 || len(own) > 0 && bySoonest(place{row: own[0]}, others[0]) <= 0 {
				next, own = place{row: own[0]}, own[1:]
			} else {
				next, others = others[0], others[1:]
			}
			if !yield(next) {
				return
			}
		}
	}
}

// take leases a row in a turn. The other turns' due times and holds stay.
func (l *leasing) take(p place) {
	l.work = append(l.work, p.work())
	l.book.update(p.row, func() {
		p.holder, p.leaseUntil = l.holder, micro(l.now.Add(l.ttl))
		if p.turn != nil {
			p.turn.heldSince = time.Time{}
		} else {
			p.HeldSince = time.Time{}
		}
	})
}

// probe releases due rows of a client's accounts on hold.
func (l *leasing) probe(client string, limit int) {
	most := len(l.work) + limit
	var ripe []*hold
	for _, h := range l.holds {
		if h.chain == l.chain && h.client == client && !h.until.After(l.now) {
			ripe = append(ripe, h)
		}
	}
	slices.SortFunc(ripe, func(a, b *hold) int {
		return cmp.Or(a.until.Compare(b.until), slices.Compare(a.account[:], b.account[:]))
	})
	for _, h := range ripe[:min(len(ripe), max(limit, 0))] {
		if len(l.work) < most {
			l.release(h, most-len(l.work))
		}
	}
}

// release releases rows of one account. A hold without rows ends.
func (l *leasing) release(h *hold, limit int) {
	n := min(max(h.grants, 1), limit)
	held := l.book.heldPlaces(h.account)
	for r := range l.book.held[h.account] {
		held = append(held, place{r, nil})
	}
	var found []place
	for _, p := range held {
		if !p.Parked && !p.due().After(l.now) {
			found = append(found, p)
		}
	}
	slices.SortFunc(found, func(a, b place) int {
		return cmp.Or(cmp.Compare(a.Attempts, b.Attempts), a.due().Compare(b.due()), cmp.Compare(a.Nonce, b.Nonce), cmp.Compare(a.no, b.no))
	})
	found = found[:min(len(found), n)]
	for _, p := range found {
		if p.leaseUntil.After(l.now) {
			continue // leased in another turn of the same account
		}
		since := h.since
		l.take(p)
		l.work[len(l.work)-1].HeldSince = since
	}
	if len(found) == 0 && len(held) == 0 {
		delete(l.holds, h.account)
		return
	}
	until, left := l.now.Add(l.ttl), 0
	if len(found) == n && h.grants > n { // the next Lease may release more
		until, left = l.now, h.grants-n
	}
	h.until, h.grants = micro(until), left
}

// next computes the time until more rows may be due.
func (l *leasing) next(full bool) {
	l.until = horizon
	if len(l.aside) >= asideMax {
		l.until = 0
	}
	soonest := func(at time.Time) { l.until = min(l.until, max(0, at.Sub(l.now))) }
	for _, x := range l.book.first {
		if len(x.items) > 0 {
			soonest(x.items[0].due())
		}
	}
	for _, x := range l.book.again {
		if !full && len(x.items) > 0 {
			soonest(x.items[0].due())
		}
	}
	for client := range l.book.sharing() {
		for _, p := range l.book.places(client) {
			if !full || p.Attempts == 0 {
				soonest(p.due())
			}
		}
	}
	for _, h := range l.holds {
		if h.chain == l.chain {
			soonest(h.until)
		}
	}
}

// noteStanding applies a report's news about its account.
func (d *data) noteStanding(now time.Time, done tx.Done) {
	if done.Account == (tx.Account{}) {
		return
	}
	h, client := d.holds[done.Account], ""
	if r := d.book(done.Chain).byHash[done.Hash]; r != nil {
		client = r.Client
		for _, t := range r.turns {
			if t.Account == done.Account {
				client = t.Client
			}
		}
	}
	switch {
	case done.Standing == tx.Unable && h == nil:
		d.holds[done.Account] = &hold{account: done.Account, client: client, chain: done.Chain, since: now, until: micro(done.NextAt)}
	case done.Standing == tx.Unable:
		h.until, h.grants = micro(done.NextAt), 0
	case h == nil:
	case done.Standing == tx.Able:
		h.since, h.grants = now, min(h.grants+2, grantsMax)
		if now.Before(h.until) {
			h.until = now
		}
	case done.Standing == tx.Unclear:
		if at := micro(done.NextAt); at.Before(h.until) {
			h.until = at
		}
	case done.Standing == tx.Unasked:
		if now.Before(h.until) {
			h.until = now
		}
	}
}
