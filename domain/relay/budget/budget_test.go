package budget

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/holiman/uint256"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/eventlog"
)

const today Day = 20_000

var (
	epoch = today.Begin().Add(time.Hour)
	one   = Lane{Signer: chain.Address{1}}
	two   = Lane{Signer: chain.Address{2}}
	whole = Account{Kind: OnChain}
)

func intent(n int) chain.IntentID { return chain.IntentID{15: byte(n)} }

func fees(n uint64) Sum { return Sum{Fee: chain.NewAmount(n)} }

// costs is the charge of an intent. The client's name is derived from the intent's tens.
func costs(n int, fee, value uint64) Charge {
	return Charge{Purpose{Intent: intent(n)}, fmt.Sprint("client", n/10), "", Sum{chain.NewAmount(fee), chain.NewAmount(value)}}
}

// about sets a charge's subject.
func about(subject string, c Charge) Charge {
	c.Subject = subject
	return c
}

func noop(nonce, fee uint64) Charge { return Charge{Purpose{Nonce: nonce}, "", "", fees(fee)} }

func reserve(l Lane, charges ...Charge) Command { return Reserve{today, l, 1, charges, epoch} }

func settle(l Lane, n int, fee, value uint64) Command {
	return Settle{today, l, 1, []Spent{{Purpose{Intent: intent(n)}, Sum{chain.NewAmount(fee), chain.NewAmount(value)}}}, nil, epoch}
}

// leave settles an intent at nothing, beside holes.
func leave(l Lane, n int, holes ...uint64) Command { return paysAndLeaves(l, n, 0, holes...) }

func paysAndLeaves(l Lane, n int, fee uint64, holes ...uint64) Command {
	c := settle(l, n, fee, 0).(Settle)
	c.Holes = holes
	return c
}

// tomorrow returns the same command a day later.
func tomorrow(c Command) Command {
	switch c := c.(type) {
	case Reserve:
		c.Day++
		return c
	case Settle:
		c.Day++
		return c
	}
	panic("not of a day")
}

func amount(n uint64) *chain.Amount { a := chain.NewAmount(n); return &a }

func limit(a Account, fee, value *chain.Amount) Command {
	return SetLimit{a, Limit{fee, value}, "ada", "as agreed", epoch}
}

func run(t *testing.T, commands ...Command) (State, int) {
	t.Helper()
	var s State
	facts := 0
	for _, c := range commands {
		events, err := s.Decide(c)
		if err != nil {
			t.Fatalf("%+v: %v", c, err)
		}
		for _, e := range events {
			s, facts = s.Evolve(e), facts+1
		}
	}
	return s, facts
}

// shape describes a state in short: the used sums and the number of open reservations.
func shape(s State) string {
	text := ""
	for _, a := range []Account{whole, {Kind: OfSigner, Signer: one.Signer}, {Kind: OfSigner, Signer: two.Signer}, {Kind: OfClient, Client: "client0"}, {Kind: OfClient, Client: "client1"}} {
		used := s.Used(s.Day, a)
		text += fmt.Sprintf("%s/%s ", used.Fee, used.Value)
	}
	return text + fmt.Sprint(len(s.Open(one))+len(s.Open(two)))
}

