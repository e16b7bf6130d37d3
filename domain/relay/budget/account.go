package budget

import (
	"fmt"
	"time"

	"github.com/tempo-watchtower/watchtower/domain/chain"
)

// Day is a UTC day, counted from 1 January 1970. Its text form is a date.
type Day int32

// DayOf returns the day of a time.
func DayOf(t time.Time) Day {
	seconds := t.Unix()
	day := seconds / secondsOfDay
	if seconds%secondsOfDay < 0 {
		day--
	}
	return Day(day)
}

// End returns when the next day begins.
func (d Day) End() time.Time { return time.Unix((int64(d)+1)*secondsOfDay, 0) }

const (
	secondsOfDay = 24 * 60 * 60
	// lastDay is 31 December 9999, the last date with a four-digit year.
	lastDay Day = 2_932_896
)

// Begin returns when the day begins.
func (d Day) Begin() time.Time { return time.Unix(int64(d)*secondsOfDay, 0).UTC() }

func (d Day) String() string               { return d.Begin().Format(time.DateOnly) }
func (d Day) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalText parses a date.
func (d *Day) UnmarshalText(b []byte) error {
	t, err := time.Parse(time.DateOnly, string(b))
	if err != nil {
		return fmt.Errorf("%q is not a date", b)
	}
	*d = DayOf(t)
	return nil
}

// Sum is an amount of fees and an amount of value moved by calls.
type Sum struct {
	Fee   chain.Amount `json:"fee,omitzero"`
	Value chain.Amount `json:"value,omitzero"`
}

func (a Sum) plus(b Sum) Sum  { return Sum{a.Fee.Plus(b.Fee), a.Value.Plus(b.Value)} }
func (a Sum) minus(b Sum) Sum { return Sum{a.Fee.Minus(b.Fee), a.Value.Minus(b.Value)} }
func (a Sum) max(b Sum) Sum   { return Sum{a.Fee.Max(b.Fee), a.Value.Max(b.Value)} }
func (a Sum) min(b Sum) Sum   { return a.minus(a.minus(b)) }

// sumBits bounds amounts: no account has more than 2^192 of any chain's smallest unit, and the
// sums in a log cannot overflow.
const sumBits = 192

// impossible reports whether the sum exceeds sumBits.
func (a Sum) impossible() bool {
	return a.Fee.Int().BitLen() > sumBits || a.Value.Int().BitLen() > sumBits
}

// Limit is the daily limit of an account; nil: no limit.
type Limit struct {
	Fee   *chain.Amount `json:"fee,omitempty"`
	Value *chain.Amount `json:"value,omitempty"`
}

func (l Limit) none() bool { return l.Fee == nil && l.Value == nil }

func (l Limit) equal(other Limit) bool {
	same := func(a, b *chain.Amount) bool { return a == nil && b == nil || a != nil && b != nil && *a == *b }
	return same(l.Fee, other.Fee) && same(l.Value, other.Value)
}

// exceeded reports whether a sum is above the limit in a part that was added to. An addition of 0
// never exceeds a limit, even one lowered since.
func (l Limit) exceeded(sum, added Sum) bool {
	above := func(limit *chain.Amount, sum, added chain.Amount) bool {
		return limit != nil && !added.IsZero() && sum.Cmp(*limit) > 0
	}
	return above(l.Fee, sum.Fee, added.Fee) || above(l.Value, sum.Value, added.Value)
}

// Account identifies the subject of a limit.
type Account struct {
	Kind   AccountKind `json:"kind"`
	Client string      `json:"client,omitempty"` // empty: all callers without an API key
	// Subject is the client's own customer.
	Subject string        `json:"subject,omitempty"`
	Signer  chain.Address `json:"signer,omitzero"`
}

// AccountKind is the kind of an account.
type AccountKind string

const (
	OnChain     AccountKind = "chain" // all spending on the chain
	OfClient    AccountKind = "client"
	OfSubject   AccountKind = "subject"
	OfSigner    AccountKind = "signer"
	EachClient  AccountKind = "each-client"  // each client without a limit of its own
	EachSubject AccountKind = "each-subject" // each subject without a limit of its own
	EachSigner  AccountKind = "each-signer"
)

func (a Account) String() string {
	switch a.Kind {
	case OfClient:
		return fmt.Sprintf("client %q", a.Client)
	case OfSubject:
		return fmt.Sprintf("subject %q of client %q", a.Subject, a.Client)
	case OfSigner:
		return "signer " + a.Signer.String()
	}
	return string(a.Kind)
}

// shared reports whether the account counts intents of several clients.
func (a Account) shared() bool { return a.Kind != OfClient && a.Kind != OfSubject }

// Lane identifies the lane of a reservation: the signer's nonces under one nonce key.
type Lane struct {
	Signer   chain.Address  `json:"signer"`
	NonceKey chain.NonceKey `json:"nonceKey"`
}

// Purpose is the reason of a reservation: an intent, including a no-op in its place; or, without
// an intent, the no-op that fills a hole at a nonce.
type Purpose struct {
	Intent chain.IntentID `json:"intent,omitzero"`
	Nonce  uint64         `json:"nonce,omitempty"`
}

// Charge is the highest possible cost of a purpose.
type Charge struct {
	Purpose
	Client  string `json:"client,omitempty"`  // of the intent
	Subject string `json:"subject,omitempty"` // of the intent; empty: none
	Sum
}

// subject returns the account of the intent's subject.
func (c Charge) subject() Account {
	return Account{Kind: OfSubject, Client: c.Client, Subject: c.Subject}
}

// accounts returns the accounts that count a reservation.
func (r Reservation) accounts(l Lane) []Account {
	all := append(make([]Account, 0, 4), Account{Kind: OnChain}, Account{Kind: OfSigner, Signer: l.Signer})
	if !r.Intent.IsZero() {
		all = append(all, Account{Kind: OfClient, Client: r.Client})
	}
	if r.Subject != "" {
		all = append(all, Account{Kind: OfSubject, Client: r.Client, Subject: r.Subject})
	}
	return all
}
