package intent

import (
	"errors"
	"testing"
)

// speedUps returns n speed-ups, each by the least allowed raise; the last fee is below 2^34.
func speedUps(n int) (all []Command) {
	var s State
	for range n {
		fee := s.LeastSpeedUp().Max(NewAmount(1))
		all = append(all, SpeedUp{fee, epoch})
		s = s.Evolve(SpeedUpRequested{fee, epoch})
	}
	return all
}

// A client can raise an intent's fee by at least a tenth at a time, and 64 times: each speed-up
// is an event that all requests about the intent and all turns of its lane read again. Repeating
// a fee adds nothing.
func TestSpeedUps(t *testing.T) {
	s, _ := run(t, State{}, Create{Request: asked(func(r *Request) { r.Gas.MaxFee = NewAmount(0) }), At: epoch})
	added := 0
	ask := func(fee uint64) (err error) {
		events, err := s.Decide(SpeedUp{NewAmount(fee), epoch})
		for _, e := range events {
			s = s.Evolve(e)
			added++
		}
		return err
	}
	for range 3 {
		if err := ask(1000); err != nil || added != 1 {
			t.Errorf("%d speed-ups, %v", added, err)
		}
	}
	for fee := range uint64(30_000) {
		if err := ask(fee); err != nil && !errors.Is(err, ErrSmallRaise) && !errors.Is(err, ErrSpeedUps) {
			t.Fatal(err)
		}
	}
	if added > 40 { // the logarithm of 30 to the base 1.1
		t.Errorf("%d events of one wei each", added)
	}
	for fee := uint64(1 << 20); fee < 1<<60; fee += fee / 9 {
		if err := ask(fee); err != nil && !errors.Is(err, ErrSpeedUps) {
			t.Fatal(err)
		}
	}
	if added != SpeedUpsMax || s.SpeedUps != SpeedUpsMax {
		t.Errorf("%d speed-ups, %d counted", added, s.SpeedUps)
	}
	if err := ask(1000); err != nil {
		t.Errorf("what it was asked for before: %v", err)
	}
}

func TestLeastSpeedUp(t *testing.T) {
	for floor, want := range map[uint64]uint64{0: 0, 1: 2, 9: 10, 10: 11, 11: 13, 19: 21, 20: 22, 100: 110, 101: 112} {
		if got := (State{Floor: NewAmount(floor)}).LeastSpeedUp(); got != NewAmount(want) {
			t.Errorf("above %d: %s, want %d", floor, got, want)
		}
	}
}
