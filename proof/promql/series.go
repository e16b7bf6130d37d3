package main

import (
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/value"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb/chunkenc"
	"github.com/prometheus/prometheus/tsdb/chunks"
	"github.com/prometheus/prometheus/util/annotations"
)

// series is all samples so far. It implements Prometheus's storage, for queries by metric name.
type series struct {
	byName map[string]map[string]*line // then by instance and labels
}

// line is one metric of one instance, as Prometheus stores it.
type line struct {
	labels  labels.Labels
	samples []chunks.Sample
	seen    int64 // last time, in milliseconds
	stale   bool
}

// sample is a value at a time.
type sample struct {
	t int64 // milliseconds
	f float64
}

func (s sample) T() int64                      { return s.t }
func (s sample) F() float64                    { return s.f }
func (s sample) H() *histogram.Histogram       { return nil }
func (s sample) FH() *histogram.FloatHistogram { return nil }
func (s sample) Type() chunkenc.ValueType      { return chunkenc.ValFloat }
func (s sample) Copy() chunks.Sample           { return s }

// look adds a scrape, and reports which expressions have a result then.
func (s *series) look(ctx context.Context, engine *promql.Engine, l Look) (holds []bool, err error) {
	for instance, lines := range l.Lines {
		for _, text := range lines {
			if err := s.add(l.At, instance, text); err != nil {
				return nil, err
			}
		}
	}
	for _, all := range s.byName {
		for _, one := range all {
			if one.seen != l.At && !one.stale { // it has gone from the scrape
				one.stale = true
				one.samples = append(one.samples, sample{l.At, math.Float64frombits(value.StaleNaN)})
			}
		}
	}
	for _, expression := range l.Expressions {
		is, err := s.holds(ctx, engine, time.UnixMilli(l.At), expression)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", expression, err)
		}
		holds = append(holds, is)
	}
	return holds, nil
}

func (s *series) add(at int64, instance, text string) error {
	cut := strings.LastIndexByte(text, ' ')
	if cut < 0 {
		return fmt.Errorf("%q is no line of metrics", text)
	}
	f, err := strconv.ParseFloat(text[cut+1:], 64)
	if err != nil {
		return err
	}
	name, _, _ := strings.Cut(text[:cut], "{")
	if s.byName[name] == nil {
		s.byName[name] = map[string]*line{}
	}
	key := instance + " " + text[:cut]
	one := s.byName[name][key]
	if one == nil {
		of, err := parser.ParseMetric(text[:cut])
		if err != nil {
			return err
		}
		one = &line{labels: labels.NewBuilder(of).Set("job", "relayer").Set("instance", instance).Labels()}
		s.byName[name][key] = one
	}
	one.samples, one.seen, one.stale = append(one.samples, sample{at, f}), at, false
	return nil
}

func (s *series) holds(ctx context.Context, engine *promql.Engine, at time.Time, expression string) (bool, error) {
	q, err := engine.NewInstantQuery(ctx, s, nil, expression, at)
	if err != nil {
		return false, err
	}
	defer q.Close()
	r := q.Exec(ctx)
	if r.Err != nil {
		return false, r.Err
	}
	found, err := r.Vector()
	return len(found) > 0, err
}

func (s *series) Querier(_, _ int64) (storage.Querier, error) { return s, nil }
func (s *series) Close() error                                { return nil }

func (s *series) LabelValues(context.Context, string, *storage.LabelHints, ...*labels.Matcher) ([]string, annotations.Annotations, error) {
	return nil, nil, nil
}

func (s *series) LabelNames(context.Context, *storage.LabelHints, ...*labels.Matcher) ([]string, annotations.Annotations, error) {
	return nil, nil, nil
}

func (s *series) Select(_ context.Context, _ bool, _ *storage.SelectHints, matchers ...*labels.Matcher) storage.SeriesSet {
	var found []storage.Series
	var of map[string]*line
	for _, m := range matchers {
		if m.Name == labels.MetricName && m.Type == labels.MatchEqual {
			of = s.byName[m.Value]
		}
	}
	for _, key := range slices.Sorted(maps.Keys(of)) {
		one := of[key]
		if !slices.ContainsFunc(matchers, func(m *labels.Matcher) bool { return !m.Matches(one.labels.Get(m.Name)) }) {
			found = append(found, storage.NewListSeries(one.labels, one.samples))
		}
	}
	return &seriesSet{left: found}
}

// seriesSet iterates over the result of a query.
type seriesSet struct {
	left []storage.Series
	here storage.Series
}

func (s *seriesSet) Next() bool {
	if len(s.left) == 0 {
		return false
	}
	s.here, s.left = s.left[0], s.left[1:]
	return true
}

func (s *seriesSet) At() storage.Series                { return s.here }
func (s *seriesSet) Err() error                        { return nil }
func (s *seriesSet) Warnings() annotations.Annotations { return nil }
