package main

import (
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"
)

// Described is what an expression asks for.
type Described struct {
	Error    string   `json:"error,omitempty"` // it cannot be parsed
	Metrics  []Metric `json:"metrics,omitempty"`
	Grouping []string `json:"grouping,omitempty"` // labels of its aggregations
}

// Metric is a metric that an expression reads, and the labels it selects by.
type Metric struct {
	Name   string   `json:"name"` // empty if the expression does not say
	Labels []string `json:"labels,omitempty"`
}

func describe(expression string) (d Described) {
	parsed, err := parser.ParseExpr(expression)
	if err != nil {
		return Described{Error: err.Error()}
	}
	parser.Inspect(parsed, func(node parser.Node, _ []parser.Node) error {
		switch node := node.(type) {
		case *parser.VectorSelector:
			m := Metric{Name: node.Name}
			for _, by := range node.LabelMatchers {
				if by.Name != labels.MetricName {
					m.Labels = append(m.Labels, by.Name)
				}
			}
			d.Metrics = append(d.Metrics, m)
		case *parser.AggregateExpr:
			d.Grouping = append(d.Grouping, node.Grouping...)
		}
		return nil
	})
	return d
}
