package tracing_test

import (
	"bytes"
	"context"
	"encoding/hex"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	span "go.opentelemetry.io/proto/otlp/trace/v1"
	"go.uber.org/goleak"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
	"github.com/tempo-watchtower/watchtower/eventlog"
	"github.com/tempo-watchtower/watchtower/infra/tracing"
	"github.com/tempo-watchtower/watchtower/infra/tracing/tracetest"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m,
		goleak.IgnoreTopFunction("net/http.(*persistConn).writeLoop"),
		goleak.IgnoreAnyFunction("net/http.(*persistConn).readLoop"))
}

// collector is a collector, with the log of the service that sends to it.
type collector struct {
	*tracetest.Collector
	log bytes.Buffer // read once the service has ended
}

func newCollector(t *testing.T) *collector {
	t.Helper()
	c := &collector{Collector: tracetest.New()}
	t.Cleanup(func() {
		c.Close()
		for _, err := range c.Errs() {
			t.Error(err)
		}
	})
	return c
}

func open(t *testing.T, c *collector, percent int) *tracing.Tracing {
	t.Helper()
	traces, err := tracing.Open(t.Context(), tracing.Config{
		Endpoint: c.URL + "/v1/traces", Percent: percent, Version: "v1", Holder: "here",
		Log: slog.New(slog.NewTextHandler(&c.log, nil)),
	})
	if err != nil {
		t.Fatal(err)
	}
	return traces
}

func closed(t *testing.T, traces *tracing.Tracing) {
	t.Helper()
	if err := traces.Close(context.Background()); err != nil {
		t.Fatal(err)
	}
}

var began = time.Unix(1_800_000_000, 0).UTC()

const request = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"

// life reports a transaction's life like the service, command by command.
func life(t *testing.T, traces *tracing.Tracing, hash chain.Hash, commands ...tx.Command) {
	t.Helper()
	tell(t, traces, append([]tx.Command{tx.Accept{Accepted: tx.Accepted{Chain: 42431, Hash: hash, Nonce: 7, At: began}}}, commands...))
}

func tell(t *testing.T, traces *tracing.Tracing, commands []tx.Command) {
	t.Helper()
	var s tx.State
	for _, c := range commands {
		facts, err := s.Decide(c)
		if err != nil {
			t.Fatal(err)
		}
		before := s
		for _, f := range facts {
			s = s.Evolve(f)
		}
		if len(facts) > 0 {
			traces.Transaction(before, s, facts, eventlog.Meta{Trace: request})
		}
	}
}

// A whole life is one trace, identified by the hash, under the root span.
func TestLife(t *testing.T) {
	c := newCollector(t)
	traces := open(t, c, 100)
	hash := chain.Keccak([]byte("one"))
	block := chain.Block{Number: 5, Hash: chain.Keccak([]byte("block")), Time: uint64(began.Unix())}
	life(t, traces, hash,
		tx.Report{Attempt: 1, At: began.Add(time.Second), Answers: []tx.Answer{
			{Endpoint: "a", Class: tx.Retry, Cause: tx.Funds, Message: "insufficient funds", Took: 30 * time.Millisecond}}},
		tx.Report{Attempt: 2, At: began.Add(2 * time.Second), Answers: []tx.Answer{{Endpoint: "a", Class: tx.Taken, Took: 20 * time.Millisecond}}},
		tx.SeeReceipt{Receipt: chain.Receipt{Block: block, Status: 1}, At: began.Add(3 * time.Second)},
		tx.Finalize{Final: block, At: began.Add(4 * time.Second)},
	)
	closed(t, traces)

	roots := c.Named("transaction")
	if len(roots) != 1 {
		t.Fatalf("%d root spans", len(roots))
	}
	root := roots[0]
	if hex.EncodeToString(root.TraceId) != hash.String()[2:34] || hex.EncodeToString(root.SpanId) != hash.String()[34:50] || len(root.ParentSpanId) != 0 {
		t.Errorf("root %x in trace %x below %x", root.SpanId, root.TraceId, root.ParentSpanId)
	}
	if root.StartTimeUnixNano != uint64(began.UnixNano()) || root.EndTimeUnixNano-root.StartTimeUnixNano != uint64(4*time.Second) {
		t.Errorf("the root spans %d to %d", root.StartTimeUnixNano, root.EndTimeUnixNano)
	}
	if got := tracetest.Attribute(root, "watchtower.hash"); got != hash.String() {
		t.Errorf("hash %q", got)
	}
	for name, want := range map[string]int{"accepted": 1, "broadcast": 2, "mined": 1, "finalized": 1} {
		spans := c.Named(name)
		if len(spans) != want {
			t.Errorf("%d spans %q, want %d", len(spans), name, want)
		}
		for _, s := range spans {
			if !slices.Equal(s.TraceId, root.TraceId) || !slices.Equal(s.ParentSpanId, root.SpanId) {
				t.Errorf("%s is not below the root", name)
			}
		}
	}
	refused := c.Named("broadcast")[0]
	if took := refused.EndTimeUnixNano - refused.StartTimeUnixNano; took != uint64(30*time.Millisecond) || refused.Status.GetMessage() != "retry funds" || len(refused.Events) != 1 {
		t.Errorf("the refused attempt took %d ns: %v, %d answers", took, refused.Status, len(refused.Events))
	}
	links := c.Named("accepted")[0].Links
	if len(links) != 1 || hex.EncodeToString(links[0].TraceId) != strings.Split(request, "-")[1] || hex.EncodeToString(links[0].SpanId) != strings.Split(request, "-")[2] {
		t.Errorf("links %v, want one to the request", links)
	}
	if !slices.Contains(c.Resources(), "service.name=watchtower") || !slices.Contains(c.Resources(), "service.instance.id=here") {
		t.Errorf("resource %v", c.Resources())
	}
}

