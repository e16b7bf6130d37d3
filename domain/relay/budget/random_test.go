package budget

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/eventlog"
)

// watched are the accounts in the random histories.
var watched = []Account{
	whole, {Kind: OfSigner, Signer: one.Signer}, {Kind: OfSigner, Signer: two.Signer},
	{Kind: OfClient, Client: "client0"}, {Kind: OfClient, Client: "client1"},
	{Kind: OfSubject, Client: "client0", Subject: "ann"}, {Kind: OfSubject, Client: "client1", Subject: "ann"},
}

func drawCommand(t *rapid.T, s State) Command {
	day := max(s.Day, today) + Day(rapid.SampledFrom([]int{0, 0, 0, 0, 0, 0, 0, -1, 1}).Draw(t, "day"))
	lane := rapid.SampledFrom([]Lane{one, one, two}).Draw(t, "lane")
	token := max(s.lanes[lane].token, 2) + rapid.SampledFrom([]uint64{0, 0, 0, 0, 0, 0, 1}).Draw(t, "next holder") - rapid.SampledFrom([]uint64{0, 0, 0, 0, 0, 0, 1}).Draw(t, "last holder")
	purpose := func() Charge {
		if rapid.IntRange(0, 4).Draw(t, "no-op") == 0 {
			return noop(rapid.Uint64Range(0, 3).Draw(t, "nonce"), 0)
		}
		n := rapid.SampledFrom([]int{1, 2, 3, 11, 12}).Draw(t, "intent")
		return about([]string{"", "ann"}[n%2], costs(n, 0, 0))
	}
	sum := func() Sum {
		return Sum{chain.NewAmount(rapid.Uint64Range(0, 12).Draw(t, "fee")), chain.NewAmount(rapid.Uint64Range(0, 6).Draw(t, "value"))}
	}
	switch rapid.SampledFrom(strings.Fields("reserve reserve reserve reserve settle settle limit")).Draw(t, "command") {
	case "reserve":
		charges := make([]Charge, rapid.IntRange(1, 4).Draw(t, "charges"))
		for i := range charges {
			charges[i] = purpose()
			charges[i].Sum = sum()
		}
		return Reserve{day, lane, token, charges, epoch}
	case "settle":
		spent := make([]Spent, rapid.IntRange(1, 3).Draw(t, "spent"))
		for i := range spent {
			spent[i] = Spent{purpose().Purpose, sum()}
		}
		holes := rapid.SliceOfN(rapid.Uint64Range(0, 3), 0, 2).Draw(t, "holes")
		return Settle{day, lane, token, spent, holes, epoch}
	}
	all := append([]Account{{Kind: EachClient}, {Kind: EachSubject}, {Kind: EachSigner}}, watched...)
	limits := []*chain.Amount{nil, amount(5), amount(20), amount(30)}
	return SetLimit{
		rapid.SampledFrom(all).Draw(t, "account"), Limit{rapid.SampledFrom(limits).Draw(t, "fee"), rapid.SampledFrom(limits).Draw(t, "value")},
		rapid.SampledFrom([]string{"ada", "ada", "ada", ""}).Draw(t, "actor"), "as agreed", epoch,
	}
}

// tale is a model of a budget's events, with checks independent of [State]. It stores the counted
// amounts of every reservation by day, and no sums.
type tale struct {
	day    Day
	limits map[Account]Limit
	tokens map[Lane]uint64 // of lanes with reservations
	open   map[string]*title
	ever   []*title
}

type title struct {
	lane     Lane
	accounts []Account
	cap      [2]uint64
	counted  map[Day][2]uint64
	spent    [2]uint64
	settled  bool
}

func numbers(s Sum) [2]uint64 { return [2]uint64{s.Fee.Int().Uint64(), s.Value.Int().Uint64()} }

// used returns the sum counted for an account on a day.
func (l *tale) used(day Day, a Account) (sum [2]uint64) {
	for _, r := range l.ever {
		for _, b := range r.accounts {
			if a == b {
				sum[0], sum[1] = sum[0]+r.counted[day][0], sum[1]+r.counted[day][1]
			}
		}
	}
	return sum
}

