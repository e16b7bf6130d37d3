// Package tracing tells OpenTelemetry collectors what becomes of transactions. It
// makes spans of recorded facts, after the fact: nothing waits for it, and losing
// it loses nothing.
//
// A transaction's trace has the first half of its hash as its id, so every replica
// adds to the same trace without asking another, and whoever has a hash has the
// trace. The root span carries the next 8 bytes as its id and is told when the
// transaction is done with; its children are the facts on the way. The span of
// Accepted links to the span of the request that brought the transaction in.
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

// Config says where spans go.
type Config struct {
	// Endpoint is the URL of a collector that takes OTLP over HTTP, such as
	// http://127.0.0.1:4318. What else the exporter can be told, it reads from the
	// environment: OTEL_EXPORTER_OTLP_HEADERS, OTEL_EXPORTER_OTLP_CERTIFICATE, ….
	Endpoint string
	// Percent of the transactions are traced. Their hashes decide which, so all
	// replicas agree.
	Percent int
	Version string // of the service
	Holder  string // this process
	Log     *slog.Logger
}

// Tracing makes spans. A nil Tracing makes none.
type Tracing struct {
	provider *sdk.TracerProvider
	tracer   trace.Tracer
	below    uint64 // hashes that begin with a lower number are traced
}

// exportTimeout bounds one delivery to the collector.
const exportTimeout = 10 * time.Second

// Open starts tracing. It does not wait for the collector to be there.
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
	// What the collector does not take in time is dropped: the batcher's buffer is
	// bounded and never blocks.
	provider := sdk.NewTracerProvider(sdk.WithBatcher(&told{SpanExporter: exporter, log: c.Log}), sdk.WithResource(about), sdk.WithIDGenerator(ids{}), sdk.WithSampler(sdk.AlwaysSample()))
	below := uint64(math.MaxUint64)
	if c.Percent < 100 {
		below = math.MaxUint64 / 100 * uint64(max(c.Percent, 0)) //nolint:gosec // from 0 to 99
	}
	return &Tracing{provider, provider.Tracer("github.com/tempo-watchtower/watchtower"), below}, nil
}

// told is an exporter that logs its own failures, when they begin and when they
// end: OpenTelemetry would tell each to one handler for the whole process.
type told struct {
	sdk.SpanExporter
	log    *slog.Logger
	failed atomic.Bool
}

// ExportSpans delivers spans. What cannot be delivered is lost.
func (e *told) ExportSpans(ctx context.Context, spans []sdk.ReadOnlySpan) error {
	err := e.SpanExporter.ExportSpans(ctx, spans)
	if was := e.failed.Swap(err != nil); err != nil && !was {
		e.log.Warn("traces are not delivered", "spans", len(spans), "err", err)
	} else if err == nil && was {
		e.log.Info("traces are delivered again")
	}
	return nil
}

// Close hands over what is left, as long as ctx allows, and ends.
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

// root is the place of a transaction's root span.
func root(hash chain.Hash) trace.SpanContext {
	return trace.NewSpanContext(trace.SpanContextConfig{
		TraceID: TraceID(hash), SpanID: trace.SpanID(hash[16:24]), TraceFlags: trace.FlagsSampled, Remote: true,
	})
}

// ids gives each span a random id, and the root spans those that they must have.
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
