package intents_test

import (
	"testing"
	"time"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
	"github.com/tempo-watchtower/watchtower/domain/notice"
	"github.com/tempo-watchtower/watchtower/domain/relay/intent"
	"github.com/tempo-watchtower/watchtower/domain/relay/lane"
	"github.com/tempo-watchtower/watchtower/eventlog"
	"github.com/tempo-watchtower/watchtower/proof/promises"
	"github.com/tempo-watchtower/watchtower/proof/promises/intents"
)

var epoch = time.Unix(1_800_000_000, 0).UTC()

var (
	main7, main8, main9 = blockOf(7, "main"), blockOf(8, "main"), blockOf(9, "main")
	fork7, fork8        = blockOf(7, "fork"), blockOf(8, "fork")
	first               = wish(1).ID()
	second              = wish(2).ID()
)

// sent brings an intent to its first attempt, sequence 2.
func sent(s *script) {
	s.told(first, requested(1), assigned(1, 1, 5), attempted(2, 1, 1, intent.First))
}

// mined reports two blocks, up to sequence 4.
func mined(s *script) {
	sent(s)
	s.told(first, receipt(3, 1, &main7, 1), confirmed(4, 1, false, main7, main8))
}

// TestOneRequest covers P3.
func TestOneRequest(t *testing.T) {
	call := func(n int, change func(*intents.Call)) func(s *script) {
		return func(s *script) {
			s.log(first, requested(1))
			for i := range n {
				r := wish(1)
				c := intents.Call{From: r.From, Key: r.Key, Digest: r.Digest(), Result: promises.OK, ID: first}
				if i == n-1 {
					change(&c)
				}
				s.found = append(s.found, s.judge.Call(c)...)
			}
			s.finish(true)
		}
	}
	run(t, []scenario{
		{"once", 0, func(s *script) { s.log(first, requested(1)) }},
		{"twice", promises.P3, func(s *script) { s.log(first, requested(1), requested(1)) }},
		{"under another's id", promises.P3, func(s *script) { s.log(second, requested(1)) }},
		{"recorded as another", promises.P3, func(s *script) { r := requested(1); r.Digest[0]++; s.log(first, r) }},
		{"altered", promises.P3, func(s *script) { r := requested(1); r.Request.Calls[0].Value = intent.NewAmount(1); s.log(first, r) }},
		{"begun by nothing", promises.P3, func(s *script) { s.log(first, assigned(1, 1, 5)) }},
		{"asked a hundred times", 0, call(100, func(*intents.Call) {})},
		{"answered with another", promises.P3, call(2, func(c *intents.Call) { c.ID = second })},
		{"taken with another body", promises.P3, call(2, func(c *intents.Call) { c.Digest[0]++ })},
		{"refused with another body", 0, call(2, func(c *intents.Call) { c.Digest[0]++; c.Result = promises.Refused })},
		{"told of, and lost", promises.P1, call(1, func(c *intents.Call) { c.Key, c.ID = wish(2).Key, second })},
		{"an event that is not known", promises.P30, func(s *script) { s.record(intent.Stream(first), "intent.dreamt.v1", []byte("{}")) }},
		{"a stream that is none", promises.P30, func(s *script) { s.record("intent-7", "intent.requested.v1", []byte("{}")) }},
		{"another's stream", 0, func(s *script) { s.record("tx-7", "tx.dreamt.v1", []byte("{}")) }},
	})
}

