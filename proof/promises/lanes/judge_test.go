package lanes_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
	"github.com/tempo-watchtower/watchtower/domain/relay/lane"
	"github.com/tempo-watchtower/watchtower/eventlog"
	"github.com/tempo-watchtower/watchtower/proof/promises"
	"github.com/tempo-watchtower/watchtower/proof/promises/lanes"
)

var (
	epoch  = time.Unix(1_800_000_000, 0).UTC()
	stream = lane.Stream(chain.Sequence{Chain: 42431, Sender: chain.Address{1}})
	codec  = lane.Codec()
)

// hole is the longest allowed hole, and often the attempts allowed at a nonce per minute, in
// these tests.
const (
	hole  = time.Minute
	often = 4
)

func who(n int) chain.IntentID { return chain.IntentID{15: byte(n)} }

func hash(name string) chain.Hash { return chain.Keccak([]byte(name)) }

func block(name string) chain.Block { return chain.Block{Number: 7, Hash: hash("block " + name)} }

func told(nonce uint64) lane.Witness {
	return lane.Witness{Nonce: nonce, Block: block("final"), Final: true, Endpoints: []string{"one", "two"}, Needed: 2, Asked: 3}
}

// script writes a history fact by fact, and judges each fact.
type script struct {
	t       *testing.T
	judge   *lanes.Judge
	version eventlog.Version
	at      time.Time
	found   []promises.Violation
}

func newScript(t *testing.T) *script {
	return &script{t: t, judge: lanes.New(lanes.Settings{Hole: hole, Attempts: often}), at: epoch}
}

// log records events of the lane.
func (s *script) log(facts ...lane.Event) *script {
	s.t.Helper()
	for _, e := range facts {
		name, data, err := codec.Encode(e)
		if err != nil {
			s.t.Fatal(err)
		}
		s.record(stream, name, data)
	}
	return s
}

func (s *script) record(on eventlog.Stream, name string, data []byte) *script {
	return s.recordBy("", on, name, data)
}

func (s *script) recordBy(actor string, on eventlog.Stream, name string, data []byte) *script {
	s.version++
	s.found = append(s.found, s.judge.Event(eventlog.Recorded{
		Event: eventlog.Event{ID: eventlog.ID{15: byte(s.version)}, Name: name, Data: data, Meta: eventlog.Meta{Actor: actor}}, Stream: on, Version: s.version, Position: eventlog.Position(s.version), At: s.at,
	})...)
	return s
}

func (s *script) later(d time.Duration) *script {
	s.at = s.at.Add(d)
	return s
}

// The following helpers return events under token 1.
func opened(token lane.Token) lane.Event {
	return lane.Opened{Holder: fmt.Sprintf("holder %d", token), Token: token, At: epoch}
}

func advanced(from, to uint64) lane.Event {
	return lane.Advanced{Token: 1, From: from, Witness: told(to)}
}

func reserved(first uint64, holders ...int) lane.Event {
	e := lane.Reserved{Token: 1, First: first}
	for _, n := range holders {
		e.Intents = append(e.Intents, who(n))
	}
	return e
}

func reissued(cursor, nonce uint64, holder int) lane.Event {
	return lane.Reserved{Token: 1, First: cursor, Reissued: []lane.Issue{{Nonce: nonce, Intent: who(holder)}}}
}

func released(nonce uint64, holder int) lane.Event {
	return lane.Released{Token: 1, Nonce: nonce, Intent: who(holder), Reason: "dropped"}
}

func filled(nonce uint64) lane.Event { return lane.Filled{Token: 1, Nonce: nonce} }

func offers(price uint64) chain.Fee { return chain.LegacyFee(chain.PriceOf(price)) }

// signed is the nth attempt; holder 0: a no-op.
func signed(nonce uint64, holder, n int) lane.Event {
	e := lane.Attempted{Token: 1, Nonce: nonce, Hash: hash(fmt.Sprint(nonce, "/", n)), Number: n, Fee: offers(1000 << n)}
	if holder > 0 {
		e.Intent = who(holder)
	}
	return e
}

