package lane

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/eventlog"
)

var epoch = time.Unix(1_800_000_000, 0).UTC()

func intent(n int) chain.IntentID { return chain.IntentID{15: byte(n)} }

func intents(numbers ...int) []chain.IntentID {
	var ids []chain.IntentID
	for _, n := range numbers {
		ids = append(ids, intent(n))
	}
	return ids
}

// hashOf is the hash of the nth attempt at a nonce.
func hashOf(nonce uint64, n int) chain.Hash {
	return chain.Keccak(fmt.Appendf(nil, "%d at nonce %d", n, nonce))
}

// block returns a block of one of two branches.
func block(number uint64, branch string) chain.Block {
	return chain.Block{Number: number, Hash: chain.Keccak(fmt.Appendf(nil, "block %d %s", number, branch)), Time: 1_800_000_000 + number}
}

// told returns a witness by two of three endpoints.
func told(nonce uint64) Witness {
	return Witness{Nonce: nonce, Block: block(100, "a"), Final: true, Endpoints: []string{"one", "two"}, Needed: 2, Asked: 3}
}

func open(token Token) Command { return Open{fmt.Sprintf("holder %d", token), token, epoch} }

func reserve(numbers ...int) Command { return Reserve{1, intents(numbers...), 100, epoch} }

// sign is the nth attempt at a nonce, with the least fee that replaces the attempt before.
func sign(nonce uint64, who chain.IntentID, n int) Command {
	fee := chain.LegacyFee(chain.PriceOf(1000))
	for range n - 1 {
		fee, _ = fee.Replacement()
	}
	return Attempt{1, []Signed{{Nonce: nonce, Intent: who, Hash: hashOf(nonce, n), Fee: fee}}, epoch}
}

// offers is the nth attempt at a nonce, at a price, with some earlier attempts undelivered.
func offers(nonce uint64, who chain.IntentID, n int, price uint64, unsent ...int) Command {
	s := Signed{Nonce: nonce, Intent: who, Hash: hashOf(nonce, n), Fee: chain.LegacyFee(chain.PriceOf(price))}
	for _, other := range unsent {
		s.Unsent = append(s.Unsent, hashOf(nonce, other))
	}
	return Attempt{1, []Signed{s}, epoch}
}

func land(nonce uint64, n int, in chain.Block, final bool) Command {
	return Land{1, []Landing{{nonce, hashOf(nonce, n), in, 1, final}}, epoch}
}

// lose reports the nonce as used, after looking for the given number of attempts.
func lose(nonce uint64, attempts int) Command {
	l := Loss{Nonce: nonce}
	for n := range attempts {
		l.Absent = append(l.Absent, hashOf(nonce, n+1))
	}
	return Lose{1, []Loss{l}, told(nonce + 1), epoch}
}

// run decides and applies commands, none of which may be refused.
func run(t *testing.T, s State, commands ...Command) State {
	t.Helper()
	for _, c := range commands {
		events, err := s.Decide(c)
		if err != nil {
			t.Fatalf("%+v: %v", c, err)
		}
		for _, e := range events {
			s = s.Evolve(e)
		}
	}
	return s
}

// begun returns a lane whose first nonce is 10.
func begun(t *testing.T, commands ...Command) State {
	t.Helper()
	return run(t, run(t, State{}, open(1), Advance{1, told(10), epoch}), commands...)
}

// shape describes a state in short: each open nonce with its holder and attempts.
func shape(s State) string {
	text := ""
	for slot := range s.Slots() {
		text += fmt.Sprintf("%d", slot.Nonce)
		switch {
		case slot.Filled:
			text += "=no-op"
		case !slot.Intent.IsZero():
			text += fmt.Sprintf("=%d", slot.Intent[15])
		}
		for range slot.Attempts {
			text += "*"
		}
		if slot.Landed != nil {
			text += fmt.Sprintf("@%d", slot.Landed.Block.Number)
		}
		text += " "
	}
	return text + fmt.Sprintf("next %d", s.Next)
}