// TestOneExecution covers P10.
func TestOneExecution(t *testing.T) {
	rival := intent.Evidence{Kind: intent.Rival, Block: main9, Hash: hashOf(99)}
	run(t, []scenario{
		{"done", 0, func(s *script) { mined(s); s.told(first, completed(5, 1, main7)) }},
		{"moved for a rival", 0, func(s *script) {
			sent(s)
			s.told(first, requeued(3, 1, rival), assigned(4, 2, 6), attempted(5, 2, 2, intent.First))
		}},
		{"two places", promises.P10, func(s *script) { sent(s); s.told(first, assigned(3, 2, 6)) }},
		{"given back, and signed", promises.P10, func(s *script) { sent(s); s.told(first, requeued(3, 1, intent.Evidence{Kind: intent.Released})) }},
		{"moved for no reason", promises.P10, func(s *script) { sent(s); s.told(first, requeued(3, 1, intent.Evidence{Kind: intent.Rival})) }},
		{"moved for itself", promises.P10, func(s *script) {
			sent(s)
			s.told(first, requeued(3, 1, intent.Evidence{Kind: intent.Rival, Block: main9, Hash: hashOf(1)}))
		}},
		{"moved while it is mined", promises.P10, func(s *script) { mined(s); s.told(first, requeued(5, 1, rival)) }},
		{"moved from where it is not", promises.P10, func(s *script) { s.log(first, requested(1), requeued(1, 1, rival)) }},
		{"signed without a place", promises.P10, func(s *script) { s.log(first, requested(1), attempted(1, 1, 1, intent.First)) }},
		{"done twice", promises.P10, func(s *script) { mined(s); s.told(first, completed(5, 1, main7), completed(6, 1, main7)) }},
		{"done twice, with a reorg", 0, func(s *script) {
			mined(s)
			s.told(first, completed(5, 1, main7), intent.Reorged{Was: main7, Now: fork7}, receipt(6, 1, &fork7, 1), confirmed(7, 1, true, fork7), completed(8, 1, fork7))
		}},
		{"goes on after its end", promises.P10, func(s *script) { mined(s); s.told(first, completed(5, 1, main7), attempted(6, 1, 2, intent.Bump)) }},
		{"taken back from nowhere", promises.P10, func(s *script) { mined(s); s.told(first, intent.Reorged{Was: main7, Now: fork7}) }},
		{"done by a stranger", promises.P10, func(s *script) { mined(s); s.told(first, completed(5, 2, main7)) }},
		{"given up, and nobody wished it", promises.P10, func(s *script) { sent(s); s.told(first, attempted(3, 1, 2, intent.NoOp)) }},
		{"done by a no-op", promises.P10, func(s *script) {
			sent(s)
			s.told(first, intent.CancelRequested{Reason: intent.Withdrawn, At: epoch})
			s.told(first, attempted(3, 1, 2, intent.NoOp), receipt(4, 2, &main7, 1), confirmed(5, 2, false, main7), completed(6, 2, main7))
		}},
		{"done, and reverted", promises.P10, func(s *script) {
			sent(s)
			s.told(first, receipt(3, 1, &main7, 0), confirmed(4, 1, false, main7), completed(5, 1, main7))
		}},
		{"done where it was not told", promises.P10, func(s *script) { mined(s); s.told(first, completed(5, 1, main8)) }},
		{"two by one nonce", promises.P10, func(s *script) {
			mined(s)
			s.told(first, completed(5, 1, main7))
			s.told(second, requested(2), assigned(1, 1, 5), attempted(2, 1, 2, intent.First), receipt(3, 2, &main9, 1), confirmed(4, 2, false, main9), completed(5, 2, main9))
		}},
		{"canceled at once, and may land", promises.P10, func(s *script) { sent(s); s.told(first, intent.Canceled{Sequence: 3, At: epoch}) }},
		{"executed twice by the chain", promises.P10, func(s *script) {
			sent(s)
			s.told(first, requeued(3, 1, rival), assigned(4, 2, 6), attempted(5, 2, 2, intent.First))
			s.ledger.Add(main7, promises.Execution{Hash: hashOf(1), Status: 1})
			s.ledger.Add(main8, promises.Execution{Hash: hashOf(2), Status: 1})
			s.finish(false)
		}},
		{"reverted, and executed at the next nonce", 0, func(s *script) {
			sent(s)
			s.told(first, requeued(3, 1, rival), assigned(4, 2, 6), attempted(5, 2, 2, intent.First))
			s.ledger.Add(main7, promises.Execution{Hash: hashOf(1), Status: 0})
			s.ledger.Add(main8, promises.Execution{Hash: hashOf(2), Status: 1})
			s.finish(false)
		}},
	})
}

