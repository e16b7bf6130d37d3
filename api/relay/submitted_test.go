package relay

import (
	"crypto/rand"
	"fmt"
	"net/http"
	"testing"

	"github.com/tempo-watchtower/watchtower/commands"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
	"github.com/tempo-watchtower/watchtower/domain/relay/intent"
	"github.com/tempo-watchtower/watchtower/eventlog"
	"github.com/tempo-watchtower/watchtower/eventlog/handler"
)

// deliver executes commands for an attempt's transaction, like delivery.
func (s *stack) deliver(hash chain.Hash, all ...tx.Command) {
	s.t.Helper()
	transactions := commands.Transactions{Store: s.config.Intake.Intents.Store, Codec: tx.Codec(), Random: rand.Reader}
	for _, c := range all {
		o, err := handler.Begin(rand.Reader, eventlog.Meta{Actor: "test"})
		check(s.t, err)
		_, err = transactions.Handle(s.t.Context(), tx.Stream(testChain, hash), c, o)
		check(s.t, err)
	}
}

func delivered(hash chain.Hash) tx.Command {
	return tx.Accept{Accepted: tx.Accepted{Chain: testChain, Hash: hash, Sender: chain.Address{1}, Nonce: 7, Client: "relay", At: epoch}}
}

func answeredBy(class tx.Class) tx.Command {
	return tx.Report{Attempt: 1, Answers: []tx.Answer{{Endpoint: "a", Class: class, Cause: tx.Unreachable}}, At: epoch}
}

// An intent is submitted when a node has taken an attempt at its calls: not when it is signed, not
// when an answer was lost, and not by a no-op. The answer to the request has the attempt's hash.
func TestSubmitted(t *testing.T) {
	engines(t, func(t *testing.T, open func(...func(*Config)) *stack) {
		s := open()
		made := into[shown](t, s.do(http.MethodPost, "/v1/intents", fmt.Sprintf(plain, "submitted")), http.StatusAccepted)
		at := "/v1/intents/" + made.ID.String() + "?wait=submitted"
		notYet := func(after string, first *chain.Hash) {
			t.Helper()
			got := into[shown](t, s.do(http.MethodGet, at+"&timeout=0", ""), http.StatusAccepted)
			if got.Waited.Reached || got.Waited.Because != "timeout" || (got.FirstTxHash == nil) != (first == nil) || first != nil && *got.FirstTxHash != *first {
				t.Errorf("%s: %+v, %v", after, got.Waited, got.FirstTxHash)
			}
		}
		notYet("requested", nil)
		first, second, noOp := txHash(1), txHash(2), txHash(3)
		s.command(made.ID, assign(), attempted(1))
		notYet("signed", &first)
		s.deliver(first, delivered(first), answeredBy(tx.Unknown))
		notYet("an answer was lost", &first)
		idle := attempted(3).(intent.Attempt)
		idle.Kind = intent.NoOp
		bump := attempted(2).(intent.Attempt)
		bump.Kind = intent.Bump
		s.command(made.ID, bump, intent.GiveWay{Assignment: 1, At: epoch}, idle)
		s.deliver(noOp, delivered(noOp), answeredBy(tx.Taken))
		notYet("a no-op was taken", &first)

		// A request that repeats the first waits, and hears of an attempt that it did not know at first.
		type result struct {
			res response
			err error
		}
		answer := make(chan result, 1)
		go func() {
			res, err := s.send(http.MethodPost, "/v1/intents?wait=submitted&timeout=50", fmt.Sprintf(plain, "submitted"))
			answer <- result{res, err}
		}()
		s.deliver(second, delivered(second), answeredBy(tx.Unknown))
		s.deliver(second, tx.Report{Attempt: 2, Answers: []tx.Answer{{Endpoint: "a", Class: tx.Taken}}, At: epoch})
		r := <-answer
		check(t, r.err)
		got := into[shown](t, r.res, http.StatusOK)
		if !got.Waited.Reached || got.Waited.For != "submitted" || got.Status != intent.StatusSubmitted || *got.FirstTxHash != first {
			t.Errorf("%s", r.res.body)
		}
		check(t, conforms("post", "/v1/intents", r.res))
		s.command(made.ID, seen(2, true))
		if got := into[shown](t, s.do(http.MethodGet, at, ""), http.StatusOK); !got.Waited.Reached {
			t.Errorf("completed: %+v", got.Waited)
		}
	})
}
