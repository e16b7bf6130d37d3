// Package relay counts the relay's work: its intents, lanes, signers, safeguards and webhooks.
// It is separate from the metrics of delivery, which does not depend on the relay.
package relay

import (
	"errors"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/tempo-watchtower/watchtower/domain/relay/intent"
	"github.com/tempo-watchtower/watchtower/eventlog"
	"github.com/tempo-watchtower/watchtower/infra/metrics"
)

// Metrics is every metric of the relay, on the registry of delivery's.
type Metrics struct {
	requests *prometheus.CounterVec
	intents  *prometheus.GaugeVec
	ended    *prometheus.CounterVec
	reopened *prometheus.CounterVec
	requeued *prometheus.CounterVec
	forks    *prometheus.CounterVec
	stages   *prometheus.HistogramVec

	lanes   *lanes
	signers signers
	guard   guard
	notices notices
}

// prefix begins the name of each of the relay's metrics, after the prefix of all our metrics.
const prefix = "relay_"

// New registers the relay's metrics with delivery's. now is the clock for ages.
func New(of *metrics.Metrics, now func() time.Time) *Metrics {
	// Seconds: from an idle lane to an intent that waits two weeks for funds.
	buckets := []float64{.005, .025, .1, .25, .5, 1, 1.5, 2.5, 5, 10, 30, 60, 300, 1800, 7200, 43200, 1209600}
	stages := of.Histogram(prefix+"stage_seconds", "Time of one stage of an intent's life.", buckets, "chain", "stage")
	return &Metrics{
		requests: of.Counter(prefix+"requests_total", "Requested intents, by outcome: accepted (created), already known (known), refused (the refusal's code), or stopped by a transient error (failed).", "outcome"),
		intents:  of.Gauge(prefix+"intents", "Intents that have not ended: without a nonce (waiting), and with a nonce (assigned).", "chain", "state"),
		ended:    of.Counter(prefix+"intents_ended_total", "Intents that have ended, by outcome.", "chain", "outcome"),
		reopened: of.Counter(prefix+"intents_reopened_total", "Intents that had ended and were reopened because their block left the chain.", "chain"),
		requeued: of.Counter(prefix+"intents_requeued_total", "Intents that lost their nonce and wait for another, by the evidence: released, rival, lapsed or filled.", "chain", "evidence"),
		forks:    of.Counter(prefix+"new_forks_total", "Lists of confirmations that replaced blocks announced before, instead of continuing them.", "chain"),
		stages:   stages,
		lanes:    newLanes(of, now, stages),
		signers:  newSigners(of),
		guard:    newGuard(of),
		notices:  newNotices(of, buckets),
	}
}

// Stages of an intent.
const (
	stageAssigned  = "asked_to_assigned"  // from acceptance to its first nonce
	stageSigned    = "assigned_to_signed" // from its nonce to the nonce's first attempt
	stageMined     = "signed_to_mined"    // from the attempt that landed to the announcement of its block
	stageCompleted = "asked_to_completed" // from acceptance to success
)

// Outcomes of intents; on a failure the reason follows.
const (
	completed = "completed"
	failed    = "failed_"
	canceled  = "canceled"
)

// ends creates a counter for every outcome of a chain's intents.
func (m *Metrics) ends(chain string) {
	m.ended.WithLabelValues(chain, completed)
	m.ended.WithLabelValues(chain, canceled)
	for _, why := range []intent.Reason{intent.Deadline, intent.Simulation, intent.Refused, intent.Reverted} {
		m.ended.WithLabelValues(chain, failed+string(why))
	}
}

// code is a refusal's code; other errors have none.
func code(err error) (string, bool) {
	var r eventlog.Refusal
	ok := errors.As(err, &r)
	return string(r), ok
}

// Request counts one request for an intent.
func (m *Metrics) Request(known bool, err error) {
	outcome := "created"
	switch refusal, refused := code(err); {
	case refused:
		outcome = refusal
	case err != nil:
		outcome = "failed"
	case known:
		outcome = "known"
	}
	m.requests.WithLabelValues(outcome).Inc()
}

// Waiting sets how many intents of a chain have no nonce, and how many have one.
func (m *Metrics) Waiting(chain string, waiting, assigned int) {
	m.intents.WithLabelValues(chain, "waiting").Set(float64(waiting))
	m.intents.WithLabelValues(chain, "assigned").Set(float64(assigned))
}

// Intent counts the facts that one append has added to an intent. before and after are its
// states around them.
func (m *Metrics) Intent(before, after intent.State, facts []intent.Event) {
	chain := after.Requested.Request.Chain.String()
	took := func(stage string, from, to time.Time) {
		m.stages.WithLabelValues(chain, stage).Observe(max(to.Sub(from), 0).Seconds())
	}
	end := func(outcome string) { m.ended.WithLabelValues(chain, outcome).Inc() }
	for _, fact := range facts {
		switch e := fact.(type) {
		case intent.Assigned:
			if e.Assignment == 1 {
				took(stageAssigned, after.Requested.At, e.At)
			}
		case intent.Requeued:
			m.requeued.WithLabelValues(chain, string(e.Evidence.Kind)).Inc()
		case intent.Announced:
			if e.NewFork {
				m.forks.WithLabelValues(chain).Inc()
			}
			if e.Receipt != nil && before.Receipt == nil {
				for _, made := range after.Attempts {
					if made.Hash == e.Hash {
						took(stageMined, made.At, e.At)
					}
				}
			}
		case intent.Completed:
			if e.Despite != "" {
				end("completed_despite_" + string(e.Despite))
				continue
			}
			end(completed)
			took(stageCompleted, after.Requested.At, e.At)
		case intent.Failed:
			end(failed + string(e.Reason))
		case intent.Canceled:
			end(canceled)
		case intent.Reorged:
			m.reopened.WithLabelValues(chain).Inc()
		case intent.Requested, intent.Attempted, intent.CancelRequested, intent.SpeedUpRequested: // counted as requests, with the lanes, and as appended events
		}
	}
}
