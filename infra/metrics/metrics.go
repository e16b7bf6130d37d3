// Package metrics counts the calls of the ports, by wrapping them: no other package depends on
// it. The package below it counts the relay's work.
package metrics

import (
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
)

// Metrics is every metric of the service, on a separate registry.
type Metrics struct {
	registry  *prometheus.Registry
	described []Description

	httpRequests *prometheus.CounterVec
	httpSeconds  *prometheus.HistogramVec
	submissions  *prometheus.CounterVec
	appends      *prometheus.CounterVec
	appendTime   prometheus.Histogram
	attempts     *prometheus.CounterVec
	submits      *prometheus.CounterVec
	resubmits    *prometheus.CounterVec
	sendDelay    *prometheus.HistogramVec
	rpcCalls     *prometheus.CounterVec
	rpcSeconds   *prometheus.HistogramVec
	blocks       *prometheus.GaugeVec
	readers      *prometheus.GaugeVec
	head         prometheus.Gauge
	lag          *prometheus.GaugeVec
	stuck        *prometheus.GaugeVec
	stages       stages
	queue        queue
	archive      archive
	quotas       quotas
}

// New registers the metrics, including the Go runtime's and the process's.
func New(version string) *Metrics {
	m := &Metrics{registry: prometheus.NewRegistry()}
	m.makeStages()
	m.makeQueue()
	m.makeArchive()
	m.makeQuotas()
	// Buckets in seconds: from a fast append to the longest wait of a caller.
	fast := []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10}
	m.httpRequests = m.Counter("http_requests_total", "HTTP requests answered.", "route", "method", "code")
	m.httpSeconds = m.Histogram("http_request_seconds", "Time from request to answer.", fast, "route")
	m.submissions = m.Counter("submissions_total", "Raw transactions submitted, by outcome: accepted, known, refused or failed.", "outcome")
	m.appends = m.Counter("events_appended_total", "Events appended to the log.", "name")
	m.appendTime = m.Histogram("append_seconds", "Time of one append, group commit included.", fast).WithLabelValues().(prometheus.Histogram)
	m.attempts = m.Counter("broadcast_attempts_total", "Broadcast attempts made.", "chain")
	m.submits = m.Counter("submits_total", "Broadcast attempts by outcome: a node accepted the bytes (taken) or had them already (known), all asked nodes refused them for now (retry) or for ever (permanent), or no reliable answer arrived (unknown).", "chain", "outcome")
	m.resubmits = m.Counter("resubmits_total", "Broadcast attempts after the first of a transaction, by outcome as in watchtower_submits_total.", "chain", "outcome")
	m.sendDelay = m.Histogram("first_send_delay_seconds", "Time from when a transaction was due to its first send.", fast, "chain")
	m.rpcCalls = m.Counter("rpc_calls_total", "JSON-RPC calls by purpose (class) and result (outcome); each call of a batch counts.", "chain", "endpoint", "method", "class", "outcome")
	m.rpcSeconds = m.Histogram("rpc_call_seconds", "Time of one JSON-RPC call, or of the batch that contains it, by purpose (class).", fast, "chain", "endpoint", "class")
	m.blocks = m.Gauge("chain_block", "Newest block that was read (head), and newest block that can no longer leave the chain (final).", "chain", "tag")
	m.readers = m.Gauge("reader_position", "Log position up to which a reader has handled all events.", "reader")
	m.lag = m.Gauge("reader_lag_events", "Events between a reader's checkpoint and the log's head, for the readers that this process runs.", "reader")
	m.stuck = m.Gauge("reader_stuck_position", "Log position of the event that a reader cannot process; absent if there is none.", "reader")
	m.head = m.Gauge("log_position", "Position of the newest event that this process has seen.").WithLabelValues()
	m.Gauge("build_info", "Always 1; the label has the version.", "version").WithLabelValues(version).Set(1)
	m.registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

// Counter registers a counter, for this package and the ones below it.
func (m *Metrics) Counter(name, help string, labels ...string) *prometheus.CounterVec {
	c := prometheus.NewCounterVec(prometheus.CounterOpts{Name: prefix + name, Help: help}, labels)
	m.register(c, Description{prefix + name, "counter", labels, help})
	return c
}

