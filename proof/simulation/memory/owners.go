package memory

import (
	"cmp"
	"slices"
	"time"

	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
)

// turn is a further owner's turn of a row: when the row is due in it, and whether it is set aside.
type turn struct {
	tx.Owner
	heldSince time.Time
}

// place is a row in the turn of an owner: of its first client if turn is nil.
type place struct {
	*row
	turn *turn
}

func (p place) client() string {
	if p.turn == nil {
		return p.Client
	}
	return p.turn.Client
}

func (p place) account() tx.Account {
	if p.turn == nil {
		return p.Account
	}
	return p.turn.Account
}

func (p place) nextAt() time.Time {
	if p.turn == nil {
		return p.NextAt
	}
	return p.turn.NextAt
}

func (p place) heldSince() time.Time {
	if p.turn == nil {
		return p.HeldSince
	}
	return p.turn.heldSince
}

// due is when the row may be leased next in this turn.
func (p place) due() time.Time {
	if at := p.nextAt(); at.After(p.leaseUntil) {
		return at
	}
	return p.leaseUntil
}

// work returns the row as it is leased in this turn.
func (p place) work() tx.Work {
	w := p.Work
	w.Client, w.Account, w.NextAt, w.HeldSince = p.client(), p.account(), p.nextAt(), time.Time{}
	return w
}

// join adds a further owner to a row.
func (b *book) join(r *row, o tx.Owner) {
	known := o.Client == r.Client || slices.ContainsFunc(r.turns, func(t *turn) bool { return t.Client == o.Client })
	if known {
		return
	}
	o.NextAt = micro(o.NextAt)
	r.turns = append(r.turns, &turn{Owner: o})
}

// places lists the turns of further owners that may be leased when due, by client.
func (b *book) places(client string) (found []place) {
	for r := range b.shared {
		if r.Phase != tx.Open || r.Parked {
			continue
		}
		for _, t := range r.turns {
			if t.Client == client && t.heldSince.IsZero() {
				found = append(found, place{r, t})
			}
		}
	}
	slices.SortFunc(found, bySoonest)
	return found
}

// turns returns a client's usage as a further owner of open rows.
func (b *book) turns(client string) (u tx.Usage) {
	for r := range b.shared {
		for _, t := range r.turns {
			if t.Client == client && r.Phase == tx.Open {
				u = u.Add(tx.Usage{Transactions: 1, Bytes: int64(r.Bytes)}, 1)
			}
		}
	}
	return u
}

func bySoonest(a, b place) int { return cmp.Or(a.due().Compare(b.due()), cmp.Compare(a.no, b.no)) }

// sharing lists the clients with such turns.
func (b *book) sharing() map[string]bool {
	clients := map[string]bool{}
	for r := range b.shared {
		for _, t := range r.turns {
			clients[t.Client] = true
		}
	}
	return clients
}

// heldPlaces lists the turns of further owners that are set aside for an account.
func (b *book) heldPlaces(a tx.Account) (found []place) {
	for r := range b.shared {
		for _, t := range r.turns {
			if t.Account == a && !t.heldSince.IsZero() {
				found = append(found, place{r, t})
			}
		}
	}
	return found
}

// follow keeps the turns of further owners in step with a change of their row. Their due time is
// their own, except when the queue makes the row due earlier.
func (r *row) follow(phase tx.Phase, nextAt time.Time) {
	for _, t := range r.turns {
		switch {
		case r.Phase == tx.Open && phase != tx.Open:
			t.NextAt = r.NextAt
		case r.NextAt.Before(nextAt) && r.NextAt.Before(t.NextAt):
			t.NextAt = r.NextAt
		}
		if r.Phase != tx.Open {
			t.heldSince = time.Time{}
		}
	}
}

// done stores the result of an attempt for the owners that it concerns.
func (r *row) done(now time.Time, d tx.Done) {
	all := d.ForAll || d.Account == tx.Account{} || len(r.turns) == 0
	held := time.Time{}
	if d.Standing == tx.Unable && d.Account != (tx.Account{}) {
		held = now
	}
	if all || r.Account == d.Account {
		r.NextAt = micro(d.NextAt)
	}
	if r.Account == d.Account || len(r.turns) == 0 {
		r.HeldSince = held
	}
	for _, t := range r.turns {
		if all || t.Account == d.Account {
			t.NextAt = micro(d.NextAt)
		}
		if t.Account == d.Account {
			t.heldSince = held
		}
	}
}

// owners lists the further owners of a row.
func (r *row) owners() (all []tx.Owner) {
	for _, t := range r.turns {
		o := t.Owner
		o.HeldSince = t.heldSince
		all = append(all, o)
	}
	slices.SortFunc(all, func(a, b tx.Owner) int { return cmp.Compare(a.Client, b.Client) })
	return all
}
