package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Endpoint is the current state of one node.
type Endpoint struct {
	Chain, Name    string
	State, Breaker string // each from the lists given to Endpoints
	Score          float64
	Latency        time.Duration // moving average
	Head, Lag      uint64
	Lead           uint64
	InFlight       int
	Slots          int // allowed concurrent requests
	Reading        bool
	Trips          uint64 // this and the next three: counts since the start
	Contradictions uint64
	Differences    uint64
	Withheld       uint64
	// Remaining budget, and whether there is one.
	BudgetNow   float64
	BudgetToday int
	HasRate     bool
	HasDaily    bool
}

// endpoints reads the nodes' states whenever the metrics are gathered.
type endpoints struct {
	status           func() []Endpoint
	states, breakers []string

	score, state, breaker, latency, head, lag, lead, reading            *prometheus.Desc
	inFlight, slots, left, trips, contradictions, differences, withheld *prometheus.Desc
}

// Endpoints exports the nodes' states. states and breakers list the possible values.
func (m *Metrics) Endpoints(states, breakers []string, status func() []Endpoint) {
	desc := func(name, help string, labels ...string) *prometheus.Desc {
		return m.Desc("rpc_endpoint_"+name, help, append([]string{"chain", "endpoint"}, labels...)...)
	}
	m.Register(&endpoints{
		status: status, states: states, breakers: breakers,
		score:          desc("score", "Health of an endpoint by latency, error rate, head lag and honesty; 1 is best, 0 worst."),
		state:          desc("state", "1 for the state an endpoint is in, 0 for the others; only healthy is in rotation.", "state"),
		breaker:        desc("breaker", "1 for the state an endpoint's circuit breaker is in, 0 for the others.", "state"),
		latency:        desc("latency_seconds", "Moving average of an endpoint's latency."),
		head:           desc("head_block", "Newest block that an endpoint has reported."),
		lag:            desc("lag_blocks", "Blocks that an endpoint was behind the others when it reported its head."),
		lead:           desc("lead_blocks", "Blocks that an endpoint is ahead of all others."),
		reading:        desc("reading", "1 for the endpoint that a chain's reads go to, 0 for the others."),
		inFlight:       desc("in_flight_requests", "Requests to an endpoint in flight."),
		slots:          desc("in_flight_limit_requests", "Maximum of requests to an endpoint in flight."),
		left:           desc("budget_left_calls", "Calls left in an endpoint's budget, at once (window burst) or today (window day); absent without a limit.", "window"),
		trips:          desc("trips_total", "Times that an endpoint's circuit breaker has opened."),
		contradictions: desc("contradictions_total", "Answers of an endpoint that contradicted the request, themselves or most other endpoints."),
		differences:    desc("differences_total", "Answers of an endpoint that differed from another endpoint's answer; no majority could decide, so neither counted."),
		withheld:       desc("withheld_calls_total", "Calls not made because an endpoint's budget forbade them."),
	})
}

// Describe implements prometheus.Collector.
func (c *endpoints) Describe(descs chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{
		c.score, c.state, c.breaker, c.latency, c.head, c.lag, c.lead, c.reading,
		c.inFlight, c.slots, c.left, c.trips, c.contradictions, c.differences, c.withheld,
	} {
		descs <- d
	}
}

// Collect implements prometheus.Collector.
func (c *endpoints) Collect(metrics chan<- prometheus.Metric) {
	for _, e := range c.status() {
		send := func(d *prometheus.Desc, kind prometheus.ValueType, value float64, labels ...string) {
			metrics <- prometheus.MustNewConstMetric(d, kind, value, append([]string{e.Chain, e.Name}, labels...)...)
		}
		gauge := func(d *prometheus.Desc, value float64, labels ...string) {
			send(d, prometheus.GaugeValue, value, labels...)
		}
		gauge(c.score, e.Score)
		for _, state := range c.states {
			gauge(c.state, is(state == e.State), state)
		}
		for _, state := range c.breakers {
			gauge(c.breaker, is(state == e.Breaker), state)
		}
		gauge(c.latency, e.Latency.Seconds())
		gauge(c.head, float64(e.Head))
		gauge(c.lag, float64(e.Lag))
		gauge(c.lead, float64(e.Lead))
		gauge(c.reading, is(e.Reading))
		gauge(c.inFlight, float64(e.InFlight))
		gauge(c.slots, float64(e.Slots))
		if e.HasRate {
			gauge(c.left, e.BudgetNow, "burst")
		}
		if e.HasDaily {
			gauge(c.left, float64(e.BudgetToday), "day")
		}
		send(c.trips, prometheus.CounterValue, float64(e.Trips))
		send(c.contradictions, prometheus.CounterValue, float64(e.Contradictions))
		send(c.differences, prometheus.CounterValue, float64(e.Differences))
		send(c.withheld, prometheus.CounterValue, float64(e.Withheld))
	}
}

func is(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
