// Package tracing sends transactions' traces to OpenTelemetry collectors. It makes spans of
// recorded facts afterwards: nothing waits for it, and lost spans cause no other loss.
//
// A transaction's trace id is the first half of its hash. So every replica adds to the same
// trace without coordination, and a hash is enough to find the trace. The root span's id is the
// next 8 bytes; it is sent when the transaction is done. Its children are the facts on the way.
// The span of Accepted links to the span of the request that submitted the transaction.
package tracing

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"log/slog"
	"math"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/tempo-watchtower/watchtower/domain/chain"
)

// Config is the target and the extent of tracing.
type Config struct {
	// Endpoint is the URL of a collector that accepts OTLP over HTTP, such as
	// http://127.0.0.1:4318. The exporter reads further settings from the environment:
	// OTEL_EXPORTER_OTLP_HEADERS, OTEL_EXPORTER_OTLP_CERTIFICATE, ….
	Endpoint string
	// Percent is the share of traced transactions. It is chosen by hash, so all replicas agree.
	Percent int
	Version string // version of the service
	Holder  string // name of this process
	Log     *slog.Logger
}

// Tracing makes spans. A nil Tracing makes none.
type Tracing struct {
	provider *sdk.TracerProvider
	tracer   trace.Tracer
	below    uint64 // transactions with a hash below this are traced
}

// exportTimeout bounds one export to the collector.
const exportTimeout = 10 * time.Second

// Open starts tracing. It does not wait for the collector.
func Open(ctx context.Context, c Config) (*Tracing, error) {
	exporter, err := otlptracehttp.New(ctx, otlptracehttp.WithEndpointURL(c.Endpoint), otlptracehttp.WithTimeout(exportTimeout))
	if err != nil {
		return nil, fmt.Errorf("tracing: %w", err)
	}
	about := resource.NewSchemaless(
		attribute.String("service.name", "watchtower"),
		attribute.String("service.version", c.Version),
		attribute.String("service.instance.id", c.Holder),
	)
	// Spans that the collector does not accept in time are dropped: the batcher's buffer is
	// bounded and never blocks.
	provider := sdk.NewTracerProvider(sdk.WithBatcher(&told{SpanExporter: exporter, log: c.Log}), sdk.WithResource(about), sdk.WithIDGenerator(ids{}), sdk.WithSampler(sdk.AlwaysSample()))
	below := uint64(math.MaxUint64)
	if c.Percent < 100 {
		below = math.MaxUint64 / 100 * uint64(max(c.Percent, 0)) //nolint:gosec // from 0 to 99
	}
	return &Tracing{provider, provider.Tracer("github.com/tempo-watchtower/watchtower"), below}, nil
}

// told is an exporter that logs when its failures begin and end: OpenTelemetry would pass each
// to one handler for the whole process.
type told struct {
	sdk.SpanExporter
	log    *slog.Logger
	failed atomic.Bool
}

// ExportSpans exports spans. On a failure they are lost.
func (e *told) ExportSpans(ctx context.Context, spans []sdk.ReadOnlySpan) error {
	err := e.SpanExporter.ExportSpans(ctx, spans)
	if was := e.failed.Swap(err != nil); err != nil && !was {
		e.log.Warn("traces are not delivered", "spans", len(spans), "err", err)
	} else if err == nil && was {
		e.log.Info("traces are delivered again")
	}
	return nil
}

// Close exports the remaining spans while ctx allows, and ends.
func (t *Tracing) Close(ctx context.Context) error {
	if t == nil {
		return nil
	}
	return t.provider.Shutdown(ctx)
}

func (t *Tracing) traced(hash chain.Hash) bool {
	return t != nil && binary.BigEndian.Uint64(hash[:8]) < t.below
}

// TraceID is the id of a transaction's trace.
func TraceID(hash chain.Hash) trace.TraceID { return trace.TraceID(hash[:16]) }

// root is the span context of a transaction's root span.
func root(hash chain.Hash) trace.SpanContext {
	return trace.NewSpanContext(trace.SpanContextConfig{
		TraceID: TraceID(hash), SpanID: trace.SpanID(hash[16:24]), TraceFlags: trace.FlagsSampled, Remote: true,
	})
}

// ids gives root spans their fixed ids, and all other spans random ones.
type ids struct{}

type rootKey struct{}

func (ids) NewIDs(ctx context.Context) (trace.TraceID, trace.SpanID) {
	if at, ok := ctx.Value(rootKey{}).(trace.SpanContext); ok {
		return at.TraceID(), at.SpanID()
	}
	var id trace.TraceID
	rand.Read(id[:]) //nolint:errcheck // never fails
	return id, randomSpan()
}

func (ids) NewSpanID(context.Context, trace.TraceID) trace.SpanID { return randomSpan() }

func randomSpan() (id trace.SpanID) {
	rand.Read(id[:]) //nolint:errcheck // never fails
	return id
}
