package safeguard

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/eventlog"
)

var (
	epoch = time.Unix(1_800_000_000, 0).UTC()
	token = chain.Address{1}
	send  = chain.Selector{1, 2, 3, 4}

	all     = Scope{Kind: Deployment}
	tempo   = Scope{Kind: OnChain, Chain: 42431}
	payroll = Scope{Kind: OfClient, Client: "payroll"}
	nobody  = Scope{Kind: OfClient} // callers without an API key
	there   = Scope{Kind: OfClient, Client: "payroll", Chain: 42431}
)

func throw(s Scope) Command { return Throw{s, "ada", "fire", epoch} }

func resume(s Scope) Command { return Resume{s, "ada", "put out", epoch} }

func list(s Scope, targets ...chain.Target) Command {
	return SetTargets{s, targets, "ada", "only these", epoch}
}

func rate(s Scope, perSecond int) Command {
	return SetRate{s, &Rate{perSecond, 10}, "ada", "so many", epoch}
}

func unlimited(s Scope) Command { return SetRate{s, nil, "ada", "trusted", epoch} }

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

func TestHalts(t *testing.T) {
	request := Request{"payroll", 42431, []chain.Call{{To: &token}}}
	for name, c := range map[string]struct {
		commands      []Command
		facts         int
		request, noop error
	}{
		"nothing":            {nil, 0, nil, nil},
		"the deployment":     {[]Command{throw(all), throw(all)}, 1, ErrHalted, ErrHalted},
		"the chain":          {[]Command{throw(tempo)}, 1, ErrHalted, ErrHalted},
		"another chain":      {[]Command{throw(Scope{Kind: OnChain, Chain: 1})}, 1, nil, nil},
		"the client":         {[]Command{throw(payroll)}, 1, ErrHalted, nil},
		"the client there":   {[]Command{throw(there)}, 1, ErrHalted, nil},
		"the client at home": {[]Command{throw(Scope{Kind: OfClient, Client: "payroll", Chain: 1})}, 1, nil, nil},
		"another client":     {[]Command{throw(nobody)}, 1, nil, nil},
		"resumed":            {[]Command{throw(all), resume(all), resume(all)}, 2, nil, nil},
		"resumed elsewhere":  {[]Command{throw(tempo), resume(all), resume(payroll)}, 1, ErrHalted, ErrHalted},
	} {
		s, facts := run(t, c.commands...)
		if facts != c.facts || !errors.Is(s.Check(request), c.request) || !errors.Is(s.CheckNoOp(42431), c.noop) {
			t.Errorf("%s: %d facts, %v, %v", name, facts, s.Check(request), s.CheckNoOp(42431))
		}
	}
	s, _ := run(t, throw(nobody))
	if err := s.Check(Request{"", 1, nil}); err == nil || !strings.Contains(err.Error(), `client "" is halted by ada since 2027-01-15T08:00:00Z: fire`) {
		t.Error(err)
	}
}

func TestLists(t *testing.T) {
	sending := chain.Call{To: &token, Input: send[:]}
	for name, c := range map[string]struct {
		commands []Command
		facts    int
		calls    []chain.Call
		want     error
	}{
		"no list":              {nil, 0, []chain.Call{{}}, nil},
		"on the list":          {[]Command{list(tempo, chain.Target{To: &token}), list(tempo, chain.Target{To: &token})}, 1, []chain.Call{sending}, nil},
		"not on it":            {[]Command{list(tempo, chain.Target{To: &chain.Address{2}})}, 1, []chain.Call{sending}, ErrTarget},
		"the second is not":    {[]Command{list(tempo, chain.Target{To: &token})}, 1, []chain.Call{sending, {}}, ErrTarget},
		"of another chain":     {[]Command{list(Scope{Kind: OnChain, Chain: 1}, chain.Target{})}, 1, []chain.Call{sending}, nil},
		"the client's too":     {[]Command{list(tempo, chain.Target{To: &token}), list(there, chain.Target{To: &token, Selectors: []chain.Selector{send}})}, 2, []chain.Call{sending}, nil},
		"not the client's":     {[]Command{list(tempo, chain.Target{To: &token}), list(there, chain.Target{To: &token, Selectors: []chain.Selector{{}}})}, 2, []chain.Call{sending}, ErrTarget},
		"the client's alone":   {[]Command{list(tempo, chain.Target{}), list(there, chain.Target{To: &token})}, 2, []chain.Call{sending}, ErrTarget},
		"of another client":    {[]Command{list(Scope{Kind: OfClient, Chain: 42431}, chain.Target{})}, 1, []chain.Call{sending}, nil},
		"a list that is empty": {[]Command{list(tempo, chain.Target{}), list(tempo), list(tempo)}, 2, []chain.Call{sending}, nil},
	} {
		s, facts := run(t, c.commands...)
		if err := s.Check(Request{"payroll", 42431, c.calls}); facts != c.facts || !errors.Is(err, c.want) {
			t.Errorf("%s: %d facts, %v", name, facts, err)
		}
	}
}