// TestTold covers P22 by the log.
func TestTold(t *testing.T) {
	onChain := func(s *script, list ...chain.Block) {
		for i, b := range list {
			if i == 0 {
				s.ledger.Add(b, promises.Execution{Hash: hashOf(1), Status: 1})
			} else {
				s.ledger.Add(b)
			}
		}
	}
	run(t, []scenario{
		{"block by block", 0, func(s *script) {
			mined(s)
			s.told(first, confirmed(5, 1, false, main9))
			onChain(s, main7, main8, main9)
			s.finish(true)
		}},
		{"a fork", 0, func(s *script) {
			mined(s)
			s.told(first, receipt(5, 1, &fork7, 1), confirmed(6, 1, true, fork7, fork8))
			onChain(s, fork7, fork8)
			s.finish(true)
		}},
		{"un-mined", 0, func(s *script) { mined(s); s.told(first, receipt(5, 1, nil, 0), confirmed(6, 1, true)); s.finish(true) }},
		{"a gap", promises.P22, func(s *script) { sent(s); s.told(first, receipt(4, 1, &main7, 1)) }},
		{"a number twice", promises.P22, func(s *script) { sent(s); s.log(first, receipt(2, 1, &main7, 1)) }},
		{"a fork hidden", promises.P22, func(s *script) {
			mined(s)
			s.told(first, receipt(5, 1, &fork7, 1), confirmed(6, 1, false, fork7, fork8))
		}},
		{"a fork hidden in the middle", promises.P22, func(s *script) {
			mined(s)
			s.told(first, confirmed(5, 1, false, blockOf(9, "fork")))
		}},
		{"a fork made up", promises.P22, func(s *script) { mined(s); s.told(first, confirmed(5, 1, true, main7, main8, main9)) }},
		{"a fork of nothing", promises.P22, func(s *script) { sent(s); s.told(first, receipt(3, 1, &main7, 1), confirmed(4, 1, true, main7)) }},
		{"a fork without the whole list", promises.P22, func(s *script) { mined(s); s.told(first, receipt(5, 1, &fork7, 1), confirmed(6, 1, true, fork8)) }},
		{"a list with a gap", promises.P22, func(s *script) {
			sent(s)
			s.told(first, receipt(3, 1, &main7, 1), confirmed(4, 1, false, main7, main9))
		}},
		{"nothing new", promises.P22, func(s *script) { mined(s); s.told(first, confirmed(5, 1, false)) }},
		{"another block's confirmations", promises.P22, func(s *script) { sent(s); s.told(first, receipt(3, 1, &main7, 1), confirmed(4, 1, false, main8)) }},
		{"a stranger's", promises.P22, func(s *script) { sent(s); s.told(first, receipt(3, 2, &main7, 1)) }},
		{"not told that it is mined", promises.P22, func(s *script) { sent(s); onChain(s, main7); s.finish(true) }},
		{"not told yet", 0, func(s *script) { sent(s); onChain(s, main7); s.finish(false) }},
		{"not told that it left", promises.P22, func(s *script) { mined(s); s.finish(true) }},
		{"not told that a confirmation left", promises.P22, func(s *script) { mined(s); onChain(s, main7, blockOf(8, "other")); s.finish(true) }},
		{"told another end", promises.P22, func(s *script) {
			sent(s)
			s.told(first, receipt(3, 1, &main7, 0), confirmed(4, 1, false, main7))
			onChain(s, main7)
			s.finish(true)
		}},
	})
}

// A notice has the same id for every receiver.
func TestOneName(t *testing.T) {
	told, ok := intent.Tell(first, assigned(7, 1, 5))
	if key := (notice.Key{Intent: first, Seq: 7}); !ok || told.ID() != key.MessageID() {
		t.Errorf("%s and %s", told.ID(), key.MessageID())
	}
}

