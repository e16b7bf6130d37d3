package tracing

import (
	"context"
	"strconv"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
	"github.com/tempo-watchtower/watchtower/eventlog"
)

// Transaction makes spans of the facts that one append has added to a transaction. before and
// after are its states around them.
func (t *Tracing) Transaction(before, after tx.State, facts []tx.Event, meta eventlog.Meta) {
	hash := after.Accepted.Hash
	if !t.traced(hash) {
		return
	}
	ctx := trace.ContextWithSpanContext(context.Background(), root(hash))
	for _, fact := range facts {
		t.fact(ctx, fact, meta)
	}
	if over(after) && !over(before) {
		t.whole(after, at(facts[len(facts)-1]))
	}
}

// over reports whether a transaction is done: sealed, invalid or canceled. If the chain still
// includes an invalid or canceled transaction, that adds to its trace.
func over(s tx.State) bool { return s.Sealed || s.Refused || s.Canceled }

// fact makes one span below the root.
func (t *Tracing) fact(ctx context.Context, fact tx.Event, meta eventlog.Meta) {
	when := at(fact)
	point := func(name string, attributes ...attribute.KeyValue) {
		t.span(ctx, name, when, when, trace.SpanKindInternal, attributes)
	}
	switch e := fact.(type) {
	case tx.Accepted:
		_, span := t.tracer.Start(ctx, "accepted", trace.WithTimestamp(when), trace.WithSpanKind(trace.SpanKindServer),
			trace.WithLinks(linkTo(meta.Trace)...), trace.WithAttributes(attribute.String("watchtower.correlation", meta.Correlation.String())))
		span.End(trace.WithTimestamp(when))
	case tx.Broadcast:
		t.attempt(ctx, e.Attempt, e.Answers, when, "")
	case tx.Rejected:
		t.attempt(ctx, e.Attempt, e.Answers, when, strings.Trim(string(e.Class)+" "+string(e.Cause), " "))
	case tx.Mined:
		point("mined", append(block(e.Receipt.Block), attribute.Bool("watchtower.receipt.succeeded", e.Receipt.Status != 0))...)
	case tx.StaleByNonce:
		point("stale by nonce", append(block(e.Block), number("watchtower.nonce.wanted", e.Current))...)
	case tx.Expired:
		point("expired", block(e.Block)...)
	case tx.Reorged:
		point("reorged", append(block(e.Was), attribute.String("watchtower.block.instead", e.Now.Hash.String()))...)
	case tx.Finalized:
		point("finalized", block(e.By)...)
	case tx.FinalityViolated:
		point("finality violated", block(e.Was)...)
	case tx.CanceledLocally:
		point("canceled", attribute.String("watchtower.reason", e.Reason))
	case tx.Resubmitted:
		point("resubmitted by another client")
	case tx.PayloadErased:
		point("payload erased")
	case tx.GroupDoubted:
		point("group doubted", attribute.String("watchtower.reason", e.Reason))
	case tx.GroupConfirmed:
		point("group confirmed", block(e.Block)...)
	case tx.Retired:
		point("retired")
	}
}

// attempt makes a span from the first request to a node on, with an event for each node's
// answer.
func (t *Tracing) attempt(ctx context.Context, n int, answers []tx.Answer, when time.Time, failure string) {
	began := when
	for _, a := range answers {
		if asked := when.Add(-a.Took); asked.Before(began) {
			began = asked
		}
	}
	_, span := t.tracer.Start(ctx, "broadcast", trace.WithTimestamp(began), trace.WithSpanKind(trace.SpanKindClient),
		trace.WithAttributes(attribute.Int("watchtower.attempt", n)))
	for _, a := range answers {
		span.AddEvent("answer", trace.WithTimestamp(began.Add(a.Took)), trace.WithAttributes(
			attribute.String("watchtower.endpoint", a.Endpoint), attribute.String("watchtower.class", string(a.Class)),
			attribute.String("watchtower.cause", string(a.Cause)), attribute.String("watchtower.message", a.Message),
		))
	}
	if failure != "" {
		span.SetStatus(codes.Error, failure)
	}
	span.End(trace.WithTimestamp(when))
}

