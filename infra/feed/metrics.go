package feed

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// counts are a subscription's counters, since its start.
type counts struct{ delivered, acked, nacked, parks uint64 }

func (c *counts) add(d counts) {
	c.delivered += d.delivered
	c.acked += d.acked
	c.nacked += d.nacked
	c.parks += d.parks
}

func (s *subscription) counts() counts {
	return counts{s.delivered.Load(), s.acked.Load(), s.nacked.Load(), s.parks.Load()}
}

// Metric describes one metric of a [Subscriber].
type Metric struct{ Name, Kind, Help string }

// Metrics lists the metrics. Each has the labels group and topic.
func Metrics() []Metric {
	return []Metric{
		{"watchtower_feed_active", "gauge", "1 while this process receives the group's events, 0 while another process does."},
		{"watchtower_feed_position", "gauge", "Log position up to which the group has handled all events except parked streams; exported by the process that receives the events."},
		{"watchtower_feed_lag_events", "gauge", "Log positions between the group's checkpoint and the head; exported by the process that receives the events."},
		{"watchtower_feed_lag_seconds", "gauge", "Age of the oldest event in flight, 0 if none is; exported by the process that receives the events."},
		{"watchtower_feed_in_flight_events", "gauge", "Events in flight: read and not done yet, or waiting for an earlier event that is not done."},
		{"watchtower_feed_parked_streams", "gauge", "Parked streams of the group; exported by the process that receives the events."},
		{"watchtower_feed_delivered_total", "counter", "Messages delivered, repeats included."},
		{"watchtower_feed_acked_total", "counter", "Messages that were acked."},
		{"watchtower_feed_nacked_total", "counter", "Messages that were nacked."},
		{"watchtower_feed_parked_total", "counter", "Times that a stream was parked."},
	}
}

// describe makes the description of one metric. It contains the group, so that one registry
// accepts the subscribers of several groups.
func (s *Subscriber) describe(m Metric) *prometheus.Desc {
	return prometheus.NewDesc(m.Name, m.Help, []string{"topic"}, prometheus.Labels{"group": s.o.Group})
}

// Describe implements prometheus.Collector.
func (s *Subscriber) Describe(descs chan<- *prometheus.Desc) {
	for _, m := range Metrics() {
		descs <- s.describe(m)
	}
}

// Collect implements prometheus.Collector. It sums the subscriptions of this process to one
// topic.
func (s *Subscriber) Collect(found chan<- prometheus.Metric) {
	s.mu.Lock()
	defer s.mu.Unlock()
	figures := map[string]map[string]float64{}
	of := func(topic string, c counts) map[string]float64 {
		f := figures[topic]
		if f == nil {
			f = map[string]float64{}
			figures[topic] = f
		}
		f["watchtower_feed_delivered_total"] += float64(c.delivered)
		f["watchtower_feed_acked_total"] += float64(c.acked)
		f["watchtower_feed_nacked_total"] += float64(c.nacked)
		f["watchtower_feed_parked_total"] += float64(c.parks)
		return f
	}
	for topic, c := range s.ended {
		of(topic, c)
	}
	for sub := range s.subs {
		sub.gauges(of(sub.topic, sub.counts()))
	}
	for _, m := range Metrics() {
		kind := prometheus.GaugeValue
		if m.Kind == "counter" {
			kind = prometheus.CounterValue
		}
		for topic, f := range figures {
			if v, ok := f[m.Name]; ok {
				found <- prometheus.MustNewConstMetric(s.describe(m), kind, v, topic)
			}
		}
	}
}

// gauges sets the gauges of a subscription.
func (s *subscription) gauges(f map[string]float64) {
	f["watchtower_feed_active"] += 0
	n := s.session.Load()
	if n == nil {
		return
	}
	held, oldest := n.tally.underWay()
	f["watchtower_feed_active"] = 1
	f["watchtower_feed_in_flight_events"] = float64(held)
	f["watchtower_feed_parked_streams"] = float64(s.parked.Load())
	f["watchtower_feed_position"] = float64(s.position.Load())
	f["watchtower_feed_lag_events"] = max(0, float64(s.head.Load())-float64(s.position.Load()))
	f["watchtower_feed_lag_seconds"] = 0
	if held > 0 {
		f["watchtower_feed_lag_seconds"] = max(0, time.Since(oldest).Seconds())
	}
}
