package promises_test

import (
	"testing"
	"time"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
	"github.com/tempo-watchtower/watchtower/eventlog"
	"github.com/tempo-watchtower/watchtower/proof/promises"
)

var (
	alpha = note{name: "alpha", sender: 1, key: 1}
	rival = note{name: "rival", sender: 1, key: 1}
	short = note{name: "short", sender: 2, key: 1, before: 60}
	early = note{name: "early", sender: 3, key: 1, after: 100}
)

// executed is the whole life of a successful transaction.
func executed(s *script, n note) {
	s.accept(n)
	s.submitted(n)
	s.took(n, 1)
	s.later(time.Second)
	b := blockOf(1, "main")
	s.mine(b, n)
	s.log(n, minedIn(b))
	s.mine(blockOf(2, "main"))
	s.ledger.Finalize(1)
	s.log(n, tx.Finalized{Verdict: tx.StatusExecuted, Block: b, By: blockOf(2, "main")})
}

// scenario is a history, and the one promise that it breaks; 0: none.
type scenario struct {
	name   string
	breaks promises.Number
	play   func(s *script)
}

func run(t *testing.T, settings promises.Settings, all []scenario) {
	t.Helper()
	for _, c := range all {
		t.Run(c.breaks.String()+" "+c.name, func(t *testing.T) {
			s := newScript(settings)
			c.play(s)
			s.expect(t, c.breaks)
		})
	}
}

func TestAcceptance(t *testing.T) {
	quiet := promises.End{Quiet: true}
	run(t, promises.Settings{}, []scenario{
		{"kept", 0, func(s *script) { executed(s, alpha); s.finish(quiet) }},
		{"acknowledged before the log is read", 0, func(s *script) {
			s.submitted(alpha)
			executed(s, alpha)
			s.finish(quiet)
		}},
		{"acknowledged and lost", promises.P1, func(s *script) { s.submitted(alpha); s.finish(promises.End{}) }},
		{"a submission without an answer is no promise", 0, func(s *script) {
			s.call(promises.Call{Kind: promises.Submit, Hash: alpha.hash(), Result: promises.Unknown})
			s.finish(quiet)
		}},
		{"never sent", promises.P2, func(s *script) { s.accept(alpha); s.later(time.Hour); s.finish(quiet) }},
		{"never noticed that it was mined", promises.P2, func(s *script) {
			s.accept(alpha)
			s.took(alpha, 1)
			s.mine(blockOf(1, "main"), alpha)
			s.finish(quiet)
		}},
		{"bytes erased while it is open", promises.P2, func(s *script) { s.accept(alpha); s.log(alpha, tx.PayloadErased{}) }},
		{"forgotten before its end", promises.P2, func(s *script) { s.accept(alpha); s.log(alpha, tx.Retired{}) }},
		{"forgotten before its bytes are erased", promises.P2, func(s *script) { executed(s, alpha); s.log(alpha, tx.Retired{}) }},
		{"erased and forgotten", 0, func(s *script) { executed(s, alpha); s.log(alpha, tx.PayloadErased{}, tx.Retired{}); s.finish(quiet) }},
		{"accepted twice", promises.P3, func(s *script) { s.accept(alpha); s.accept(alpha) }},
		{"accepted again after its end", promises.P3, func(s *script) { executed(s, alpha); s.accept(alpha) }},
		{"a stream without an acceptance", promises.P3, func(s *script) { s.log(alpha, tx.PayloadErased{}) }},
		{"a key for two requests", promises.P3, func(s *script) {
			s.accept(alpha)
			for i := range byte(2) {
				s.call(promises.Call{Kind: promises.Submit, Hash: alpha.hash(), Result: promises.OK, Key: "k", Print: chain.Hash{i}})
			}
		}},
		{"a key with two answers", promises.P3, func(s *script) {
			s.accept(alpha)
			s.accept(short)
			for _, n := range []note{alpha, short} {
				s.call(promises.Call{Kind: promises.Submit, Hash: n.hash(), Result: promises.OK, Key: "k"})
			}
		}},
		{"a key twice", 0, func(s *script) {
			s.accept(alpha)
			for range 2 {
				s.call(promises.Call{Kind: promises.Submit, Hash: alpha.hash(), Result: promises.OK, Key: "k"})
			}
		}},
		{"turned away without a word", promises.P27, func(s *script) {
			s.call(promises.Call{Kind: promises.Submit, Result: promises.Refused, Overload: true})
		}},
		{"turned away", 0, func(s *script) {
			s.call(promises.Call{Kind: promises.Submit, Result: promises.Refused, Overload: true, Later: true})
		}},
	})
}

