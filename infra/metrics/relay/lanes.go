package relay

import (
	"cmp"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/relay/fee"
	"github.com/tempo-watchtower/watchtower/domain/relay/lane"
	"github.com/tempo-watchtower/watchtower/eventlog"
	"github.com/tempo-watchtower/watchtower/infra/metrics"
)

// lanes counts recorded events of lanes, and exports the state of the lanes that this process
// works on. A signer may have one lane per nonce key; they are summed up.
type lanes struct {
	now      func() time.Time
	stages   *prometheus.HistogramVec
	turns    *prometheus.HistogramVec
	stalls   *prometheus.CounterVec
	leases   *prometheus.CounterVec
	fenced   *prometheus.CounterVec
	opened   *prometheus.CounterVec
	found    *prometheus.CounterVec
	filled   *prometheus.CounterVec
	foreign  *prometheus.CounterVec
	reclaims *prometheus.CounterVec
	releases *prometheus.CounterVec
	unlanded *prometheus.CounterVec
	attempts *prometheus.CounterVec
	offered  *prometheus.GaugeVec
	ceiling  *prometheus.GaugeVec
	refusals *prometheus.CounterVec

	held, troubled, inFlight, left, open, holes, oldest, next, drift *prometheus.Desc

	mu       sync.Mutex
	all      map[chain.Sequence]figures
	expected map[owner]bool
}

// owner is a signer on a chain.
type owner struct {
	chain  chain.ID
	signer chain.Address
}

// figures are a lane's state.
type figures struct {
	inFlight, left, open, holes int
	troubled                    int       // number of lanes
	front                       time.Time // signing time of the oldest nonce in flight; zero means none
	known                       bool
	next                        uint64
	drift                       int64
}

func newLanes(of *metrics.Metrics, now func() time.Time, stages *prometheus.HistogramVec) *lanes {
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return of.Counter(prefix+name, help, labels...)
	}
	desc := func(name, help string, labels ...string) *prometheus.Desc {
		return of.Desc(prefix+name, help, append([]string{"chain", "signer"}, labels...)...)
	}
	l := &lanes{
		now: now, stages: stages, all: map[chain.Sequence]figures{}, expected: map[owner]bool{},
		turns: of.Histogram(prefix+"lane_turn_seconds", "Time of one turn of a lane's holder, which takes every nonce one step further.",
			[]float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30}, "chain"),
		stalls:   counter("lane_stalls_total", "Times that the lane's first nonce that waits for the chain made no progress for lane.stall.", "chain", "signer"),
		leases:   counter("lane_leases_total", "Attempts to lease a lane: won, missed (another process has the lease), or failed (the lease store did not answer); and leases lost while held (lost).", "outcome"),
		fenced:   counter("lane_fenced_total", "Writes to lanes and budgets that were refused because another holder had opened the lane.", "chain"),
		opened:   counter("lane_opened_total", "Lanes opened, by the previous holder: none (nobody), this process (self), or another process (another).", "chain", "from"),
		found:    counter("lane_recovered_nonces_total", "Nonces in flight that a new holder of a lane found in the log and continued: after a takeover, or after a restart.", "chain", "signer"),
		filled:   counter("lane_filled_nonces_total", "Nonces for which a no-op was chosen, because no intent holds them.", "chain", "signer"),
		foreign:  counter("lane_foreign_nonces_total", "Nonces that another user of the key has used: ahead of the cursor (skipped), or after they were assigned (lost).", "chain", "signer", "how"),
		reclaims: counter("lane_reclaimed_nonces_total", "Nonces that the cursor had skipped and that the chain still expects.", "chain", "signer"),
		releases: counter("lane_released_nonces_total", "Nonces that were given back before anything was signed for them.", "chain", "signer"),
		unlanded: counter("lane_unlanded_nonces_total", "Nonces whose block left the chain.", "chain", "signer"),
		attempts: counter("attempts_total", "Attempts signed and recorded: the first of a nonce (first), a bump of its fee (bump), or a no-op (no-op).", "chain", "signer", "kind"),
		offered:  of.Gauge(prefix+"fee_offered_per_gas", "Maximum price per unit of gas that the newest attempt offers, in the chain's smallest unit.", "chain"),
		ceiling:  of.Gauge(prefix+"fee_ceiling_per_gas", "Maximum price per unit of gas, in the chain's smallest unit: fee.ceiling.", "chain"),
		refusals: counter("fee_refusals_total", "Fee offers that could not be made, by the refusal's code and by the lower ceiling: the operator's (operator) or the intent's (intent).", "chain", "reason", "ceiling"),

		held:     desc("lanes_held", "Lanes that this process works on: of nonce key 0 (protocol), and of other keys (other).", "key"),
		troubled: desc("lanes_in_trouble", "Lanes that this process works on and whose last turn had an error that is retried; the process logs the error."),
		inFlight: desc("lane_in_flight_nonces", "Assigned nonces in no block yet, of the lanes that this process works on."),
		left:     desc("lane_budget_left_nonces", "Nonces that may still be assigned before one is mined, of the lane with the fewest left."),
		open:     desc("lane_open_nonces", "Nonces that were assigned or are free again, and that no final block has closed."),
		holes:    desc("lane_hole_nonces", "Unsigned nonces below a signed nonce, except nonces for which a no-op is chosen."),
		oldest:   desc("lane_oldest_in_flight_seconds", "Time since the first signature for the oldest signed nonce that is in no block; 0 if there is none."),
		next:     desc("lane_next_nonce", "Cursor of the lane of nonce key 0: the next nonce that was never assigned."),
		drift:    desc("lane_drift_nonces", "Nonces used on the chain but not in the records (above 0), or in the records but not on the chain (below 0), at the last look at the chain; of the lane with the largest difference."),
	}
	for _, outcome := range []string{"won", "missed", "failed", "lost"} { // so that a first occurrence is an increase
		l.leases.WithLabelValues(outcome)
	}
	of.Register(l)
	return l
}

