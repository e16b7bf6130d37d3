package relay_test

import (
	"errors"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/notice"
	"github.com/tempo-watchtower/watchtower/domain/relay/budget"
	"github.com/tempo-watchtower/watchtower/domain/relay/fee"
	"github.com/tempo-watchtower/watchtower/domain/relay/intent"
	"github.com/tempo-watchtower/watchtower/domain/relay/lane"
	"github.com/tempo-watchtower/watchtower/domain/relay/safeguard"
	"github.com/tempo-watchtower/watchtower/domain/relay/signer"
	"github.com/tempo-watchtower/watchtower/infra/metrics"
	"github.com/tempo-watchtower/watchtower/infra/metrics/relay"
)

var (
	epoch = time.Unix(1_800_000_000, 0).UTC()
	alice = chain.Address{19: 1}
	bob   = chain.Address{19: 2}
)

const (
	of = `chain="1",signer="0x0000000000000000000000000000000000000001"`
	us = "holder"
)

// told is the relay's metrics as Prometheus reads them.
type told struct {
	*relay.Metrics
	all *metrics.Metrics
}

func newTold(now time.Time) told {
	all := metrics.New("v")
	return told{relay.New(all, func() time.Time { return now }), all}
}

// want expects lines, given without their prefix; lines that begin with a ! must be missing.
func (m told) want(t *testing.T, lines ...string) {
	t.Helper()
	w := httptest.NewRecorder()
	m.all.Handler().ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	got := w.Body.String()
	for _, line := range lines {
		name, not := strings.CutPrefix(line, "!")
		if strings.Contains(got, "\nwatchtower_relay_"+name) == not {
			t.Errorf("is it told? %s", line)
		}
	}
	if t.Failed() {
		for line := range strings.Lines(got) {
			if strings.HasPrefix(line, "watchtower_relay_") && !strings.Contains(line, "_bucket") {
				t.Log(strings.TrimSpace(line))
			}
		}
	}
}

func TestRequests(t *testing.T) {
	m := newTold(epoch)
	m.Request(false, nil)
	m.Request(true, nil)
	m.Request(false, intent.ErrInvalid.Because("whatever it is"))
	m.Request(false, errors.New("no database"))
	m.Waiting("1", 7, 8)
	m.want(t, `requests_total{outcome="created"} 1`, `requests_total{outcome="known"} 1`, `requests_total{outcome="invalid-intent"} 1`,
		`requests_total{outcome="failed"} 1`, `intents{chain="1",state="waiting"} 7`, `intents{chain="1",state="assigned"} 8`)
}

