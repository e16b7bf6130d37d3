package signer

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/eventlog"
)

// wishes lists the commands, repeated by their frequency.
var wishes = strings.Fields("fail fail fail fail succeed see see see see lack lack threshold pause drain finish finish " +
	"resume resume register")

func drawCommand(t *rapid.T) Command {
	balance := rapid.Uint64Range(0, 130).Draw(t, "balance")
	who := rapid.SampledFrom([]string{"ada", "ada", "bob", ""}).Draw(t, "actor")
	switch rapid.SampledFrom(wishes).Draw(t, "command") {
	case "register":
		return Register{rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b"}), 0, 2).Draw(t, "pools"), nil, who, "", epoch}
	case "pause":
		return Pause{who, "moving", epoch}
	case "drain":
		return Drain{who, "retiring", epoch}
	case "finish":
		return finish()
	case "resume":
		return Resume{who, rapid.SampledFrom([]string{"done", "done", ""}).Draw(t, "reason"), epoch}
	case "threshold":
		return SetThreshold{chain.NewAmount(rapid.Uint64Range(0, 80).Draw(t, "threshold")), who, "fees", epoch}
	case "see":
		return see(balance)
	case "lack":
		return lack(balance, rapid.Uint64Range(0, 100).Draw(t, "needed"))
	case "succeed":
		return succeed()
	}
	kind := rapid.SampledFrom([]FailureKind{NoSignature, Rejected, NoSignature, Rejected, WrongSignature}).Draw(t, "kind")
	return Fail{eventlog.ID{byte(rapid.IntRange(1, 60).Draw(t, "report"))}, kind, "why", rapid.IntRange(1, 4).Draw(t, "limit"), epoch}
}

// tale is a model of a signer's events, with checks independent of [State].
type tale struct {
	known     bool
	stance    string
	low       bool
	threshold uint64
	failures  map[eventlog.ID]bool
	disabled  bool
	due       *Failed // the failure that Disabled must follow
}

// tell checks an event against the numbered invariants of the package comment.
func (l *tale) tell(e Event, limit int) error {
	if _, is := e.(Registered); !l.known && !is {
		return fmt.Errorf("invariant 1: %T of nobody", e)
	}
	if _, is := e.(Disabled); l.due != nil && !is {
		return fmt.Errorf("invariant 5: %T, and it should have been disabled", e)
	}
	switch e := e.(type) {
	case Registered:
		if l.known = true; e.Actor == "" {
			return fmt.Errorf("nobody registers")
		}
	case Paused:
		l.stance = "paused"
		return spoken(e.Actor, e.Reason)
	case Draining:
		l.stance = "draining"
		return spoken(e.Actor, e.Reason)
	case Drained:
		if l.stance != "draining" {
			return fmt.Errorf("invariant 2: drained while %q", l.stance)
		}
		l.stance = "drained"
	case Resumed:
		l.stance = ""
		if l.disabled {
			l.disabled, l.failures = false, map[eventlog.ID]bool{}
		}
		return spoken(e.Actor, e.Reason)
	case ThresholdSet:
		l.threshold = e.Threshold.Int().Uint64()
		return spoken(e.Actor, e.Reason)
	case ThresholdLearned:
		if n := e.Threshold.Int().Uint64(); n <= l.threshold || e.Was != chain.NewAmount(l.threshold) {
			return fmt.Errorf("invariant 4: %d is learned after %d", n, l.threshold)
		}
		l.threshold = e.Threshold.Int().Uint64()
	case BalanceLow:
		if l.low || e.Balance.Int().Uint64() >= l.threshold {
			return fmt.Errorf("invariant 3: %s is low, %d is enough", e.Balance, l.threshold)
		}
		l.low = true
	case BalanceRestored:
		if !l.low || e.Balance.Int().Uint64() < l.threshold+l.threshold/10 {
			return fmt.Errorf("invariant 3: %s is enough, %d is low", e.Balance, l.threshold)
		}
		l.low = false
	default:
		return l.outcome(e, limit)
	}
	return nil
}

func spoken(actor, reason string) error {
	if actor == "" || reason == "" {
		return fmt.Errorf("invariant 2: %q says %q", actor, reason)
	}
	return nil
}

func (l *tale) outcome(e Event, limit int) error {
	if l.disabled {
		return fmt.Errorf("invariant 5: %T while it is disabled", e)
	}
	switch e := e.(type) {
	case Failed:
		if l.failures[e.Report] || e.Number != len(l.failures)+1 {
			return fmt.Errorf("invariant 5: failure %d after %d", e.Number, len(l.failures))
		}
		l.failures[e.Report] = true
		if e.Number >= limit || e.Kind == WrongSignature {
			l.due = &e
		}
	case Recovered:
		if e.Failures != len(l.failures) || e.Failures == 0 {
			return fmt.Errorf("it recovers from %d failures, there were %d", e.Failures, len(l.failures))
		}
		l.failures = map[eventlog.ID]bool{}
	case Disabled:
		if l.due == nil || e.Failures != l.due.Number || e.Kind != l.due.Kind {
			return fmt.Errorf("invariant 5: it is disabled for nothing")
		}
		l.disabled, l.due = true, nil
	}
	return nil
}

// agrees compares a state with the model.
func (l *tale) agrees(s State) error {
	stance := string(s.Stance.Status)
	if s.Stance.Status == StatusServing {
		stance = ""
	}
	if s.Known != l.known || stance != l.stance || s.Low != l.low || s.Threshold != chain.NewAmount(l.threshold) || s.Disabled != l.disabled || len(s.Failures) != len(l.failures) {
		return fmt.Errorf("%+v, should be %+v", s, l)
	}
	if want := l.known && l.stance == "" && !l.low && !l.disabled; s.Takes() != want {
		return fmt.Errorf("%+v takes intents: %t", s, s.Takes())
	}
	if want := l.known && (l.stance == "" || l.stance == "draining") && !l.disabled; s.Signs() != want {
		return fmt.Errorf("%+v signs: %t", s, s.Signs())
	}
	if len(s.Failures) > FailuresMax || s.Known != slices.Contains(Statuses(), s.Status()) {
		return fmt.Errorf("invariant 6: %+v", s)
	}
	return nil
}

// Every sequence of commands keeps the numbered invariants of the package comment, and no state
// changes when later states are derived from it.
func TestInvariants(t *testing.T) {
	facts, codec := map[string]int{}, Codec()
	rapid.Check(t, func(t *rapid.T) {
		var s State
		l := &tale{failures: map[eventlog.ID]bool{}}
		for range 80 {
			c := drawCommand(t)
			events, err := s.Decide(c)
			if err != nil {
				if !errors.As(err, new(eventlog.Refusal)) || len(events) > 0 {
					t.Fatalf("%T: %v with %v", c, err, events)
				}
				continue
			}
			limit := FailuresMax
			if f, is := c.(Fail); is {
				limit = f.Limit
			}
			before, written := s, fmt.Sprintf("%+v", s)
			for _, e := range events {
				s = s.Evolve(kept(t, codec, e))
				facts[fmt.Sprintf("%T", e)]++
				if err := l.tell(e, limit); err != nil {
					t.Fatalf("%+v: %v", c, err)
				}
			}
			if fmt.Sprintf("%+v", before) != written {
				t.Fatal("a state was changed by one that grew out of it")
			}
			if err := l.agrees(s); err != nil {
				t.Fatalf("%+v: %v", c, err)
			}
			if again, err := s.Decide(c); err != nil || len(again) > 0 {
				t.Fatalf("invariant 7: deciding %+v twice added %v, %v", c, again, err)
			}
		}
	})
	for _, e := range samples() {
		if name := fmt.Sprintf("%T", e); facts[name] == 0 {
			t.Errorf("no sequence led to a %s: they are not any", name)
		}
	}
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