func TestLife(t *testing.T) {
	a, b, c := block(7, "a"), block(7, "b"), block(8, "b")
	for _, x := range []struct {
		name     string
		commands []Command
		want     string
	}{
		{"reserved in order", []Command{reserve(1, 2, 3)}, "10=1 11=2 12=3 next 13"},
		{"who holds one keeps it", []Command{reserve(1, 2), reserve(3, 2, 1)}, "10=1 11=2 12=3 next 13"},
		{"asked for twice at once", []Command{reserve(1, 1, 2)}, "10=1 11=2 next 12"},
		{"as many as there is room for", []Command{Reserve{1, intents(1, 2, 3), 2, epoch}}, "10=1 11=2 next 12"},
		{"and no more", []Command{reserve(1, 2), Reserve{1, intents(3), 2, epoch}}, "10=1 11=2 next 12"},
		{"what is free is no burden", []Command{reserve(1, 2), Release{1, intents(1), "dropped", epoch}, Reserve{1, intents(3), 2, epoch}}, "10=3 11=2 next 12"},
		{"what has landed is no burden", []Command{reserve(1, 2), sign(10, intent(1), 1), land(10, 1, a, false), Reserve{1, intents(3, 4), 2, epoch}}, "10=1*@7 11=2 12=3 next 13"},
		{"and is one again when its block left", []Command{reserve(1, 2), sign(10, intent(1), 1), land(10, 1, a, false), Unland{1, a, b, epoch}, Reserve{1, intents(3, 4), 2, epoch}}, "10=1* 11=2 next 12"},
		{"the lowest is issued first", []Command{reserve(1, 2, 3), Release{1, intents(3, 1), "dropped", epoch}, reserve(4, 5, 6)}, "10=4 11=2 12=5 13=6 next 14"},
		{"released twice", []Command{reserve(1), Release{1, intents(1, 1), "dropped", epoch}, Release{1, intents(1), "dropped", epoch}}, "10 next 11"},
		{"who gave it back gets another", []Command{reserve(1, 2), Release{1, intents(1), "dropped", epoch}, reserve(3, 1)}, "10=3 11=2 12=1 next 13"},
		{"signed", []Command{reserve(1), sign(10, intent(1), 1)}, "10=1* next 11"},
		{"bumped", []Command{reserve(1), sign(10, intent(1), 1), sign(10, intent(1), 2)}, "10=1** next 11"},
		{"canceled by a no-op", []Command{reserve(1), sign(10, intent(1), 1), sign(10, chain.IntentID{}, 2)}, "10=1** next 11"},
		{"a hole is filled", []Command{reserve(1, 2), sign(11, intent(2), 1), Fill{1, []uint64{10}, epoch}}, "10=no-op 11=2* next 12"},
		{"and the intent gets another", []Command{reserve(1, 2), sign(11, intent(2), 1), Fill{1, []uint64{10}, epoch}, reserve(1)}, "10=no-op 11=2* 12=1 next 13"},
		{"filled and signed", []Command{reserve(1, 2), sign(11, intent(2), 1), Fill{1, []uint64{10}, epoch}, sign(10, chain.IntentID{}, 1)}, "10=no-op* 11=2* next 12"},
		{"landed", []Command{reserve(1), sign(10, intent(1), 1), land(10, 1, a, false)}, "10=1*@7 next 11"},
		{"landed for good", []Command{reserve(1), sign(10, intent(1), 1), land(10, 1, a, false), land(10, 1, a, true)}, "next 11"},
		{"landed for good at once", []Command{reserve(1), sign(10, intent(1), 1), land(10, 1, a, true)}, "next 11"},
		{"its block left", []Command{reserve(1), sign(10, intent(1), 1), land(10, 1, a, false), Unland{1, a, b, epoch}}, "10=1* next 11"},
		{"another block left", []Command{reserve(1), sign(10, intent(1), 1), land(10, 1, a, false), Unland{1, c, a, epoch}}, "10=1*@7 next 11"},
		{"an earlier attempt landed", []Command{reserve(1), sign(10, intent(1), 1), sign(10, intent(1), 2), land(10, 1, a, true)}, "next 11"},
		{"another attempt landed after a reorg", []Command{reserve(1), sign(10, intent(1), 1), sign(10, intent(1), 2), land(10, 2, a, false), land(10, 1, c, false)}, "10=1**@8 next 11"},
		{"lost", []Command{reserve(1), sign(10, intent(1), 1), sign(10, intent(1), 2), lose(10, 2)}, "next 11"},
		{"lost before it was signed", []Command{reserve(1), lose(10, 0)}, "next 11"},
		{"late news", []Command{reserve(1), sign(10, intent(1), 1), land(10, 1, a, true), land(10, 1, c, false), lose(10, 0), Unland{1, a, b, epoch}}, "next 11"},
		{"the chain is ahead", []Command{reserve(1), Advance{1, told(14), epoch}, reserve(2)}, "10=1 14=2 next 15"},
		{"the chain is behind", []Command{reserve(1), Advance{1, told(3), epoch}, reserve(2)}, "10=1 11=2 next 12"},
		{"the jump was wrong", []Command{Advance{1, told(14), epoch}, Reclaim{1, 9, told(11), epoch}, reserve(1, 2, 3, 4)}, "11=1 12=2 13=3 14=4 next 15"},
		{"not more than wished", []Command{Advance{1, told(14), epoch}, Reclaim{1, 2, told(11), epoch}}, "11 12 next 14"},
		{"the beginning was wrong", []Command{Reclaim{1, 100, told(8), epoch}}, "8 9 next 10"},
		{"what was handed out is not reclaimed", []Command{reserve(1), Reclaim{1, 9, told(10), epoch}}, "10=1 next 11"},
		{"the final chain has passed the jump", []Command{Advance{1, told(14), epoch}, reserve(1), sign(14, intent(1), 1), land(14, 1, a, true), Reclaim{1, 9, told(11), epoch}}, "next 15"},
	} {
		if got := shape(begun(t, x.commands...)); got != x.want {
			t.Errorf("%s: %s, want %s", x.name, got, x.want)
		}
	}
}