func (l *tale) limit(a Account) Limit {
	limit, own := l.limits[a]
	switch {
	case !own && a.Kind == OfClient:
		return l.limits[Account{Kind: EachClient}]
	case !own && a.Kind == OfSubject:
		return l.limits[Account{Kind: EachSubject}]
	case !own && a.Kind == OfSigner:
		return l.limits[Account{Kind: EachSigner}]
	}
	return limit
}

// tell checks an event against the numbered invariants of the package comment.
func (l *tale) tell(e Event) error {
	switch e := e.(type) {
	case LimitSet:
		if e.Actor == "" || e.Reason == "" {
			return fmt.Errorf("nobody sets a limit")
		}
		if delete(l.limits, e.Account); !e.Limit.none() {
			l.limits[e.Account] = e.Limit
		}
	case Reserved:
		if e.Day < l.day {
			return fmt.Errorf("invariant 4: %s after %s", e.Day, l.day)
		}
		l.day = e.Day
		if err := l.fenced(e.Lane, e.Token); err != nil {
			return err
		}
		for _, c := range e.Charges {
			if err := l.reserved(e.Lane, c); err != nil {
				return err
			}
		}
	case Settled:
		if e.Day < l.day {
			return fmt.Errorf("invariant 4: %s after %s", e.Day, l.day)
		}
		l.day = e.Day
		if err := l.fenced(e.Lane, e.Token); err != nil {
			return err
		}
		for _, spent := range e.Spent {
			key := fmt.Sprint(e.Lane, spent.Purpose)
			r := l.open[key]
			if r == nil {
				return fmt.Errorf("invariant 3: %+v is settled, and was not open", spent)
			}
			delete(l.open, key)
			r.settle(l.day, numbers(spent.Sum))
		}
	}
	return nil
}

// fenced checks the last part of invariant 3.
func (l *tale) fenced(lane Lane, token uint64) error {
	any := false
	for _, r := range l.open {
		any = any || r.lane == lane
	}
	if any && token < l.tokens[lane] {
		return fmt.Errorf("invariant 3: token %d after %d", token, l.tokens[lane])
	}
	l.tokens[lane] = token
	return nil
}

func (l *tale) reserved(lane Lane, c Charge) error {
	key := fmt.Sprint(lane, c.Purpose)
	r := l.open[key]
	if r == nil {
		r = &title{lane: lane, accounts: []Account{whole, {Kind: OfSigner, Signer: lane.Signer}}, counted: map[Day][2]uint64{}}
		if !c.Intent.IsZero() {
			r.accounts = append(r.accounts, Account{Kind: OfClient, Client: c.Client})
		}
		if of := (Account{Kind: OfSubject, Client: c.Client, Subject: c.Subject}); c.Subject != "" && l.limit(of) != (Limit{}) {
			r.accounts = append(r.accounts, of)
		}
		l.open[key] = r
		l.ever = append(l.ever, r)
	}
	for i, n := range numbers(c.Sum) {
		if n <= r.cap[i] {
			continue
		}
		counted := r.counted[l.day]
		counted[i] += n - r.cap[i]
		r.counted[l.day], r.cap[i] = counted, n
		for _, a := range r.accounts {
			limit := []*chain.Amount{l.limit(a).Fee, l.limit(a).Value}[i]
			if sum := l.used(l.day, a)[i]; limit != nil && sum > limit.Int().Uint64() {
				return fmt.Errorf("invariant 1: %d of %s, whose limit is %s", sum, a, limit)
			}
		}
	}
	return nil
}

func (r *title) settle(day Day, spent [2]uint64) {
	r.spent, r.settled = spent, true
	counted := r.counted[day]
	for i, n := range spent {
		if n > r.cap[i] {
			counted[i] += n - r.cap[i]
		} else {
			counted[i] -= min(counted[i], r.cap[i]-n)
		}
	}
	r.counted[day] = counted
}