func TestQueue(t *testing.T) {
	row := func(w tx.Work, there bool) promises.End {
		return promises.End{Queue: func(chain.ID, chain.Hash) (tx.Work, bool) { return w, there }}
	}
	mined := func(s *script) {
		s.accept(alpha)
		s.mine(blockOf(1, "main"), alpha)
		s.log(alpha, minedIn(blockOf(1, "main")))
	}
	run(t, promises.Settings{}, []scenario{
		{"no row", promises.P2, func(s *script) { s.accept(alpha); s.finish(row(tx.Work{}, false)) }},
		{"due now", 0, func(s *script) { s.accept(alpha); s.finish(row(tx.Work{Phase: tx.Open, NextAt: s.at}, true)) }},
		{"due long ago", promises.P2, func(s *script) {
			s.accept(alpha)
			s.finish(row(tx.Work{Phase: tx.Open, NextAt: s.at.Add(-time.Hour)}, true))
		}},
		{"due in a year", promises.P2, func(s *script) {
			s.accept(alpha)
			s.finish(row(tx.Work{Phase: tx.Open, NextAt: s.at.Add(365 * 24 * time.Hour)}, true))
		}},
		{"eligible in a year", 0, func(s *script) {
			s.accept(alpha)
			year := s.at.Add(365 * 24 * time.Hour)
			s.finish(row(tx.Work{Phase: tx.Open, NextAt: year, EligibleAt: uint64(year.Unix())}, true))
		}},
		{"due long ago, but it waits for a nonce", 0, func(s *script) {
			s.accept(alpha)
			e := row(tx.Work{Phase: tx.Open, NextAt: s.at.Add(-time.Hour), WaitNonce: 1}, true)
			e.Quiet = true
			s.finish(e)
		}},
		{"quiet, and it waits for what will never come", promises.P2, func(s *script) {
			s.accept(short)
			s.later(time.Hour)
			e := row(tx.Work{Phase: tx.Open, Parked: true}, true)
			e.Quiet = true
			s.finish(e)
		}},
		{"in another phase", promises.P2, func(s *script) { mined(s); s.finish(row(tx.Work{Phase: tx.Open}, true)) }},
		{"in another phase, by an event of this moment", 0, func(s *script) {
			mined(s)
			e := row(tx.Work{Phase: tx.Open}, true)
			e.Behind = time.Second
			s.finish(e)
		}},
		{"in another phase, by an event of long ago", promises.P2, func(s *script) {
			mined(s)
			s.later(time.Hour)
			e := row(tx.Work{Phase: tx.Open}, true)
			e.Behind = time.Second
			s.finish(e)
		}},
		{"on another block", promises.P2, func(s *script) {
			mined(s)
			s.finish(row(tx.Work{Phase: tx.Announced, Block: blockOf(2, "main")}, true))
		}},
		{"announced", 0, func(s *script) {
			mined(s)
			s.finish(row(tx.Work{Phase: tx.Announced, Block: blockOf(1, "main")}, true))
		}},
	})
}

func TestSending(t *testing.T) {
	run(t, promises.Settings{}, []scenario{
		{"before it was recorded", promises.P8, func(s *script) { s.send(alpha) }},
		{"garbage", promises.P8, func(s *script) { s.accept(alpha); s.sendRaw([]byte("garbage")) }},
		{"other bytes with its name on them", promises.P9, func(s *script) {
			a := alpha.accepted(s.at)
			a.RawHash = chain.Keccak([]byte("as signed by somebody who adds a byte"))
			s.log(alpha, a)
			s.send(alpha)
		}},
		{"another length", promises.P9, func(s *script) {
			a := alpha.accepted(s.at)
			a.Bytes++
			s.log(alpha, a)
			s.send(alpha)
		}},
		{"another sender", promises.P9, func(s *script) {
			a := alpha.accepted(s.at)
			a.Sender = chain.Address{9}
			s.log(alpha, a)
			s.send(alpha)
		}},
		{"an acceptance in another's stream", promises.P9, func(s *script) { s.log(alpha, rival.accepted(s.at)) }},
		{"another nonce than the bytes say", promises.P29, func(s *script) {
			a := alpha.accepted(s.at)
			a.Nonce = 7
			s.log(alpha, a)
			s.send(alpha)
		}},
		{"before it is eligible", promises.P15, func(s *script) { s.accept(early); s.later(98 * time.Second); s.send(early) }},
		{"when it is eligible", 0, func(s *script) { s.accept(early); s.later(100 * time.Second); s.send(early) }},
		{"when the chain says that it is eligible", 0, func(s *script) {
			s.accept(early)
			s.mine(blockOf(100, "main"))
			s.send(early)
		}},
		{"after its window", promises.P15, func(s *script) { s.accept(short); s.later(80 * time.Second); s.send(short) }},
		{"at the end of its window", 0, func(s *script) { s.accept(short); s.later(60 * time.Second); s.send(short) }},
		{"after its window, as the chain says", promises.P15, func(s *script) { s.accept(short); s.mine(blockOf(80, "main")); s.send(short) }},
		{"six times in a second", promises.P17, func(s *script) {
			s.accept(alpha)
			for range 6 {
				s.send(alpha)
				s.later(100 * time.Millisecond)
			}
		}},
		{"four times in every second", 0, func(s *script) {
			s.accept(alpha)
			for range 20 {
				s.send(alpha)
				s.later(250 * time.Millisecond)
			}
		}},
		{"after its end", promises.P12, func(s *script) { executed(s, alpha); s.later(time.Minute); s.send(alpha) }},
		{"under way at its end", 0, func(s *script) { executed(s, alpha); s.later(time.Second); s.send(alpha) }},
		{"after the cancel", promises.P23, func(s *script) {
			s.accept(alpha)
			s.log(alpha, tx.CanceledLocally{})
			s.later(time.Minute)
			s.send(alpha)
		}},
		{"under way at the cancel", 0, func(s *script) {
			s.accept(alpha)
			s.log(alpha, tx.CanceledLocally{})
			s.later(time.Second)
			s.took(alpha, 1)
		}},
	})
}

