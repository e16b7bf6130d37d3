package signer

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/holiman/uint256"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/eventlog"
)

var epoch = time.Unix(1_800_000_000, 0).UTC()

// limit is the number of consecutive failures that disables a signer in these tests.
const limit = 3

func register(pools ...string) Command { return Register{Pools: pools, Actor: "ada", At: epoch} }

func pause() Command  { return Pause{"ada", "moving", epoch} }
func drain() Command  { return Drain{"ada", "retiring", epoch} }
func finish() Command { return Finish{epoch} }
func resume() Command { return Resume{"ada", "done", epoch} }

func see(balance uint64) Command { return SeeBalance{chain.NewAmount(balance), epoch} }

func lack(balance, needed uint64) Command {
	return LackFunds{chain.NewAmount(balance), chain.NewAmount(needed), epoch}
}

func threshold(n uint64) Command { return SetThreshold{chain.NewAmount(n), "ada", "fees", epoch} }

func fail(report int, kind FailureKind) Command {
	return Fail{eventlog.ID{15: byte(report)}, kind, "why", limit, epoch}
}

func succeed() Command { return Succeed{epoch} }

// run decides commands, none of which may be refused, and returns the events' names.
func run(t *testing.T, s State, commands ...Command) (State, string) {
	t.Helper()
	var names []string
	for _, c := range commands {
		events, err := s.Decide(c)
		if err != nil {
			t.Fatalf("%+v: %v", c, err)
		}
		for _, e := range events {
			name, _, err := Codec().Encode(e)
			if err != nil {
				t.Fatal(err)
			}
			names = append(names, strings.TrimSuffix(strings.TrimPrefix(name, "signer."), ".v1"))
			s = s.Evolve(e)
		}
	}
	return s, strings.Join(names, " ")
}

func TestLife(t *testing.T) {
	for name, c := range map[string]struct {
		commands []Command
		facts    string
		status   Status
	}{
		"registered":                {nil, "", StatusServing},
		"registered again":          {[]Command{register("b", "a", "b")}, "", StatusServing},
		"in another pool":           {[]Command{register("c")}, "registered", StatusServing},
		"paused":                    {[]Command{pause(), pause()}, "paused", StatusPaused},
		"resumed":                   {[]Command{pause(), resume(), resume()}, "paused resumed", StatusServing},
		"draining":                  {[]Command{drain(), drain()}, "draining", StatusDraining},
		"drained":                   {[]Command{drain(), finish(), finish(), drain()}, "draining drained", StatusDrained},
		"finished, not draining":    {[]Command{finish()}, "", StatusServing},
		"paused, not drained":       {[]Command{drain(), pause(), finish()}, "draining paused", StatusPaused},
		"drained, resumed":          {[]Command{drain(), finish(), resume()}, "draining drained resumed", StatusServing},
		"registered while paused":   {[]Command{pause(), register("c")}, "paused registered", StatusPaused},
		"any balance":               {[]Command{see(0)}, "", StatusServing},
		"low":                       {[]Command{threshold(100), see(99), see(98)}, "threshold_set balance_low", StatusLow},
		"just enough":               {[]Command{threshold(100), see(100)}, "threshold_set", StatusServing},
		"not a tenth above":         {[]Command{threshold(100), see(99), see(109)}, "threshold_set balance_low", StatusLow},
		"a tenth above":             {[]Command{threshold(100), see(99), see(110), see(100)}, "threshold_set balance_low balance_restored", StatusServing},
		"learned":                   {[]Command{lack(50, 80)}, "threshold_learned balance_low", StatusLow},
		"learned twice":             {[]Command{lack(50, 80), lack(50, 80), lack(50, 70)}, "threshold_learned balance_low", StatusLow},
		"learned more":              {[]Command{lack(50, 80), lack(50, 90)}, "threshold_learned balance_low threshold_learned", StatusLow},
		"no lack":                   {[]Command{lack(80, 80)}, "", StatusServing},
		"lowered by hand":           {[]Command{lack(50, 80), threshold(40), see(44)}, "threshold_learned balance_low threshold_set balance_restored", StatusServing},
		"set to what it is":         {[]Command{threshold(0), threshold(4), threshold(4)}, "threshold_set", StatusServing},
		"a failure":                 {[]Command{fail(1, Rejected), fail(1, Rejected)}, "failed", StatusServing},
		"failures apart":            {[]Command{fail(1, Rejected), fail(2, NoSignature), succeed(), succeed(), fail(3, Rejected)}, "failed failed recovered failed", StatusServing},
		"failures in a row":         {[]Command{fail(1, Rejected), fail(2, NoSignature), fail(3, Rejected), fail(4, Rejected)}, "failed failed failed disabled", StatusDisabled},
		"a wrong signature":         {[]Command{fail(1, WrongSignature)}, "failed disabled", StatusDisabled},
		"success does not end it":   {[]Command{fail(1, WrongSignature), succeed()}, "failed disabled", StatusDisabled},
		"nor does a pause":          {[]Command{fail(1, WrongSignature), pause()}, "failed disabled paused", StatusDisabled},
		"an operator does":          {[]Command{fail(1, WrongSignature), resume(), fail(2, Rejected)}, "failed disabled resumed failed", StatusServing},
		"and ends the pause too":    {[]Command{pause(), fail(1, WrongSignature), resume()}, "paused failed disabled resumed", StatusServing},
		"but not what is low":       {[]Command{lack(50, 80), pause(), resume()}, "threshold_learned balance_low paused resumed", StatusLow},
		"a resumption keeps a row":  {[]Command{fail(1, Rejected), fail(2, Rejected), pause(), resume(), fail(3, Rejected)}, "failed failed paused resumed failed disabled", StatusDisabled},
		"low and draining, drained": {[]Command{lack(50, 80), drain(), finish()}, "threshold_learned balance_low draining drained", StatusDrained},
	} {
		begun, _ := run(t, State{}, register("a", "b"))
		s, facts := run(t, begun, c.commands...)
		if facts != c.facts || s.Status() != c.status {
			t.Errorf("%s: %s after %q, want %s after %q", name, s.Status(), facts, c.status, c.facts)
		}
	}
}