func landed(nonce uint64, holder, n int, in string, final bool) lane.Event {
	a := signed(nonce, holder, n).(lane.Attempted)
	return lane.Landed{Token: 1, Nonce: nonce, Intent: a.Intent, Hash: a.Hash, Block: block(in), Status: 1, Final: final}
}

func unlanded(was string, nonces ...uint64) lane.Event {
	return lane.Unlanded{Token: 1, Nonces: nonces, Was: block(was), Now: block("another")}
}

func lost(nonce uint64) lane.Event {
	return lane.Lost{Token: 1, Nonce: nonce, Witness: told(nonce + 1)}
}

func reclaimed(nonce, count uint64) lane.Event {
	return lane.Reclaimed{Token: 1, Count: count, Witness: told(nonce)}
}

// begun returns a lane that begins at nonce 10.
func begun(t *testing.T, facts ...lane.Event) *script {
	return newScript(t).log(opened(1), advanced(0, 10)).log(facts...)
}

// Correct histories, and histories whose last event breaks the named promise.
func TestNonces(t *testing.T) {
	weak, young := told(20), told(11)
	weak.Endpoints = []string{"one", "one"}
	young.Final = false
	for _, c := range []struct {
		name   string
		broken promises.Number // 0: none
		facts  []lane.Event
	}{
		{"handed out, signed, landed", 0, []lane.Event{reserved(10, 1, 2), signed(10, 1, 1), signed(11, 2, 1), landed(10, 1, 1, "a", false), landed(10, 1, 1, "a", true), landed(11, 2, 1, "a", true), reserved(12, 1)}},
		{"released and handed out again", 0, []lane.Event{reserved(10, 1, 2), released(10, 1), reissued(12, 10, 3), signed(10, 3, 1)}},
		{"bumped, canceled", 0, []lane.Event{reserved(10, 1), signed(10, 1, 1), signed(10, 1, 2), signed(10, 0, 3), landed(10, 1, 2, "a", true)}},
		{"filled", 0, []lane.Event{reserved(10, 1, 2), signed(11, 2, 1), released(10, 1), filled(10), signed(10, 0, 1)}},
		{"taken back by a reorg", 0, []lane.Event{reserved(10, 1), signed(10, 1, 1), signed(10, 1, 2), landed(10, 1, 1, "a", false), unlanded("a", 10), landed(10, 1, 2, "b", true)}},
		{"lost", 0, []lane.Event{reserved(10, 1), signed(10, 1, 1), lost(10), reserved(11, 1)}},
		{"jumped ahead, and back over what nobody had", 0, []lane.Event{advanced(10, 14), reserved(14, 1), reclaimed(11, 2), reissued(15, 11, 2), reclaimed(13, 1)}},
		{"jumped ahead twice, and reclaimed at once", 0, []lane.Event{advanced(10, 12), advanced(12, 14), reclaimed(10, 4)}},
		{"another holder", 0, []lane.Event{opened(2), lane.Reserved{Token: 2, First: 10, Intents: []chain.IntentID{who(1)}}}},

		{"P4: a held nonce is issued again", promises.P4, []lane.Event{reserved(10, 1), reissued(11, 10, 2)}},
		{"P4: one that is filled is", promises.P4, []lane.Event{reserved(10, 1, 2), signed(11, 2, 1), released(10, 1), filled(10), reissued(12, 10, 1)}},
		{"P4: a closed one is", promises.P4, []lane.Event{reserved(10, 1), signed(10, 1, 1), landed(10, 1, 1, "a", true), reissued(11, 10, 2)}},
		{"P4: an intent gets a second nonce", promises.P4, []lane.Event{reserved(10, 1), reserved(11, 1)}},
		{"P4: an intent gets two at once", promises.P4, []lane.Event{reserved(10, 1, 1)}},
		{"P4: signed for another than the holder", promises.P4, []lane.Event{reserved(10, 1, 2), signed(10, 2, 1)}},
		{"P4: a no-op at a nonce that is held", promises.P4, []lane.Event{reserved(10, 1), signed(10, 0, 1)}},
		{"P4: signed after it was closed", promises.P4, []lane.Event{reserved(10, 1), signed(10, 1, 1), landed(10, 1, 1, "a", true), signed(10, 1, 2)}},
		{"P4: signed before it was handed out", promises.P4, []lane.Event{signed(10, 1, 1)}},
		{"P4: released by another", promises.P4, []lane.Event{reserved(10, 1), released(10, 2)}},
		{"P4: released twice", promises.P4, []lane.Event{reserved(10, 1), released(10, 1), released(10, 1)}},
		{"P4: a no-op takes what is held", promises.P4, []lane.Event{reserved(10, 1), filled(10)}},
		{"P4: reclaimed, and was handed out", promises.P4, []lane.Event{advanced(10, 12), reserved(12, 1), reclaimed(11, 2)}},
		{"P4: reclaimed twice", promises.P4, []lane.Event{advanced(10, 12), reclaimed(11, 1), reclaimed(11, 1)}},
		{"P4: reclaimed, and nobody had jumped", promises.P4, []lane.Event{reserved(10, 1), reclaimed(10, 1)}},

		{"P5: a nonce is left out", promises.P5, []lane.Event{reserved(10, 1), reserved(12, 2)}},
		{"P5: released after it was signed", promises.P5, []lane.Event{reserved(10, 1), signed(10, 1, 1), released(10, 1)}},

		{"P6: handed out anew", promises.P6, []lane.Event{reserved(10, 1), signed(10, 1, 1), landed(10, 1, 1, "a", true), reserved(10, 2)}},
		{"P6: the cursor goes back", promises.P6, []lane.Event{reserved(10, 1, 2), advanced(12, 11)}},
		{"P6: the cursor goes nowhere", promises.P6, []lane.Event{advanced(10, 10)}},
		{"P6: it goes from where it was not", promises.P6, []lane.Event{advanced(9, 12)}},
		{"P6: ahead on the word of one, told twice", promises.P6, []lane.Event{lane.Advanced{Token: 1, From: 10, Witness: weak}}},
		{"P6: reclaimed on the word of one", promises.P6, []lane.Event{advanced(10, 30), lane.Reclaimed{Token: 1, Count: 1, Witness: weak}}},

		{"P7: a token is skipped", promises.P7, []lane.Event{opened(3)}},
		{"P7: a token is used twice", promises.P7, []lane.Event{lane.Opened{Holder: "another", Token: 1}}},
		{"P7: the holder before goes on", promises.P7, []lane.Event{reserved(10, 1), opened(2), signed(10, 1, 1)}},
		{"P7: a holder that never opened", promises.P7, []lane.Event{lane.Reserved{Token: 2, First: 10, Intents: []chain.IntentID{who(1)}}}},

		{"P8: two attempts of one number", promises.P8, []lane.Event{reserved(10, 1), signed(10, 1, 1), lane.Attempted{Token: 1, Nonce: 10, Intent: who(1), Hash: hash("other"), Number: 1, Fee: offers(9000)}}},
		{"P8: the same bytes as two attempts", promises.P8, []lane.Event{reserved(10, 1), signed(10, 1, 1), lane.Attempted{Token: 1, Nonce: 10, Intent: who(1), Hash: hash("10/1"), Number: 2, Fee: offers(9000)}}},
		{"P10: it lands twice for good", promises.P10, []lane.Event{reserved(10, 1), signed(10, 1, 1), landed(10, 1, 1, "a", true), landed(10, 1, 1, "a", true)}},
		{"P10: two attempts have landed", promises.P10, []lane.Event{reserved(10, 1), signed(10, 1, 1), signed(10, 1, 2), landed(10, 1, 1, "a", false), landed(10, 1, 2, "b", false)}},
		{"P10: what lands was not signed", promises.P10, []lane.Event{reserved(10, 1), signed(10, 1, 1), landed(10, 1, 2, "a", false)}},
		{"P10: lost after it landed for good", promises.P10, []lane.Event{reserved(10, 1), signed(10, 1, 1), landed(10, 1, 1, "a", true), lost(10)}},
		{"P11: lost while it has landed", promises.P11, []lane.Event{reserved(10, 1), signed(10, 1, 1), landed(10, 1, 1, "a", false), lost(10)}},
		{"P11: lost on a block that is not final", promises.P11, []lane.Event{reserved(10, 1), lane.Lost{Token: 1, Nonce: 10, Witness: young}}},
		{"P11: lost, and the chain is not past it", promises.P11, []lane.Event{reserved(10, 1), lane.Lost{Token: 1, Nonce: 10, Witness: told(10)}}},
		{"P11: lost to an attempt of ours", promises.P11, []lane.Event{reserved(10, 1), signed(10, 1, 1), lane.Lost{Token: 1, Nonce: 10, Rival: hash("10/1"), Witness: told(11)}}},
		{"P13: un-mined from where it was not", promises.P13, []lane.Event{reserved(10, 1), signed(10, 1, 1), landed(10, 1, 1, "a", false), unlanded("b", 10)}},
	} {
		s := begun(t, c.facts...)
		s.judged(c.name, c.broken)
	}
	newScript(t).log(opened(1), reserved(0, 1)).judged("P6: handed out from nobody knows where", promises.P6)
}

