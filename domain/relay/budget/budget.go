// Package budget tracks the daily limits and the spending on one chain: of the whole chain, of
// each client, of each client's subjects, and of each signer. Fees and value are counted
// separately.
//
//	           ┌── Reserved: its bump costs more ──┐
//	           ↓                                   │
//	Reserved (before anything is signed) ── open ──┴── Settled: the actual cost; the rest is returned
//
// A reservation is the highest possible cost: the gas limit at the highest fee of its attempts,
// and the value that they move. At most one of the attempts at a nonce lands, so the reservation
// is their maximum and not their sum: a bump reserves the difference. Once the nonce's result is
// final, the reservation is settled at the actual cost: nothing, if the nonce was released or
// lost. While the result is unknown it is not settled, and counts in full.
//
// Amounts are in the chain's own currency. Token transfers are in a call's input and do not count
// as value; allow-lists restrict them.
//
// # Where the sums are stored
//
// Each chain has one stream with all reservations, of all lanes and clients. Before it signs a
// batch, a lane holder appends one Reserved at the version that it has read, and only then
// reserves nonces: a refused charge leaves no hole. So two replicas with their own lanes cannot
// both spend the same remainder: the second append conflicts, and is decided again on the new
// sums. Limits are events of the same stream, so that the limits behind a reservation are never
// in doubt.
//
// This costs one append per batch to be signed and one per batch that became final, for any
// number of intents. Lanes of a process that ask at the same time share an append. A lane that works
// in batches appends at most twice per block, and once more when it bumps: ten lanes at one block per
// second make at most twenty appends per second on the stream, for a thousand intents or for ten. A holder keeps
// the state and reads on from its version: after a conflict it reads only the new events, not the
// ever-growing stream. On a chain without limits nothing needs to be reserved ([State.Limited]);
// a limit set later counts from then on.
//
// Each lane has its own reservations, which only its holder changes: commands carry the lane's
// fencing token, and while the lane has reservations, a token older than the last is refused. So
// a stalled holder that resumes cannot return money for an intent that another holder has signed.
// An intent that two lanes reserve for is counted twice until the losing lane settles.
//
// Reservations survive a crash, and the lane's next holder finds them ([State.Open]). It reserves
// again for purposes that it continues, which adds nothing. A purpose without a nonce in the lane
// was never signed and is settled at nothing. That is safe because a landing is settled here
// before the lane learns that it is final.
//
// # Days
//
// Days are UTC days by the store's clock; commands carry the day. A reservation counts on its
// day; a later day's bump counts there by its difference. Returned money is credited to today, at
// most up to the part that was counted today. So over any range of days, at least the money spent
// was counted.
//
// Invariants of a [State] under every sequence of commands:
//
//  1. No reservation takes an account above its limit at the time when it is made.
//  2. The use of an account today is the sum counted for it today, less the returned part.
//  3. The reservation for a purpose of a lane never falls until it is settled. It is settled once, and
//     never by a token older than the reserving one.
//  4. The day never goes back.
//  5. A state is as large as the open reservations, the limits, and the accounts with spending today;
//     subjects are included only while they are limited.
//  6. Deciding the same command twice adds no event the second time.
package budget

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/tempo-watchtower/watchtower/domain/chain"
)

// State is the result of one chain's budget events. The zero State has no limit.
type State struct {
	Day    Day
	Limits map[Account]Limit

	used  *sums // on Day; nil: nothing
	lanes map[Lane]shelf
}

// shelf holds a lane's reservations and the last token of its holder.
type shelf struct {
	token uint64
	open  reservations
}

// Reservation is the reservation for one purpose.
type Reservation struct {
	Purpose
	Client string // of the intent
	// Subject is the intent's subject, if subjects were limited when the reservation was made;
	// empty otherwise.
	Subject string
	Cap     Sum // the highest possible cost
	Since   time.Time
	// counted is the part of Cap that was counted on day.
	counted Sum
	day     Day
}

// Limited reports whether there is any limit; without limits nothing needs to be reserved.
func (s State) Limited() bool { return len(s.Limits) > 0 }

