package metrics

import "github.com/prometheus/client_golang/prometheus"

// quotas are the clients' quotas. Clients' names are no labels, because they are unbounded.
type quotas struct{ used, limit *prometheus.GaugeVec }

func (m *Metrics) makeQuotas() {
	m.quotas = quotas{
		used:  m.Gauge("quota_used", "Use of a quota by the client that uses most of it: streams, and lanes of a chain, are counted by each process, requests over the store.", "quota"),
		limit: m.Gauge("quota_limit", "The most of it that one client may use.", "quota"),
	}
}

// QuotaUsed sets a quota's limit, and the use by its heaviest client.
func (m *Metrics) QuotaUsed(quota string, used, limit int) {
	m.quotas.used.WithLabelValues(quota).Set(float64(used))
	m.quotas.limit.WithLabelValues(quota).Set(float64(limit))
}
