package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
)

// queue holds the last counts of the due queue.
type queue struct {
	rows   *prometheus.GaugeVec
	due    *prometheus.GaugeVec
	oldest *prometheus.GaugeVec
	unseen *prometheus.GaugeVec
}

func (m *Metrics) makeQueue() {
	m.queue = queue{
		rows:   m.Gauge("queue_transactions", "Transactions in the due queue, by state: open (may be sent), parked (behind their sequence's window), waiting (the part of open that waits for a lower nonce), announced, watched or sealed.", "chain", "state"),
		due:    m.Gauge("queue_due_transactions", "Open transactions that are due now and not leased by a worker.", "chain"),
		unseen: m.Gauge("receipt_backlog_transactions", "Transactions that were sent and whose receipt, or other verdict, was not read from a block yet.", "chain"),
		oldest: m.Gauge("queue_oldest_due_seconds", "Time for which the oldest due transaction has been due; 0 if none is due.", "chain"),
	}
}

// Queue sets the counts of a chain's due queue.
func (m *Metrics) Queue(chain string, d tx.Depth) {
	for state, n := range map[string]int{
		"open": d.Open, "parked": d.Parked, "waiting": d.Waiting,
		string(tx.Announced): d.Announced, string(tx.Watched): d.Watched, string(tx.Sealed): d.Sealed,
	} {
		m.queue.rows.WithLabelValues(chain, state).Set(float64(n))
	}
	m.queue.unseen.WithLabelValues(chain).Set(float64(d.Sent))
	m.queue.due.WithLabelValues(chain).Set(float64(d.Due))
	m.queue.oldest.WithLabelValues(chain).Set(d.OldestDue.Seconds())
}

// Lag sets how many events a reader is behind the head of the log.
func (m *Metrics) Lag(reader string, events uint64) {
	m.lag.WithLabelValues(reader).Set(float64(events))
}

// Stuck sets the event that a reader cannot process.
func (m *Metrics) Stuck(reader string, position uint64) {
	m.stuck.WithLabelValues(reader).Set(float64(position))
}

// NotStuck clears a reader's stuck event.
func (m *Metrics) NotStuck(reader string) { m.stuck.DeleteLabelValues(reader) }

// NotReader removes a reader that this process no longer runs.
func (m *Metrics) NotReader(reader string) {
	m.lag.DeleteLabelValues(reader)
	m.readers.DeleteLabelValues(reader)
}

// NoQueue removes the due queue's metrics: another process exports them now.
func (m *Metrics) NoQueue() {
	for _, g := range []*prometheus.GaugeVec{m.queue.rows, m.queue.due, m.queue.oldest, m.queue.unseen} {
		g.Reset()
	}
}
