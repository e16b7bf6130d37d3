package promise_test

import (
	"testing"
	"time"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/group"
	"github.com/tempo-watchtower/watchtower/domain/promise"
	"github.com/tempo-watchtower/watchtower/domain/tx"
)

func (s *script) read(n note, status tx.Status) {
	s.call(promise.Call{Kind: promise.Read, Hash: n.hash(), Result: promise.OK, Status: status, Missing: status == tx.StatusAbsent})
}

func TestReads(t *testing.T) {
	b1 := blockOf(1, "main")
	run(t, promise.Settings{}, []scenario{
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
		{"back", promise.P24, func(s *script) {
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
				s.call(promise.Call{Kind: promise.Read, Hash: alpha.hash(), Result: promise.OK, Status: status, Began: began})
			}
		}},
		{"what it never was", promise.P24, func(s *script) { s.accept(alpha); s.read(alpha, tx.StatusExecuted) }},
		{"not found", promise.P24, func(s *script) { s.accept(alpha); s.submitted(alpha); s.later(1); s.read(alpha, "") }},
		{"not found, and the log has not been read yet", promise.P24, func(s *script) {
			s.submitted(alpha)
			s.later(1)
			s.read(alpha, "")
			s.accept(alpha)
		}},
		{"not found after its end", promise.P24, func(s *script) { executed(s, alpha); s.read(alpha, "") }},
		{"not found once it is forgotten", 0, func(s *script) {
			executed(s, alpha)
			s.log(alpha, tx.PayloadErased{}, tx.Retired{})
			s.read(alpha, "")
		}},
		{"not found by somebody else", 0, func(s *script) { s.read(alpha, ""); s.accept(alpha) }},
		{"back after its end", promise.P24, func(s *script) { executed(s, alpha); s.later(1); s.read(alpha, tx.StatusQueued) }},
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
	run(t, promise.Settings{}, []scenario{
		{"canceled, and each told", 0, func(s *script) {
			two(s)
			s.logGroup(id, group.Canceled{Members: 2})
			s.log(alpha, tx.CanceledLocally{}, tx.PayloadErased{})
			s.log(rival, tx.CanceledLocally{}, tx.PayloadErased{})
			s.finish(promise.End{Quiet: true})
		}},
		{"one is not told", promise.P23, func(s *script) {
			two(s)
			s.logGroup(id, group.Canceled{Members: 2})
			s.log(alpha, tx.CanceledLocally{})
			s.later(time.Hour)
			s.finish(promise.End{})
		}},
		{"one is not told yet", 0, func(s *script) {
			two(s)
			s.logGroup(id, group.Canceled{Members: 2})
			s.later(time.Second)
			s.finish(promise.End{})
		}},
		{"one had ended", 0, func(s *script) {
			executed(s, alpha)
			s.logGroup(id, alpha.joined(), group.Canceled{Members: 1})
			s.later(time.Hour)
			s.finish(promise.End{})
		}},
		{"one joins later", 0, func(s *script) {
			s.accept(alpha)
			s.logGroup(id, alpha.joined(), group.Canceled{Members: 1})
			s.log(alpha, tx.CanceledLocally{})
			s.accept(rival)
			s.logGroup(id, rival.joined())
			s.later(time.Hour)
			s.finish(promise.End{})
		}},
		{"more are canceled than joined", promise.P23, func(s *script) { two(s); s.logGroup(id, group.Canceled{Members: 3}) }},
		{"a signature is used twice", promise.P23, func(s *script) {
			two(s)
			s.logGroup(id, group.Canceled{Members: 1, By: typed}, group.Canceled{Members: 2, By: typed})
		}},
		{"canceled, and its bytes are kept", promise.P23, func(s *script) {
			s.accept(alpha)
			s.log(alpha, tx.CanceledLocally{})
			s.finish(promise.End{Quiet: true})
		}},
		{"canceled, and its bytes are gone", 0, func(s *script) {
			s.accept(alpha)
			s.log(alpha, tx.CanceledLocally{}, tx.PayloadErased{})
			s.finish(promise.End{Quiet: true})
		}},
		{"of a group, and never joined", promise.P23, func(s *script) {
			a, g := alpha.accepted(s.at), alpha.nonceKey().Group()
			a.Group = &g
			s.log(alpha, a, tx.CanceledLocally{}, tx.PayloadErased{})
			s.finish(promise.End{Quiet: true})
		}},
		{"ended, of a group, and never joined", promise.P23, func(s *script) {
			b := blockOf(1, "main")
			a, g := alpha.accepted(s.at), alpha.nonceKey().Group()
			a.Group = &g
			s.log(alpha, a)
			s.mine(b, alpha)
			s.log(alpha, minedIn(b))
			s.ledger.Finalize(1)
			s.log(alpha, tx.Finalized{Verdict: tx.StatusExecuted, Block: b, By: b})
			s.finish(promise.End{Quiet: true})
		}},
		{"canceled with another verdict", promise.P23, func(s *script) {
			s.accept(alpha)
			s.log(alpha, tx.CanceledLocally{Verdict: tx.StatusExecuted})
		}},
		{"sent after the cancel, as recorded", promise.P23, func(s *script) {
			s.accept(alpha)
			s.took(alpha, 1)
			s.log(alpha, tx.CanceledLocally{}, tx.Broadcast{Attempt: 2, Answers: []tx.Answer{{Class: tx.Taken}}})
		}},
		{"joins twice", promise.P3, func(s *script) { two(s); s.logGroup(id, alpha.joined()) }},
		{"joins twice, once after its end", promise.P3, func(s *script) {
			executed(s, alpha)
			s.logGroup(id, alpha.joined(), alpha.joined())
		}},
		{"joins, and nobody accepted it", promise.P3, func(s *script) { s.logGroup(id, alpha.joined()) }},
		{"joins a group of another's", promise.P3, func(s *script) { s.accept(short); s.logGroup(id, short.joined()) }},
		{"joins in another's name", promise.P3, func(s *script) {
			s.accept(short)
			j := short.joined()
			j.Sender = id.Sender
			s.logGroup(id, j)
		}},
	})
}

func TestTimely(t *testing.T) {
	run(t, promise.Settings{Timely: 250 * time.Millisecond}, []scenario{
		{"at once", 0, func(s *script) {
			s.accept(alpha)
			s.later(100 * time.Millisecond)
			s.took(alpha, 1)
			s.later(time.Hour)
			s.took(alpha, 2) // not a first attempt
			s.finish(promise.End{})
		}},
		{"late", promise.P16, func(s *script) {
			s.accept(alpha)
			s.later(time.Second)
			s.took(alpha, 1)
			s.finish(promise.End{})
		}},
		{"late, as recorded", promise.P16, func(s *script) {
			s.accept(alpha)
			s.later(time.Second)
			s.log(alpha, tx.Broadcast{Attempt: 1, Answers: []tx.Answer{{Class: tx.Taken}}})
			s.finish(promise.End{})
		}},
	})
}

func TestFigures(t *testing.T) {
	s := newScript(promise.Settings{})
	executed(s, alpha)
	s.accept(short)
	s.expect(t, 0)
	f := s.judge.Figures()
	if f.Events != 5 || f.Transactions != 2 || f.Open != 1 || f.Sent != 1 || f.Calls != 1 || f.Late.Count != 1 {
		t.Errorf("%+v", f)
	}
}