func TestRates(t *testing.T) {
	s, facts := run(t, rate(all, 1), rate(payroll, 2), rate(payroll, 2), rate(Scope{Kind: EachClient}, 3), rate(Scope{Kind: EachSubject}, 4), rate(nobody, 5), unlimited(nobody), unlimited(nobody))
	whole, _ := s.Rate()
	own, _ := s.ClientRate("payroll")
	other, _ := s.ClientRate("")
	subject, _ := s.SubjectRate()
	if got := fmt.Sprint(whole, own, other, subject, facts); got != "{1 10} {2 10} {3 10} {4 10} 6" {
		t.Error(got)
	}
	for name, limited := range map[string]func() bool{
		"all":     func() bool { _, any := State{}.Rate(); return any },
		"client":  func() bool { _, any := State{}.ClientRate("payroll"); return any },
		"subject": func() bool { _, any := State{}.SubjectRate(); return any },
	} {
		if limited() {
			t.Errorf("%s is limited, and nobody said so", name)
		}
	}
}

func TestRefusals(t *testing.T) {
	long := strings.Repeat("x", TextMax+1)
	for name, c := range map[string]Command{
		"nobody":                  Throw{all, "", "fire", epoch},
		"for nothing":             Throw{all, "ada", "", epoch},
		"a long reason":           Resume{all, "ada", long, epoch},
		"two lines":               Resume{all, "ada\nbob", "fire", epoch},
		"not text":                SetRate{all, nil, "ada", "\xff", epoch},
		"of no kind":              throw(Scope{}),
		"of each client":          throw(Scope{Kind: EachClient}),
		"of no chain":             throw(Scope{Kind: OnChain}),
		"all of one chain":        throw(Scope{Kind: Deployment, Chain: 1}),
		"all of one client":       throw(Scope{Kind: Deployment, Client: "payroll"}),
		"a name with a space":     throw(Scope{Kind: OfClient, Client: "pay roll"}),
		"a long name":             throw(Scope{Kind: OfClient, Client: strings.Repeat("x", NameMax+1)}),
		"a list for all":          list(all),
		"a list of no chain":      list(payroll, chain.Target{}),
		"a list too long":         list(tempo, make([]chain.Target, TargetsMax+1)...),
		"too many selectors":      list(tempo, chain.Target{To: &token, Selectors: make([]chain.Selector, SelectorsMax+1)}),
		"selectors of a contract": list(tempo, chain.Target{Selectors: make([]chain.Selector, 1)}),
		"a rate on a chain":       rate(tempo, 1),
		"a client's on a chain":   rate(there, 1),
		"a rate of nothing":       rate(all, 0),
		"a rate without end":      rate(all, RateMax+1),
		"no burst":                SetRate{all, &Rate{1, 0}, "ada", "so many", epoch},
		"a burst without end":     SetRate{all, &Rate{1, BurstMax + 1}, "ada", "so many", epoch},
	} {
		if events, err := (State{}).Decide(c); !errors.Is(err, ErrInvalid) || len(events) > 0 {
			t.Errorf("%s: %v, %v", name, events, err)
		}
	}
}

func TestBounds(t *testing.T) {
	full := State{map[Scope]Halt{}, map[Scope]chain.Targets{}, map[Scope]Rate{}}
	numbered := func(n int) Scope { return Scope{Kind: OfClient, Client: fmt.Sprint("c", n), Chain: 1} }
	for n := range HaltsMax {
		full.Halts[numbered(n)] = Halt{Actor: "ada"}
	}
	for n := range ListsMax {
		full.Lists[numbered(n)] = chain.Targets{{}}
	}
	for n := range RatesMax {
		full.Rates[Scope{Kind: OfClient, Client: fmt.Sprint("c", n)}] = Rate{1, 1}
	}
	for name, c := range map[string]struct{ more, end Command }{
		"halts": {throw(tempo), resume(numbered(0))},
		"lists": {list(tempo, chain.Target{}), list(numbered(0))},
		"rates": {rate(all, 1), unlimited(Scope{Kind: OfClient, Client: "c0"})},
	} {
		if _, err := full.Decide(c.more); !errors.Is(err, ErrTooMany) {
			t.Errorf("%s: one more: %v", name, err)
		}
		events, err := full.Decide(c.end)
		if err != nil || len(events) != 1 {
			t.Fatalf("%s: %v, %v", name, events, err)
		}
		if events, err := full.Evolve(events[0]).Decide(c.more); err != nil || len(events) != 1 {
			t.Errorf("%s: one in place of another: %v, %v", name, events, err)
		}
	}
	if events, err := full.Decide(throw(all)); err != nil || len(events) != 1 {
		t.Errorf("the deployment cannot be halted any more: %v, %v", events, err)
	}
	longest := SetTargets{Scope{OfClient, 1 << 63, strings.Repeat("x", NameMax)}, nil, strings.Repeat("a", TextMax), strings.Repeat("r", TextMax), epoch}
	for range TargetsMax {
		longest.Targets = append(longest.Targets, chain.Target{To: &token, Selectors: make([]chain.Selector, SelectorsMax)})
	}
	events, err := State{}.Decide(longest)
	if err != nil {
		t.Fatal(err)
	}
	if _, data, err := Codec().Encode(events[0]); err != nil || len(data) > eventlog.MaxEventBytes {
		t.Errorf("%d bytes, %v", len(data), err)
	}
}