func TestEvery(t *testing.T) {
	// Every promise of the package's list has a statement, and none is listed twice.
	seen := map[promises.Number]bool{}
	for _, p := range promises.All() {
		if p.Name == "" || p.Statement == "" || seen[p.Number] {
			t.Errorf("%+v", p)
		}
		seen[p.Number] = true
		if promises.Of(p.Number) != p {
			t.Errorf("%s is found as %+v", p.Number, promises.Of(p.Number))
		}
	}
	for _, text := range []string{"", "8", "P", "Px"} {
		if new(promises.Number).UnmarshalText([]byte(text)) == nil {
			t.Errorf("%q was taken for a promise", text)
		}
	}
	var n promises.Number
	if text, _ := promises.P12.MarshalText(); n.UnmarshalText(text) != nil || n != promises.P12 {
		t.Errorf("%s was read as %s", text, n)
	}
	v := promises.Violation{Promise: promises.P8, Stream: "tx-1-0xab", Position: 7, Evidence: "because"}
	if got, want := v.String(), "P8 (written before sent) tx-1-0xab at 7: because"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// Each event's id is in exactly one share, and a Unique reports only ids of its share.
func TestUniqueShares(t *testing.T) {
	found := 0
	for share := range byte(3) {
		u := promises.Unique{Share: func(id eventlog.ID) bool { return id[15]%3 == share }}
		for _, n := range []byte{1, 2, 3, 4, 2, 3} {
			found += len(u.Event(eventlog.Recorded{Event: eventlog.Event{ID: eventlog.ID{15: n}}}))
		}
	}
	if found != 2 {
		t.Errorf("%d found, want 2", found)
	}
}

func TestLog(t *testing.T) {
	change := func(f func(r *eventlog.Recorded)) func(s *script) {
		return func(s *script) { s.change = f; executed(s, alpha) }
	}
	run(t, promises.Settings{}, []scenario{
		{"a position twice", promises.P25, change(func(r *eventlog.Recorded) { r.Position = max(1, r.Position-r.Position%2) })},
		{"an event id twice", promises.P25, change(func(r *eventlog.Recorded) { r.ID = eventlog.ID{1} })},
		{"a version missing", promises.P25, change(func(r *eventlog.Recorded) { r.Version += r.Version / 2 })},
		{"a version missing elsewhere", promises.P25, func(s *script) {
			s.record("key-1", "key.created.v1", nil)
			s.versions["key-1"]++
			s.record("key-1", "key.revoked.v1", nil)
		}},
		{"a report twice", promises.P25, func(s *script) { s.accept(alpha); s.took(alpha, 1); s.took(alpha, 1) }},
		{"a cancel twice", promises.P25, func(s *script) { s.accept(alpha); s.log(alpha, tx.CanceledLocally{}, tx.CanceledLocally{}) }},
		{"bytes erased twice", promises.P25, func(s *script) {
			s.accept(alpha)
			s.log(alpha, tx.CanceledLocally{}, tx.PayloadErased{}, tx.PayloadErased{})
		}},
		{"bytes erased twice after the end", promises.P25, func(s *script) { executed(s, alpha); s.log(alpha, tx.PayloadErased{}, tx.PayloadErased{}) }},
		{"a group confirmed that was no claim", promises.P25, func(s *script) { s.accept(alpha); s.log(alpha, tx.GroupConfirmed{}) }},
		{"an event from the future", promises.P30, func(s *script) {
			s.accept(alpha)
			s.record(tx.Stream(testChain, alpha.hash()), "tx.teleported.v1", []byte("{}"))
		}},
		{"an event of no stream", promises.P30, func(s *script) { s.record("", "tx.retired.v1", []byte("{}")) }},
		{"a stream that names no transaction", promises.P30, func(s *script) { s.record("tx-1-0x12", "tx.retired.v1", []byte("{}")) }},
		{"a group's stream that names none", promises.P30, func(s *script) { s.record("group-1", "group.joined.v1", []byte("{}")) }},
		{"a field that is not known", promises.P30, func(s *script) {
			s.accept(alpha)
			s.record(tx.Stream(testChain, alpha.hash()), "tx.retired.v1", []byte(`{"why":1}`))
		}},
	})
}
