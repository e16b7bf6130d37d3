// Package budget is what may be spent on one chain in a day, and what has been: of the
// whole chain, of each client, of each subject that a client asks for, and of each
// signer, apart for fees and for value.
//
//	           ┌── Reserved: its bump costs more ──┐
//	           ↓                                   │
//	Reserved (before anything is signed) ── open ──┴── Settled: what it did cost; the rest comes back
//
// What is reserved is the worst that something can cost: the gas limit at the highest fee
// that its attempts offer, and the value that they move. Of all attempts at one nonce at
// most one lands, so it is the greatest of them and not their sum: a bump reserves the
// difference. Once it is final what became of the nonce, the reservation is settled at
// what was spent: nothing, if it was released or lost. An outcome that is not known is
// never settled, and stays counted as the worst.
//
// Amounts are the chain's own money. What a token's contract moves stands in a call's
// input, and is no value; that is what allow-lists are for.
//
// # Where the sums live
//
// Each chain has one stream with all that is reserved, of all lanes and clients. Whoever
// is to sign a batch appends one Reserved first, at the version that it has read, and
// before the lane hands out nonces: what is refused leaves no hole. So two replicas with
// lanes of their own cannot both take what is left: the second finds the stream at another
// version and decides again on the new sums. Limits are facts of the same stream, so that
// it is never in doubt under which of them something was reserved.
//
// That costs one append for a batch to be signed and one for a batch that became final,
// however many intents are in it; several lanes of a process can put theirs into one
// append. A lane that works in batches makes two a block at most, and one more when it
// bumps: ten lanes at a block a second are twenty appends a second on the stream, for a
// thousand intents or for ten. A holder keeps the state and reads on from its version: a
// conflict costs the reading of what others have appended meanwhile, and not of the
// stream, which has no end. On a chain without any limit nothing needs to be reserved
// ([State.Limited]); a limit that is set later counts from then on.
//
// Every lane has its own reservations, and nobody but its holder changes them: commands
// carry the lane's token, and where something is reserved an older one is refused than
// the last. So a holder that was stopped and goes on gives nothing back that another has
// signed for. An intent that two lanes reserve for is counted twice until the loser
// settles.
//
// After a crash reservations stand, and whoever holds the lane next finds them
// ([State.Open]): what it goes on with it reserves again, which adds nothing; what the
// lane has no nonce for was never signed, and is settled at nothing. That holds because a
// landing is settled here before the lane is told that it is final.
//
// # Days
//
// A day is one of UTC, by the store's clock, and comes with the command. It counts on the
// day on which it was reserved; a bump of another day counts there by its difference.
// What comes back comes back to today, as far as it was counted today. So over any days
// together never less was counted than spent.
//
// Invariants of a [State], which every sequence of commands keeps:
//
//  1. No reservation takes an account above its limit, each at the moment when it is made.
//  2. What an account has used today is the sum of what was counted for it today and did
//     not come back.
//  3. What is reserved for one purpose of a lane never falls until it is settled, once,
//     and by nobody with an older token than who reserved it.
//  4. The day never goes back.
//  5. A state is as large as what is open, the limits, and who has spent today; of
//     subjects, who has while they were limited.
//  6. Deciding the same command twice adds nothing the second time.
package budget

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/tempo-watchtower/watchtower/domain/chain"
)

// State is what the events of one chain's budget add up to. The zero State has no limit.
type State struct {
	Day    Day
	Limits map[Account]Limit

	used  *sums // on Day; nil is nothing
	lanes map[Lane]shelf
}

// shelf is what is reserved for a lane, and the token of the holder that said so last.
type shelf struct {
	token uint64
	open  reservations
}

// Reservation is what is set aside for one purpose.
type Reservation struct {
	Purpose
	Client string // of the intent
	// Subject is whom it is for, if subjects were limited when it was made first: where
	// they are not, nothing is kept of them.
	Subject string
	Cap     Sum // the worst that it can cost
	Since   time.Time
	// counted is how much of the cap was counted on day.
	counted Sum
	day     Day
}

// Limited reports whether anything is limited: if not, nothing needs to be reserved.
func (s State) Limited() bool { return len(s.Limits) > 0 }

// Limit is what an account may spend in a day: its own limit, or that of each like it.
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

// Used is what counts for an account on a day.
func (s State) Used(day Day, a Account) Sum {
	if day > s.Day {
		return Sum{}
	}
	return s.used.of(a)
}

// Left is what an account may still spend on a day; nil is without limit.
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

// Exhausted reports whether a signer can be given nothing to sign on a day: nothing is
// left for fees, of its own or of the chain's.
func (s State) Exhausted(day Day, signer chain.Address) bool {
	for _, a := range []Account{{Kind: OnChain}, {Kind: OfSigner, Signer: signer}} {
		if fee := s.Left(day, a).Fee; fee != nil && fee.IsZero() {
			return true
		}
	}
	return false
}

// Open lists what is reserved for a lane, by purpose.
func (s State) Open(l Lane) []Reservation {
	all := make([]Reservation, len(s.lanes[l].open))
	for i, r := range s.lanes[l].open {
		all[i] = *r
	}
	return all
}

// Lanes lists those for which something is reserved, in no order.
func (s State) Lanes() []Lane { return slices.Collect(maps.Keys(s.lanes)) }

// Reserved finds what is reserved for a purpose.
func (s State) Reserved(l Lane, p Purpose) (Reservation, bool) {
	open := s.lanes[l].open
	i, found := open.at(p)
	if !found {
		return Reservation{}, false
	}
	return *open[i], true
}

// Covers reports whether as much is reserved as a charge asks for.
func (s State) Covers(l Lane, c Charge) bool {
	r, found := s.Reserved(l, c.Purpose)
	return found && r.Cap.max(c.Sum) == r.Cap
}

// Check refuses a charge that could not be reserved on a day: with [ErrSpent] when the
// next day, or what comes back, may make room for it, and with [ErrOverLimit] when none
// ever will while the limits are as they are.
func (s State) Check(day Day, l Lane, c Charge) error { return s.draft(day).check(l, c) }

// Decide answers a command with the facts it adds: none if it adds nothing, an
// [event.Refusal] if it may not be granted.
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

// Evolve adds one fact. It cannot fail: what is recorded has happened. The state it
// came from stays as it was.
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
