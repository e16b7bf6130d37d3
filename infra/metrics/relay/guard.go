package relay

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/relay/budget"
	"github.com/tempo-watchtower/watchtower/domain/relay/safeguard"
	"github.com/tempo-watchtower/watchtower/domain/relay/signer"
	"github.com/tempo-watchtower/watchtower/infra/metrics"
)

// signers counts signature requests to key holders, and exports the signers' states.
type signers struct {
	signatures *prometheus.CounterVec
	seconds    *prometheus.HistogramVec
	state      *prometheus.GaugeVec
	failures   *prometheus.GaugeVec
	balance    *prometheus.GaugeVec
	looked     *prometheus.GaugeVec
	threshold  *prometheus.GaugeVec
}

func newSigners(of *metrics.Metrics) signers {
	return signers{
		signatures: of.Counter(prefix+"signatures_total", "Signature requests, by outcome: signed, wrong-key, unknown-key, refused, busy (429 or 5xx), unanswered, failed, or abandoned because the process stops.", "signer", "outcome"),
		seconds: of.Histogram(prefix+"signature_seconds", "Time from a signature request to its answer.",
			[]float64{.0001, .0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30}, "signer"),
		state:     of.Gauge(prefix+"signer_state", "1 for the state that a signer is in, 0 for the others; only a serving signer gets intents.", "chain", "signer", "state"),
		failures:  of.Gauge(prefix+"signer_failures", "Consecutive failures of a signer; signers.failures of them disable it.", "chain", "signer"),
		balance:   of.Gauge(prefix+"signer_balance", "Last known balance of a signer for fees, in the chain's smallest unit.", "chain", "signer"),
		looked:    of.Gauge(prefix+"signer_checked_timestamp_seconds", "Time of the last health check of a signer by this process, which reads its balance, in Unix seconds.", "chain", "signer"),
		threshold: of.Gauge(prefix+"signer_threshold", "Minimum balance with which a signer serves, in the chain's smallest unit.", "chain", "signer"),
	}
}

// Outcomes of a signature request.
const (
	Signed     = "signed"
	WrongKey   = "wrong-key"   // the signature was made by another key
	UnknownKey = "unknown-key" // the service no longer holds the key
	Refused    = "refused"
	Busy       = "busy"       // it asked for a later retry, or has an error
	Unanswered = "unanswered" // no answer arrived
	Failed     = "failed"
	Abandoned  = "abandoned" // the caller gave up
)

// SignatureOutcomes lists the outcomes.
func SignatureOutcomes() []string {
	return []string{Signed, WrongKey, UnknownKey, Refused, Busy, Unanswered, Failed, Abandoned}
}

// Signature counts one signature request.
func (m *Metrics) Signature(of chain.Address, outcome string, took time.Duration) {
	m.signers.signatures.WithLabelValues(of.String(), outcome).Inc()
	m.signers.seconds.WithLabelValues(of.String()).Observe(took.Seconds())
}

// Signer sets a signer's state. balance is nil if it is unknown; looked is when it was read.
func (m *Metrics) Signer(on chain.ID, of chain.Address, s signer.State, balance *chain.Amount, looked time.Time) {
	labels := []string{on.String(), of.String()}
	for _, status := range signer.Statuses() {
		value := 0.0
		if status == s.Status() {
			value = 1
		}
		m.signers.state.WithLabelValues(append(labels[:2:2], string(status))...).Set(value)
	}
	m.signers.failures.WithLabelValues(labels...).Set(float64(len(s.Failures)))
	m.signers.threshold.WithLabelValues(labels...).Set(s.Threshold.Int().Float64())
	if balance != nil {
		m.signers.balance.WithLabelValues(labels...).Set(balance.Int().Float64())
		m.signers.looked.WithLabelValues(labels...).Set(float64(looked.UnixMilli()) / 1000)
	}
}

// guard counts refusals, and exports operators' settings.
type guard struct {
	refusals *prometheus.CounterVec
	halts    *prometheus.GaugeVec
	ratio    *prometheus.GaugeVec
	used     *prometheus.GaugeVec
	limit    *prometheus.GaugeVec
}

func newGuard(of *metrics.Metrics) guard {
	return guard{
		refusals: of.Counter(prefix+"guard_refusals_total", "Refusals by safeguards, budgets and signers, by the refusal's code: of requested intents (at accept), and of attempts to be signed (at sign), counted at each try.", "at", "rule"),
		halts:    of.Gauge(prefix+"halts", "Active halts, by scope: everybody (deployment), a chain, or a client.", "scope"),
		ratio:    of.Gauge(prefix+"budget_used_ratio", "Used share of a budget's limit today: the highest share of each kind (chain, client, subject, signer), for fees and for value; absent without a limit.", "chain", "of", "money"),
		used:     of.Gauge(prefix+"budget_used", "Amount counted today against a chain's budget, in its smallest unit: reserved and spent amounts.", "chain", "money"),
		limit:    of.Gauge(prefix+"budget_limit", "Maximum amount to spend on a chain in a day of UTC, in its smallest unit; absent without a limit.", "chain", "money"),
	}
}

// Points at which a request may be refused.
const (
	AtAccept = "accept" // when an intent is requested
	AtSign   = "sign"   // when an attempt is signed
)

// Refusal counts err if it is a refusal.
func (m *Metrics) Refusal(at string, err error) {
	if rule, refused := code(err); refused {
		m.guard.refusals.WithLabelValues(at, rule).Inc()
	}
}

// Switches sets the active halts.
func (m *Metrics) Switches(s safeguard.State) {
	halts := map[safeguard.ScopeKind]int{safeguard.Deployment: 0, safeguard.OnChain: 0, safeguard.OfClient: 0}
	for scope := range s.Halts {
		halts[scope.Kind]++
	}
	for kind, n := range halts {
		m.guard.halts.WithLabelValues(string(kind)).Set(float64(n))
	}
}

// Budget sets the use of a chain's budgets on a day.
func (m *Metrics) Budget(on chain.ID, s budget.State, day budget.Day) {
	chain, g := on.String(), m.guard
	used, limit := s.Used(day, budget.Account{Kind: budget.OnChain}), s.Limit(budget.Account{Kind: budget.OnChain})
	g.used.WithLabelValues(chain, "fee").Set(used.Fee.Int().Float64())
	g.used.WithLabelValues(chain, "value").Set(used.Value.Int().Float64())
	setOrNot(g.limit, limit.Fee, chain, "fee")
	setOrNot(g.limit, limit.Value, chain, "value")

	most := s.Fullest(day)
	for _, kind := range []budget.AccountKind{budget.OnChain, budget.OfClient, budget.OfSubject, budget.OfSigner} {
		for money, ratio := range map[string]*float64{"fee": most[kind].Fee, "value": most[kind].Value} {
			if ratio == nil {
				g.ratio.DeleteLabelValues(chain, string(kind), money)
				continue
			}
			g.ratio.WithLabelValues(chain, string(kind), money).Set(*ratio)
		}
	}
}

func setOrNot(g *prometheus.GaugeVec, a *chain.Amount, labels ...string) {
	if a == nil {
		g.DeleteLabelValues(labels...)
		return
	}
	g.WithLabelValues(labels...).Set(a.Int().Float64())
}