func TestRefused(t *testing.T) {
	a := block(7, "a")
	weak, young := told(14), told(11)
	weak.Endpoints = []string{"one", "one"}
	young.Final = false
	signed := []Command{reserve(1, 2), sign(10, intent(1), 1)}
	landed := append(signed, land(10, 1, a, false))
	high := told(1<<64 - 2)
	for _, x := range []struct {
		name   string
		before []Command
		c      Command
		want   eventlog.Refusal
	}{
		{"an older token", []Command{open(2)}, reserve(1), ErrFenced},
		{"a newer token", nil, Reserve{2, intents(1), 1, epoch}, ErrFenced},
		{"opened with the token of another", nil, Open{"another", 1, epoch}, ErrFenced},
		{"opened with an older token", []Command{open(2)}, open(1), ErrFenced},
		{"opened with a token too new", nil, open(3), ErrFenced},
		{"ahead by one witness, shown twice", nil, Advance{1, weak, epoch}, ErrWitness},
		{"back by one witness", []Command{Advance{1, told(20), epoch}}, Reclaim{1, 1, weak, epoch}, ErrWitness},
		{"released after it was signed", signed, Release{1, intents(2, 1), "dropped", epoch}, ErrAttempted},
		{"filled after it was signed", signed, Fill{1, []uint64{10}, epoch}, ErrAttempted},
		{"filled with nothing above it", signed, Fill{1, []uint64{11}, epoch}, ErrNoHole},
		{"filled before it is handed out", signed, Fill{1, []uint64{12}, epoch}, ErrNotOpen},
		{"signed before it is handed out", signed, sign(12, intent(3), 1), ErrNotOpen},
		{"signed after it was closed", append(signed, land(10, 1, a, true)), sign(10, intent(1), 2), ErrNotOpen},
		{"signed for another intent", signed, sign(11, intent(1), 1), ErrIntent},
		{"a no-op that was not chosen", signed, sign(11, chain.IntentID{}, 1), ErrIntent},
		{"signed for a free nonce", append(signed, Release{1, intents(2), "dropped", epoch}), sign(11, intent(2), 1), ErrIntent},
		{"bumped after it was canceled", append(signed, sign(10, chain.IntentID{}, 2)), sign(10, intent(1), 3), ErrIntent},
		{"bumped by too little", signed, offers(10, intent(1), 2, 1099), ErrUnderpriced},
		{"canceled by too little", signed, offers(10, chain.IntentID{}, 2, 1099), ErrUnderpriced},
		{"by too little for one before the last", append(signed, offers(10, intent(1), 2, 1000, 1)), offers(10, intent(1), 3, 1099, 2), ErrUnderpriced},
		{"by too little, and another is not in any pool", signed, offers(10, intent(1), 2, 1099, 3), ErrUnderpriced},
		{"bumped after it landed", landed, sign(10, intent(1), 2), ErrLanded},
		{"landed, and was never signed", signed, land(10, 2, a, false), ErrHash},
		{"landed, and was never handed out", signed, land(12, 1, a, true), ErrHash},
		{"two in one block", append(signed, sign(10, intent(1), 2), land(10, 1, a, false)), land(10, 2, a, false), ErrLanded},
		{"lost while it has landed", landed, lose(10, 1), ErrLanded},
		{"lost, and one was not looked for", append(signed, sign(10, intent(1), 2)), lose(10, 1), ErrUnchecked},
		{"lost, and the chain is not past it", signed, Lose{1, []Loss{{Nonce: 11}}, told(11), epoch}, ErrWitness},
		{"lost on a block that is not final", signed, Lose{1, []Loss{{Nonce: 10, Absent: []chain.Hash{hashOf(10, 1)}}}, young, epoch}, ErrWitness},
		{"lost to an attempt of its own", signed, Lose{1, []Loss{{10, []chain.Hash{hashOf(10, 1)}, hashOf(10, 1)}}, told(11), epoch}, ErrWitness},
		{"lost before it is handed out", signed, lose(12, 0), ErrNotOpen},
		{"past the last nonce", []Command{Advance{1, high, epoch}}, reserve(1, 2), ErrExhausted},
	} {
		s := begun(t, x.before...)
		events, err := s.Decide(x.c)
		if !errors.Is(err, x.want) || len(events) > 0 {
			t.Errorf("%s: %v with %v, want %v", x.name, err, events, x.want)
		}
	}
	if _, err := (State{}).Decide(reserve(1)); !errors.Is(err, ErrUnknown) {
		t.Errorf("a lane that nobody opened: %v", err)
	}
	if _, err := run(t, State{}, open(1)).Decide(reserve(1)); !errors.Is(err, ErrUnlearned) {
		t.Errorf("a lane that does not know where it begins: %v", err)
	}
}

