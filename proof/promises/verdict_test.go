package promises_test

import (
	"testing"
	"time"

	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
	"github.com/tempo-watchtower/watchtower/proof/promises"
)

// sealed is the event that seals a verdict on the first block.
func sealed(verdict tx.Status) tx.Finalized {
	return tx.Finalized{Verdict: verdict, Block: blockOf(1, "main"), By: blockOf(2, "main")}
}

// twoBlocks adds a block with the given transactions and a final block.
func twoBlocks(s *script, in ...note) {
	s.mine(blockOf(1, "main"), in...)
	s.mine(blockOf(2, "main"))
	s.ledger.Finalize(2)
}

func TestVerdicts(t *testing.T) {
	b1, b2, fork := blockOf(1, "main"), blockOf(2, "main"), blockOf(1, "fork")
	late := blockOf(60, "main")
	refusal := tx.Rejected{Attempt: 1, Class: tx.Permanent, Permanent: true, Answers: []tx.Answer{{Class: tx.Permanent}}}
	run(t, promises.Settings{}, []scenario{
		{"two executions of one nonce", promises.P10, func(s *script) {
			for _, n := range []note{alpha, rival} {
				s.accept(n)
				s.took(n, 1)
			}
			twoBlocks(s, alpha, rival) // a faulty chain that accepts both
			for _, n := range []note{alpha, rival} {
				s.log(n, minedIn(b1), sealed(tx.StatusExecuted))
			}
		}},
		{"two executions of one nonce that are not sealed", promises.P10, func(s *script) {
			twoBlocks(s, alpha, rival)
			s.accept(alpha)
			s.accept(rival)
			s.finish(promises.End{})
		}},
		{"one of two stale", 0, func(s *script) {
			for _, n := range []note{alpha, rival} {
				s.accept(n)
				s.took(n, 1)
			}
			twoBlocks(s, alpha)
			s.log(alpha, minedIn(b1), sealed(tx.StatusExecuted))
			s.log(rival, tx.StaleByNonce{Block: b1, Current: 1}, sealed(tx.StatusStale))
			s.finish(promises.End{Quiet: true})
		}},
		{"executed, and the chain does not have it", promises.P11, func(s *script) {
			s.accept(alpha)
			twoBlocks(s)
			s.log(alpha, minedIn(b1), sealed(tx.StatusExecuted))
		}},
		{"executed in another block", promises.P11, func(s *script) {
			s.accept(alpha)
			twoBlocks(s)
			s.mine(blockOf(3, "main"), alpha)
			s.log(alpha, minedIn(b1), sealed(tx.StatusExecuted))
		}},
		{"sealed before it is final", promises.P11, func(s *script) {
			s.accept(alpha)
			s.mine(b1, alpha)
			s.mine(b2)
			s.log(alpha, minedIn(b1), sealed(tx.StatusExecuted))
		}},
		{"sealed on a branch that is not the chain", promises.P11, func(s *script) {
			s.accept(alpha)
			s.mine(fork, alpha)
			s.ledger.Finalize(1)
			s.log(alpha, minedIn(b1), sealed(tx.StatusExecuted))
		}},
		{"sealed without a verdict", promises.P11, func(s *script) { s.accept(alpha); s.log(alpha, sealed(tx.StatusExecuted)) }},
		{"sealed as something else", promises.P11, func(s *script) {
			s.accept(alpha)
			twoBlocks(s, alpha)
			s.log(alpha, minedIn(b1), sealed(tx.StatusStale))
		}},
		{"sealed by an older block", promises.P11, func(s *script) {
			s.accept(alpha)
			twoBlocks(s, alpha)
			s.log(alpha, minedIn(b1), tx.Finalized{Verdict: tx.StatusExecuted, Block: b1, By: blockOf(0, "main")})
		}},
		{"stale with its nonce free", promises.P11, func(s *script) { s.accept(alpha); s.log(alpha, tx.StaleByNonce{Block: b1}) }},
		{"stale though nobody used its nonce", promises.P11, func(s *script) {
			s.accept(alpha)
			twoBlocks(s)
			s.ledger.Want(alpha.sequence(), 0)
			s.log(alpha, tx.StaleByNonce{Block: b1, Current: 1}, sealed(tx.StatusStale))
		}},
		{"stale though it was mined", promises.P11, func(s *script) {
			s.accept(alpha)
			twoBlocks(s, alpha)
			s.log(alpha, tx.StaleByNonce{Block: b1, Current: 1}, sealed(tx.StatusStale))
		}},
		{"stale, and mined later", promises.P11, func(s *script) {
			s.accept(alpha)
			twoBlocks(s)
			s.log(alpha, tx.StaleByNonce{Block: b1, Current: 1}, sealed(tx.StatusStale))
			s.mine(blockOf(3, "main"), alpha)
			s.finish(promises.End{})
		}},
		{"expired before its time", promises.P11, func(s *script) { s.accept(short); s.log(short, tx.Expired{Block: b1}) }},
		{"expired", 0, func(s *script) {
			s.accept(short)
			s.mine(late)
			s.ledger.Finalize(60)
			s.log(short, tx.Expired{Block: late}, tx.Finalized{Verdict: tx.StatusExpired, Block: late, By: late})
			s.finish(promises.End{Quiet: true})
		}},
		{"invalid though a node took it", promises.P11, func(s *script) {
			s.accept(alpha)
			s.took(alpha, 1)
			again := refusal
			again.Attempt = 2
			s.log(alpha, again)
		}},
		{"invalid though one did not say so", promises.P11, func(s *script) {
			s.accept(alpha)
			some := refusal
			some.Answers = append(some.Answers, tx.Answer{Class: tx.Retry})
			s.log(alpha, some)
		}},
		{"invalid", 0, func(s *script) {
			s.accept(alpha)
			s.log(alpha, refusal, tx.PayloadErased{}, tx.Retired{})
			s.finish(promises.End{Quiet: true})
		}},
		{"taken by nobody", promises.P11, func(s *script) { s.accept(alpha); s.log(alpha, tx.Broadcast{Attempt: 1}) }},
		{"a false alarm", promises.P11, func(s *script) {
			executed(s, alpha)
			s.log(alpha, tx.FinalityViolated{Verdict: tx.StatusExecuted, Was: b1, Now: fork})
		}},
		{"a chain that took back what was final", 0, func(s *script) {
			executed(s, alpha)
			s.mine(fork)
			s.log(alpha, tx.FinalityViolated{Verdict: tx.StatusExecuted, Was: b1, Now: fork})
			s.finish(promises.End{Quiet: true})
		}},
		{"sealed on what the chain has just taken back", 0, func(s *script) {
			s.accept(alpha)
			twoBlocks(s, alpha)
			s.mine(fork)
			s.log(alpha, minedIn(b1), sealed(tx.StatusExecuted))
		}},
	})
}

