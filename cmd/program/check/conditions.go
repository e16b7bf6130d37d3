package check

import (
	"fmt"
	"strings"
)

// condition is the condition of an alert in deploy/prometheus, as far as one process's metrics at one
// moment, or at two, show it.
type condition struct {
	check  string
	alert  string
	metric string
	only   map[string]string // labels that a series must have
	by     []string          // labels that tell the results apart
	kind   kind
	unit   string
	says   string // with {} for the value, and {label} for a label's value
	// From these bounds on, exclusive, the state is a warning, or critical. A negative bound is none.
	warning, critical float64
	// bound replaces them by a flag's.
	bound func(Thresholds) (warning, critical float64)
	// health means that the answer of /health shows the same, if it shows the inside.
	health bool
}

// kind is what of a metric is compared.
type kind int

const (
	value    kind = iota // the value now
	off                  // 1 if the value is 0
	distance             // its distance from 0
	increase             // since the last check
	stillFor             // seconds for which it has not changed, by the checks so far
)

const none = -1

// conditions lists what is compared. An alert that pages makes a check critical, one that makes a
// ticket a warning.
func conditions() []condition {
	chain, signer := []string{"chain"}, []string{"chain", "signer"}
	return []condition{
		{check: "oldest", alert: "WatchtowerNothingIsSent", metric: "watchtower_queue_oldest_due_seconds", by: chain, unit: "s", says: "the oldest due transaction of chain {chain} has waited for {}",
			bound: func(t Thresholds) (float64, float64) { return t.OldestWarning, t.OldestCritical }},
		{check: "reader", alert: "WatchtowerReaderBehind", metric: "watchtower_reader_lag_events", by: []string{"reader"}, says: "reader {reader} is {} events behind", health: true,
			bound: func(t Thresholds) (float64, float64) { return float64(t.LagWarning), float64(t.LagCritical) }},
		{check: "reader-stuck", alert: "WatchtowerReaderStuck", metric: "watchtower_reader_stuck_position", by: []string{"reader"}, says: "reader {reader} cannot process the event at position {}", warning: none, critical: 0},
		{check: "finality", alert: "WatchtowerFinalityViolated", metric: "watchtower_finality_violations_total", by: chain, kind: increase, says: "chain {chain} has contradicted {} sealed verdicts since the last check", warning: none, critical: 0},
		{check: "head", alert: "WatchtowerHeadStalled", metric: "watchtower_chain_block", only: map[string]string{"tag": "head"}, by: chain, kind: stillFor, unit: "s", says: "the head of chain {chain} has not moved for {}", warning: none, critical: 300},
		{check: "final", alert: "WatchtowerFinalityStalled", metric: "watchtower_chain_block", only: map[string]string{"tag": "final"}, by: chain, kind: stillFor, unit: "s", says: "no block of chain {chain} has become final for {}", warning: 1800, critical: none},
		{check: "endpoint-lies", alert: "WatchtowerEndpointLies", metric: "watchtower_rpc_endpoint_contradictions_total", by: []string{"chain", "endpoint"}, kind: increase, says: "{endpoint} of chain {chain} has contradicted itself or the others {} times since the last check", warning: 0, critical: none},
		{check: "redis", alert: "WatchtowerRedisDown", metric: "watchtower_redis_up", kind: off, says: "Redis is away: {}", warning: 0, critical: none},
		{check: "reorgs", alert: "WatchtowerManyReorgs", metric: "watchtower_reorged_total", by: chain, kind: increase, says: "{} verdicts on chain {chain} were withdrawn since the last check", warning: 100, critical: none},

		{check: "signer-disabled", alert: "RelaySignerDisabled", metric: "watchtower_relay_signer_state", only: map[string]string{"state": "disabled"}, by: signer, says: "signer {signer} is disabled on chain {chain}: {}", warning: none, critical: 0},
		{check: "signer-low", alert: "RelaySignerLow", metric: "watchtower_relay_signer_state", only: map[string]string{"state": "low"}, by: signer, says: "signer {signer} has too low a balance on chain {chain}: {}", warning: 0, critical: none},
		{check: "stalls", alert: "RelayLaneStalled", metric: "watchtower_relay_lane_stalls_total", by: signer, kind: increase, says: "the first nonce of {signer} on chain {chain} has stalled {} times since the last check", warning: none, critical: 2},
		{check: "drift", alert: "RelayNonceDrift", metric: "watchtower_relay_lane_drift_nonces", by: signer, kind: distance, says: "the chain and the log differ by {} nonces of {signer} on chain {chain}", warning: none, critical: 0},
		{check: "foreign", alert: "RelayForeignNonces", metric: "watchtower_relay_lane_foreign_nonces_total", by: signer, kind: increase, says: "another user of the key of {signer} has used {} nonces on chain {chain} since the last check", warning: none, critical: 0},
		{check: "halts", alert: "RelayHalted", metric: "watchtower_relay_halts", by: []string{"scope"}, says: "{} halts of scope {scope} are active", warning: 0, critical: none},
		{check: "lane-trouble", alert: "RelayLaneInTrouble", metric: "watchtower_relay_lanes_in_trouble", by: signer, says: "{} lanes of {signer} on chain {chain} fail in their turns", warning: 0, critical: none},
		{check: "fenced", alert: "RelayFenced", metric: "watchtower_relay_lane_fenced_total", by: chain, kind: increase, says: "{} writes to lanes of chain {chain} were refused since the last check", warning: 5, critical: none},
		{check: "intents", alert: "RelayIntentsWait", metric: "watchtower_relay_intents", only: map[string]string{"state": "waiting"}, by: chain, says: "{} intents wait for a nonce on chain {chain}", warning: 500, critical: none},
		{check: "budget", alert: "RelayBudgetNearlyUsed", metric: "watchtower_relay_budget_used_ratio", by: []string{"chain", "of", "money"}, says: "{} of a day's budget ({of}, {money}) is used on chain {chain}", unit: "ratio", warning: 0.9, critical: none},
		{check: "dead-letters", alert: "RelayDeadLetters", metric: "watchtower_relay_notices", only: map[string]string{"stage": "dead"}, kind: increase, says: "{} webhook deliveries were given up since the last check", warning: 0, critical: none},
		{check: "webhooks", alert: "RelayWebhookDisabled", metric: "watchtower_relay_webhooks", only: map[string]string{"state": "disabled"}, kind: increase, says: "{} webhook endpoints were disabled since the last check", warning: 0, critical: none},
		{check: "webhooks-oldest", alert: "RelayWebhooksLag", metric: "watchtower_relay_notices_oldest_due_seconds", unit: "s", says: "the oldest due webhook delivery has waited for {}", warning: 30, critical: none},
	}
}