// A command that no correct caller sends panics, because it is a broken invariant and not a
// refusal.
func TestPanics(t *testing.T) {
	a := block(7, "a")
	s := begun(t, reserve(1, 2), sign(10, intent(1), 1))
	tip := chain.Fee{MaxFee: chain.PriceOf(1), MaxPriorityFee: chain.PriceOf(2)}
	for name, c := range map[string]Command{
		"a holder without a name": Open{"", 2, epoch}, "no token": Open{"holder", 0, epoch},
		"none to reserve for": Reserve{1, nil, 9, epoch}, "too many to reserve for": Reserve{1, make([]chain.IntentID, ReserveMax+1), 9, epoch},
		"an intent without an id": Reserve{1, make([]chain.IntentID, 1), 9, epoch}, "none to release": Release{1, nil, "", epoch},
		"nothing signed": Attempt{1, []Signed{{Nonce: 10}}, epoch}, "a tip above the fee": Attempt{1, []Signed{{Nonce: 10, Intent: intent(1), Hash: hashOf(10, 2), Fee: tip}}, epoch},
		"out of order": Fill{1, []uint64{11, 10}, epoch}, "twice": Lose{1, []Loss{{Nonce: 10}, {Nonce: 10}}, told(11), epoch},
		"in no block": land(10, 1, chain.Block{}, false), "no contradiction": Unland{1, a, a, epoch},
		"nothing to reclaim": Reclaim{1, 0, told(3), epoch}, "too many at once": Fill{1, make([]uint64, BatchMax+1), epoch},
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: no panic", name)
				}
			}()
			events, err := s.Decide(c)
			t.Errorf("%s: %v, %v", name, events, err)
		}()
	}
}

