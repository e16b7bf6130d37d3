package relay

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/tempo-watchtower/watchtower/domain/notice"
	"github.com/tempo-watchtower/watchtower/infra/metrics"
)

// notices counts webhook deliveries (notices), and exports the queue's last counts.
type notices struct {
	rows      *prometheus.GaugeVec
	due       *prometheus.GaugeVec
	oldest    *prometheus.GaugeVec
	endpoints *prometheus.GaugeVec
	attempts  *prometheus.CounterVec
	retries   *prometheus.CounterVec
	seconds   *prometheus.HistogramVec
	delay     *prometheus.HistogramVec
}

func newNotices(of *metrics.Metrics, buckets []float64) notices {
	return notices{
		rows:      of.Gauge(prefix+"notices", "Webhook deliveries in the queue: queued, in progress (delivering), and given up (dead).", "stage"),
		due:       of.Gauge(prefix+"notices_due", "Webhook deliveries that are due now and not sent yet, to endpoints that do not fail."),
		oldest:    of.Gauge(prefix+"notices_oldest_due_seconds", "Time for which the oldest due webhook delivery has been due; 0 if none is due."),
		endpoints: of.Gauge(prefix+"webhooks", "Webhook endpoints: working or never tried (working), failed at the last attempt (failing), or without further deliveries (disabled).", "state"),
		attempts:  of.Counter(prefix+"notice_attempts_total", "Attempts at a webhook delivery, by the meaning of the answer (outcome) and the cause of a failure (cause).", "outcome", "cause"),
		retries:   of.Counter(prefix+"notice_retries_total", "Retries of webhook deliveries."),
		seconds: of.Histogram(prefix+"notice_attempt_seconds", "Time of one attempt at a webhook delivery.",
			[]float64{.005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 15, 30, 60}),
		delay: of.Histogram(prefix+"notice_delay_seconds", "Time from an event of an intent to its delivery to a webhook.", buckets),
	}
}

// Notices sets the counts of the queue of notices.
func (m *Metrics) Notices(d notice.Depth) {
	n := m.notices
	for stage, count := range map[notice.Stage]int{notice.Queued: d.Queued, notice.Delivering: d.Delivering, notice.Dead: d.Dead} {
		n.rows.WithLabelValues(string(stage)).Set(float64(count))
	}
	n.due.WithLabelValues().Set(float64(d.Due))
	n.oldest.WithLabelValues().Set(d.OldestDue.Seconds())
	for state, count := range map[string]int{"working": d.Working, "failing": d.Failing, "disabled": d.Disabled} {
		n.endpoints.WithLabelValues(state).Set(float64(count))
	}
}

// NoNotices removes the queue's metrics: another process exports them now.
func (m *Metrics) NoNotices() {
	for _, g := range []*prometheus.GaugeVec{m.notices.rows, m.notices.due, m.notices.oldest, m.notices.endpoints} {
		g.Reset()
	}
}

// Notice counts an attempt to deliver a notice, its first or a later one. of is the time of its
// event; zero if unknown.
func (m *Metrics) Notice(o notice.Outcome, first bool, of, now time.Time, took time.Duration) {
	m.notices.attempts.WithLabelValues(string(o.Class), string(o.Cause)).Inc()
	retries := m.notices.retries.WithLabelValues() // exported from the first attempt on
	if !first {
		retries.Inc()
	}
	m.notices.seconds.WithLabelValues().Observe(took.Seconds())
	if o.Class == notice.Delivered && !of.IsZero() {
		m.notices.delay.WithLabelValues().Observe(max(now.Sub(of), 0).Seconds())
	}
}
