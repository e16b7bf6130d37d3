package scheduler_test

import (
	"os"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tempo-watchtower/watchtower/commands/delivery/scheduler"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
)

func TestPlan(t *testing.T) {
	const lead = 2 * time.Second
	hash := chain.Keccak([]byte("transaction"))
	block := chain.Block{Number: 7, Hash: chain.Keccak([]byte("block"))}
	at := time.Unix(1_800_000_000, 500)
	recorded := at.Add(-time.Hour) // the acceptor's clock is an hour ahead of the store's
	schedule := tx.DefaultSchedule()
	account := tx.AccountOf(tx.Accepted{Chain: id, Sender: chain.Address{1}})
	nobody := tx.AccountOf(tx.Accepted{Chain: id})
	row := func(eligible uint64, next time.Time) *tx.Work {
		return &tx.Work{
			Chain: id, Hash: hash, Sender: chain.Address{1}, NonceKey: chain.NonceKey{31: 5}, Nonce: 9,
			Account: account, EligibleAt: eligible, ExpiresAt: 1_900_000_000, Phase: tx.Open, NextAt: next,
		}
	}
	accept := func(eligible uint64) tx.Accepted {
		return tx.Accepted{
			Chain: id, Hash: hash, Sender: chain.Address{1}, NonceKey: chain.NonceKey{31: 5}, Nonce: 9,
			EligibleAt: eligible, Window: chain.Window{Before: 1_900_000_000}, At: at,
		}
	}
	// opening has a validAfter that is past by the acceptor's clock.
	opening := func(after uint64) tx.Accepted {
		a := accept(1_800_000_000)
		a.Window.After = after
		return a
	}
	attempt := func(n int, o tx.Outcome) *tx.Attempted {
		return &tx.Attempted{Number: n, At: at, NextAt: schedule.Next(hash, n, o, at, 0), Note: o.String()}
	}
	for name, c := range map[string]struct {
		event tx.Event
		want  tx.Change
		none  bool
	}{
		"eligible now":            {event: accept(1_800_000_000), want: tx.Change{Open: row(0, recorded)}},
		"eligible long ago":       {event: accept(1), want: tx.Change{Open: row(0, recorded)}},
		"open soon":               {event: opening(1_799_996_410), want: tx.Change{Open: row(1_799_996_410, time.Unix(1_799_996_408, 0))}},
		"eligible later":          {event: accept(1_800_000_010), want: tx.Change{Open: row(1_800_000_010, time.Unix(1_800_000_008, 0))}},
		"eligible within lead":    {event: opening(1_799_996_401), want: tx.Change{Open: row(1_799_996_401, recorded)}},
		"eligible at the last":    {event: accept(1<<64 - 1), want: tx.Change{Open: row(1<<64-1, time.Unix(1<<40, 0).Add(-lead))}},
		"taken":                   {event: tx.Broadcast{Attempt: 4, At: at}, want: tx.Change{Attempt: attempt(4, tx.Outcome{Class: tx.Taken})}},
		"rejected":                {event: tx.Rejected{Attempt: 3, Class: tx.Retry, Cause: tx.Funds, Reason: "poor", At: at}, want: tx.Change{Attempt: attempt(3, tx.Outcome{Class: tx.Retry, Cause: tx.Funds, Message: "poor"})}},
		"answer lost":             {event: tx.Rejected{Attempt: 1, Class: tx.Unknown, At: at}, want: tx.Change{Attempt: attempt(1, tx.Outcome{Class: tx.Unknown})}},
		"rejected for ever":       {event: tx.Rejected{Attempt: 3, Class: tx.Permanent, Permanent: true, At: at}, want: tx.Change{Watch: true}},
		"permanent, not for all":  {event: tx.Rejected{Attempt: 3, Class: tx.Permanent, At: at}, want: tx.Change{Attempt: attempt(3, tx.Outcome{Class: tx.Permanent})}},
		"mined":                   {event: tx.Mined{Receipt: chain.Receipt{Block: block, Status: 1}}, want: tx.Change{Announce: &tx.Verdict{Status: tx.StatusExecuted, Block: block}}},
		"mined and reverted":      {event: tx.Mined{Receipt: chain.Receipt{Block: block}}, want: tx.Change{Announce: &tx.Verdict{Status: tx.StatusExecuted, Block: block}}},
		"stale":                   {event: tx.StaleByNonce{Block: block}, want: tx.Change{Announce: &tx.Verdict{Status: tx.StatusStale, Block: block}}},
		"expired":                 {event: tx.Expired{Block: block}, want: tx.Change{Announce: &tx.Verdict{Status: tx.StatusExpired, Block: block}}},
		"reorged":                 {event: tx.Reorged{Was: block, At: at}, want: tx.Change{Reopen: &tx.Reopened{To: tx.Open, At: at, Lead: lead}}},
		"reorged and unwanted":    {event: tx.Reorged{Was: block, Unwanted: true, At: at}, want: tx.Change{Reopen: &tx.Reopened{To: tx.Watched, At: at, Lead: lead}}},
		"sealed":                  {event: tx.Finalized{Verdict: tx.StatusStale, Block: block, By: chain.Block{Number: 9}}, want: tx.Change{Seal: &tx.Verdict{Status: tx.StatusStale, Block: block}}},
		"finality violated":       {event: tx.FinalityViolated{Was: block}, want: tx.Change{Close: true}},
		"canceled by its owner":   {event: tx.CanceledLocally{At: at}, want: tx.Change{Watch: true}},
		"canceled when announced": {event: tx.CanceledLocally{Verdict: tx.StatusExecuted, At: at}, none: true},
		"retired":                 {event: tx.Retired{At: at}, want: tx.Change{Close: true}},
		"its bytes were erased":   {event: tx.PayloadErased{At: at}, none: true},
		"no nonce, no time bound": {event: tx.Accepted{Chain: id, Hash: hash, At: at}, want: tx.Change{Open: &tx.Work{Chain: id, Hash: hash, Account: nobody, Phase: tx.Open, NextAt: recorded}}},
	} {
		t.Run(name, func(t *testing.T) {
			got, ok := scheduler.Plan(schedule, lead, id, hash, c.event, recorded)
			if ok == c.none {
				t.Fatalf("means something: %v", ok)
			}
			c.want.Chain, c.want.Hash = id, hash
			if diff := cmp.Diff(c.want, got); ok && diff != "" {
				t.Error(diff)
			}
		})
	}
}

// Plan handles every event name ever written.
func TestPlanKnowsEveryName(t *testing.T) {
	codec := tx.Codec()
	for _, name := range codec.Names() {
		data, err := os.ReadFile("../../../domain/delivery/tx/testdata/events/" + name + ".json")
		check(t, err)
		e, err := codec.Decode(name, data)
		check(t, err)
		scheduler.Plan(tx.DefaultSchedule(), 0, id, chain.Hash{}, e, time.Time{})
	}
}
