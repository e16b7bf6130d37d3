package promises_test

import (
	"testing"
	"time"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/delivery/group"
	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
	"github.com/tempo-watchtower/watchtower/proof/promises"
)

func (s *script) read(n note, status tx.Status) {
	s.call(promises.Call{Kind: promises.Read, Hash: n.hash(), Result: promises.OK, Status: status, Missing: status == tx.StatusAbsent})
}

func TestReads(t *testing.T) {
	b1 := blockOf(1, "main")
	run(t, promises.Settings{}, []scenario{
		{"forward", 0, func(s *script) {
			s.accept(alpha)
			s.submitted(alpha)
			s.later(time.Second)
			s.read(alpha, tx.StatusQueued)
			s.took(alpha, 1)
			s.read(alpha, tx.StatusBroadcasting)
			s.read(alpha, tx.StatusBroadcasting)
		}},
		{"back, when the chain went back", 0, func(s *script) {
			s.accept(alpha)
			s.took(alpha, 1)
			s.later(time.Second)
			s.mine(b1, alpha)
			s.log(alpha, minedIn(b1))
			s.read(alpha, tx.StatusExecuted)
			s.mine(blockOf(1, "fork"))
			s.later(time.Second)
			s.log(alpha, tx.Reorged{Was: b1, Now: blockOf(1, "fork")})
			s.read(alpha, tx.StatusBroadcasting)
		}},
		{"back", promises.P24, func(s *script) {
			s.accept(alpha)
			s.took(alpha, 1)
			s.read(alpha, tx.StatusBroadcasting)
			s.later(time.Second)
			s.read(alpha, tx.StatusQueued)
		}},
		{"two at once, in either order", 0, func(s *script) {
			s.accept(alpha)
			s.took(alpha, 1)
			s.later(time.Second)
			began := s.at.Add(-time.Second)
			for _, status := range []tx.Status{tx.StatusBroadcasting, tx.StatusQueued} {
				s.call(promises.Call{Kind: promises.Read, Hash: alpha.hash(), Result: promises.OK, Status: status, Began: began})
			}
		}},
		{"what it never was", promises.P24, func(s *script) { s.accept(alpha); s.read(alpha, tx.StatusExecuted) }},
		{"not found", promises.P24, func(s *script) { s.accept(alpha); s.submitted(alpha); s.later(1); s.read(alpha, "") }},
		{"not found, and the log has not been read yet", promises.P24, func(s *script) {
			s.submitted(alpha)
			s.later(1)
			s.read(alpha, "")
			s.accept(alpha)
		}},
		{"not found after its end", promises.P24, func(s *script) { executed(s, alpha); s.read(alpha, "") }},
		{"not found once it is forgotten", 0, func(s *script) {
			executed(s, alpha)
			s.log(alpha, tx.PayloadErased{}, tx.Retired{})
			s.read(alpha, "")
		}},
		{"not found by somebody else", 0, func(s *script) { s.read(alpha, ""); s.accept(alpha) }},
		{"back after its end", promises.P24, func(s *script) { executed(s, alpha); s.later(1); s.read(alpha, tx.StatusQueued) }},
		{"after its end", 0, func(s *script) { executed(s, alpha); s.later(1); s.read(alpha, tx.StatusExecuted) }},
	})
}

// joined returns the event that makes a transaction a member of its group.
func (n note) joined() group.Joined {
	a := n.accepted(epoch)
	return group.Joined{Chain: a.Chain, Sender: a.Sender, Group: a.NonceKey.Group(), Hash: a.Hash, NonceKey: a.NonceKey, Nonce: a.Nonce}
}

func (n note) group() group.ID {
	return group.ID{Chain: testChain, Sender: chain.Address{n.sender}, Group: n.nonceKey().Group()}
}