// The times of an intent in seconds: requested at 0, a nonce at 2, signed at 3, in a block at
// 7, which leaves the chain, and done at 20, which is withdrawn.
func TestIntent(t *testing.T) {
	m := newTold(epoch)
	at := func(seconds int) time.Time { return epoch.Add(time.Duration(seconds) * time.Second) }
	tell := func(s intent.State, facts ...intent.Event) intent.State {
		for _, f := range facts {
			before := s
			s = s.Evolve(f)
			m.Intent(before, s, []intent.Event{f})
		}
		return s
	}
	begun := func() intent.State {
		return tell(intent.State{}, intent.Requested{ID: chain.IntentID{1}, Request: intent.Request{Chain: 1}, At: at(0)})
	}
	block := chain.Block{Number: 5, Hash: chain.Hash{5}}
	tell(begun(),
		intent.Assigned{Assignment: 1, At: at(2)}, intent.Requeued{Assignment: 1, Evidence: intent.Evidence{Kind: intent.Rival}, At: at(2)},
		intent.Assigned{Assignment: 2, At: at(3)},
		intent.Attempted{Assignment: 2, Attempt: 1, Kind: intent.First, Hash: chain.Hash{1}, At: at(3)},
		intent.Announced{Kind: intent.AboutReceipt, Hash: chain.Hash{1}, Receipt: &chain.Receipt{Block: block, Status: 1}, At: at(7)},
		intent.Announced{Kind: intent.AboutReceipt, Hash: chain.Hash{1}, Receipt: &chain.Receipt{Block: block, Status: 1}, At: at(9)},
		intent.Announced{Kind: intent.AboutConfirmations, Hash: chain.Hash{1}, NewFork: true, At: at(9)},
		intent.Completed{Hash: chain.Hash{1}, Block: block, At: at(20)}, intent.Reorged{Was: block, At: at(21)},
	)
	tell(begun(), intent.Failed{Reason: intent.Reverted, At: at(5)})
	tell(begun(), intent.Canceled{At: at(5)})
	tell(begun(), intent.Completed{Despite: intent.Withdrawn, At: at(5)})
	m.want(t,
		`stage_seconds_sum{chain="1",stage="asked_to_assigned"} 2`, `stage_seconds_count{chain="1",stage="asked_to_assigned"} 1`,
		`stage_seconds_sum{chain="1",stage="signed_to_mined"} 4`, `stage_seconds_count{chain="1",stage="signed_to_mined"} 1`,
		`stage_seconds_sum{chain="1",stage="asked_to_completed"} 20`, `stage_seconds_count{chain="1",stage="asked_to_completed"} 1`,
		`intents_requeued_total{chain="1",evidence="rival"} 1`, `new_forks_total{chain="1"} 1`, `intents_reopened_total{chain="1"} 1`,
		`intents_ended_total{chain="1",outcome="completed"} 1`, `intents_ended_total{chain="1",outcome="completed_despite_canceled"} 1`,
		`intents_ended_total{chain="1",outcome="failed_reverted"} 1`, `intents_ended_total{chain="1",outcome="canceled"} 1`)
}