// agrees compares a state with the model.
func (l *tale) agrees(s State) error {
	for _, a := range watched {
		for day := l.day; day < l.day+2; day++ {
			if got, want := numbers(s.Used(day, a)), l.used(day, a); got != want {
				return fmt.Errorf("invariant 2: %s used %v on %s, should be %v", a, got, day, want)
			}
		}
		if l.day < s.Day {
			return fmt.Errorf("invariant 4: it is %s, should be %s", s.Day, l.day)
		}
	}
	open, used := 0, 0
	for range s.used.all() {
		used++
	}
	for _, lane := range s.Lanes() {
		for _, r := range s.Open(lane) {
			open++
			if want := l.open[fmt.Sprint(lane, r.Purpose)]; want == nil || want.cap != numbers(r.Cap) {
				return fmt.Errorf("invariant 3: %+v, should be %+v", r, want)
			}
		}
	}
	if open != len(l.open) || used > len(watched) || len(s.Limits) != len(l.limits) {
		return fmt.Errorf("invariant 5: %d open, should be %d", open, len(l.open))
	}
	for _, r := range l.ever {
		var all [2]uint64
		for _, n := range r.counted {
			all[0], all[1] = all[0]+n[0], all[1]+n[1]
		}
		if r.settled && (all[0] < r.spent[0] || all[1] < r.spent[1]) {
			return fmt.Errorf("%v were counted, and %v spent", all, r.spent)
		}
	}
	return nil
}

// Every sequence of commands keeps the numbered invariants of the package comment, and no state
// changes when later states are derived from it.
func TestInvariants(t *testing.T) {
	facts, refused, codec := map[string]int{}, 0, Codec()
	rapid.Check(t, func(t *rapid.T) {
		var s State
		l := &tale{limits: map[Account]Limit{}, tokens: map[Lane]uint64{}, open: map[string]*title{}}
		for range 30 {
			c := drawCommand(t, s)
			events, err := s.Decide(c)
			if err != nil {
				if !errors.As(err, new(eventlog.Refusal)) || len(events) > 0 {
					t.Fatalf("%T: %v with %v", c, err, events)
				}
				continue
			}
			before, written := s, s.Snapshot()
			for _, e := range events {
				s = s.Evolve(kept(t, codec, e))
				facts[fmt.Sprintf("%T", e)]++
				if err := l.tell(e); err != nil {
					t.Fatalf("%+v: %v", c, err)
				}
			}
			if !bytes.Equal(before.Snapshot(), written) {
				t.Fatal("a state was changed by one that grew out of it")
			}
			if err := l.agrees(s); err != nil {
				t.Fatalf("%+v: %v", c, err)
			}
			refused += explained(t, s, c)
			back, err := Restore(s.Snapshot())
			if err != nil || !bytes.Equal(back.Snapshot(), s.Snapshot()) {
				t.Fatalf("the snapshot is another state: %v\n%s", err, s.Snapshot())
			}
			if again, err := back.Decide(c); err != nil || len(again) > 0 {
				t.Fatalf("invariant 6: deciding %+v twice added %v, %v", c, again, err)
			}
		}
	})
	for _, e := range samples() {
		if name := fmt.Sprintf("%T", e); facts[name] == 0 {
			t.Errorf("no sequence led to a %s: they are not any", name)
		}
	}
	if refused == 0 {
		t.Error("no charge was ever refused: they are not any")
	}
}

// explained checks that exactly the charges that were left out are refused with a reason.
func explained(t *rapid.T, s State, c Command) (refused int) {
	r, is := c.(Reserve)
	if !is {
		return 0
	}
	for _, charge := range r.Charges {
		if err := s.Check(r.Day, r.Lane, charge); (err == nil) != s.Covers(r.Lane, charge) {
			t.Fatalf("%+v is covered: %t, and %v", charge, s.Covers(r.Lane, charge), err)
		} else if err != nil {
			refused++
		}
	}
	return refused
}

// kept returns an event after encoding and decoding.
func kept(t *rapid.T, codec eventlog.Codec[Event], e Event) Event {
	name, data, err := codec.Encode(e)
	if err != nil {
		t.Fatal(err)
	}
	back, err := codec.Decode(name, data)
	if err != nil || !reflect.DeepEqual(e, back) {
		t.Fatalf("%s does not survive the log: %+v, %v", name, back, err)
	}
	return back
}