func TestGroups(t *testing.T) {
	id := alpha.group()
	typed := group.Authority{Form: group.FormTyped, Digest: chain.Hash{1}}
	two := func(s *script) {
		s.accept(alpha)
		s.accept(rival)
		s.logGroup(id, alpha.joined(), rival.joined())
	}
	run(t, promises.Settings{}, []scenario{
		{"canceled, and each told", 0, func(s *script) {
			two(s)
			s.logGroup(id, group.Canceled{Members: 2})
			s.log(alpha, tx.CanceledLocally{}, tx.PayloadErased{})
			s.log(rival, tx.CanceledLocally{}, tx.PayloadErased{})
			s.finish(promises.End{Quiet: true})
		}},
		{"one is not told", promises.P23, func(s *script) {
			two(s)
			s.logGroup(id, group.Canceled{Members: 2})
			s.log(alpha, tx.CanceledLocally{})
			s.later(time.Hour)
			s.finish(promises.End{})
		}},
		{"one is not told yet", 0, func(s *script) {
			two(s)
			s.logGroup(id, group.Canceled{Members: 2})
			s.later(time.Second)
			s.finish(promises.End{})
		}},
		{"one had ended", 0, func(s *script) {
			executed(s, alpha)
			s.logGroup(id, alpha.joined(), group.Canceled{Members: 1})
			s.later(time.Hour)
			s.finish(promises.End{})
		}},
		{"one joins later", 0, func(s *script) {
			s.accept(alpha)
			s.logGroup(id, alpha.joined(), group.Canceled{Members: 1})
			s.log(alpha, tx.CanceledLocally{})
			s.accept(rival)
			s.logGroup(id, rival.joined())
			s.later(time.Hour)
			s.finish(promises.End{})
		}},
		{"more are canceled than joined", promises.P23, func(s *script) { two(s); s.logGroup(id, group.Canceled{Members: 3}) }},
		{"a signature is used twice", promises.P23, func(s *script) {
			two(s)
			s.logGroup(id, group.Canceled{Members: 1, By: typed}, group.Canceled{Members: 2, By: typed})
		}},
		{"canceled, and its bytes are kept", promises.P23, func(s *script) {
			s.accept(alpha)
			s.log(alpha, tx.CanceledLocally{})
			s.finish(promises.End{Quiet: true})
		}},
		{"canceled, and its bytes are gone", 0, func(s *script) {
			s.accept(alpha)
			s.log(alpha, tx.CanceledLocally{}, tx.PayloadErased{})
			s.finish(promises.End{Quiet: true})
		}},
		{"of a group, and never joined", promises.P23, func(s *script) {
			a, g := alpha.accepted(s.at), alpha.nonceKey().Group()
			a.Group = &g
			s.log(alpha, a, tx.CanceledLocally{}, tx.PayloadErased{})
			s.finish(promises.End{Quiet: true})
		}},
		{"ended, of a group, and never joined", promises.P23, func(s *script) {
			b := blockOf(1, "main")
			a, g := alpha.accepted(s.at), alpha.nonceKey().Group()
			a.Group = &g
			s.log(alpha, a)
			s.mine(b, alpha)
			s.log(alpha, minedIn(b))
			s.ledger.Finalize(1)
			s.log(alpha, tx.Finalized{Verdict: tx.StatusExecuted, Block: b, By: b})
			s.finish(promises.End{Quiet: true})
		}},
		{"canceled with another verdict", promises.P23, func(s *script) {
			s.accept(alpha)
			s.log(alpha, tx.CanceledLocally{Verdict: tx.StatusExecuted})
		}},
		{"sent after the cancel, as recorded", promises.P23, func(s *script) {
			s.accept(alpha)
			s.took(alpha, 1)
			s.log(alpha, tx.CanceledLocally{}, tx.Broadcast{Attempt: 2, Answers: []tx.Answer{{Class: tx.Taken}}})
		}},
		{"joins twice", promises.P3, func(s *script) { two(s); s.logGroup(id, alpha.joined()) }},
		{"joins twice, once after its end", promises.P3, func(s *script) {
			executed(s, alpha)
			s.logGroup(id, alpha.joined(), alpha.joined())
		}},
		{"joins, and nobody accepted it", promises.P3, func(s *script) { s.logGroup(id, alpha.joined()) }},
		{"joins a group of another's", promises.P3, func(s *script) { s.accept(short); s.logGroup(id, short.joined()) }},
		{"joins in another's name", promises.P3, func(s *script) {
			s.accept(short)
			j := short.joined()
			j.Sender = id.Sender
			s.logGroup(id, j)
		}},
	})
}

func TestTimely(t *testing.T) {
	run(t, promises.Settings{Timely: 250 * time.Millisecond}, []scenario{
		{"at once", 0, func(s *script) {
			s.accept(alpha)
			s.later(100 * time.Millisecond)
			s.took(alpha, 1)
			s.later(time.Hour)
			s.took(alpha, 2) // not a first attempt
			s.finish(promises.End{})
		}},
		{"late", promises.P16, func(s *script) {
			s.accept(alpha)
			s.later(time.Second)
			s.took(alpha, 1)
			s.finish(promises.End{})
		}},
		{"late, as recorded", promises.P16, func(s *script) {
			s.accept(alpha)
			s.later(time.Second)
			s.log(alpha, tx.Broadcast{Attempt: 1, Answers: []tx.Answer{{Class: tx.Taken}}})
			s.finish(promises.End{})
		}},
	})
}

func TestFigures(t *testing.T) {
	s := newScript(promises.Settings{})
	executed(s, alpha)
	s.accept(short)
	s.expect(t, 0)
	f := s.judge.Figures()
	if f.Events != 5 || f.Transactions != 2 || f.Open != 1 || f.Sent != 1 || f.Calls != 1 || f.Late.Count != 1 {
		t.Errorf("%+v", f)
	}
}