// judged checks that the last event broke the promise, and that no earlier event broke any.
func (s *script) judged(name string, broken promises.Number) {
	s.t.Helper()
	for _, v := range s.found {
		if v.Promise != broken || v.Position != eventlog.Position(s.version) {
			s.t.Errorf("%s: %s", name, v)
		}
	}
	if broken != 0 && len(s.found) != 1 {
		s.t.Errorf("%s: %d found", name, len(s.found))
	}
}

// A hole that signed nonces wait for is reported once.
func TestHoles(t *testing.T) {
	start := func() *script { return begun(t, reserved(10, 1, 2, 3), signed(11, 2, 1)) }
	start().later(hole).log(signed(10, 1, 1)).judged("signed in time", 0)
	start().later(hole/2).log(released(10, 1)).later(hole/2).log(filled(10), signed(10, 0, 1)).judged("filled in time", 0)
	start().later(hole).log(lost(10)).judged("lost", 0)
	begun(t, reserved(10, 1, 2)).later(time.Hour).log(opened(2)).judged("nothing waits", 0)
	start().later(hole+1).log(signed(12, 3, 1)).judged("still none", promises.P5)
	start().later(hole/2).log(released(10, 1), filled(10)).later(hole).log(opened(2)).judged("filled, and nothing signed", promises.P5)
	start().log(released(10, 1)).later(hole/2).log(reissued(13, 10, 4)).later(hole).log(opened(2)).judged("handed on, and nothing signed", promises.P5)
	begun(t, advanced(10, 12), reserved(12, 1), signed(12, 1, 1), reclaimed(10, 1)).later(hole+1).log(opened(2)).judged("reclaimed, and nothing signed", promises.P5)
	begun(t, reserved(10, 1), signed(10, 1, 1), advanced(11, 13), reclaimed(11, 2)).later(hole+1).log(opened(2)).judged("reclaimed, and nothing waits", 0)

	s := start().later(hole + 1).log(opened(2))
	if s.log(opened(3)); len(s.found) != 1 {
		t.Errorf("one hole was told of %d times", len(s.found))
	}
	s = start()
	if found := s.judge.Finish(epoch.Add(hole)); len(found) != 0 {
		t.Errorf("at the end, in time: %v", found)
	}
	if found := s.judge.Finish(epoch.Add(hole + 1)); len(found) != 1 || found[0].Promise != promises.P5 || found[0].Stream != stream {
		t.Errorf("at the end: %v", found)
	}
}