// Limit returns an account's daily limit: its own, or the limit for each account of its kind.
func (s State) Limit(a Account) Limit {
	if own, set := s.Limits[a]; set {
		return own
	}
	switch a.Kind {
	case OfClient:
		return s.Limits[Account{Kind: EachClient}]
	case OfSubject:
		return s.Limits[Account{Kind: EachSubject}]
	case OfSigner:
		return s.Limits[Account{Kind: EachSigner}]
	}
	return Limit{}
}

// Used returns the sum counted for an account on a day.
func (s State) Used(day Day, a Account) Sum {
	if day > s.Day {
		return Sum{}
	}
	return s.used.of(a)
}

// Left returns the remaining amounts of an account on a day; nil: no limit.
func (s State) Left(day Day, a Account) Limit {
	limit, used := s.Limit(a), s.Used(day, a)
	left := func(limit *chain.Amount, used chain.Amount) *chain.Amount {
		if limit == nil {
			return nil
		}
		rest := limit.Minus(used)
		return &rest
	}
	return Limit{left(limit.Fee, used.Fee), left(limit.Value, used.Value)}
}

// Exhausted reports whether a signer can sign nothing on a day: no fees are left in its own or
// the chain's limit.
func (s State) Exhausted(day Day, signer chain.Address) bool {
	for _, a := range []Account{{Kind: OnChain}, {Kind: OfSigner, Signer: signer}} {
		if fee := s.Left(day, a).Fee; fee != nil && fee.IsZero() {
			return true
		}
	}
	return false
}

// Open returns a lane's reservations by purpose.
func (s State) Open(l Lane) []Reservation {
	all := make([]Reservation, len(s.lanes[l].open))
	for i, r := range s.lanes[l].open {
		all[i] = *r
	}
	return all
}

// Lanes returns the lanes with reservations, in no order.
func (s State) Lanes() []Lane { return slices.Collect(maps.Keys(s.lanes)) }

// Reserved returns the reservation for a purpose.
func (s State) Reserved(l Lane, p Purpose) (Reservation, bool) {
	open := s.lanes[l].open
	i, found := open.at(p)
	if !found {
		return Reservation{}, false
	}
	return *open[i], true
}

// Covers reports whether the reservation covers a charge.
func (s State) Covers(l Lane, c Charge) bool {
	r, found := s.Reserved(l, c.Purpose)
	return found && r.Cap.max(c.Sum) == r.Cap
}

// Check refuses a charge that could not be reserved on a day. The refusal is [ErrSpent] if the
// next day or returned money may make room for it, and [ErrOverLimit] if only other limits can.
func (s State) Check(day Day, l Lane, c Charge) error { return s.draft(day).check(l, c) }

// Decide returns the events that a command adds: none if it changes nothing, an [eventlog.Refusal]
// if it is not allowed.
func (s State) Decide(c Command) ([]Event, error) {
	switch c := c.(type) {
	case Reserve:
		return s.reserve(c)
	case Settle:
		return s.settle(c)
	case SetLimit:
		return s.setLimit(c)
	}
	panic(fmt.Sprintf("budget: unknown command %T", c))
}

// Evolve applies one event. It cannot fail, because a recorded event has happened. It does not
// change s.
func (s State) Evolve(e Event) State {
	switch e := e.(type) {
	case Reserved:
		d := s.draft(e.Day)
		d.shelf(e.Lane, e.Token)
		for _, c := range e.Charges {
			d.add(e.Lane, c, e.At)
		}
		return d.done(e.Lane)
	case Settled:
		d := s.draft(e.Day)
		d.shelf(e.Lane, e.Token)
		for _, spent := range e.Spent {
			d.settle(e.Lane, spent)
		}
		return d.done(e.Lane)
	case LimitSet:
		limits := maps.Clone(s.Limits)
		if limits == nil {
			limits = map[Account]Limit{}
		}
		if e.Limit.none() {
			delete(limits, e.Account)
		} else {
			limits[e.Account] = e.Limit
		}
		s.Limits = limits
		return s
	}
	panic(fmt.Sprintf("budget: unknown event %T", e))
}