// A failure, or an end for the owner only, ends the root span once.
func TestBadEnds(t *testing.T) {
	block := chain.Block{Number: 5, Hash: chain.Hash{5}, Time: uint64(began.Unix())}
	for name, commands := range map[string][]tx.Command{
		"invalid": {tx.Report{Attempt: 1, Everyone: true, At: began, Answers: []tx.Answer{{Endpoint: "a", Class: tx.Permanent}}}},
		"canceled_locally": {
			tx.Cancel{At: began}, tx.SeeNonce{Block: block, Current: 8, At: began}, tx.Finalize{Final: block, At: began}, tx.Erase{At: began},
		},
		"stale_by_nonce": {
			tx.SeeNonce{Block: block, Current: 8, At: began}, tx.LoseBlock{Was: block, Now: chain.Block{Number: 5, Hash: chain.Hash{6}}, At: began},
			tx.SeeNonce{Block: block, Current: 8, At: began}, tx.Finalize{Final: block, At: began},
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCollector(t)
			traces := open(t, c, 100)
			life(t, traces, chain.Keccak([]byte(name)), commands...)
			closed(t, traces)
			roots := c.Named("transaction")
			if len(roots) != 1 || roots[0].Status.GetMessage() != name || tracetest.Attribute(roots[0], "watchtower.status") != name {
				t.Errorf("root spans %v", roots)
			}
		})
	}
}

// Facts about access keys are traced too.
func TestClaim(t *testing.T) {
	c := newCollector(t)
	traces := open(t, c, 100)
	tell(t, traces, []tx.Command{
		tx.Accept{Accepted: tx.Accepted{
			Chain: 42431, Hash: chain.Keccak([]byte("claim")), Signature: chain.Keychain,
			AccessKey: &chain.Address{3}, Group: &chain.GroupID{4}, At: began,
		}},
		tx.DoubtGroup{Reason: "no such key", Block: chain.Block{Number: 5}, At: began.Add(time.Second)},
		tx.ConfirmGroup{Block: chain.Block{Number: 6}, At: began.Add(2 * time.Second)},
	})
	closed(t, traces)
	for name, want := range map[string]int{"accepted": 1, "group doubted": 1, "group confirmed": 1} {
		if got := len(c.Named(name)); got != want {
			t.Errorf("%d spans %q, want %d", got, name, want)
		}
	}
}

// The share is chosen by hash, so each replica traces the same transactions.
func TestPercent(t *testing.T) {
	c := newCollector(t)
	first, second := open(t, c, 25), open(t, c, 25)
	const all = 2000 // a quarter of these fits the batcher's buffer
	for i := range all {
		hash := chain.Keccak([]byte{byte(i), byte(i >> 8)})
		life(t, first, hash)
		life(t, second, hash)
	}
	closed(t, first)
	closed(t, second)
	times := map[string]int{}
	for _, s := range c.Named("accepted") {
		times[string(s.TraceId)]++
	}
	if n := len(times); n < all/5 || n > all*3/10 {
		t.Errorf("%d of %d are traced, want a quarter", n, all)
	}
	for id, n := range times {
		if n != 2 {
			t.Errorf("%x is traced by %d of 2", id, n)
		}
	}
}

// A request is part of its client's trace, if the client records it.
func TestRequest(t *testing.T) {
	c := newCollector(t)
	traces := open(t, c, 100)
	for _, traceparent := range []string{request, request[:len(request)-1] + "0", "", "nonsense"} {
		traces.Request(traceparent, "/v1/transactions", "POST", "503", began, time.Second)
	}
	closed(t, traces)
	spans := c.Named("POST /v1/transactions")
	if len(spans) != 1 || hex.EncodeToString(spans[0].ParentSpanId) != strings.Split(request, "-")[2] || spans[0].Status.GetCode() != span.Status_STATUS_CODE_ERROR {
		t.Errorf("spans %v", spans)
	}
}

// Without tracing no spans are made, and an unreachable collector has no effect.
func TestNobodyListens(t *testing.T) {
	var none *tracing.Tracing
	life(t, none, chain.Hash{1})
	none.Request(request, "/", "GET", "200", began, 0)
	closed(t, none)

	c := newCollector(t)
	c.Close()
	traces := open(t, c, 100)
	for i := range 5000 { // more than the buffer holds
		life(t, traces, chain.Hash{byte(i), byte(i >> 8)})
	}
	closed(t, traces)
	if said := strings.Count(c.log.String(), "not delivered"); said != 1 {
		t.Errorf("said %d times:\n%s", said, &c.log)
	}
}