func drawScope(t *rapid.T) Scope {
	return rapid.SampledFrom([]Scope{all, all, tempo, payroll, there, nobody, {Kind: EachClient}, {}}).Draw(t, "scope")
}

func drawCommand(t *rapid.T) Command {
	scope, actor := drawScope(t), rapid.SampledFrom([]string{"ada", "ada", "ada", ""}).Draw(t, "actor")
	switch rapid.SampledFrom(strings.Fields("throw throw resume resume list rate")).Draw(t, "command") {
	case "throw":
		return Throw{scope, actor, "fire", epoch}
	case "resume":
		return Resume{scope, actor, "put out", epoch}
	case "list":
		targets := []chain.Targets{nil, {{To: &token}}, {{}}}
		return SetTargets{scope, rapid.SampledFrom(targets).Draw(t, "targets"), actor, "only these", epoch}
	}
	return SetRate{scope, rapid.SampledFrom([]*Rate{nil, {1, 1}, {2, 1}}).Draw(t, "rate"), actor, "so many", epoch}
}

// Every sequence of commands keeps the numbered invariants of the package comment, and no state
// changes when later states are derived from it.
func TestInvariants(t *testing.T) {
	facts, codec := map[string]int{}, Codec()
	rapid.Check(t, func(t *rapid.T) {
		var s State
		halted := map[Scope]bool{}
		for range 60 {
			c := drawCommand(t)
			events, err := s.Decide(c)
			if err != nil && (!errors.As(err, new(eventlog.Refusal)) || len(events) > 0) {
				t.Fatalf("%T: %v with %v", c, err, events)
			}
			if err != nil {
				continue
			}
			before, written := s, fmt.Sprintf("%+v", s)
			for _, e := range events {
				facts[fmt.Sprintf("%T", e)]++
				tell(t, halted, e)
				name, data, err := codec.Encode(e)
				if err != nil {
					t.Fatal(err)
				}
				back, err := codec.Decode(name, data)
				if err != nil || !reflect.DeepEqual(back, e) {
					t.Fatalf("%s does not survive the log: %+v, %v", name, back, err)
				}
				s = s.Evolve(back)
			}
			if fmt.Sprintf("%+v", before) != written {
				t.Fatal("a state was changed by one that grew out of it")
			}
			stopped := halted[all] || halted[tempo]
			if got := errors.Is(s.CheckNoOp(42431), ErrHalted); got != stopped {
				t.Fatalf("invariant 3: a no-op is halted: %t, %v", got, halted)
			}
			stopped = stopped || halted[payroll] || halted[there]
			if got := errors.Is(s.Check(Request{"payroll", 42431, nil}), ErrHalted); got != stopped {
				t.Fatalf("invariant 3: a request is halted: %t, %v", got, halted)
			}
			if again, err := s.Decide(c); err != nil || len(again) > 0 {
				t.Fatalf("invariant 5: deciding %+v twice added %v, %v", c, again, err)
			}
		}
	})
	for _, e := range samples() {
		if name := fmt.Sprintf("%T", e); facts[name] == 0 {
			t.Errorf("no sequence led to a %s: they are not any", name)
		}
	}
}

// tell checks the first two invariants.
func tell(t *rapid.T, halted map[Scope]bool, e Event) {
	actor, reason := "", ""
	switch e := e.(type) {
	case Halted:
		if actor, reason = e.Actor, e.Reason; halted[e.Scope] {
			t.Fatalf("invariant 2: %s is halted twice", e.Scope)
		}
		halted[e.Scope] = true
	case Resumed:
		if actor, reason = e.Actor, e.Reason; !halted[e.Scope] {
			t.Fatalf("invariant 2: %s is resumed and was not halted", e.Scope)
		}
		halted[e.Scope] = false
	case TargetsSet:
		actor, reason = e.Actor, e.Reason
	case RateSet:
		actor, reason = e.Actor, e.Reason
	}
	if actor == "" || reason == "" {
		t.Fatalf("invariant 1: %+v", e)
	}
}