// A replacement offers the pools' minimum raise, and comes when the earlier attempt has had its
// time.
func TestReplacements(t *testing.T) {
	bumped := func(fee, tip uint64) lane.Event {
		e := signed(10, 1, 2).(lane.Attempted)
		e.Fee = chain.Fee{MaxFee: chain.PriceOf(fee), MaxPriorityFee: chain.PriceOf(tip)}
		return e
	}
	first := signed(10, 1, 1) // for 2000
	// An older holder delivers its own attempt after another opened the lane, or before.
	opened := lane.Opened{Holder: "another", Token: 2, At: epoch}
	cheap := bumped(2000, 2000).(lane.Attempted)
	cheap.Token = 2
	begun(t, reserved(10, 1), first, bumped(2000, 2000)).judged("nobody was handed the first", 0)
	deliver(begun(t, reserved(10, 1), first).log(opened), lane.Actor, 10, 1).log(cheap).judged("the first was handed over since", 0)
	deliver(begun(t, reserved(10, 1), first), lane.Actor, 10, 1).log(opened, cheap).judged("the first was handed over before", promises.P17)
	for _, c := range []struct {
		name     string
		broken   promises.Number
		fee, tip uint64
	}{
		{"a tenth more", 0, 2200, 2200},
		{"less than a tenth more", promises.P17, 2199, 2199},
		{"the same tip", promises.P17, 4000, 2000},
		{"the same fee", promises.P17, 2000, 4000},
		{"less", promises.P17, 1000, 4000},
	} {
		deliver(begun(t, reserved(10, 1), first), lane.Actor, 10, 1).log(bumped(c.fee, c.tip)).judged(c.name, c.broken)
	}
	of := func(pause time.Duration) *script {
		s := begun(t, reserved(10, 1))
		for n := range often + 1 {
			s.later(pause).log(signed(10, 1, n+1))
		}
		return s
	}
	of(time.Minute/often+1).judged("in time", 0)
	of(time.Minute/often-1).judged("too often", promises.P17)
}

