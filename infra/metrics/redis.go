package metrics

import "github.com/prometheus/client_golang/prometheus"

// RedisStatus is the current state of the Redis accelerator; its counts are since the start.
type RedisStatus struct {
	Up                                bool
	Written, Dropped, Woken, Failures uint64
}

// redis reads the accelerator's state whenever the metrics are gathered.
type redis struct {
	status func() RedisStatus

	up, hints, wakes, failures *prometheus.Desc
}

// Redis exports the accelerator's state, if there is one.
func (m *Metrics) Redis(status func() RedisStatus) {
	desc := func(name, help string, labels ...string) *prometheus.Desc {
		return m.Desc("redis_"+name, help, labels...)
	}
	m.Register(&redis{
		status:   status,
		up:       desc("up", "1 while Redis answers, 0 after failures until its circuit breaker closes."),
		hints:    desc("hints_total", "Hints at due work: accepted by Redis (written), or not sent or not accepted (dropped).", "outcome"),
		wakes:    desc("wakes_total", "Polls of the due queue that hints caused."),
		failures: desc("failures_total", "Round trips to Redis that failed."),
	})
}

// Describe implements prometheus.Collector.
func (c *redis) Describe(descs chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{c.up, c.hints, c.wakes, c.failures} {
		descs <- d
	}
}

// Collect implements prometheus.Collector.
func (c *redis) Collect(found chan<- prometheus.Metric) {
	s := c.status()
	count := func(d *prometheus.Desc, n uint64, labels ...string) {
		found <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(n), labels...)
	}
	found <- prometheus.MustNewConstMetric(c.up, prometheus.GaugeValue, is(s.Up))
	count(c.hints, s.Written, "written")
	count(c.hints, s.Dropped, "dropped")
	count(c.wakes, s.Woken)
	count(c.failures, s.Failures)
}