// whole makes the root span: from acceptance to the end.
func (t *Tracing) whole(s tx.State, end time.Time) {
	a := s.Accepted
	ctx := context.WithValue(context.Background(), rootKey{}, root(a.Hash))
	_, span := t.tracer.Start(ctx, "transaction", trace.WithNewRoot(), trace.WithTimestamp(a.At), trace.WithAttributes(
		number("watchtower.chain", uint64(a.Chain)), attribute.String("watchtower.hash", a.Hash.String()),
		attribute.String("watchtower.sender", a.Sender.String()), attribute.String("watchtower.nonce_key", a.NonceKey.String()),
		number("watchtower.nonce", a.Nonce), number("watchtower.eligible_at", a.EligibleAt),
		attribute.String("watchtower.status", string(s.Status)), attribute.Int("watchtower.attempts", s.Attempt),
	))
	if s.Status != tx.StatusExecuted {
		span.SetStatus(codes.Error, string(s.Status))
	}
	span.End(trace.WithTimestamp(end))
}

func (t *Tracing) span(ctx context.Context, name string, from, to time.Time, kind trace.SpanKind, attributes []attribute.KeyValue) {
	_, span := t.tracer.Start(ctx, name, trace.WithTimestamp(from), trace.WithSpanKind(kind), trace.WithAttributes(attributes...))
	span.End(trace.WithTimestamp(to))
}

// Request makes a span of one answered HTTP request in its client's trace, if the client has
// one and records it. traceparent is defined by W3C Trace Context.
func (t *Tracing) Request(traceparent, route, method, code string, began time.Time, took time.Duration) {
	if t == nil {
		return
	}
	parent := parse(traceparent)
	if !parent.IsSampled() {
		return
	}
	status, _ := strconv.Atoi(code) //nolint:errcheck // a status is a number
	_, span := t.tracer.Start(trace.ContextWithRemoteSpanContext(context.Background(), parent), method+" "+route,
		trace.WithTimestamp(began), trace.WithSpanKind(trace.SpanKindServer), trace.WithAttributes(
			attribute.String("http.request.method", method), attribute.String("http.route", route),
			attribute.Int("http.response.status_code", status)))
	if status >= 500 {
		span.SetStatus(codes.Error, code)
	}
	span.End(trace.WithTimestamp(began.Add(took)))
}

func parse(traceparent string) trace.SpanContext {
	ctx := propagation.TraceContext{}.Extract(context.Background(), propagation.MapCarrier{"traceparent": traceparent})
	return trace.SpanContextFromContext(ctx)
}

func linkTo(traceparent string) []trace.Link {
	from := parse(traceparent)
	if !from.IsValid() {
		return nil
	}
	return []trace.Link{{SpanContext: from, Attributes: []attribute.KeyValue{attribute.String("watchtower.link", "request")}}}
}

func block(b chain.Block) []attribute.KeyValue {
	return []attribute.KeyValue{number("watchtower.block.number", b.Number), attribute.String("watchtower.block.hash", b.Hash.String())}
}

// number is a text if OpenTelemetry's signed numbers cannot hold it.
func number(name string, n uint64) attribute.KeyValue {
	if n > 1<<63-1 {
		return attribute.String(name, strconv.FormatUint(n, 10))
	}
	return attribute.Int64(name, int64(n))
}

func at(fact tx.Event) time.Time {
	switch e := fact.(type) {
	case tx.Accepted:
		return e.At
	case tx.Broadcast:
		return e.At
	case tx.Rejected:
		return e.At
	case tx.Mined:
		return e.At
	case tx.StaleByNonce:
		return e.At
	case tx.Expired:
		return e.At
	case tx.Reorged:
		return e.At
	case tx.Finalized:
		return e.At
	case tx.FinalityViolated:
		return e.At
	case tx.CanceledLocally:
		return e.At
	case tx.Resubmitted:
		return e.At
	case tx.PayloadErased:
		return e.At
	case tx.GroupDoubted:
		return e.At
	case tx.GroupConfirmed:
		return e.At
	case tx.Retired:
		return e.At
	}
	panic("tracing: unknown event")
}
