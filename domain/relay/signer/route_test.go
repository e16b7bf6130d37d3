package signer

import (
	"errors"
	"testing"

	"pgregory.net/rapid"

	"github.com/tempo-watchtower/watchtower/domain/chain"
)

func TestServes(t *testing.T) {
	token, transfer := chain.Address{1}, chain.Selector{1, 2, 3, 4}
	s, _ := run(t, State{}, Register{Pools: []string{"a"}, Targets: chain.Targets{{To: &token, Selectors: []chain.Selector{transfer}}}, Actor: "ada"})
	free, _ := run(t, State{}, register("a"))
	call := chain.Call{To: &token, Input: transfer[:]}
	for name, c := range map[string]struct {
		of    State
		pool  string
		calls []chain.Call
		want  error
	}{
		"its pool":               {s, "a", []chain.Call{call}, nil},
		"itself":                 {s, "", []chain.Call{call, call}, nil},
		"another pool":           {s, "b", []chain.Call{call}, ErrPool},
		"another target":         {s, "a", []chain.Call{call, {To: &chain.Address{2}, Input: transfer[:]}}, ErrTarget},
		"a contract":             {s, "a", []chain.Call{{Input: transfer[:]}}, ErrTarget},
		"a contract, no list":    {free, "a", []chain.Call{{Input: transfer[:]}}, nil},
		"who is not registered":  {State{}, "", []chain.Call{call}, ErrUnknown},
		"any target, no list":    {free, "", []chain.Call{{To: &chain.Address{2}}}, nil},
		"another pool, no calls": {free, "b", nil, ErrPool},
	} {
		if err := c.of.Serves(c.pool, c.calls); !errors.Is(err, c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestRoom(t *testing.T) {
	serving, _ := run(t, State{}, register())
	for name, c := range map[string]struct {
		commands []Command
		load     Load
		want     int
	}{
		"empty":                   {nil, Load{Capacity: 100}, 100},
		"some":                    {nil, Load{InFlight: 30, Capacity: 100}, 70},
		"full":                    {nil, Load{InFlight: 100, Capacity: 100}, 0},
		"more than full":          {nil, Load{InFlight: 101, Capacity: 100}, 0},
		"none allowed":            {nil, Load{}, 0},
		"stalled":                 {nil, Load{Capacity: 100, Stalled: true}, 0},
		"barred":                  {nil, Load{Capacity: 100, Barred: true}, 0},
		"failed once":             {[]Command{fail(1, Rejected)}, Load{InFlight: 30, Capacity: 100}, 20},
		"failed twice":            {[]Command{fail(1, Rejected), fail(2, Rejected)}, Load{Capacity: 100}, 25},
		"one can always be tried": {[]Command{fail(1, Rejected), fail(2, Rejected)}, Load{Capacity: 2}, 1},
		"but none of none":        {[]Command{fail(1, Rejected)}, Load{}, 0},
		"low":                     {[]Command{lack(1, 2)}, Load{Capacity: 100}, 0},
		"paused":                  {[]Command{pause()}, Load{Capacity: 100}, 0},
		"draining":                {[]Command{drain()}, Load{Capacity: 100}, 0},
		"disabled":                {[]Command{fail(1, WrongSignature)}, Load{Capacity: 100}, 0},
	} {
		s, _ := run(t, serving, c.commands...)
		if got := s.Room(c.load); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
	if got := (State{}).Room(Load{Capacity: 100}); got != 0 {
		t.Errorf("who was never registered has room for %d", got)
	}
}

func TestClaim(t *testing.T) {
	for name, c := range map[string]struct {
		waiting int
		mine    Share
		others  []Share
		want    int
	}{
		"alone":                 {10, Share{0, 100}, nil, 10},
		"alone, little room":    {10, Share{97, 3}, nil, 3},
		"nothing waits":         {0, Share{0, 100}, nil, 0},
		"half each":             {10, Share{0, 100}, []Share{{0, 100}}, 5},
		"both claim the odd":    {11, Share{0, 100}, []Share{{0, 100}}, 6},
		"the other has less":    {10, Share{20, 80}, []Share{{5, 95}}, 0},
		"the other has more":    {10, Share{5, 95}, []Share{{20, 80}}, 10},
		"levelled":              {10, Share{4, 96}, []Share{{6, 94}}, 6},
		"the other has no room": {10, Share{50, 50}, []Share{{0, 0}}, 10},
		"all are full":          {10, Share{50, 0}, []Share{{50, 0}}, 0},
		"more than fits":        {1000, Share{50, 50}, []Share{{20, 80}}, 50},
		"at most so many":       {5000, Share{0, 4000}, nil, ClaimMax},
	} {
		if got := Claim(c.waiting, c.mine, c.others); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
}

// If every lane claims its share, all intents that fit are claimed, with hardly any overlap. A
// busier lane never claims more than a less busy one with as much room.
func TestClaimsTogether(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		all := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) Share {
			return Share{rapid.IntRange(0, 60).Draw(t, "in flight"), rapid.IntRange(0, 60).Draw(t, "room")}
		}), 1, 8).Draw(t, "lanes")
		waiting := rapid.IntRange(0, 400).Draw(t, "waiting")
		room, sum := 0, 0
		claims := make([]int, len(all))
		for i, mine := range all {
			others := append(append([]Share{}, all[:i]...), all[i+1:]...)
			claims[i] = Claim(waiting, mine, others)
			room, sum = room+mine.Room, sum+claims[i]
			if claims[i] < 0 || claims[i] > mine.Room {
				t.Fatalf("%+v of %+v claims %d", mine, all, claims[i])
			}
		}
		if fits := min(waiting, room); sum < fits || sum >= fits+len(all) {
			t.Fatalf("%v claim %v, of %d", all, claims, waiting)
		}
		for i, a := range all {
			for j, b := range all {
				if a.InFlight <= b.InFlight && a.Room >= b.Room && claims[i] < claims[j] {
					t.Fatalf("%+v claims %d, %+v %d", a, claims[i], b, claims[j])
				}
			}
		}
	})
}