// TestConsumer covers P22 by the receiver.
func TestConsumer(t *testing.T) {
	show := func(s *script, e intent.Event) {
		n, _ := intent.Tell(first, e)
		s.found = append(s.found, s.consumer.Shown(n)...)
	}
	run(t, []scenario{
		{"all", 0, func(s *script) { mined(s); s.told(first, completed(5, 1, main7)); s.delivered() }},
		{"again, and late", 0, func(s *script) { mined(s); show(s, assigned(1, 1, 5)); s.delivered() }},
		{"a fork", 0, func(s *script) {
			mined(s)
			s.told(first, receipt(5, 1, &fork7, 1), confirmed(6, 1, true, fork7, fork8))
			s.delivered()
		}},
		{"one missing", promises.P22, func(s *script) { mined(s); s.log(first, confirmed(5, 1, false, main9)); s.delivered() }},
		{"one missing in the middle", promises.P22, func(s *script) {
			sent(s)
			s.log(first, receipt(3, 1, &main7, 1))
			s.told(first, confirmed(4, 1, false, main7))
			s.delivered()
		}},
		{"two things under one id", promises.P22, func(s *script) { mined(s); show(s, assigned(1, 1, 6)); s.delivered() }},
		{"more than there is", promises.P22, func(s *script) { mined(s); show(s, confirmed(5, 1, false, main9)); s.delivered() }},
		{"something else", promises.P22, func(s *script) {
			mined(s)
			s.log(first, confirmed(5, 1, false, main9))
			show(s, confirmed(5, 1, false, blockOf(9, "fork")))
			s.delivered()
		}},
		{"in order, and again", 0, func(s *script) {
			s.consumer.InOrder = true
			mined(s)
			show(s, assigned(1, 1, 5))
			s.delivered()
		}},
		{"out of order", promises.P22, func(s *script) {
			s.consumer.InOrder = true
			sent(s)
			s.log(first, receipt(3, 1, &main7, 1))
			s.told(first, confirmed(4, 1, false, main7))
			show(s, receipt(3, 1, &main7, 1))
			s.delivered()
		}},
		{"one given up", 0, func(s *script) {
			s.consumer.GivenUp = func(id chain.IntentID, n uint64) bool { return id == first && n == 3 }
			sent(s)
			s.log(first, receipt(3, 1, &main7, 1))
			s.told(first, confirmed(4, 1, false, main7))
			s.delivered()
		}},
		{"another given up", promises.P22, func(s *script) {
			s.consumer.GivenUp = func(_ chain.IntentID, n uint64) bool { return n == 4 }
			sent(s)
			s.log(first, receipt(3, 1, &main7, 1))
			s.told(first, confirmed(4, 1, false, main7))
			s.delivered()
		}},
		{"of nobody", promises.P22, func(s *script) {
			n, _ := intent.Tell(second, assigned(1, 1, 5))
			s.found = append(s.found, s.consumer.Shown(n)...)
			s.delivered()
		}},
	})
}

// An attempt recorded when the intent is already to end must not be delivered.
func TestCanceledIsNotDelivered(t *testing.T) {
	stop := intent.CancelRequested{Reason: intent.Withdrawn, At: epoch}
	delivered := func(s *script, hash int, actor string) {
		s.position++
		s.found = append(s.found, s.judge.Event(eventlog.Recorded{
			Event:  eventlog.Event{Name: "tx.accepted.v1", Data: []byte("{}"), Meta: eventlog.Meta{Actor: actor}},
			Stream: tx.Stream(1, hashOf(hash)), Version: 1, Position: s.position, At: epoch,
		})...)
	}
	run(t, []scenario{
		{"told before", 0, func(s *script) {
			s.log(first, requested(1), assigned(1, 1, 5), attempted(2, 1, 1, intent.First), stop)
			delivered(s, 1, lane.Actor)
		}},
		{"told after", promises.P23, func(s *script) {
			s.log(first, requested(1), assigned(1, 1, 5), stop, attempted(2, 1, 1, intent.First))
			delivered(s, 1, lane.Actor)
		}},
		{"a no-op", 0, func(s *script) {
			s.log(first, requested(1), assigned(1, 1, 5), stop, attempted(2, 1, 1, intent.NoOp))
			delivered(s, 1, lane.Actor)
		}},
		{"by a stranger", 0, func(s *script) {
			s.log(first, requested(1), assigned(1, 1, 5), stop, attempted(2, 1, 1, intent.First))
			delivered(s, 1, "somebody")
		}},
	})
}
