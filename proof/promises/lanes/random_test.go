package lanes_test

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/relay/lane"
	"github.com/tempo-watchtower/watchtower/eventlog"
	"github.com/tempo-watchtower/watchtower/proof/promises/lanes"
)

const (
	open    = "open"
	advance = "advance"
	reserve = "reserve"
	release = "release"
	fill    = "fill"
	attempt = "attempt"
	land    = "land"
	unland  = "unland"
	reclaim = "reclaim"
	lose    = "lose"
)

// wishes lists the commands, repeated by their frequency.
var wishes = []string{
	attempt, attempt, attempt, attempt, attempt, attempt, land, land, land, land, reserve, reserve, reserve,
	unland, unland, fill, fill, release, release, lose, reclaim, advance, open,
}

// drawWish draws a command of the holder, or of the one before it.
func drawWish(t *rapid.T, s lane.State) lane.Command {
	token := max(s.Token, 1) - lane.Token(rapid.SampledFrom([]int{0, 0, 0, 0, 1}).Draw(t, "older"))
	slot := lane.Slot{Nonce: rapid.Uint64Range(0, s.Next+1).Draw(t, "any nonce")}
	if all := slices.Collect(s.Slots()); len(all) > 0 && rapid.SampledFrom([]bool{true, true, true, false}).Draw(t, "open") {
		slot = rapid.SampledFrom(all).Draw(t, "slot")
	}
	n := slot.Nonce
	in := block(rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "block"))
	made := signed(n, 0, rapid.SampledFrom([]int{1, 1, 1, 1, 2, 2, 3}).Draw(t, "hash")).(lane.Attempted)
	intents := []chain.IntentID{who(rapid.IntRange(1, 9).Draw(t, "intent")), who(rapid.IntRange(1, 9).Draw(t, "intent"))}
	switch rapid.SampledFrom(wishes).Draw(t, "wish") {
	case open:
		return lane.Open{Holder: rapid.SampledFrom([]string{"one", "two"}).Draw(t, "holder"), Token: s.Token + 1, At: epoch}
	case advance:
		return lane.Advance{Token: token, Witness: told(s.Next + rapid.Uint64Range(0, 4).Draw(t, "ahead")), At: epoch}
	case reserve:
		return lane.Reserve{Token: token, Intents: intents, Budget: rapid.IntRange(0, 8).Draw(t, "budget"), At: epoch}
	case release:
		return lane.Release{Token: token, Intents: intents, Reason: "dropped", At: epoch}
	case fill:
		return lane.Fill{Token: token, Nonces: []uint64{n}, At: epoch}
	case attempt:
		fee := chain.LegacyFee(chain.PriceOf(1000))
		if before := len(slot.Attempts); before > 0 {
			fee, _ = slot.Attempts[before-1].Fee.Replacement()
		}
		sign := lane.Signed{Nonce: n, Intent: slot.Intent, Hash: made.Hash, Fee: fee}
		if rapid.SampledFrom([]bool{true, false, false, false, false}).Draw(t, "no-op") {
			sign.Intent = chain.IntentID{}
		}
		return lane.Attempt{Token: token, Signed: []lane.Signed{sign}, At: epoch}
	case land:
		return lane.Land{Token: token, Landings: []lane.Landing{{Nonce: n, Hash: made.Hash, Block: in, Status: 1, Final: rapid.SampledFrom([]bool{false, false, true}).Draw(t, "final")}}, At: epoch}
	case unland:
		return lane.Unland{Token: token, Was: in, Now: block("d"), At: epoch}
	case reclaim:
		return lane.Reclaim{Token: token, Count: rapid.Uint64Range(1, 3).Draw(t, "count"), Witness: told(rapid.Uint64Range(0, s.Next).Draw(t, "chain")), At: epoch}
	}
	loss := lane.Loss{Nonce: n}
	for _, m := range slot.Attempts {
		loss.Absent = append(loss.Absent, m.Hash)
	}
	return lane.Lose{Token: token, Losses: []lane.Loss{loss}, Witness: told(n + 1), At: epoch}
}

// length is the number of commands in each history.
const length = 80

// For any commands by any holders, a lane's events break no promise. Package lane and the judge,
// which share no rule, both confirm it.
func TestWhatLanesDecide(t *testing.T) {
	facts := map[string]int{}
	rapid.Check(t, func(t *rapid.T) {
		var s lane.State
		judge := lanes.New(lanes.Settings{})
		version := eventlog.Version(0)
		do := func(c lane.Command) {
			events, err := s.Decide(c)
			if err != nil {
				return
			}
			for _, e := range events {
				version++
				name, data, err := codec.Encode(e)
				if err != nil {
					t.Fatal(err)
				}
				facts[name]++
				r := eventlog.Recorded{Event: eventlog.Event{Name: name, Data: data}, Stream: stream, Version: version, Position: eventlog.Position(version), At: epoch}
				if found := judge.Event(r); len(found) > 0 {
					t.Fatalf("%+v: %v", c, found)
				}
				s = s.Evolve(e)
			}
		}
		do(lane.Open{Holder: "one", Token: 1, At: epoch})
		do(lane.Advance{Token: 1, Witness: told(5), At: epoch})
		for range length {
			do(drawWish(t, s))
		}
		if found := judge.Finish(epoch); len(found) > 0 {
			t.Fatal(found)
		}
	})
	for _, name := range codec.Names() {
		if facts[name] == 0 {
			t.Errorf("no history had a %s", name)
		}
	}
}
