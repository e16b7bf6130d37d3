package budget

import (
	"bytes"
	"cmp"
	"maps"
	"slices"
	"time"
)

// reservations are ordered by purpose. They are immutable, because successive states share them.
type reservations []*Reservation

func (all reservations) at(p Purpose) (int, bool) {
	return slices.BinarySearchFunc(all, p, func(r *Reservation, p Purpose) int { return r.compare(p) })
}

func (p Purpose) compare(other Purpose) int {
	return cmp.Or(bytes.Compare(p.Intent[:], other.Intent[:]), cmp.Compare(p.Nonce, other.Nonce))
}

// draft is a state under construction. It owns its sums, and the reservations of lanes passed to
// shelf.
type draft struct {
	State
	sums edit
}

// shelf makes a lane's reservations changeable.
func (d *draft) shelf(l Lane, token uint64) {
	was := d.lanes[l]
	d.lanes[l] = shelf{max(was.token, token), slices.Clone(was.open)}
}

// put replaces a lane's reservations.
func (d *draft) put(l Lane, open reservations) { d.lanes[l] = shelf{d.lanes[l].token, open} }

// done returns the new state. A lane without reservations is dropped with its token.
func (d *draft) done(l Lane) State {
	if len(d.lanes[l].open) == 0 {
		delete(d.lanes, l)
	}
	return d.State
}

// draft returns a draft for a day, or for the state's own day if that is later.
func (s State) draft(day Day) *draft {
	if day > s.Day {
		s.Day, s.used = day, nil
	}
	d := &draft{State: s, sums: s.used.edit()}
	d.used, d.lanes = d.sums.sums, maps.Clone(s.lanes)
	if d.lanes == nil {
		d.lanes = map[Lane]shelf{}
	}
	return d
}

// more returns the amount that a charge adds to its reservation, and the reservation before.
func (d *draft) more(l Lane, c Charge) (added Sum, r Reservation) {
	r, open := d.Reserved(l, c.Purpose)
	if !open {
		r = Reservation{Purpose: c.Purpose, Client: c.Client}
		if c.Subject != "" && !d.Limit(c.subject()).none() {
			r.Subject = c.Subject
		}
	}
	return r.Cap.max(c.Sum).minus(r.Cap), r
}

// check refuses a charge that would take an account above its limit.
func (d *draft) check(l Lane, c Charge) error {
	if c.impossible() {
		return ErrImpossible.Because("amounts of %s and %s are not possible", c.Fee, c.Value)
	}
	added, r := d.more(l, c)
	for _, a := range r.accounts(l) {
		limit, used := d.Limit(a), d.used.of(a)
		switch {
		case limit.exceeded(added, added):
			return ErrOverLimit.Because("it needs %s for fees and %s for value, which exceeds the limit of the %s", added.Fee, added.Value, a)
		case limit.exceeded(used.plus(added), added):
			return d.spent(a, added, used)
		}
	}
	return nil
}

// spent returns the refusal for an account without room today. It contains the used sums only if
// they are all of the same client: the sums of a signer or a chain include other clients.
func (d *draft) spent(a Account, added, used Sum) error {
	if a.shared() {
		return ErrSpent.Because("it needs %s for fees and %s for value, which the budget of the %s does not allow on %s; the next day begins at %s",
			added.Fee, added.Value, a, d.Day, d.Day.End().UTC().Format(time.RFC3339))
	}
	return ErrSpent.Because("it needs %s for fees and %s for value; the %s has used %s and %s on %s", added.Fee, added.Value, a, used.Fee, used.Value, d.Day)
}

// add adds a charge.
func (d *draft) add(l Lane, c Charge, at time.Time) {
	added, r := d.more(l, c)
	if r.Since.IsZero() {
		r.Since = time.UnixMilli(at.UnixMilli()).UTC()
	}
	if r.day != d.Day {
		r.day, r.counted = d.Day, Sum{}
	}
	r.Cap, r.counted = r.Cap.plus(added), r.counted.plus(added)
	d.count(l, r, added, Sum{})
	all := d.lanes[l].open
	if i, found := all.at(c.Purpose); found {
		all[i] = &r
	} else {
		d.put(l, slices.Insert(all, i, &r))
	}
}

// settle ends a reservation. The unspent rest is credited to today, at most up to the part
// counted today. Spending above Cap, which should not happen, is counted too.
func (d *draft) settle(l Lane, spent Spent) {
	r, open := d.Reserved(l, spent.Purpose)
	if !open {
		return
	}
	today := r.counted
	if r.day != d.Day {
		today = Sum{}
	}
	d.count(l, r, spent.Sum.minus(r.Cap), r.Cap.minus(spent.Sum).min(today))
	all := d.lanes[l].open
	i, _ := all.at(spent.Purpose)
	d.put(l, slices.Delete(all, i, i+1))
}

// count updates the sums of all accounts of a reservation.
func (d *draft) count(l Lane, r Reservation, more, less Sum) {
	for _, a := range r.accounts(l) {
		d.sums.set(a, d.used.of(a).plus(more).minus(less))
	}
}
