package budget

import (
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/holiman/uint256"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/eventlog"
)

// Command is a request or an observation about a budget. It carries its own day and time, by the
// store's clock: nothing in this package reads a clock.
//
//sumtype:decl
type Command interface{ wish() }

// Reserve reserves the charges of a batch before its lane signs. Charges that fit are accepted in
// order, the others left out: [State.Covers] shows which, and [State.Check] why.
type Reserve struct {
	Day     Day
	Lane    Lane
	Token   uint64   // of the lane's holder
	Charges []Charge // at most [BatchMax]
	At      time.Time
}

// BatchMax bounds the charges or settlements of one command.
const BatchMax = 200

// Settle records the actual costs of a lane's reservations. A purpose without a reservation adds
// nothing.
//
// Holes without a reservation share the fees that are left unspent: an intent that gave a nonce
// back leaves its money to the no-op there. Returned to everybody, it could be reserved for other
// intents, and the signed transactions behind the hole would wait for the next day.
type Settle struct {
	Day   Day
	Lane  Lane
	Token uint64   // of the lane's holder
	Spent []Spent  // at most [BatchMax]
	Holes []uint64 // nonces that no-ops will use
	At    time.Time
}

// Spent is the final cost of a purpose: by a final block; or nothing, if nothing was signed or
// the final chain has used the nonce for another transaction.
type Spent struct {
	Purpose
	Sum
}

// SetLimit is an operator's daily limit. A limit of 0 stops all spending; no limit removes the
// account's own limit.
type SetLimit struct {
	Account       Account
	Limit         Limit
	Actor, Reason string
	At            time.Time
}

func (Reserve) wish()  {}
func (Settle) wish()   {}
func (SetLimit) wish() {}

const (
	ErrSpent      = eventlog.Refusal("budget-spent")      // fits the limit, but not today
	ErrOverLimit  = eventlog.Refusal("budget-over-limit") // exceeds the limit by itself
	ErrFenced     = eventlog.Refusal("budget-fenced")     // the token is older than the lane's last token
	ErrImpossible = eventlog.Refusal("budget-impossible") // above sumBits
	ErrInvalid    = eventlog.Refusal("invalid-budget")
	ErrTooMany    = eventlog.Refusal("too-many-budgets")
)

// Bounds of the settings.
const (
	LimitsMax  = 1000
	NameMax    = 64  // bytes of a client's name
	SubjectMax = 128 // bytes of a subject
	TextMax    = 256 // bytes of an actor and of a reason
)

func (s State) reserve(c Reserve) ([]Event, error) {
	if err := s.admits(c.Day, c.Lane, c.Token, len(c.Charges)); err != nil {
		return nil, err
	}
	d := s.draft(c.Day)
	d.shelf(c.Lane, c.Token)
	e := Reserved{d.Day, c.Lane, c.Token, nil, c.At}
	for _, charge := range c.Charges {
		if noop := charge.Intent.IsZero(); len(charge.Client) > NameMax || len(charge.Subject) > SubjectMax ||
			noop && charge.Client+charge.Subject != "" || !noop && charge.Nonce != 0 {
			panic(fmt.Sprintf("budget: %+v is not a charge", charge))
		}
		// A new holder takes over a reservation by recording it again.
		if d.Covers(c.Lane, charge) && c.Token == s.lanes[c.Lane].token || d.check(c.Lane, charge) != nil {
			continue
		}
		d.add(c.Lane, charge, c.At)
		e.Charges = append(e.Charges, charge)
	}
	if len(e.Charges) == 0 {
		return nil, nil
	}
	return []Event{e}, nil
}

func (s State) settle(c Settle) ([]Event, error) {
	if err := s.admits(c.Day, c.Lane, c.Token, len(c.Spent)); err != nil {
		return nil, err
	}
	e := Settled{max(c.Day, s.Day), c.Lane, c.Token, nil, c.At}
	met := map[Purpose]bool{}
	for _, spent := range c.Spent {
		if spent.impossible() {
			return nil, ErrImpossible.Because("amounts of %s and %s are not possible", spent.Fee, spent.Value)
		}
		if _, open := s.Reserved(c.Lane, spent.Purpose); open && !met[spent.Purpose] {
			met[spent.Purpose], e.Spent = true, append(e.Spent, spent)
		}
	}
	if len(e.Spent) == 0 {
		return nil, nil
	}
	if kept := s.keep(c, e.Spent); len(kept) > 0 { // in one append: nobody reserves it in between
		return []Event{e, Reserved{e.Day, c.Lane, c.Token, kept, c.At}}, nil
	}
	return []Event{e}, nil
}

