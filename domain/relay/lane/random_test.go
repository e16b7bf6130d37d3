package lane

import (
	"bytes"
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
var wishes = strings.Fields("attempt attempt attempt attempt attempt attempt land land land land reserve reserve " +
	"reserve unland unland fill fill release release lose reclaim advance open")

// drawCommand draws a command of one of the last holders, mostly about open nonces.
func drawCommand(t *rapid.T, s State) Command {
	token := s.Token - min(s.Token, Token(rapid.SampledFrom([]int{0, 0, 0, 0, 0, 0, 1}).Draw(t, "older")))
	nonce := func() uint64 { return rapid.Uint64Range(0, s.Next+1).Draw(t, "any nonce") }
	if s.Open() > 0 && rapid.SampledFrom([]bool{true, true, true, false}).Draw(t, "open") {
		nonce = func() uint64 { return s.open[rapid.IntRange(0, s.Open()-1).Draw(t, "nonce")].Nonce }
	}
	branch := block(rapid.Uint64Range(1, 3).Draw(t, "block"), rapid.SampledFrom([]string{"a", "b"}).Draw(t, "branch"))
	who := func() chain.IntentID { return intent(rapid.IntRange(1, 12).Draw(t, "intent")) }
	switch rapid.SampledFrom(wishes).Draw(t, "command") {
	case "open":
		return Open{rapid.SampledFrom([]string{"one", "two"}).Draw(t, "holder"), max(s.Token+Token(rapid.IntRange(0, 2).Draw(t, "token")), 1), epoch}
	case "advance":
		return Advance{token, told(s.Next + rapid.Uint64Range(0, 6).Draw(t, "ahead") - min(s.Next, 3)), epoch}
	case "reserve":
		n := rapid.IntRange(1, 6).Draw(t, "intents")
		ids := make([]chain.IntentID, n)
		for i := range ids {
			ids[i] = who()
		}
		return Reserve{token, ids, rapid.IntRange(0, 10).Draw(t, "budget"), epoch}
	case "release":
		return Release{token, []chain.IntentID{who(), who()}, "dropped", epoch}
	case "fill":
		return Fill{token, []uint64{nonce()}, epoch}
	case "attempt":
		return drawAttempt(t, s, token, nonce())
	case "land":
		n := nonce()
		return Land{token, []Landing{{n, hashOf(n, rapid.SampledFrom([]int{1, 1, 1, 2, 2, 3}).Draw(t, "hash")), branch, 1, rapid.SampledFrom([]bool{false, false, true}).Draw(t, "final")}}, epoch}
	case "unland":
		return Unland{token, branch, block(9, "b"), epoch}
	case "lose":
		n := nonce()
		loss := Loss{Nonce: n}
		for i := range rapid.SampledFrom([]int{0, 2, 4, 4}).Draw(t, "looked for") {
			loss.Absent = append(loss.Absent, hashOf(n, i+1))
		}
		return Lose{token, []Loss{loss}, told(n + rapid.SampledFrom([]uint64{0, 1, 1, 2}).Draw(t, "past")), epoch}
	}
	return Reclaim{token, rapid.Uint64Range(1, 4).Draw(t, "count"), told(rapid.Uint64Range(0, s.Next+1).Draw(t, "chain")), epoch}
}

func drawAttempt(t *rapid.T, s State, token Token, nonce uint64) Command {
	slot, _ := s.Slot(nonce)
	signed := Signed{
		Nonce: nonce, Intent: slot.Intent, Hash: hashOf(nonce, rapid.SampledFrom([]int{1, 1, 1, 2, 2, 3, 4}).Draw(t, "hash")),
		Fee: chain.LegacyFee(chain.PriceOf(1000)), Unsent: []chain.Hash{unsent(nonce)},
	}
	if n := len(slot.Attempts); n > 0 && rapid.SampledFrom([]bool{true, true, true, false}).Draw(t, "outbids") {
		signed.Fee, _ = slot.Attempts[n-1].Fee.Replacement()
	}
	if rapid.SampledFrom([]bool{true, false, false, false, false}).Draw(t, "no-op") {
		signed.Intent = chain.IntentID{}
	}
	if rapid.SampledFrom([]bool{true, false, false, false, false}).Draw(t, "cheap") {
		signed.Fee.MaxPriorityFee = chain.PriceOf(1)
	}
	return Attempt{token, []Signed{signed}, epoch}
}

// unsent is the attempt at a nonce that is never delivered.
func unsent(nonce uint64) chain.Hash { return hashOf(nonce, 2) }

// tale is a model of a lane's events, with checks independent of [State].
type tale struct {
	token   Token
	known   bool
	next    uint64
	open    map[uint64]*fate
	over    map[uint64]bool // closed
	skipped map[uint64]bool
}

type fate struct {
	intent       chain.IntentID
	noop         bool
	attempts     []Attempted
	landed       bool
	landedHash   chain.Hash
	landedAt     chain.Hash
	canceledByOp bool
}

// tell checks an event against the numbered invariants of the package comment.
func (l *tale) tell(e Event) error {
	switch e := e.(type) {
	case Opened:
		if e.Token != l.token+1 {
			return fmt.Errorf("invariant 1: token %d after %d", e.Token, l.token)
		}
		l.token = e.Token
		return nil
	case Advanced:
		if e.From != l.next || l.known && e.Witness.Nonce <= l.next || !e.Witness.Holds() {
			return fmt.Errorf("invariant 3: the cursor goes from %d to %d", l.next, e.Witness.Nonce)
		}
		for n := l.next; n < e.Witness.Nonce; n++ {
			l.skipped[n] = true
		}
		l.known, l.next = true, e.Witness.Nonce
	case Reserved:
		return l.reserved(e)
	case Reclaimed:
		for n := e.Witness.Nonce; n < e.Witness.Nonce+e.Count; n++ {
			if !l.skipped[n] || l.open[n] != nil || l.over[n] {
				return fmt.Errorf("invariant 2: nonce %d is reclaimed", n)
			}
			delete(l.skipped, n)
			l.open[n] = &fate{}
		}
	case Unlanded:
		for _, n := range e.Nonces {
			s := l.open[n]
			if s == nil || !s.landed || s.landedAt != e.Was.Hash {
				return fmt.Errorf("nonce %d has not landed in %s", n, e.Was.Hash)
			}
			s.landed = false
		}
	default:
		return l.about(e)
	}
	return nil
}

func (l *tale) reserved(e Reserved) error {
	var free []uint64
	for n, s := range l.open {
		if s.intent.IsZero() && !s.noop {
			free = append(free, n)
		}
	}
	slices.Sort(free)
	holds := map[chain.IntentID]bool{}
	for _, s := range l.open {
		holds[s.intent] = true
	}
	give := func(n uint64, id chain.IntentID) error {
		if holds[id] || id.IsZero() {
			return fmt.Errorf("invariant 2: %s holds two", id)
		}
		holds[id] = true
		l.open[n] = &fate{intent: id}
		return nil
	}
	for i, issue := range e.Reissued {
		if i >= len(free) || issue.Nonce != free[i] {
			return fmt.Errorf("invariant 2: nonce %d is issued again, free are %v", issue.Nonce, free)
		}
		if err := give(issue.Nonce, issue.Intent); err != nil {
			return err
		}
	}
	if e.First != l.next || len(e.Intents) > 0 && len(e.Reissued) < len(free) {
		return fmt.Errorf("invariant 3: new nonces from %d, the cursor is at %d, free are %v", e.First, l.next, free)
	}
	for _, id := range e.Intents {
		if l.over[l.next] || l.skipped[l.next] {
			return fmt.Errorf("invariant 3: nonce %d is new again", l.next)
		}
		if err := give(l.next, id); err != nil {
			return err
		}
		l.next++
	}
	return nil
}

// about checks an event about one nonce, which must be open.
func (l *tale) about(e Event) error {
	var n uint64
	switch e := e.(type) {
	case Released:
		n = e.Nonce
	case Filled:
		n = e.Nonce
	case Attempted:
		n = e.Nonce
	case Landed:
		n = e.Nonce
	case Lost:
		n = e.Nonce
	}
	s := l.open[n]
	if s == nil || l.over[n] {
		return fmt.Errorf("invariant 5: %T of nonce %d, which is not open", e, n)
	}
	switch e := e.(type) {
	case Released:
		if len(s.attempts) > 0 || s.intent != e.Intent || s.intent.IsZero() {
			return fmt.Errorf("invariant 4: nonce %d is released", n)
		}
		l.open[n] = &fate{}
	case Filled:
		if len(s.attempts) > 0 || !s.intent.IsZero() || s.noop {
			return fmt.Errorf("invariant 2: nonce %d is filled", n)
		}
		s.noop = true
	case Attempted:
		return s.attempted(e)
	case Landed:
		ours := slices.ContainsFunc(s.attempts, func(a Attempted) bool { return a.Hash == e.Hash && a.Intent == e.Intent })
		if !ours || s.landed && (!e.Final || s.landedHash != e.Hash || s.landedAt != e.Block.Hash) {
			return fmt.Errorf("nonce %d lands by %s", n, e.Hash)
		}
		if s.landed, s.landedHash, s.landedAt = true, e.Hash, e.Block.Hash; e.Final {
			l.close(n, n+1)
		}
	case Lost:
		if s.landed || e.Witness.Nonce <= n || !e.Witness.Final {
			return fmt.Errorf("invariant 5: nonce %d is lost", n)
		}
		l.close(n, e.Witness.Nonce)
	}
	return nil
}

func (s *fate) attempted(e Attempted) error {
	n := len(s.attempts)
	switch {
	case e.Number != n+1 || s.landed:
		return fmt.Errorf("attempt %d after %d at nonce %d", e.Number, n, e.Nonce)
	case e.Intent.IsZero() && n == 0 && !s.noop, !e.Intent.IsZero() && (e.Intent != s.intent || s.canceledByOp):
		return fmt.Errorf("invariant 2: an attempt of %s at nonce %d, which %s holds", e.Intent, e.Nonce, s.intent)
	case n > 0 && e.Replaces != s.attempts[n-1].Hash:
		return fmt.Errorf("%+v replaces %+v", e, s.attempts[n-1])
	case slices.ContainsFunc(s.attempts, func(a Attempted) bool { return a.Hash != unsent(e.Nonce) && !e.Fee.Replaces(a.Fee) }):
		return fmt.Errorf("invariant 6: %+v replaces %+v", e, s.attempts)
	case slices.ContainsFunc(s.attempts, func(a Attempted) bool { return a.Hash == e.Hash }):
		return fmt.Errorf("%s is an attempt twice", e.Hash)
	}
	s.canceledByOp = e.Intent.IsZero()
	s.attempts = append(s.attempts, e)
	return nil
}

func (l *tale) close(n, past uint64) {
	delete(l.open, n)
	l.over[n] = true
	for n := range past {
		delete(l.skipped, n)
	}
}

// agrees compares a state with the model, for invariant 7 among others.
func (l *tale) agrees(s State) error {
	if s.Token != l.token || s.Next != l.next || s.Known != l.known || s.Open() != len(l.open) {
		return fmt.Errorf("invariant 7: %d nonces open, %d should be; cursor %d, should be %d", s.Open(), len(l.open), s.Next, l.next)
	}
	if len(s.skipped) > len(l.open)+1 {
		return fmt.Errorf("invariant 7: %d spans for %d open nonces", len(s.skipped), len(l.open))
	}
	for n := range l.next + 3 {
		if got := s.Gap(n); (got.End > got.First) != l.skipped[n] {
			return fmt.Errorf("the gap at %d is %v", n, got)
		}
	}
	for slot := range s.Slots() {
		want := l.open[slot.Nonce]
		if want == nil || want.intent != slot.Intent || want.noop != slot.Filled || len(want.attempts) != len(slot.Attempts) || want.landed != (slot.Landed != nil) {
			return fmt.Errorf("nonce %d is %+v, should be %+v", slot.Nonce, slot, want)
		}
	}
	return nil
}

// Every sequence of commands by alternating holders keeps the numbered invariants of the package
// comment, and no state changes when later states are derived from it.
func TestInvariants(t *testing.T) {
	facts, codec := map[string]int{}, Codec()
	rapid.Check(t, func(t *rapid.T) {
		var s State
		l := &tale{open: map[uint64]*fate{}, over: map[uint64]bool{}, skipped: map[uint64]bool{}}
		if rapid.SampledFrom([]bool{true, true, true, false}).Draw(t, "begun") {
			s = s.Evolve(step(t, l, s, open(1)))
			s = s.Evolve(step(t, l, s, Advance{1, told(5), epoch}))
		}
		for range 80 {
			c := drawCommand(t, s)
			events, err := s.Decide(c)
			if err != nil {
				if !errors.As(err, new(eventlog.Refusal)) || len(events) > 0 {
					t.Fatalf("%T: %v with %v", c, err, events)
				}
				continue
			}
			if _, opens := c.(Open); !opens && c.wish() != l.token {
				t.Fatalf("invariant 1: %T with token %d was taken, the last is %d", c, c.wish(), l.token)
			}
			before, written := s, s.Snapshot()
			for _, e := range events {
				s = s.Evolve(kept(t, codec, e))
				facts[fmt.Sprintf("%T", e)]++
				if err := l.tell(e); err != nil {
					t.Fatalf("%+v: %v", c, err)
				}
			}
			if !bytes.Equal(before.Snapshot(), written) {
				t.Fatal("a state was changed by one that grew out of it")
			}
			if err := l.agrees(s); err != nil {
				t.Fatalf("%+v: %v", c, err)
			}
			if back, err := Restore(s.Snapshot()); err != nil || !reflect.DeepEqual(s, back) {
				t.Fatalf("the snapshot is another state: %v\n%s", err, same(s, back))
			}
			if again, err := s.Decide(c); err != nil || len(again) > 0 {
				t.Fatalf("invariant 8: deciding %+v twice added %v, %v", c, again, err)
			}
		}
	})
	for _, e := range samples() {
		if name := fmt.Sprintf("%T", e); facts[name] == 0 {
			t.Errorf("no sequence led to a %s: they are not any", name)
		}
	}
}

// step returns the single event that a command adds.
func step(t *rapid.T, l *tale, s State, c Command) Event {
	events, err := s.Decide(c)
	if err != nil || len(events) != 1 {
		t.Fatalf("%+v: %v, %v", c, events, err)
	}
	if err := l.tell(events[0]); err != nil {
		t.Fatal(err)
	}
	return events[0]
}

// kept returns an event after encoding and decoding.
func kept(t *rapid.T, codec eventlog.Codec[Event], e Event) Event {
	name, data, err := codec.Encode(e)
	if err != nil {
		t.Fatal(err)
	}
	back, err := codec.Decode(name, data)
	if err != nil {
		t.Fatalf("%s does not survive the log: %v", name, err)
	}
	return back
}