func TestWhatIsAllowed(t *testing.T) {
	for status, want := range map[Status]struct {
		commands     []Command
		takes, signs bool
	}{
		StatusServing:  {nil, true, true},
		StatusLow:      {[]Command{lack(1, 2)}, false, true},
		StatusDraining: {[]Command{drain()}, false, true},
		StatusDrained:  {[]Command{drain(), finish()}, false, false},
		StatusPaused:   {[]Command{pause()}, false, false},
		StatusDisabled: {[]Command{fail(1, WrongSignature)}, false, false},
	} {
		s, _ := run(t, State{}, append([]Command{register()}, want.commands...)...)
		if s.Status() != status || s.Takes() != want.takes || s.Signs() != want.signs {
			t.Errorf("%s: takes %t, signs %t; want %s, %t, %t", s.Status(), s.Takes(), s.Signs(), status, want.takes, want.signs)
		}
	}
	if (State{}).Takes() || (State{}).Signs() {
		t.Error("who was never registered signs")
	}
}

func TestRefusals(t *testing.T) {
	known, _ := run(t, State{}, register("a"))
	many := make([]string, PoolsMax+1)
	for i := range many {
		many[i] = strings.Repeat("p", i+1)
	}
	selectors := chain.Targets{{To: &chain.Address{1}, Selectors: make([]chain.Selector, SelectorsMax+1)}}
	for name, c := range map[string]struct {
		of      State
		command Command
		want    eventlog.Refusal
	}{
		"unknown":                 {State{}, pause(), ErrUnknown},
		"unknown balance":         {State{}, see(1), ErrUnknown},
		"unknown failure":         {State{}, fail(1, Rejected), ErrUnknown},
		"a name with a space":     {known, register("a b"), ErrInvalid},
		"no name":                 {known, register(""), ErrInvalid},
		"a long name":             {known, register(strings.Repeat("p", NameMax+1)), ErrInvalid},
		"too many pools":          {known, register(many...), ErrInvalid},
		"too many targets":        {known, Register{Targets: make(chain.Targets, TargetsMax+1), Actor: "ada"}, ErrInvalid},
		"too many selectors":      {known, Register{Targets: selectors, Actor: "ada"}, ErrInvalid},
		"selectors of a contract": {known, Register{Targets: chain.Targets{{Selectors: make([]chain.Selector, 1)}}, Actor: "ada"}, ErrInvalid},
		"nobody registers":        {State{}, Register{At: epoch}, ErrInvalid},
		"nobody pauses":           {known, Pause{"", "moving", epoch}, ErrInvalid},
		"pauses for nothing":      {known, Pause{"ada", "", epoch}, ErrInvalid},
		"a reason of two lines":   {known, Drain{"ada", "a\nb", epoch}, ErrInvalid},
		"a long reason":           {known, Resume{"ada", strings.Repeat("r", TextMax+1), epoch}, ErrInvalid},
		"a reason that is none":   {known, SetThreshold{chain.NewAmount(1), "ada", "\xff", epoch}, ErrInvalid},
	} {
		events, err := c.of.Decide(c.command)
		if !errors.Is(err, c.want) || len(events) > 0 {
			t.Errorf("%s: %v, %v", name, events, err)
		}
	}
}

// Settings at their bounds fit into an event.
func TestBoundsFit(t *testing.T) {
	c := Register{Actor: strings.Repeat("a", TextMax), At: epoch}
	for i := range PoolsMax {
		c.Pools = append(c.Pools, strings.Repeat(string(rune('a'+i)), NameMax))
	}
	for i := range TargetsMax {
		c.Targets = append(c.Targets, chain.Target{To: &chain.Address{byte(i)}, Selectors: make([]chain.Selector, SelectorsMax)})
	}
	events, err := State{}.Decide(c)
	if err != nil {
		t.Fatal(err)
	}
	if _, data, err := Codec().Encode(events[0]); err != nil || len(data) > eventlog.MaxEventBytes {
		t.Errorf("%d bytes, %v", len(data), err)
	}
}

func TestStream(t *testing.T) {
	s := Stream(42431, chain.Address{1})
	if on, address, err := ParseStream(s); err != nil || on != 42431 || address != (chain.Address{1}) {
		t.Errorf("%s: %d, %s, %v", s, on, address, err)
	}
	for _, bad := range []eventlog.Stream{"", "signer-", "signer-1", s + "0", "signer-01" + s[len("signer-42431"):], "lane" + s, eventlog.Stream(strings.ToUpper(string(s)))} {
		if _, _, err := ParseStream(bad); err == nil {
			t.Errorf("%q is a signer's", bad)
		}
	}
}

// With a threshold so high that a tenth more is out of reach, the highest balance ends StatusLow.
func TestThresholdOfEverything(t *testing.T) {
	most := chain.AmountOf(new(uint256.Int).SetAllOne())
	s, facts := run(t, State{}, register(), SetThreshold{most, "ada", "never", epoch}, see(1), SeeBalance{most, epoch})
	if facts != "registered threshold_set balance_low balance_restored" {
		t.Errorf("%s: %s", s.Status(), facts)
	}
}