// keep returns the charges of holes without a reservation, which share the fees that the
// settled reservations leave unspent.
func (s State) keep(c Settle, spent []Spent) (kept []Charge) {
	if len(c.Holes) == 0 { // as a rule: a draft copies the sums
		return nil
	}
	d := s.draft(c.Day)
	d.shelf(c.Lane, c.Token)
	var left chain.Amount
	for _, one := range spent {
		r, _ := s.Reserved(c.Lane, one.Purpose)
		left = left.Plus(r.Cap.Fee.Minus(one.Fee))
		d.settle(c.Lane, one)
	}
	var poor []Purpose
	for _, nonce := range c.Holes {
		p := Purpose{Nonce: nonce}
		ends := slices.ContainsFunc(c.Spent, func(s Spent) bool { return s.Purpose == p })
		if _, open := d.Reserved(c.Lane, p); !open && !ends && !slices.Contains(poor, p) {
			poor = append(poor, p)
		}
	}
	for i, p := range poor {
		share := chain.AmountOf(new(uint256.Int).Div(left.Int(), uint256.NewInt(uint64(len(poor)-i)))) //nolint:gosec // a length
		charge := Charge{Purpose: p, Sum: Sum{Fee: share}}
		if !share.IsZero() && d.check(c.Lane, charge) == nil {
			d.add(c.Lane, charge, c.At)
			left, kept = left.Minus(share), append(kept, charge)
		}
	}
	return kept
}

// admits refuses a fenced holder and a day without a date. It panics if a command has too many
// purposes for one event, or no token.
func (s State) admits(day Day, l Lane, token uint64, n int) error {
	if n == 0 || n > BatchMax || token == 0 {
		panic(fmt.Sprintf("budget: a command about %d purposes with token %d", n, token))
	}
	switch last := s.lanes[l].token; {
	case day < 0 || day > lastDay:
		return ErrInvalid.Because("day %d is out of range", day)
	case token < last:
		return ErrFenced.Because("token %d is older than %d", token, last)
	}
	return nil
}

func (s State) setLimit(c SetLimit) ([]Event, error) {
	a := c.Account
	_, limited := s.Limits[a]
	switch {
	case c.Actor == "" || !isText(c.Actor):
		return nil, ErrInvalid.Because("an actor has 1 to %d bytes of printable text", TextMax)
	case c.Reason == "" || !isText(c.Reason):
		return nil, ErrInvalid.Because("a reason has 1 to %d bytes of printable text", TextMax)
	case !slices.Contains([]AccountKind{OnChain, OfClient, OfSubject, OfSigner, EachClient, EachSubject, EachSigner}, a.Kind):
		return nil, ErrInvalid.Because("there is no account %q", a.Kind)
	case a.Client != "" && (a.Kind != OfClient && a.Kind != OfSubject || !isName(a.Client)):
		return nil, ErrInvalid.Because("only accounts of a client or subject name a client, with up to %d of A-Z, a-z, 0-9 and ._:-", NameMax)
	case (a.Subject != "") != (a.Kind == OfSubject) || len(a.Subject) > SubjectMax || !isText(a.Subject):
		return nil, ErrInvalid.Because("only accounts of a subject name a subject, with 1 to %d bytes of printable text", SubjectMax)
	case (a.Signer != chain.Address{}) != (a.Kind == OfSigner):
		return nil, ErrInvalid.Because("only accounts of a signer name a signer")
	case s.Limits[a].equal(c.Limit):
		return nil, nil
	case !limited && len(s.Limits) >= LimitsMax:
		return nil, ErrTooMany.Because("there are %d limits", len(s.Limits))
	}
	return []Event{LimitSet(c)}, nil
}

// isName reports whether s has at most NameMax characters, each safe in keys, URLs and logs.
func isName(s string) bool {
	const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._:-"
	return len(s) <= NameMax && strings.Trim(s, letters) == ""
}

// isText reports whether s is short enough, valid UTF-8 and printable.
func isText(s string) bool {
	return len(s) <= TextMax && utf8.ValidString(s) && strings.IndexFunc(s, func(r rune) bool { return !unicode.IsPrint(r) }) < 0
}