// deliver records that an actor delivers the nth attempt at a nonce.
func deliver(s *script, actor string, nonce uint64, n int) *script {
	s.t.Helper()
	name, data, err := tx.Codec().Encode(tx.Accepted{Chain: 42431, Sender: chain.Address{1}, Nonce: nonce, Hash: hash(fmt.Sprint(nonce, "/", n))})
	if err != nil {
		s.t.Fatal(err)
	}
	return s.recordBy(actor, tx.Stream(42431, hash(fmt.Sprint(nonce, "/", n))), name, data)
}

// A delivered transaction is an attempt of a lane.
func TestDelivered(t *testing.T) {
	history := func() *script { return begun(t, reserved(10, 1, 2), signed(10, 1, 1)) }
	deliver(history(), lane.Actor, 10, 1).judged("an attempt", 0)
	deliver(history(), lane.Actor, 10, 2).judged("none", promises.P8)
	deliver(history(), lane.Actor, 11, 1).judged("nothing was signed", promises.P8)
	deliver(history(), lane.Actor, 12, 1).judged("nobody has the nonce", promises.P8)
	deliver(newScript(t), lane.Actor, 0, 1).judged("nobody has the lane", promises.P8)
	deliver(history(), "api", 10, 2).judged("a stranger's, with the same key", 0)
	deliver(history().log(landed(10, 1, 1, "a", true)), lane.Actor, 10, 2).judged("the nonce is closed", 0)
}

func TestUnreadable(t *testing.T) {
	s := begun(t)
	s.record("tx-1-0xab", "tx.accepted.v1", []byte("nothing"))
	s.judged("another aggregate", 0)
	s.record(stream, "lane.teleported.v1", []byte("{}"))
	s.judged("a name that nobody knows", promises.P30)
	s = newScript(t)
	s.record("lane-1", "lane.opened.v1", []byte(`{"holder":"one","token":1,"at":"2026-11-21T00:00:00Z"}`))
	s.judged("a stream that is no lane's", promises.P30)
}

// Each lane is judged independently.
func TestTwoLanes(t *testing.T) {
	s := begun(t, reserved(10, 1))
	name, data, err := codec.Encode(opened(1))
	if err != nil {
		t.Fatal(err)
	}
	s.record(lane.Stream(chain.Sequence{Chain: 42431, Sender: chain.Address{2}}), name, data)
	s.log(signed(10, 1, 1)).judged("a second lane begins", 0)
}