func TestLife(t *testing.T) {
	for _, c := range []struct {
		name     string
		commands []Command
		facts    int
		want     string
	}{
		{"nothing", nil, 0, "0/0 0/0 0/0 0/0 0/0 0"},
		{"reserved", []Command{reserve(one, costs(1, 10, 5))}, 1, "10/5 10/5 0/0 10/5 0/0 1"},
		{"reserved again", []Command{reserve(one, costs(1, 10, 5)), reserve(one, costs(1, 10, 5))}, 1, "10/5 10/5 0/0 10/5 0/0 1"},
		{"several at once", []Command{reserve(one, costs(1, 10, 5), costs(11, 3, 0))}, 1, "13/5 13/5 0/0 10/5 3/0 2"},
		{"a bump adds the difference", []Command{reserve(one, costs(1, 10, 5)), reserve(one, costs(1, 12, 5))}, 2, "12/5 12/5 0/0 12/5 0/0 1"},
		{"its no-op costs less", []Command{reserve(one, costs(1, 10, 5)), reserve(one, costs(1, 8, 0))}, 1, "10/5 10/5 0/0 10/5 0/0 1"},
		{"more of one, less of the other", []Command{reserve(one, costs(1, 10, 5)), reserve(one, costs(1, 20, 0))}, 2, "20/5 20/5 0/0 20/5 0/0 1"},
		{"a hole's no-op is nobody's", []Command{reserve(one, noop(0, 4), noop(7, 3))}, 1, "7/0 7/0 0/0 0/0 0/0 2"},
		{"a hole gets what an intent leaves", []Command{reserve(one, costs(1, 10, 5)), leave(one, 1, 7)}, 3, "10/0 10/0 0/0 0/0 0/0 1"},
		{"a hole gets it once", []Command{reserve(one, costs(1, 10, 5)), leave(one, 1, 7), leave(one, 1, 7)}, 3, "10/0 10/0 0/0 0/0 0/0 1"},
		{"a hole with money gets no more", []Command{reserve(one, costs(1, 10, 5), noop(7, 3)), leave(one, 1, 7)}, 2, "3/0 3/0 0/0 0/0 0/0 1"},
		{"two holes share it", []Command{reserve(one, costs(1, 10, 5)), leave(one, 1, 7, 8)}, 3, "10/0 10/0 0/0 0/0 0/0 2"},
		{"a hole gets nothing of what is spent", []Command{reserve(one, costs(1, 10, 5)), paysAndLeaves(one, 1, 10, 7)}, 2, "10/0 10/0 0/0 10/0 0/0 0"},
		{"a hole gets nothing above a lowered limit", []Command{reserve(one, costs(1, 10, 5)), limit(whole, amount(9), nil), leave(one, 1, 7)}, 3, "0/0 0/0 0/0 0/0 0/0 0"},
		{"settled at less", []Command{reserve(one, costs(1, 10, 5)), settle(one, 1, 6, 5)}, 2, "6/5 6/5 0/0 6/5 0/0 0"},
		{"released", []Command{reserve(one, costs(1, 10, 5)), settle(one, 1, 0, 0)}, 2, "0/0 0/0 0/0 0/0 0/0 0"},
		{"settled once", []Command{reserve(one, costs(1, 10, 5)), settle(one, 1, 6, 5), settle(one, 1, 0, 0)}, 2, "6/5 6/5 0/0 6/5 0/0 0"},
		{"settled, never reserved", []Command{settle(one, 1, 6, 5)}, 0, "0/0 0/0 0/0 0/0 0/0 0"},
		{"settled at more", []Command{reserve(one, costs(1, 10, 5)), settle(one, 1, 16, 5)}, 2, "16/5 16/5 0/0 16/5 0/0 0"},
		{"of another lane", []Command{reserve(one, costs(1, 10, 5)), settle(two, 1, 0, 0)}, 1, "10/5 10/5 0/0 10/5 0/0 1"},
		{"two lanes, one intent", []Command{reserve(one, costs(1, 10, 5)), reserve(two, costs(1, 10, 5))}, 2, "20/10 10/5 10/5 20/10 0/0 2"},
		{"and the loser settles", []Command{reserve(one, costs(1, 10, 5)), reserve(two, costs(1, 10, 5)), settle(one, 1, 0, 0)}, 3, "10/5 0/0 10/5 10/5 0/0 1"},
		{"reserved anew", []Command{reserve(one, costs(1, 10, 5)), settle(one, 1, 0, 0), reserve(one, costs(1, 4, 0))}, 3, "4/0 4/0 0/0 4/0 0/0 1"},
		{"another day", []Command{reserve(one, costs(1, 10, 5)), tomorrow(reserve(one, costs(2, 1, 0)))}, 2, "1/0 1/0 0/0 1/0 0/0 2"},
		{"a bump of another day", []Command{reserve(one, costs(1, 10, 5)), tomorrow(reserve(one, costs(1, 12, 5)))}, 2, "2/0 2/0 0/0 2/0 0/0 1"},
		{"what comes back on another day", []Command{reserve(one, costs(1, 10, 5)), tomorrow(reserve(one, costs(1, 12, 5))), tomorrow(settle(one, 1, 1, 0))}, 3, "0/0 0/0 0/0 0/0 0/0 0"},
		{"less came back", []Command{reserve(one, costs(1, 10, 5)), tomorrow(reserve(one, costs(1, 14, 5))), tomorrow(settle(one, 1, 13, 5))}, 3, "3/0 3/0 0/0 3/0 0/0 0"},
		{"nothing of yesterday comes back", []Command{reserve(one, costs(1, 10, 5)), tomorrow(reserve(one, costs(2, 3, 0))), tomorrow(settle(one, 1, 0, 0))}, 3, "3/0 3/0 0/0 3/0 0/0 1"},
		{"a day does not go back", []Command{tomorrow(reserve(one, costs(1, 10, 5))), reserve(one, costs(2, 3, 0))}, 2, "13/5 13/5 0/0 13/5 0/0 2"},
		{"limited", []Command{limit(whole, amount(15), nil), reserve(one, costs(1, 10, 5)), reserve(one, costs(2, 6, 0)), reserve(one, costs(3, 5, 9))}, 3, "15/14 15/14 0/0 15/14 0/0 2"},
		{"those that fit", []Command{limit(whole, amount(15), nil), reserve(one, costs(1, 10, 5), costs(2, 6, 0), costs(3, 5, 9))}, 2, "15/14 15/14 0/0 15/14 0/0 2"},
		{"a client's", []Command{limit(Account{Kind: OfClient, Client: "client0"}, amount(15), nil), reserve(one, costs(1, 10, 5), costs(2, 6, 0), costs(11, 6, 0))}, 2, "16/5 16/5 0/0 10/5 6/0 2"},
		{"each client's", []Command{limit(Account{Kind: EachClient}, nil, amount(5)), reserve(one, costs(1, 10, 5), costs(2, 6, 1), costs(11, 6, 5))}, 2, "16/10 16/10 0/0 10/5 6/5 2"},
		{"its own before each", []Command{limit(Account{Kind: EachClient}, amount(1), nil), limit(Account{Kind: OfClient, Client: "client0"}, amount(100), nil), reserve(one, costs(1, 10, 5), costs(11, 6, 5))}, 3, "10/5 10/5 0/0 10/5 0/0 1"},
		{"a signer's", []Command{limit(Account{Kind: OfSigner, Signer: one.Signer}, amount(5), nil), reserve(one, costs(1, 10, 5)), reserve(two, costs(1, 10, 5))}, 2, "10/5 0/0 10/5 10/5 0/0 1"},
		{"each signer's, no-ops too", []Command{limit(Account{Kind: EachSigner}, amount(5), nil), reserve(one, noop(1, 5), noop(2, 1))}, 2, "5/0 5/0 0/0 0/0 0/0 1"},
		{"each subject's", []Command{limit(Account{Kind: EachSubject}, amount(10), nil), reserve(one, about("ann", costs(1, 6, 0)), about("ann", costs(2, 6, 0)), about("bob", costs(3, 6, 0)), costs(4, 60, 0))}, 2, "72/0 72/0 0/0 72/0 0/0 3"},
		{"a subject's own", []Command{limit(Account{Kind: OfSubject, Client: "client0", Subject: "ann"}, amount(10), nil), reserve(one, about("ann", costs(1, 6, 0)), about("ann", costs(2, 6, 0)), about("bob", costs(3, 60, 0)), about("ann", costs(11, 60, 0)))}, 2, "126/0 126/0 0/0 66/0 60/0 3"},
		{"nothing comes back that did not count", []Command{reserve(one, about("ann", costs(1, 6, 0))), limit(Account{Kind: EachSubject}, amount(10), nil), reserve(one, about("ann", costs(2, 10, 0))), settle(one, 1, 0, 0), reserve(one, about("ann", costs(3, 1, 0)))}, 4, "10/0 10/0 0/0 10/0 0/0 1"},
		{"a bump over it", []Command{limit(whole, amount(15), nil), reserve(one, costs(1, 10, 5)), reserve(one, costs(1, 16, 5))}, 2, "10/5 10/5 0/0 10/5 0/0 1"},
		{"room again", []Command{limit(whole, amount(15), nil), reserve(one, costs(1, 10, 5)), settle(one, 1, 5, 5), reserve(one, costs(2, 10, 5))}, 4, "15/10 15/10 0/0 15/10 0/0 1"},
		{"room tomorrow", []Command{limit(whole, amount(15), nil), reserve(one, costs(1, 10, 5)), tomorrow(reserve(one, costs(2, 10, 5)))}, 3, "10/5 10/5 0/0 10/5 0/0 2"},
		{"lowered below what is used", []Command{reserve(one, costs(1, 10, 5)), limit(whole, amount(5), nil), reserve(one, costs(1, 10, 6)), reserve(one, costs(2, 1, 0))}, 3, "10/6 10/6 0/0 10/6 0/0 1"},
		{"taken away", []Command{limit(whole, amount(0), nil), limit(whole, nil, nil), reserve(one, costs(1, 10, 5))}, 3, "10/5 10/5 0/0 10/5 0/0 1"},
		{"set to what it is", []Command{limit(whole, nil, nil), limit(whole, amount(1), nil), limit(whole, amount(1), nil)}, 1, "0/0 0/0 0/0 0/0 0/0 0"},
	} {
		s, facts := run(t, c.commands...)
		if got := shape(s); facts != c.facts || got != c.want {
			t.Errorf("%s: %s by %d facts, want %s by %d", c.name, got, facts, c.want, c.facts)
		}
	}
}