// Expect declares that a signer's lane of nonce key 0 is worked on, by this process or another.
func (m *Metrics) Expect(on chain.ID, signer chain.Address) {
	m.lanes.mu.Lock()
	defer m.lanes.mu.Unlock()
	m.lanes.expected[owner{on, signer}] = true
	// So that a first occurrence is an increase.
	for _, outcome := range SignatureOutcomes() {
		m.signers.signatures.WithLabelValues(signer.String(), outcome)
	}
	m.lanes.stalls.WithLabelValues(on.String(), signer.String())
	m.lanes.found.WithLabelValues(on.String(), signer.String())
	for _, how := range []string{foreignSkipped, foreignLost} {
		m.lanes.foreign.WithLabelValues(on.String(), signer.String(), how)
	}
	for _, kind := range []string{kindFirst, kindBump, kindNoOp} {
		m.lanes.attempts.WithLabelValues(on.String(), signer.String(), kind)
	}
}

// Values of labels.
const (
	foreignSkipped = "skipped"
	foreignLost    = "lost"

	kindFirst = "first"
	kindBump  = "bump"
	kindNoOp  = "no-op"

	ceilingOperator = "operator"
	ceilingIntent   = "intent"
)

// Turn is the result of one turn of a lane's holder.
type Turn struct {
	Budget   int   // maximum of nonces in flight
	Drift    int64 // if positive, nonces used on the chain and unknown to the lane
	Stalled  bool  // the first nonce waiting for the chain has stalled
	Troubled bool  // something failed, and will be retried
	Took     time.Duration
}