// Lanes of one signer are summed up. A lane that is not worked on here is exported if it is
// expected, and removed otherwise.
func TestLanes(t *testing.T) {
	m := newTold(epoch.Add(40 * time.Second))
	m.Expect(1, alice)
	m.Expect(1, bob)
	m.want(t, `lanes_held{chain="1",key="protocol",signer="`+alice.String()+`"} 0`, `!lane_in_flight_nonces`)

	id, other := chain.Sequence{Chain: 1, Sender: alice}, chain.Sequence{Chain: 1, Sender: alice, Key: chain.NonceKey{31: 9}}
	witness := func(nonce uint64) lane.Witness {
		return lane.Witness{Nonce: nonce, Block: chain.Block{Number: 1, Hash: chain.Hash{1}}, Endpoints: []string{"a"}, Needed: 1, Asked: 1}
	}
	var s lane.State
	run := func(commands ...lane.Command) {
		t.Helper()
		for _, c := range commands {
			facts, err := s.Decide(c)
			if err != nil {
				t.Fatal(err)
			}
			before := s
			for _, f := range facts {
				s = s.Evolve(f)
			}
			m.Lane(id, us, before, facts)
		}
	}
	sign := func(nonce uint64, who chain.IntentID, n byte, seconds int) lane.Command {
		price := chain.LegacyFee(chain.PriceOf(1000 << n))
		return lane.Attempt{Token: s.Token, Signed: []lane.Signed{{Nonce: nonce, Intent: who, Hash: chain.Hash{byte(nonce), n}, Fee: price}}, At: epoch.Add(time.Duration(seconds) * time.Second)}
	}
	one, two := chain.IntentID{1}, chain.IntentID{2}
	run(lane.Open{Holder: "dead", Token: 1}, lane.Open{Holder: us, Token: 2}, lane.Open{Holder: us, Token: 3}, lane.Advance{Token: 3, Witness: witness(4)}) // the last command sets the lane's first nonce
	run(lane.Reserve{Token: 3, Intents: []chain.IntentID{one, two}, Budget: 10, At: epoch}, sign(5, two, 1, 3))
	run(lane.Fill{Token: 3, Nonces: []uint64{4}, At: epoch.Add(4 * time.Second)})
	run(sign(4, chain.IntentID{}, 1, 10), sign(5, two, 2, 30), lane.Advance{Token: 3, Witness: witness(9)}, lane.Reclaim{Token: 3, Count: 2, Witness: witness(7)})
	run(lane.Open{Holder: "next", Token: 4}) // which continues both nonces in flight
	m.Turn(id, s, relay.Turn{Budget: 10, Drift: -2, Stalled: true, Took: 250 * time.Millisecond})
	m.Turn(other, lane.State{}, relay.Turn{Budget: 3, Drift: 1, Troubled: true})
	m.Lease("won")
	m.Fenced("1")
	m.Serve(1, chain.PriceOf(5000))
	m.NoOffer(1, false, fee.ErrMarket.Because("dear"))
	m.NoOffer(1, true, fee.ErrMarket)
	m.NoOffer(1, true, errors.New("no node"))
	m.want(t,
		`lanes_held{chain="1",key="protocol",signer="`+alice.String()+`"} 1`, `lanes_held{chain="1",key="other",signer="`+alice.String()+`"} 1`,
		`lanes_held{chain="1",key="protocol",signer="`+bob.String()+`"} 0`,
		`lanes_in_trouble{`+of+`} 1`, `lane_in_flight_nonces{`+of+`} 2`, `lane_budget_left_nonces{`+of+`} 3`, `lane_open_nonces{`+of+`} 4`, `lane_hole_nonces{`+of+`} 0`,
		`lane_oldest_in_flight_seconds{`+of+`} 30`, `lane_next_nonce{`+of+`} 9`, `lane_drift_nonces{`+of+`} -2`, `lane_stalls_total{`+of+`} 1`,
		`lane_turn_seconds_sum{chain="1"} 0.25`, `lane_leases_total{outcome="won"} 1`, `lane_fenced_total{chain="1"} 1`,
		`lane_opened_total{chain="1",from="nobody"} 1`, `lane_opened_total{chain="1",from="another"} 1`, `lane_recovered_nonces_total{`+of+`} 2`, `lane_recovered_nonces_total{chain="1",signer="`+bob.String()+`"} 0`, `lane_opened_total{chain="1",from="self"} 2`,
		`lane_filled_nonces_total{`+of+`} 1`, `lane_reclaimed_nonces_total{`+of+`} 2`,
		`lane_foreign_nonces_total{chain="1",how="skipped",signer="`+alice.String()+`"} 3`,
		`attempts_total{chain="1",kind="first",signer="`+alice.String()+`"} 1`, `attempts_total{chain="1",kind="bump",signer="`+alice.String()+`"} 1`,
		`attempts_total{chain="1",kind="no-op",signer="`+alice.String()+`"} 1`,
		`fee_offered_per_gas{chain="1"} 4000`, `fee_ceiling_per_gas{chain="1"} 5000`,
		`fee_refusals_total{ceiling="operator",chain="1",reason="market-above-ceiling"} 1`, `fee_refusals_total{ceiling="intent",chain="1",reason="market-above-ceiling"} 1`,
		`stage_seconds_sum{chain="1",stage="assigned_to_signed"} 3`, `stage_seconds_count{chain="1",stage="assigned_to_signed"} 1`)
	m.NoLane(id)
	m.NoLane(other)
	m.want(t, `lanes_held{chain="1",key="protocol",signer="`+alice.String()+`"} 0`, `!lane_in_flight_nonces`, `!lane_next_nonce`)
}

