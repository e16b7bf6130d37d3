// Package tracetest is a collector of traces that keeps the received spans. It speaks OTLP over
// HTTP like real collectors.
package tracetest

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"

	v1 "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	span "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
)

// Collector is a running collector.
type Collector struct {
	*httptest.Server

	mu        sync.Mutex
	spans     []*span.Span
	resources []string
	errs      []error
}

// New starts a collector, which the caller closes.
func New() *Collector {
	c := &Collector{}
	c.Server = httptest.NewServer(http.HandlerFunc(c.export))
	return c
}

func (c *Collector) export(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	var request v1.ExportTraceServiceRequest
	if err == nil {
		err = proto.Unmarshal(body, &request)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if err != nil || r.URL.Path != "/v1/traces" {
		c.errs = append(c.errs, fmt.Errorf("%s %s is not an export: %w", r.Method, r.URL, err))
		http.Error(w, "not an export", http.StatusBadRequest)
		return
	}
	for _, some := range request.ResourceSpans {
		for _, a := range some.Resource.Attributes {
			c.resources = append(c.resources, a.Key+"="+a.Value.GetStringValue())
		}
		for _, scope := range some.ScopeSpans {
			c.spans = append(c.spans, scope.Spans...)
		}
	}
}

// Named returns the spans of a name, in order of arrival.
func (c *Collector) Named(name string) []*span.Span {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(c.spans), func(s *span.Span) bool { return s.Name != name })
}

// Resources returns the attributes of the spans' senders, as key=value.
func (c *Collector) Resources() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.resources)
}

// Errs returns the errors in requests.
func (c *Collector) Errs() []error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.errs)
}

// Attribute is a span's text attribute; empty if it has none of that name.
func Attribute(s *span.Span, key string) string {
	for _, a := range s.Attributes {
		if a.Key == key {
			return a.Value.GetStringValue()
		}
	}
	return ""
}