func TestTheEndIsLast(t *testing.T) {
	b1, b3 := blockOf(1, "main"), blockOf(3, "main")
	violated := tx.FinalityViolated{Verdict: tx.StatusExecuted, Was: b1, Now: b3}
	all := []scenario{
		{"a violation of what was not sealed", promises.P12, func(s *script) { s.accept(alpha); s.log(alpha, violated) }},
		{"an attempt after the verdict", promises.P12, func(s *script) {
			s.accept(alpha)
			s.mine(b1, alpha)
			s.log(alpha, minedIn(b1))
			s.took(alpha, 1)
		}},
		{"a second verdict", promises.P12, func(s *script) {
			s.accept(alpha)
			s.mine(b1, alpha)
			s.log(alpha, minedIn(b1), tx.StaleByNonce{Block: b1, Current: 1})
		}},
		{"a verdict that gives way to a receipt", 0, func(s *script) {
			s.accept(alpha)
			s.mine(b1, alpha)
			s.log(alpha, tx.StaleByNonce{Block: b1, Current: 1}, minedIn(b1))
		}},
		{"after a violation", promises.P12, func(s *script) {
			executed(s, alpha)
			s.mine(blockOf(1, "fork"))
			s.log(alpha, violated, tx.PayloadErased{})
		}},
	}
	for name, e := range map[string]tx.Event{
		"mined": minedIn(b3), "stale": tx.StaleByNonce{Block: b3, Current: 1}, "expired": tx.Expired{Block: b3},
		"withdrawn": tx.Reorged{Was: b1, Now: b3}, "sealed again": sealed(tx.StatusExecuted),
		"taken": tx.Broadcast{Attempt: 2}, "canceled": tx.CanceledLocally{},
	} {
		all = append(all, scenario{name + " after the end", promises.P12, func(s *script) { executed(s, alpha); s.log(alpha, e) }})
	}
	run(t, promises.Settings{}, all)
}