// Histogram registers a histogram with classic buckets, and native ones for a Prometheus that
// accepts them.
func (m *Metrics) Histogram(name, help string, buckets []float64, labels ...string) *prometheus.HistogramVec {
	h := prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: prefix + name, Help: help, Buckets: buckets,
		NativeHistogramBucketFactor: 1.1, NativeHistogramMaxBucketNumber: 100,
	}, labels)
	m.register(h, Description{prefix + name, "histogram", labels, help})
	return h
}

// Gauge registers a gauge.
func (m *Metrics) Gauge(name, help string, labels ...string) *prometheus.GaugeVec {
	g := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: prefix + name, Help: help}, labels)
	m.register(g, Description{prefix + name, "gauge", labels, help})
	return g
}

// Description describes one metric.
type Description struct {
	Name, Kind string
	Labels     []string
	Help       string
}

func (m *Metrics) register(c prometheus.Collector, d Description) {
	m.registry.MustRegister(c)
	m.described = append(m.described, d)
}

// Desc makes a description for a metric that is read when the metrics are gathered.
func (m *Metrics) Desc(name, help string, labels ...string) *prometheus.Desc {
	d := Description{prefix + name, "gauge", labels, help}
	if strings.HasSuffix(name, "_total") {
		d.Kind = "counter"
	}
	m.described = append(m.described, d)
	return prometheus.NewDesc(d.Name, d.Help, d.Labels, nil)
}

// Described lists our metrics, ordered by name.
func (m *Metrics) Described() []Description {
	return slices.SortedFunc(slices.Values(m.described), func(a, b Description) int { return strings.Compare(a.Name, b.Name) })
}

// Register registers a collector of metrics described by [Metrics.Desc].
func (m *Metrics) Register(c prometheus.Collector) { m.registry.MustRegister(c) }

// prefix begins the name of each of our metrics.
const prefix = "watchtower_"

// Handler serves the metrics in the Prometheus text format.
func (m *Metrics) Handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{EnableOpenMetrics: true})
}

// Gatherer is for tests and for comparing the documentation with the binary.
func (m *Metrics) Gatherer() prometheus.Gatherer { return m.registry }

// Request counts one HTTP request by its route template.
func (m *Metrics) Request(route, method string, code string, took time.Duration) {
	m.httpRequests.WithLabelValues(route, method, code).Inc()
	m.httpSeconds.WithLabelValues(route).Observe(took.Seconds())
}

// Submission counts one raw transaction: accepted, known or refused.
func (m *Metrics) Submission(outcome string) { m.submissions.WithLabelValues(outcome).Inc() }

// Call counts one JSON-RPC call. An error's text is no label, because it is unbounded.
func (m *Metrics) Call(chain, endpoint, method, class, outcome string, took time.Duration) {
	m.rpcCalls.WithLabelValues(chain, endpoint, method, class, outcome).Inc()
	m.rpcSeconds.WithLabelValues(chain, endpoint, class).Observe(took.Seconds())
}

// Attempt counts one broadcast attempt. since is how long the transaction was due before its
// first attempt; negative for a repeat.
func (m *Metrics) Attempt(chain string, since time.Duration) {
	m.attempts.WithLabelValues(chain).Inc()
	if since >= 0 {
		m.sendDelay.WithLabelValues(chain).Observe(since.Seconds())
	}
}

// Submit counts the outcome of one broadcast attempt, its transaction's first or a later one.
func (m *Metrics) Submit(chain string, outcome tx.Class, first bool) {
	m.submits.WithLabelValues(chain, string(outcome)).Inc()
	if !first {
		m.resubmits.WithLabelValues(chain, string(outcome)).Inc()
	}
}

// Block sets the newest block of a tag: head or final.
func (m *Metrics) Block(chain, tag string, number uint64) {
	m.blocks.WithLabelValues(chain, tag).Set(float64(number))
}

// Reader sets a reader's checkpoint.
func (m *Metrics) Reader(name string, position uint64) {
	m.readers.WithLabelValues(name).Set(float64(position))
}