func TestSignersAndSafeguards(t *testing.T) {
	m := newTold(epoch)
	m.Signature(alice, "signed", 20*time.Millisecond)
	m.Signature(alice, "busy", time.Second)
	balance := chain.NewAmount(70)
	m.Signer(1, alice, signer.State{Known: true, Stance: signer.Stance{Status: signer.StatusServing}, Low: true, Threshold: chain.NewAmount(80), Failures: make([]signer.Failure, 3)}, &balance, epoch.Add(1500*time.Millisecond))
	m.Signer(1, bob, signer.State{Known: true}, nil, time.Time{})
	m.Refusal(relay.AtAccept, safeguard.ErrHalted.Because("fire"))
	m.Refusal(relay.AtSign, budget.ErrSpent)
	m.Refusal(relay.AtSign, nil)
	halt := safeguard.Scope{Kind: safeguard.OnChain, Chain: 1}
	m.Switches(safeguard.State{Halts: map[safeguard.Scope]safeguard.Halt{halt: {}}})
	hundred := chain.NewAmount(100)
	limited := budget.State{}.Evolve(budget.LimitSet{Account: budget.Account{Kind: budget.OnChain}, Limit: budget.Limit{Fee: &hundred}})
	spent := limited.Evolve(budget.Reserved{Day: 9, Token: 1, Charges: []budget.Charge{{Purpose: budget.Purpose{Nonce: 1}, Sum: budget.Sum{Fee: chain.NewAmount(25)}}}})
	m.Budget(1, spent, 9)
	m.want(t,
		`signatures_total{outcome="signed",signer="`+alice.String()+`"} 1`, `signatures_total{outcome="busy",signer="`+alice.String()+`"} 1`,
		`signature_seconds_count{signer="`+alice.String()+`"} 2`,
		`signer_state{`+of+`,state="low"} 1`, `signer_state{`+of+`,state="serving"} 0`, `signer_failures{`+of+`} 3`,
		`signer_balance{`+of+`} 70`, `signer_checked_timestamp_seconds{`+of+`} `+strconv.FormatFloat(float64(epoch.UnixMilli()+1500)/1000, 'g', -1, 64),
		`!signer_checked_timestamp_seconds{chain="1",signer="`+bob.String(), `signer_threshold{`+of+`} 80`,
		`guard_refusals_total{at="accept",rule="halted"} 1`, `guard_refusals_total{at="sign",rule="budget-spent"} 1`,
		`halts{scope="chain"} 1`, `halts{scope="deployment"} 0`,
		`budget_used{chain="1",money="fee"} 25`, `budget_limit{chain="1",money="fee"} 100`, `!budget_limit{chain="1",money="value"}`,
		`budget_used_ratio{chain="1",money="fee",of="chain"} 0.25`, `!budget_used_ratio{chain="1",money="value"`)
	m.Budget(1, spent.Evolve(budget.LimitSet{Account: budget.Account{Kind: budget.OnChain}}), 9)
	m.Switches(safeguard.State{})
	m.want(t, `!budget_limit`, `!budget_used_ratio`, `budget_used{chain="1",money="fee"} 25`, `halts{scope="chain"} 0`)
}

func TestNotices(t *testing.T) {
	m := newTold(epoch)
	m.Notices(notice.Depth{Queued: 3, Delivering: 2, Dead: 1, Due: 2, OldestDue: 90 * time.Second, Working: 4, Failing: 5, Disabled: 6})
	m.Notice(notice.Outcome{Class: notice.Failed, Cause: notice.Status, Status: 500}, true, epoch, epoch.Add(time.Second), time.Second)
	m.Notice(notice.Outcome{Class: notice.Delivered, Status: 200}, false, epoch, epoch.Add(6*time.Second), time.Second)
	m.Notice(notice.Outcome{Class: notice.Delivered, Status: 200}, true, time.Time{}, epoch, time.Second)
	m.want(t,
		`notices{stage="queued"} 3`, `notices{stage="delivering"} 2`, `notices{stage="dead"} 1`, `notices_due 2`, `notices_oldest_due_seconds 90`,
		`webhooks{state="working"} 4`, `webhooks{state="failing"} 5`, `webhooks{state="disabled"} 6`,
		`notice_attempts_total{cause="status",outcome="failed"} 1`, `notice_attempts_total{cause="",outcome="delivered"} 2`,
		`notice_retries_total 1`, `notice_attempt_seconds_count 3`, `notice_delay_seconds_sum 6`, `notice_delay_seconds_count 1`)
	m.NoNotices()
	m.want(t, `!notices{`, `!notices_due`, `!webhooks`)
}