func TestCheck(t *testing.T) {
	s, _ := run(t, limit(whole, amount(15), amount(50)), limit(Account{Kind: OfClient, Client: "client1"}, amount(0), nil), reserve(one, costs(1, 10, 5)))
	for name, c := range map[string]struct {
		day    Day
		charge Charge
		want   error
	}{
		"fits":                  {today, costs(2, 5, 45), nil},
		"not today":             {today, costs(2, 6, 0), ErrSpent},
		"value not today":       {today, costs(2, 0, 46), ErrSpent},
		"tomorrow":              {today + 1, costs(2, 15, 50), nil},
		"never":                 {today + 1, costs(2, 16, 0), ErrOverLimit},
		"never of the client's": {today + 1, costs(11, 1, 0), ErrOverLimit},
		"its bump":              {today, costs(1, 15, 5), nil},
		"too much of a bump":    {today, costs(1, 16, 5), ErrSpent},
		"more than there is":    {today, Charge{Purpose{Intent: intent(3)}, "", "", Sum{Value: chain.AmountOf(new(uint256.Int).Lsh(uint256.NewInt(1), sumBits))}}, ErrImpossible},
	} {
		if err := s.Check(c.day, one, c.charge); !errors.Is(err, c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if left := s.Left(today, whole); left.Fee.String() != "5" || left.Value.String() != "45" {
		t.Errorf("left: %s, %s", left.Fee, left.Value)
	}
	if left := s.Left(today, Account{Kind: OfClient, Client: "client0"}); !left.none() {
		t.Errorf("left of what has no limit: %+v", left)
	}
	if !s.Covers(one, costs(1, 10, 4)) || s.Covers(one, costs(1, 11, 5)) || s.Covers(two, costs(1, 10, 5)) || s.Covers(one, costs(2, 0, 0)) {
		t.Error("it is covered by what is not reserved, or the other way round")
	}
}

// A client sees the used sums of its own and its subject's budget, and no sum that includes other
// clients' intents.
func TestSpentTellsNothingOfOthers(t *testing.T) {
	ann, sub := Account{Kind: OfClient, Client: "ann"}, Account{Kind: OfSubject, Client: "ann", Subject: "sub"}
	asks := func(n int) Charge {
		return Charge{Purpose{Intent: intent(n)}, "ann", "sub", Sum{Fee: *amount(8000), Value: *amount(6000)}}
	}
	bobs := Charge{Purpose{Intent: intent(1)}, "bob", "", Sum{Fee: *amount(1234), Value: *amount(5678)}}
	for _, c := range []struct {
		of     Account
		before Charge
		own    bool
		name   string
	}{
		{whole, bobs, false, "chain"},
		{Account{Kind: OfSigner, Signer: one.Signer}, bobs, false, "signer " + one.Signer.String()},
		{ann, asks(2), true, `client "ann"`},
		{sub, asks(2), true, `subject "sub" of client "ann"`},
	} {
		s, _ := run(t, limit(c.of, amount(9000), amount(9000)), reserve(one, c.before))
		err := s.Check(today, one, asks(3))
		if !errors.Is(err, ErrSpent) {
			t.Errorf("%s: %v", c.of, err)
			continue
		}
		said := err.Error()
		if !strings.Contains(said, c.name) || !strings.Contains(said, "8000") {
			t.Errorf("%s: it does not say what has no room for how much: %s", c.of, said)
		}
		if used := strings.Contains(said, "has used"); used != c.own || strings.Contains(said, "1234") || strings.Contains(said, "5678") {
			t.Errorf("%s: sums are named: %t: %s", c.of, used, said)
		}
		if begins := today.End().UTC().Format(time.RFC3339); !c.own && !strings.Contains(said, begins) {
			t.Errorf("%s: when it begins again is not said: %s", c.of, said)
		}
	}
}

func TestExhausted(t *testing.T) {
	for name, c := range map[string]struct {
		commands []Command
		want     bool
	}{
		"no limit":          {nil, false},
		"something left":    {[]Command{limit(whole, amount(15), nil), reserve(one, costs(1, 14, 0))}, false},
		"the chain's":       {[]Command{limit(whole, amount(15), nil), reserve(two, costs(1, 15, 0))}, true},
		"the signer's":      {[]Command{limit(Account{Kind: EachSigner}, amount(15), nil), reserve(one, costs(1, 15, 0))}, true},
		"another signer's":  {[]Command{limit(Account{Kind: EachSigner}, amount(15), nil), reserve(two, costs(1, 15, 0))}, false},
		"value is not fees": {[]Command{limit(whole, nil, amount(0))}, false},
		"a limit of naught": {[]Command{limit(whole, amount(0), nil)}, true},
	} {
		if s, _ := run(t, c.commands...); s.Exhausted(today, one.Signer) != c.want || s.Limited() != (len(c.commands) > 0) {
			t.Errorf("%s: %t", name, !c.want)
		}
	}
	if s, _ := run(t, limit(whole, amount(15), nil), reserve(two, costs(1, 15, 0))); s.Exhausted(today+1, one.Signer) {
		t.Error("nothing is left tomorrow")
	}
}

func TestRefusals(t *testing.T) {
	signer := Account{Kind: OfSigner, Signer: one.Signer}
	for name, c := range map[string]Command{
		"nobody":              SetLimit{whole, Limit{}, "", "as agreed", epoch},
		"for nothing":         SetLimit{whole, Limit{}, "ada", "", epoch},
		"a long reason":       SetLimit{whole, Limit{}, "ada", strings.Repeat("r", TextMax+1), epoch},
		"two lines":           SetLimit{whole, Limit{}, "a\nb", "as agreed", epoch},
		"of no account":       limit(Account{}, amount(1), nil),
		"of no signer":        limit(Account{Kind: OfSigner}, amount(1), nil),
		"a signer of all":     limit(Account{Kind: OnChain, Signer: signer.Signer}, amount(1), nil),
		"a client of all":     limit(Account{Kind: EachClient, Client: "client0"}, amount(1), nil),
		"of no subject":       limit(Account{Kind: OfSubject, Client: "client0"}, amount(1), nil),
		"a subject of all":    limit(Account{Kind: OnChain, Subject: "ann"}, amount(1), nil),
		"a subject too long":  limit(Account{Kind: OfSubject, Subject: strings.Repeat("x", SubjectMax+1)}, amount(1), nil),
		"a subject no text":   limit(Account{Kind: OfSubject, Subject: "a\nb"}, amount(1), nil),
		"a name with a space": limit(Account{Kind: OfClient, Client: "client 0"}, amount(1), nil),
	} {
		if events, err := (State{}).Decide(c); !errors.Is(err, ErrInvalid) || len(events) > 0 {
			t.Errorf("%s: %v, %v", name, events, err)
		}
	}
	for _, day := range []Day{-1, lastDay + 1} {
		if _, err := (State{}).Decide(Reserve{day, one, 1, []Charge{costs(1, 1, 1)}, epoch}); !errors.Is(err, ErrInvalid) {
			t.Errorf("day %d: %v", day, err)
		}
	}
	if lastDay.String() != "9999-12-31" {
		t.Errorf("the last day is %s", lastDay)
	}
	full := State{Limits: map[Account]Limit{}}
	for n := range LimitsMax {
		full.Limits[Account{Kind: OfClient, Client: fmt.Sprint(n)}] = Limit{Fee: amount(1)}
	}
	if _, err := full.Decide(limit(whole, amount(1), nil)); !errors.Is(err, ErrTooMany) {
		t.Errorf("one limit more: %v", err)
	}
	huge := Spent{Purpose{Intent: intent(1)}, Sum{Fee: chain.AmountOf(new(uint256.Int).SetAllOne())}}
	s, _ := run(t, reserve(one, costs(1, 10, 5)))
	if _, err := s.Decide(Settle{today, one, 1, []Spent{huge}, nil, epoch}); !errors.Is(err, ErrImpossible) {
		t.Errorf("more spent than there is: %v", err)
	}
}

// A batch of the greatest size fits into an event.
func TestBoundsFit(t *testing.T) {
	most := chain.AmountOf(new(uint256.Int).Sub(new(uint256.Int).Lsh(uint256.NewInt(1), sumBits), uint256.NewInt(1)))
	var charges []Charge
	var spent []Spent
	for n := range BatchMax {
		p := Purpose{Intent: chain.IntentID{byte(n >> 8), byte(n), 1}}
		charges = append(charges, Charge{p, strings.Repeat("x", NameMax), strings.Repeat("<", SubjectMax), Sum{most, most}})
		spent = append(spent, Spent{p, Sum{most, most}})
	}
	s := State{}
	for _, c := range []Command{Reserve{today, one, 1, charges, epoch}, Settle{today, one, 1, spent, nil, epoch}} {
		events, err := s.Decide(c)
		if err != nil || len(events) != 1 {
			t.Fatalf("%d events, %v", len(events), err)
		}
		if _, data, err := Codec().Encode(events[0]); err != nil || len(data) > eventlog.MaxEventBytes {
			t.Errorf("%T: %d bytes, %v", c, len(data), err)
		}
		s = s.Evolve(events[0])
	}
	if got := s.Used(today, whole).Fee; got.Int().Cmp(most.Times(BatchMax).Int()) != 0 {
		t.Errorf("%s, which is not %d times as much", got, BatchMax)
	}
}

func TestDays(t *testing.T) {
	for text, seconds := range map[string]int64{"1970-01-01": 0, "1969-12-31": -1, "2026-11-21": 1_795_219_199 + 1, "2026-11-20": 1_795_219_199} {
		day := DayOf(time.Unix(seconds, 0))
		if day.String() != text {
			t.Errorf("%d is in %s, not in %s", seconds, day, text)
		}
		var back Day
		if err := back.UnmarshalText([]byte(text)); err != nil || back != day || DayOf(back.Begin()) != day || DayOf(back.Begin().Add(-1)) != day-1 {
			t.Errorf("%s is read as %s, %v", text, back, err)
		}
	}
	if new(Day).UnmarshalText([]byte("2026-2-1")) == nil {
		t.Error("a date of another form is read")
	}
	// The day is in UTC, in any time zone of the input.
	if late := time.Date(2026, 11, 21, 23, 0, 0, 0, time.FixedZone("", -2*3600)); DayOf(late).String() != "2026-11-22" {
		t.Errorf("%s is in %s", late, DayOf(late))
	}
}

func TestStream(t *testing.T) {
	if on, err := ParseStream(Stream(42431)); err != nil || on != 42431 {
		t.Errorf("%d, %v", on, err)
	}
	for _, bad := range []eventlog.Stream{"", "budget-", "budget-0", "budget-01", "budgets-1", "budget-1-"} {
		if _, err := ParseStream(bad); err == nil {
			t.Errorf("%q is a budget's", bad)
		}
	}
}

// A fenced holder changes nothing once the next holder has recorded anything. The next holder
// takes over the reservations without adding to them.
func TestFence(t *testing.T) {
	by := func(token uint64, c Command) Command {
		switch c := c.(type) {
		case Reserve:
			c.Token = token
			return c
		case Settle:
			c.Token = token
			return c
		}
		panic("of no lane")
	}
	held, _ := run(t, by(2, reserve(one, costs(1, 10, 5), costs(2, 10, 5))))
	for name, c := range map[string]struct {
		commands []Command
		last     Command
		want     error
	}{
		"the holder":            {nil, by(2, settle(one, 1, 0, 0)), nil},
		"an older one":          {nil, by(1, settle(one, 1, 0, 0)), ErrFenced},
		"an older one reserves": {nil, by(1, reserve(one, costs(3, 10, 5))), ErrFenced},
		"the next":              {nil, by(3, settle(one, 1, 0, 0)), nil},
		"after it has settled":  {[]Command{by(3, settle(one, 1, 0, 0))}, by(2, settle(one, 2, 0, 0)), ErrFenced},
		"after it has reserved": {[]Command{by(3, reserve(one, costs(3, 1, 0)))}, by(2, settle(one, 2, 0, 0)), ErrFenced},
		"after it took over":    {[]Command{by(3, reserve(one, costs(1, 10, 5)))}, by(2, settle(one, 2, 0, 0)), ErrFenced},
		"of another lane":       {nil, by(1, reserve(two, costs(3, 10, 5))), nil},
		"of one that is empty":  {[]Command{by(3, settle(one, 1, 0, 0)), by(3, settle(one, 2, 0, 0))}, by(2, reserve(one, costs(3, 10, 5))), nil},
	} {
		s := held
		for _, c := range c.commands {
			events, err := s.Decide(c)
			if err != nil || len(events) != 1 {
				t.Fatalf("%s: %+v: %v, %v", name, c, events, err)
			}
			s = s.Evolve(events[0])
		}
		if _, err := s.Decide(c.last); !errors.Is(err, c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	again := by(3, reserve(one, costs(1, 10, 5)))
	events, err := held.Decide(again)
	if err != nil || len(events) != 1 {
		t.Fatal(events, err)
	}
	s := held.Evolve(events[0])
	if more, err := s.Decide(again); err != nil || len(more) > 0 || s.Used(today, whole) != held.Used(today, whole) {
		t.Errorf("taking over adds %v, %v; used %v", more, err, s.Used(today, whole))
	}
}
