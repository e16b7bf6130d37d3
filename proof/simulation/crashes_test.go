package simulation

import (
	"slices"
	"testing"
)

// Of any twenty-four consecutive worlds, each relay point is armed first in some, and one in
// four has no crashes at points.
func TestPointsByTurn(t *testing.T) {
	const worlds = 24
	for _, first := range []uint64{0, 1, 2, 3, 4, 17, 1000, 1 << 40} {
		met, calm := map[string]int{}, 0
		for seed := first; seed < first+worlds; seed++ {
			p := ExpandRelay(seed, 1)
			if p.Crowd.Point == 0 {
				calm++
				continue
			}
			for _, point := range newCrashes(p).deck[:pointsFirst] {
				met[point]++
			}
		}
		for _, point := range relayPoints() {
			if met[point] < 2 {
				t.Errorf("from seed %d on, %d of %d worlds begin with %s", first, met[point], worlds, point)
			}
		}
		if calm != worlds/pointless {
			t.Errorf("from seed %d on, %d of %d worlds crash at no point", first, calm, worlds)
		}
	}
}

// A point stays armed until a replica crashes there. If an armed point was never passed, a
// passed one is armed as well. No replica crashes at a point that is not armed.
func TestArmed(t *testing.T) {
	c := newCrashes(Plan{Seed: 1})
	rare, usual := c.deck[0], c.deck[1]
	if c.pass(usual) || c.pass(usual) {
		t.Fatal("somebody crashes, and nothing is armed")
	}
	c.arm()
	if c.pass(rare) || c.pass(usual) {
		t.Error("somebody crashes who passes a point for the first time")
	}
	if !c.pass(usual) || c.pass(usual) {
		t.Error("who passes a point that is armed crashes, once")
	}
	c.arm()
	if !c.pass(rare) {
		t.Error("a point is armed no more, and nobody has crashed there")
	}
	c.disarm()
	for _, point := range c.deck {
		if c.pass(point) || c.pass(point) {
			t.Errorf("somebody crashes at %s, and nothing is armed any more", point)
		}
	}
}

// The deck contains every point.
func TestDeck(t *testing.T) {
	for _, p := range []Plan{Expand(7, 1), ExpandRelay(7, 1)} {
		deck := newCrashes(p).deck
		for _, point := range points(p.Relay.Signers > 0) {
			if !slices.Contains(deck, point) {
				t.Errorf("nobody ever crashes at %s", point)
			}
		}
	}
}