// Turn sets a lane's state after a turn.
func (m *Metrics) Turn(id chain.Sequence, s lane.State, t Turn) {
	l, on := m.lanes, id.Chain.String()
	l.turns.WithLabelValues(on).Observe(t.Took.Seconds())
	if t.Stalled {
		l.stalls.WithLabelValues(on, id.Sender.String()).Inc()
	}
	f := figures{inFlight: s.InFlight(), open: s.Open(), holes: len(s.Holes()), known: s.Known, next: s.Next, drift: t.Drift}
	f.left = max(t.Budget-f.inFlight, 0)
	if t.Troubled {
		f.troubled = 1
	}
	if first, waits := s.Front(); waits {
		f.front = first.Attempts[0].At
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all[id] = f
}

// NoLane removes a lane that this process no longer works on.
func (m *Metrics) NoLane(id chain.Sequence) {
	m.lanes.mu.Lock()
	defer m.lanes.mu.Unlock()
	delete(m.lanes.all, id)
}

// Lease counts a result of leasing a lane.
func (m *Metrics) Lease(outcome string) { m.lanes.leases.WithLabelValues(outcome).Inc() }

// Fenced counts a write refused because another holder has opened the lane.
func (m *Metrics) Fenced(chain string) { m.lanes.fenced.WithLabelValues(chain).Inc() }

// Lane counts the facts that one append of a holder has added to a lane.
func (m *Metrics) Lane(id chain.Sequence, holder string, before lane.State, facts []lane.Event) {
	l, on, of := m.lanes, id.Chain.String(), id.Sender.String()
	for _, fact := range facts {
		switch e := fact.(type) {
		case lane.Opened:
			from := "another"
			switch before.Holder {
			case "":
				from = "nobody"
			case holder:
				from = "self"
			}
			l.opened.WithLabelValues(on, from).Inc()
			l.found.WithLabelValues(on, of).Add(float64(before.InFlight()))
		case lane.Advanced:
			if before.Known {
				l.foreign.WithLabelValues(on, of, foreignSkipped).Add(float64(e.Witness.Nonce - e.From))
			}
		case lane.Lost:
			l.foreign.WithLabelValues(on, of, foreignLost).Inc()
		case lane.Released:
			l.releases.WithLabelValues(on, of).Inc()
		case lane.Filled:
			l.filled.WithLabelValues(on, of).Inc()
		case lane.Reclaimed:
			l.reclaims.WithLabelValues(on, of).Add(float64(e.Count))
		case lane.Unlanded:
			l.unlanded.WithLabelValues(on, of).Add(float64(len(e.Nonces)))
		case lane.Attempted:
			l.attempted(on, of, before, e)
		case lane.Reserved, lane.Landed: // counted with the intents, and as appended events
		}
	}
}

func (l *lanes) attempted(on, of string, before lane.State, e lane.Attempted) {
	kind := kindFirst
	switch {
	case e.Intent.IsZero():
		kind = kindNoOp
	case e.Number > 1:
		kind = kindBump
	}
	l.attempts.WithLabelValues(on, of, kind).Inc()
	l.offered.WithLabelValues(on).Set(e.Fee.MaxFee.Int().Float64())
	if slot, held := before.Slot(e.Nonce); held && kind == kindFirst {
		l.stages.WithLabelValues(on, stageSigned).Observe(max(e.At.Sub(slot.Since), 0).Seconds())
	}
}

// Serve declares that intents are carried out on a chain, and exports the highest price per
// unit of gas there.
func (m *Metrics) Serve(on chain.ID, most chain.Price) {
	m.ends(on.String())
	m.lanes.fenced.WithLabelValues(on.String())
	for _, reason := range []eventlog.Refusal{fee.ErrMarket, fee.ErrCeiling} {
		m.lanes.refusals.WithLabelValues(on.String(), string(reason), ceilingOperator)
	}
	m.lanes.ceiling.WithLabelValues(on.String()).Set(most.Int().Float64())
}

// NoOffer counts a failure to offer a fee. own says whether the lower ceiling is the intent's,
// and not the operator's. Errors that are no refusal do not count here.
func (m *Metrics) NoOffer(on chain.ID, own bool, err error) {
	reason, refused := code(err)
	if !refused {
		return
	}
	ceiling := ceilingOperator
	if own {
		ceiling = ceilingIntent
	}
	m.lanes.refusals.WithLabelValues(on.String(), reason, ceiling).Inc()
}

// Describe implements prometheus.Collector.
func (l *lanes) Describe(descs chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{l.held, l.troubled, l.inFlight, l.left, l.open, l.holes, l.oldest, l.next, l.drift} {
		descs <- d
	}
}

// summed is the sum of one signer's lanes.
type summed struct {
	figures
	protocol, others int // numbers of held lanes
}

// Collect implements prometheus.Collector.
func (l *lanes) Collect(found chan<- prometheus.Metric) {
	now, sums := l.now(), l.sum()
	for _, o := range slices.SortedFunc(maps.Keys(sums), func(a, b owner) int {
		return cmp.Or(cmp.Compare(a.chain, b.chain), slices.Compare(a.signer[:], b.signer[:]))
	}) {
		s := sums[o]
		gauge := func(d *prometheus.Desc, value float64, labels ...string) {
			found <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value, append([]string{o.chain.String(), o.signer.String()}, labels...)...)
		}
		gauge(l.held, float64(s.protocol), "protocol")
		gauge(l.held, float64(s.others), "other")
		if s.protocol+s.others == 0 {
			continue
		}
		gauge(l.troubled, float64(s.troubled))
		gauge(l.inFlight, float64(s.inFlight))
		gauge(l.left, float64(s.left))
		gauge(l.open, float64(s.open))
		gauge(l.holes, float64(s.holes))
		age := 0.0
		if !s.front.IsZero() {
			age = max(now.Sub(s.front), 0).Seconds()
		}
		gauge(l.oldest, age)
		gauge(l.drift, float64(s.drift))
		if s.known {
			gauge(l.next, float64(s.next))
		}
	}
}

// sum adds up each signer's lanes.
func (l *lanes) sum() map[owner]summed {
	l.mu.Lock()
	defer l.mu.Unlock()
	sums := map[owner]summed{}
	for o := range l.expected {
		sums[o] = summed{}
	}
	for id, f := range l.all {
		o := owner{id.Chain, id.Sender}
		s := sums[o]
		if s.protocol+s.others == 0 || f.left < s.left {
			s.left = f.left
		}
		if id.Key == (chain.NonceKey{}) {
			s.protocol++
			s.known, s.next = f.known, f.next
		} else {
			s.others++
		}
		s.inFlight, s.open, s.holes, s.troubled = s.inFlight+f.inFlight, s.open+f.open, s.holes+f.holes, s.troubled+f.troubled
		if !f.front.IsZero() && (s.front.IsZero() || f.front.Before(s.front)) {
			s.front = f.front
		}
		if abs(f.drift) > abs(s.drift) {
			s.drift = f.drift
		}
		sums[o] = s
	}
	return sums
}

func abs(n int64) int64 { return max(n, -n) }