// A stalled holder resumes after another opened the lane: all its commands are refused.
func TestFence(t *testing.T) {
	s := begun(t, reserve(1, 2, 3), sign(11, intent(2), 1))
	s = run(t, s, open(2))
	for _, c := range []Command{
		open(1), Advance{1, told(40), epoch}, reserve(1), reserve(9), Release{1, intents(1), "dropped", epoch}, Fill{1, []uint64{10}, epoch},
		sign(10, intent(1), 1), sign(11, intent(2), 1), land(11, 1, block(7, "a"), true), Unland{1, block(7, "a"), block(7, "b"), epoch},
		lose(10, 0), Reclaim{1, 1, told(3), epoch},
	} {
		if events, err := s.Decide(c); !errors.Is(err, ErrFenced) || len(events) > 0 {
			t.Errorf("%T of the holder before: %v, %v", c, events, err)
		}
	}
	// The same holder opens again with a new token, which makes its old token invalid.
	if events, err := s.Decide(Open{s.Holder, 3, epoch}); err != nil || len(events) != 1 {
		t.Errorf("opening again: %v, %v", events, err)
	}
}

func TestHoles(t *testing.T) {
	s := begun(t, reserve(1, 2, 3, 4, 5), sign(12, intent(3), 1), Release{1, intents(1), "dropped", epoch.Add(time.Minute)})
	want := []Hole{{Nonce: 10, Since: epoch.Add(time.Minute)}, {11, intent(2), epoch}}
	if d := cmp.Diff(want, s.Holes()); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	if s = run(t, s, Fill{1, []uint64{10, 11}, epoch}); len(s.Holes()) != 0 {
		t.Errorf("filled, and still holes: %v", s.Holes())
	}
	if none := begun(t, reserve(1, 2)).Holes(); len(none) != 0 {
		t.Errorf("nothing is signed, and yet there are holes: %v", none)
	}
}

// The last attempts are reserved for no-ops: an intent without attempts left can still be
// canceled.
func TestAttemptsAreBounded(t *testing.T) {
	s, nobody := begun(t, reserve(1)), chain.IntentID{}
	for n := range BumpsMax {
		s = run(t, s, sign(10, intent(1), n+1))
	}
	if _, err := s.Decide(sign(10, intent(1), BumpsMax+1)); !errors.Is(err, ErrAttempts) {
		t.Errorf("one more attempt for the intent: %v", err)
	}
	for n := BumpsMax; n < AttemptsMax; n++ {
		s = run(t, s, sign(10, nobody, n+1))
	}
	if _, err := s.Decide(sign(10, nobody, AttemptsMax+1)); !errors.Is(err, ErrAttempts) {
		t.Errorf("one more attempt: %v", err)
	}
}

// An undelivered attempt is replaced at any price, by its intent and by a no-op. The same bytes
// again add nothing.
func TestUnsentNeedNotBeOutbid(t *testing.T) {
	for _, who := range []chain.IntentID{intent(1), {}} {
		s := begun(t, reserve(1), sign(10, intent(1), 1), offers(10, who, 2, 500, 1))
		if slot, _ := s.Slot(10); len(slot.Attempts) != 2 {
			t.Errorf("%s: %+v", who, slot.Attempts)
		}
		if events, err := s.Decide(offers(10, who, 2, 500, 1, 2)); err != nil || len(events) > 0 {
			t.Errorf("%s: once more: %v, %v", who, events, err)
		}
	}
}

