package metrics

import "github.com/prometheus/client_golang/prometheus"

// quotas are the clients' quotas. Clients' names are no labels, because they are unbounded.
type quotas struct{ used, limit *prometheus.GaugeVec }

func (m *Metrics) makeQuotas() {
	m.quotas = quotas{
		used:  m.Gauge("quota_used", "Highest use of a quota by one client. Streams and lanes of a chain are counted per process, requests for the whole store.", "quota"),
		limit: m.Gauge("quota_limit", "Maximum use of a quota by one client.", "quota"),
	}
}

// QuotaUsed sets a quota's limit, and the use by its heaviest client.
func (m *Metrics) QuotaUsed(quota string, used, limit int) {
	m.quotas.used.WithLabelValues(quota).Set(float64(used))
	m.quotas.limit.WithLabelValues(quota).Set(float64(limit))
}
