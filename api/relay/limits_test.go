package relay

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/tempo-watchtower/watchtower/commands/relay/guard"
	"github.com/tempo-watchtower/watchtower/commands/relay/intake"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/relay/budget"
	"github.com/tempo-watchtower/watchtower/domain/relay/intent"
	"github.com/tempo-watchtower/watchtower/domain/relay/safeguard"
	"github.com/tempo-watchtower/watchtower/domain/relay/signer"
	"github.com/tempo-watchtower/watchtower/eventlog"
	"github.com/tempo-watchtower/watchtower/eventlog/port"
)

// newGuard is a guard on a log, with a clock that stands still.
func newGuard(log port.Store) *guard.Guard {
	return guard.New(guard.Config{
		Safeguards: guard.Safeguards{Store: log, Codec: safeguard.Codec(), Random: rand.Reader},
		Signers:    guard.Signers{Store: log, Codec: signer.Codec(), Random: rand.Reader},
		Budgets:    guard.Budgets{Store: log, Codec: budget.Codec(), Random: rand.Reader},
		Settings:   guard.DefaultSettings(), Now: func() time.Time { return epoch },
		Log: slog.New(slog.DiscardHandler),
	})
}

// A client over an operator's rate limit or budget is told when to retry, as by the API's own
// limits. This holds for a batch of which a part was accepted, too.
func TestLimitsSayWhenToComeBack(t *testing.T) {
	engines(t, func(t *testing.T, open func(...func(*Config)) *stack) {
		var g *guard.Guard
		s := open(func(c *Config) {
			g = newGuard(c.Intake.Intents.Store)
			c.Intake.Allow = g.Accept
		})
		ctx, meta := context.Background(), eventlog.Meta{Actor: "ada"}
		_, err := g.Switch(ctx, safeguard.SetRate{
			Scope: safeguard.Scope{Kind: safeguard.EachClient}, Rate: &safeguard.Rate{PerSecond: 2, Burst: 4}, Actor: "ada", Reason: "as agreed", At: epoch,
		}, meta)
		check(t, err)
		ask := func(n int) string {
			return fmt.Sprintf(`{"chainId": 42431, "key": "limited-%d", "pool": "hot", "to": "0x70997970c51812dc3a010c7d01b50e0d17dc79c8"}`, n)
		}
		headers := func(res response, retry, left, policy string) {
			t.Helper()
			for name, want := range map[string]string{"Retry-After": retry, "RateLimit": left, "RateLimit-Policy": policy} {
				if got := res.header.Get(name); got != want {
					t.Errorf("%s: %q, want %q", name, got, want)
				}
			}
		}
		const left, policy = `"client";r=0;t=1`, `"client";q=4;w=2`
		for n := range 3 {
			headers(s.do("POST", "/v1/intents", ask(n)), "", "", "")
		}
		batch := s.do("POST", "/v1/intents", "["+ask(3)+","+ask(4)+"]")
		if batch.status != 202 {
			t.Errorf("a batch is answered %d %s", batch.status, batch.body)
		}
		headers(batch, "1", left, policy)
		res := s.do("POST", "/v1/intents", ask(5))
		s.problem(res, 429, "rate-limited")
		headers(res, "1", left, policy)

		_, err = g.Switch(ctx, safeguard.SetRate{Scope: safeguard.Scope{Kind: safeguard.EachClient}, Actor: "ada", Reason: "no more", At: epoch}, meta)
		check(t, err)
		spent := chain.NewAmount(3)
		_, err = g.Limit(ctx, testChain, budget.SetLimit{Account: budget.Account{Kind: budget.OnChain}, Limit: budget.Limit{Fee: &spent}, Actor: "ada", Reason: "as agreed", At: epoch}, meta)
		check(t, err)
		signer := chain.Address{1}
		check(t, g.Register(ctx, testChain, signer, []string{"hot"}))
		wish := intent.Request{Key: "spends", From: intent.From{Signer: &signer}, Chain: testChain, Calls: []intent.Call{{To: &signer}}}
		answers, err := g.Allow(ctx, chain.Sequence{Chain: testChain, Sender: signer}, 1, []*intent.Request{&wish},
			[]budget.Charge{{Purpose: budget.Purpose{Intent: wish.ID()}, Sum: budget.Sum{Fee: spent}}})
		check(t, errors.Join(append(answers, err)...))
		res = s.do("POST", "/v1/intents", ask(6))
		s.problem(res, 429, "budget-spent")
		headers(res, fmt.Sprint(budget.DayOf(epoch).End().Unix()-epoch.Unix()), "", "")
	})
}

// A client that floods the relay with intents is told its quota and its use of it. Repeats of
// accepted requests are still answered.
func TestFloodOfIntentsIsRefused(t *testing.T) {
	engines(t, func(t *testing.T, open func(...func(*Config)) *stack) {
		s := open(func(c *Config) {
			c.Intake.Quota = &intake.Quota{Limit: 2, Name: "quota.intents", Thing: "open intent", Things: "open intents", Now: c.Intake.Now, Count: func(context.Context, string, int) (int, error) { return 0, nil }}
		})
		ask := func(n int) string {
			return fmt.Sprintf(`{"chainId": 42431, "key": "flood-%d", "pool": "hot", "to": "0x70997970c51812dc3a010c7d01b50e0d17dc79c8"}`, n)
		}
		for _, n := range []int{0, 1, 0, 1} {
			if res := s.do("POST", "/v1/intents", ask(n)); res.status != 202 {
				t.Errorf("answered %d %s", res.status, res.body)
			}
		}
		res := s.do("POST", "/v1/intents", ask(2))
		s.problem(res, 429, "quota-exceeded")
		if !strings.Contains(string(res.body), "has 2 open intents") || !strings.Contains(string(res.body), "quota.intents allows 2") {
			t.Errorf("%s", res.body)
		}
		batch := s.do("POST", "/v1/intents", "["+ask(0)+","+ask(3)+"]")
		if batch.status != 202 || !strings.Contains(string(batch.body), "quota-exceeded") {
			t.Errorf("a batch is answered %d %s", batch.status, batch.body)
		}
	})
}
