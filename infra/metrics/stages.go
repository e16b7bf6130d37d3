package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
)

// stages counts transactions by outcome, and the time of each stage. Each fact is counted once,
// by the replica that recorded it.
type stages struct {
	seconds    *prometheus.HistogramVec
	verdicts   *prometheus.CounterVec
	finalized  *prometheus.CounterVec
	reorged    *prometheus.CounterVec
	violations *prometheus.CounterVec
	rejections *prometheus.CounterVec
	erased     *prometheus.CounterVec
	leftOut    *prometheus.CounterVec
}

// Stages of a transaction. Each begins at its earliest possible time.
const (
	stageSent  = "due_to_answered" // from the due time to a node's first recorded answer
	stageMined = "due_to_mined"    // from the due time to the recording of the receipt
	stageTold  = "block_to_told"   // from the block's time (whole seconds) to the recording of the verdict
	stageFinal = "due_to_final"    // from the due time to the sealing of the verdict
)

func (m *Metrics) makeStages() {
	// Seconds: from a fast node to a payment that waits two weeks for funds.
	buckets := []float64{.005, .025, .1, .25, .5, 1, 1.5, 2.5, 5, 10, 30, 60, 300, 1800, 7200, 43200, 1209600}
	m.stages = stages{
		seconds: m.Histogram("stage_seconds", "Time of one stage of a transaction's life, from when it was accepted and eligible; block_to_told counts from the block's time.",
			buckets, "chain", "stage"),
		verdicts:   m.Counter("verdicts_total", "Verdicts on transactions, announced from a block at the head, or without a block (invalid, canceled_locally).", "chain", "verdict"),
		finalized:  m.Counter("finalized_total", "Verdicts sealed by a final block.", "chain", "verdict"),
		reorged:    m.Counter("reorged_total", "Verdicts withdrawn because their block left the chain.", "chain"),
		violations: m.Counter("finality_violations_total", "Sealed verdicts that the chain has contradicted.", "chain"),
		rejections: m.Counter("rejections_total", "Recorded broadcast attempts that no endpoint accepted, by class and cause.", "chain", "class", "cause"),
		erased:     m.Counter("payloads_erased_total", "Transactions whose signed bytes were erased.", "chain"),
		leftOut:    m.Counter("group_left_out_total", "Transactions that joined no group because their group is full.", "chain"),
	}
}

// LeftOut counts transactions that joined no group because their group is full.
func (m *Metrics) LeftOut(chain string, transactions int) {
	m.stages.leftOut.WithLabelValues(chain).Add(float64(transactions))
}

// Chain creates a chain's counters at zero, so that a first occurrence is an increase.
func (m *Metrics) Chain(chain string) {
	m.stages.violations.WithLabelValues(chain)
	m.stages.reorged.WithLabelValues(chain)
	m.stages.leftOut.WithLabelValues(chain)
	for _, outcome := range []tx.Class{tx.Taken, tx.Known, tx.Retry, tx.Permanent, tx.Unknown} {
		m.submits.WithLabelValues(chain, string(outcome))
		m.resubmits.WithLabelValues(chain, string(outcome))
	}
	for _, verdict := range []tx.Status{tx.StatusExecuted, tx.StatusExecuted + reverted, tx.StatusStale, tx.StatusExpired, tx.StatusInvalid, tx.StatusCanceled} {
		m.stages.verdicts.WithLabelValues(chain, string(verdict))
	}
}

// reverted is appended to the verdict of transactions that were executed and reverted.
const reverted = "_reverted"

// Transaction counts the facts that one append has added to a transaction. before and after are
// its states around them.
func (m *Metrics) Transaction(before, after tx.State, facts []tx.Event) {
	chain := after.Accepted.Chain.String()
	since := func(stage string, at time.Time) {
		m.stages.seconds.WithLabelValues(chain, stage).Observe(max(at.Sub(due(after.Accepted)), 0).Seconds())
	}
	for _, fact := range facts {
		switch e := fact.(type) {
		case tx.Broadcast:
			if before.Attempt == 0 {
				since(stageSent, e.At)
			}
		case tx.Rejected:
			if before.Attempt == 0 {
				since(stageSent, e.At)
			}
			m.stages.rejections.WithLabelValues(chain, string(e.Class), string(e.Cause)).Inc()
			if e.Permanent {
				m.verdict(chain, tx.StatusInvalid)
			}
		case tx.Mined:
			since(stageMined, e.At)
			block := time.Unix(int64(min(e.Receipt.Block.Time, 1<<33)), 0) //nolint:gosec // bounded
			m.stages.seconds.WithLabelValues(chain, stageTold).Observe(max(e.At.Sub(block), 0).Seconds())
			if verdict := tx.StatusExecuted; e.Receipt.Status == 0 {
				m.verdict(chain, verdict+reverted)
			} else {
				m.verdict(chain, verdict)
			}
		case tx.StaleByNonce:
			m.verdict(chain, tx.StatusStale)
		case tx.Expired:
			m.verdict(chain, tx.StatusExpired)
		case tx.CanceledLocally:
			m.verdict(chain, tx.StatusCanceled)
		case tx.Reorged:
			m.stages.reorged.WithLabelValues(chain).Inc()
		case tx.Finalized:
			since(stageFinal, e.At)
			m.stages.finalized.WithLabelValues(chain, string(e.Verdict)).Inc()
		case tx.FinalityViolated:
			m.stages.violations.WithLabelValues(chain).Inc()
		case tx.PayloadErased:
			m.stages.erased.WithLabelValues(chain).Inc()
		case tx.Accepted, tx.Resubmitted, tx.GroupDoubted, tx.GroupConfirmed, tx.Retired: // counted as submissions and as appended events
		}
	}
}

func (m *Metrics) verdict(chain string, verdict tx.Status) {
	m.stages.verdicts.WithLabelValues(chain, string(verdict)).Inc()
}

// due is the earliest time at which a transaction could be sent.
func due(a tx.Accepted) time.Time {
	eligible := time.Unix(int64(min(a.EligibleAt, 1<<33)), 0) //nolint:gosec // bounded
	if a.At.After(eligible) {
		return a.At
	}
	return eligible
}