func TestReorgs(t *testing.T) {
	b1, fork := blockOf(1, "main"), blockOf(1, "fork")
	// mined is a life up to its mining in a block that leaves the chain.
	mined := func(s *script) {
		s.accept(alpha)
		s.took(alpha, 1)
		s.mine(b1, alpha)
		s.log(alpha, minedIn(b1))
		s.mine(fork)
	}
	withdrawn := tx.Reorged{Was: b1, Now: fork}
	minutes := func(s *script, n int, up bool) {
		for range n * 12 {
			s.later(5 * time.Second)
			s.tick(up)
		}
	}
	run(t, promises.Settings{}, []scenario{
		{"recorded and delivered again", 0, func(s *script) {
			mined(s)
			s.log(alpha, withdrawn)
			s.later(time.Second)
			s.took(alpha, 2)
			s.mine(blockOf(2, "fork"), alpha)
			s.log(alpha, minedIn(blockOf(2, "fork")))
			minutes(s, 3, true)
		}},
		{"recorded never", promises.P13, func(s *script) { mined(s); minutes(s, 1, true) }},
		{"not recorded while nobody could", 0, func(s *script) { mined(s); minutes(s, 3, false) }},
		{"not asked again: the block came back", 0, func(s *script) {
			mined(s)
			minutes(s, 0, true)
			s.mine(b1, alpha)
			minutes(s, 3, true)
		}},
		{"withdrawn though the block never left", promises.P13, func(s *script) {
			s.accept(alpha)
			s.mine(b1, alpha)
			s.log(alpha, minedIn(b1), withdrawn)
		}},
		{"withdrawn without a verdict", promises.P13, func(s *script) { s.accept(alpha); s.log(alpha, withdrawn) }},
		{"withdrawn from another block", promises.P13, func(s *script) { mined(s); s.log(alpha, tx.Reorged{Was: blockOf(2, "main"), Now: fork}) }},
		{"withdrawn in favour of itself", promises.P13, func(s *script) { mined(s); s.log(alpha, tx.Reorged{Was: b1, Now: b1}) }},
		{"mined twice", promises.P13, func(s *script) { mined(s); s.log(alpha, minedIn(fork)) }},
		{"un-mined and forgotten", promises.P14, func(s *script) { mined(s); s.log(alpha, withdrawn); minutes(s, 1, true) }},
		{"un-mined and given up by nobody", promises.P14, func(s *script) {
			mined(s)
			gone := withdrawn
			gone.Unwanted = true
			s.log(alpha, gone)
		}},
		{"canceled, un-mined, and sent again", promises.P23, func(s *script) {
			mined(s)
			s.log(alpha, tx.CanceledLocally{Verdict: tx.StatusExecuted}, withdrawn)
		}},
		{"canceled and un-mined", 0, func(s *script) {
			mined(s)
			gone := withdrawn
			gone.Unwanted = true
			s.log(alpha, tx.CanceledLocally{Verdict: tx.StatusExecuted}, gone)
			minutes(s, 3, true)
		}},
	})
}

func TestKeepsTrying(t *testing.T) {
	// minute advances the time by a minute, and sends in each second for which send returns true.
	minute := func(s *script, send func(second int) bool) {
		for second := range 60 {
			s.later(time.Second)
			if send(second) {
				s.send(alpha)
			}
			s.tick(true)
		}
	}
	never := func(int) bool { return false }
	free := func(s *script) { s.accept(alpha); s.ledger.Want(alpha.sequence(), 0) }
	run(t, promises.Settings{Gap: 20 * time.Second}, []scenario{
		{"every fifteen seconds", 0, func(s *script) { free(s); minute(s, func(n int) bool { return n%15 == 0 }) }},
		{"once", promises.P17, func(s *script) { free(s); minute(s, func(n int) bool { return n == 0 }) }},
		{"never", promises.P17, func(s *script) { free(s); minute(s, never) }},
		{"while it waits for a nonce", 0, func(s *script) {
			second := alpha
			second.nonce = 1
			s.accept(second)
			s.ledger.Want(alpha.sequence(), 0)
			minute(s, never)
		}},
		{"while its account cannot pay", 0, func(s *script) {
			free(s)
			s.log(alpha, tx.Rejected{Attempt: 1, Class: tx.Retry, Cause: tx.Funds, Answers: []tx.Answer{{Class: tx.Retry}}})
			minute(s, never)
		}},
		{"when its account can pay again", promises.P17, func(s *script) {
			free(s)
			s.log(alpha, tx.Rejected{Attempt: 1, Class: tx.Retry, Cause: tx.Funds, Answers: []tx.Answer{{Class: tx.Retry}}})
			s.took(alpha, 2)
			minute(s, never)
		}},
		{"before it is eligible", 0, func(s *script) {
			s.accept(early)
			s.ledger.Want(early.sequence(), 0)
			minute(s, never)
		}},
	})
}