// On a chain that finalizes nothing, every nonce stays open until OpenMax is reached.
func TestOpenIsBounded(t *testing.T) {
	e := Reserved{Token: 1, First: 10}
	for n := range OpenMax - 1 {
		e.Intents = append(e.Intents, chain.IntentID{0: 1, 14: byte(n >> 8), 15: byte(n)})
	}
	s := begun(t).Evolve(e)
	more := Reserve{1, intents(1, 2, 3), 2 * OpenMax, epoch}
	s = run(t, s, more, more)
	if _, holds := s.Held(intent(2)); s.Open() != OpenMax || holds {
		t.Errorf("%d are open", s.Open())
	}
	s = run(t, s, Release{1, e.Intents[:1], "dropped", epoch}, more)
	if slot, holds := s.Held(intent(2)); s.Open() != OpenMax || !holds || slot.Nonce != 10 {
		t.Errorf("a free one is still given out: %+v, %d are open", slot, s.Open())
	}
}

// Two states derived from the same state do not affect each other.
func TestFutures(t *testing.T) {
	s := begun(t, reserve(1))
	for n := 1; n < 6; n++ {
		one := s.Evolve(Attempted{Token: 1, Nonce: 10, Intent: intent(1), Hash: hashOf(10, n), Number: n})
		s.Evolve(Attempted{Token: 1, Nonce: 10, Hash: hashOf(11, n), Number: n})
		if slot, _ := one.Slot(10); slot.Attempts[n-1].Hash != hashOf(10, n) {
			t.Fatalf("attempt %d became one of another future", n)
		}
		s = one
	}
}

// Twenty thousand nonces pass through a lane, three hundred at a time. The state keeps only the
// open nonces, and its snapshot is as small.
func TestLongLife(t *testing.T) {
	const rounds, many = 70, 300
	s := begun(t)
	for round := range uint64(rounds) {
		first := 10 + round*many
		e := Reserved{Token: 1, First: first}
		for n := range many {
			e.Intents = append(e.Intents, chain.IntentID{0: 1, 14: byte(n >> 8), 15: byte(n)})
		}
		s = s.Evolve(e)
		for n, id := range e.Intents {
			s = s.Evolve(Attempted{Token: 1, Nonce: first + uint64(n), Intent: id, Hash: hashOf(0, n), Number: 1})
		}
		if s.InFlight() != many {
			t.Fatalf("%d in flight", s.InFlight())
		}
		for n, id := range e.Intents {
			s = s.Evolve(Landed{Token: 1, Nonce: first + uint64(n), Intent: id, Hash: hashOf(0, n), Block: block(round, "a"), Status: 1, Final: true})
		}
	}
	if size := len(s.Snapshot()); s.Open() != 0 || s.Next != 10+rounds*many || size > 100 {
		t.Errorf("%d are open, the cursor is at %d, a snapshot has %d bytes", s.Open(), s.Next, size)
	}
}

func TestStream(t *testing.T) {
	id := chain.Sequence{Chain: 42431, Sender: chain.Address{1}, Key: chain.NonceKey{31: 5}}
	if back, err := ParseStream(Stream(id)); err != nil || back != id {
		t.Errorf("%v, %v", back, err)
	}
	long := chain.Sequence{Chain: 1<<64 - 1, Key: chain.NonceKey{0: 0xff}}
	if n := len(Stream(long)); n > eventlog.MaxStreamBytes {
		t.Errorf("a name of %d bytes", n)
	}
	expiring := Stream(chain.Sequence{Chain: 1, Key: chain.ExpiringKey})
	for _, bad := range []eventlog.Stream{"", "lane-", "lane-1", "tx-1-0xab", "lane-1-0xab-0x0", Stream(id) + "-1", Stream(id)[:len(Stream(id))-1] + "05", expiring} {
		if got, err := ParseStream(bad); err == nil {
			t.Errorf("%q was read as %v", bad, got)
		}
	}
}