// unseen lists the alerts that check does not judge, and why.
func unseen() map[string]string {
	const rates = "it compares rates of several minutes, which one look does not show"
	const replicas = "it needs the metrics of all replicas"
	return map[string]string{
		"WatchtowerDown":           "the check ready has it",
		"WatchtowerFewEndpoints":   "the check endpoints has it",
		"WatchtowerLogAway":        "the check dependency has it",
		"WatchtowerReaderAbsent":   replicas,
		"WatchtowerConsumerAbsent": replicas, "WatchtowerConsumerStuck": "consumers are other processes", "WatchtowerConsumerBehind": "consumers are other processes", "WatchtowerConsumerParked": "consumers are other processes",
		"WatchtowerFirstSendLate": rates, "WatchtowerApiFails": rates, "WatchtowerAppendSlow": rates, "WatchtowerEndpointFails": rates, "WatchtowerEndpointsDiffer": rates, "WatchtowerManyInvalid": rates,
		"RelayLaneUnheld": replicas, "RelayReaderAbsent": replicas,
		"RelaySignerFails": rates, "RelayLeasesOutOfReach": rates, "RelayIntentsFail": rates, "RelayFeeCeiling": rates, "RelayManyBumps": rates,
		"WatchtowerReceiptsBehind": rates, "WatchtowerManyResubmits": rates,
	}
}

// judge compares a value with the condition.
func (c condition) judge(labels map[string]string, n float64, t Thresholds) Result {
	r := Result{Check: c.check, Labels: labels, Unit: c.unit, Value: &n}
	warning, critical := c.warning, c.critical
	if c.bound != nil {
		warning, critical = c.bound(t)
	}
	if warning >= 0 {
		r.Warning = &warning
	}
	if critical >= 0 {
		r.Critical = &critical
	}
	switch {
	case r.Critical != nil && n > critical:
		r.State = Critical
	case r.Warning != nil && n > warning:
		r.State = Warning
	}
	r.Says = strings.ReplaceAll(c.says, "{}", amount(n, c.unit))
	for name, value := range labels {
		r.Says = strings.ReplaceAll(r.Says, "{"+name+"}", value)
	}
	return r
}

func amount(n float64, unit string) string {
	switch unit {
	case "s":
		return fmt.Sprintf("%.1f s", n)
	case "ratio":
		return fmt.Sprintf("%.0f %%", n*100)
	}
	return fmt.Sprintf("%.0f", n)
}
