package signer

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/tempo-watchtower/watchtower/domain/chain"
)

func (s State) register(c Register) ([]Event, error) {
	pools := slices.Compact(slices.Sorted(slices.Values(c.Pools)))
	if len(pools) > PoolsMax {
		return nil, ErrInvalid.Because("it is in %d pools; at most %d are allowed", len(pools), PoolsMax)
	}
	for _, name := range pools {
		if !isName(name) {
			return nil, ErrInvalid.Because("a pool is 1 to %d of A-Z, a-z, 0-9 and ._:-", NameMax)
		}
	}
	if len(c.Targets) > TargetsMax {
		return nil, ErrInvalid.Because("%d targets are listed; at most %d are allowed", len(c.Targets), TargetsMax)
	}
	for _, t := range c.Targets {
		if len(t.Selectors) > SelectorsMax || t.To == nil && len(t.Selectors) > 0 {
			return nil, ErrInvalid.Because("a target may have at most %d selectors, and the creation of a contract none", SelectorsMax)
		}
	}
	if err := checkActor(c.Actor); err != nil {
		return nil, err
	}
	if !isText(c.Reason) {
		return nil, ErrInvalid.Because("a reason has at most %d bytes of printable text", TextMax)
	}
	if s.Known && slices.Equal(s.Pools, pools) && sameTargets(s.Targets, c.Targets) {
		return nil, nil
	}
	return []Event{Registered{pools, c.Targets, c.Actor, c.Reason, c.At}}, nil
}

// sameTargets reports whether two lists are equal; nil equals an empty list.
func sameTargets(a, b chain.Targets) bool {
	return slices.EqualFunc(a, b, func(x, y chain.Target) bool {
		return reflect.DeepEqual(x.To, y.To) && slices.Equal(x.Selectors, y.Selectors)
	})
}

func (s State) pause(c Pause) ([]Event, error) {
	if err := checkWord(c.Actor, c.Reason); err != nil || s.Stance.Status == StatusPaused {
		return nil, err
	}
	return []Event{Paused(c)}, nil
}

func (s State) drain(c Drain) ([]Event, error) {
	if err := checkWord(c.Actor, c.Reason); err != nil || s.Stance.Status == StatusDraining || s.Stance.Status == StatusDrained {
		return nil, err
	}
	return []Event{Draining(c)}, nil
}

func (s State) finish(c Finish) ([]Event, error) {
	if s.Stance.Status != StatusDraining {
		return nil, nil
	}
	return []Event{Drained(c)}, nil
}

func (s State) resume(c Resume) ([]Event, error) {
	if err := checkWord(c.Actor, c.Reason); err != nil || s.Stance.Status == StatusServing && !s.Disabled {
		return nil, err
	}
	return []Event{Resumed(c)}, nil
}

func (s State) setThreshold(c SetThreshold) ([]Event, error) {
	if err := checkWord(c.Actor, c.Reason); err != nil || c.Threshold == s.Threshold {
		return nil, err
	}
	return []Event{ThresholdSet(c)}, nil
}

// restoredPercent is the margin above the threshold at which a low balance counts as restored.
const restoredPercent = 10

// enough returns the balance at which a signer with a low balance serves again.
func enough(threshold chain.Amount) chain.Amount {
	n := threshold.Int()
	n.Div(n, n.Clone().SetUint64(100/restoredPercent))
	return threshold.Plus(chain.Amount(*n))
}

func (s State) seeBalance(c SeeBalance) ([]Event, error) {
	switch {
	case !s.Low && c.Balance.Cmp(s.Threshold) < 0:
		return []Event{BalanceLow{c.Balance, s.Threshold, c.At}}, nil
	case s.Low && c.Balance.Cmp(enough(s.Threshold)) >= 0:
		return []Event{BalanceRestored{c.Balance, s.Threshold, c.At}}, nil
	}
	return nil, nil
}

func (s State) lackFunds(c LackFunds) ([]Event, error) {
	if c.Balance.Cmp(c.Needed) >= 0 {
		return nil, nil
	}
	var events []Event
	if c.Needed.Cmp(s.Threshold) > 0 {
		events = append(events, ThresholdLearned{c.Needed, s.Threshold, c.At})
		s.Threshold = c.Needed
	}
	if !s.Low && c.Balance.Cmp(s.Threshold) < 0 {
		events = append(events, BalanceLow{c.Balance, s.Threshold, c.At})
	}
	return events, nil
}

func (s State) fail(c Fail) ([]Event, error) {
	if c.Report.IsZero() || c.Limit < 1 || c.Limit > FailuresMax || !slices.Contains(FailureKinds(), c.Kind) {
		panic(fmt.Sprintf("signer: %+v is not a failure", c))
	}
	if s.Disabled || slices.ContainsFunc(s.Failures, func(f Failure) bool { return f.Report == c.Report }) {
		return nil, nil
	}
	n := len(s.Failures) + 1
	events := []Event{Failed{c.Report, c.Kind, cut(c.Detail), n, c.At}}
	if n >= c.Limit || c.Kind == WrongSignature {
		events = append(events, Disabled{c.Kind, n, c.Limit, c.At})
	}
	return events, nil
}

func (s State) succeed(c Succeed) ([]Event, error) {
	if s.Disabled || len(s.Failures) == 0 {
		return nil, nil
	}
	return []Event{Recovered{len(s.Failures), c.At}}, nil
}

func checkActor(actor string) error {
	if actor == "" || !isText(actor) {
		return ErrInvalid.Because("an actor has 1 to %d bytes of printable text", TextMax)
	}
	return nil
}

// checkWord refuses an operator's command without an actor or a reason.
func checkWord(actor, reason string) error {
	if reason == "" || !isText(reason) {
		return ErrInvalid.Because("a reason has 1 to %d bytes of printable text", TextMax)
	}
	return checkActor(actor)
}

// isName reports whether s has 1 to NameMax characters, each safe in keys, URLs and logs.
func isName(s string) bool {
	const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._:-"
	return s != "" && len(s) <= NameMax && strings.Trim(s, letters) == ""
}

// isText reports whether s is short enough, valid UTF-8 and printable.
func isText(s string) bool {
	return len(s) <= TextMax && utf8.ValidString(s) && strings.IndexFunc(s, func(r rune) bool { return !unicode.IsPrint(r) }) < 0
}

// cut shortens a text to TextMax bytes.
func cut(s string) string { return strings.ToValidUTF8(s[:min(len(s), TextMax)], "") }
