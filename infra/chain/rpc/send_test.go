package rpc

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
	"github.com/tempo-watchtower/watchtower/infra/chain/chaintest"
)

const send = "eth_sendRawTransaction"

func TestSendIsTakenThenKnownThenUsed(t *testing.T) {
	c := newChain(t, chaintest.Rules{})
	p := open(t, nil, serve(t, c.Node("a")))
	raw, hash := plain(alice, key5, 0)
	for i, want := range []tx.Answer{
		{Endpoint: "a", Class: tx.Taken},
		{Endpoint: "a", Class: tx.Known, Code: -32000, Message: "already known"},
		{Endpoint: "a", Class: tx.Retry, Cause: tx.NonceTooLow, Code: -32000, Message: "nonce too low: next nonce 1, tx nonce 0"},
	} {
		if i == 2 {
			mine(t, c)
		}
		got := p.Send(t.Context(), raw, hash, i, tx.Sending{})
		if diff := cmp.Diff([]tx.Answer{want}, got, cmpopts.IgnoreFields(tx.Answer{}, "Took")); diff != "" {
			t.Error(diff)
		}
	}
}

// TestSendToEndpointsThatMisbehave is row 24 of the fault table. Each misbehaviour yields one
// answer, in time and of bounded size. It is never a refusal that the node did not give.
func TestSendToEndpointsThatMisbehave(t *testing.T) {
	raw, hash := plain(alice, key5, 0)
	long := strings.Repeat("ü", 10_000)
	for _, test := range []struct {
		name    string
		instead func(w http.ResponseWriter, r *http.Request, body []byte)
		want    tx.Answer // without Endpoint and Took
	}{
		{"429", func(w http.ResponseWriter, _ *http.Request, _ []byte) { w.WriteHeader(429) },
			tx.Answer{Class: tx.Retry, Cause: tx.RateLimited, Code: 429, Message: "HTTP 429"}},
		{"429 with JSON-RPC", func(w http.ResponseWriter, _ *http.Request, body []byte) {
			w.WriteHeader(429)
			fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"error":{"code":-32005,"message":"slow down"}}`, idOf(body))
		}, tx.Answer{Class: tx.Retry, Cause: tx.RateLimited, Code: 429, Message: "HTTP 429"}},
		{"502 with HTML", func(w http.ResponseWriter, _ *http.Request, _ []byte) {
			w.WriteHeader(502)
			fmt.Fprint(w, "<html>502 Bad Gateway</html>")
		}, tx.Answer{Class: tx.Unknown, Cause: tx.Unreachable, Code: 502, Message: "HTTP 502"}},
		{"500 with a permanent text", func(w http.ResponseWriter, _ *http.Request, body []byte) {
			w.WriteHeader(500)
			fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"error":{"code":-32000,"message":"invalid sender"}}`, idOf(body))
		}, tx.Answer{Class: tx.Unknown, Cause: tx.Unreachable, Code: 500, Message: "HTTP 500"}},
		{"400 with JSON-RPC", func(w http.ResponseWriter, _ *http.Request, body []byte) {
			w.WriteHeader(400)
			fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"error":{"code":-32000,"message":"already known"}}`, idOf(body))
		}, tx.Answer{Class: tx.Known, Code: -32000, Message: "already known"}},
		{"404 with HTML", func(w http.ResponseWriter, _ *http.Request, _ []byte) { http.Error(w, "Cannot POST /v2/key", 404) },
			tx.Answer{Class: tx.Unknown, Cause: tx.Unreachable, Code: 404, Message: "HTTP 404"}},
		{"200 with HTML", func(w http.ResponseWriter, _ *http.Request, _ []byte) { fmt.Fprint(w, "<html>welcome</html>") },
			tx.Answer{Class: tx.Unknown, Cause: tx.Unreachable, Message: "reply is not JSON-RPC: invalid character '<' looking for beginning of value"}},
		{"empty", func(http.ResponseWriter, *http.Request, []byte) {},
			tx.Answer{Class: tx.Unknown, Cause: tx.Unreachable, Message: "reply is not JSON-RPC: unexpected end of JSON input"}},
		{"truncated JSON", func(w http.ResponseWriter, _ *http.Request, body []byte) {
			fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":"0x12`, idOf(body))
		}, tx.Answer{Class: tx.Unknown, Cause: tx.Unreachable, Message: "reply is not JSON-RPC: unexpected end of JSON input"}},
		{"shorter than announced", func(w http.ResponseWriter, _ *http.Request, _ []byte) {
			w.Header().Set("Content-Length", "500")
			fmt.Fprint(w, `{"jsonrpc":"2.0",`)
		}, tx.Answer{Class: tx.Unknown, Cause: tx.Unreachable, Message: "reply cut: unexpected EOF"}},
		{"wrong id", func(w http.ResponseWriter, _ *http.Request, _ []byte) {
			fmt.Fprintf(w, `{"jsonrpc":"2.0","id":999,"result":"%s"}`, hash)
		}, tx.Answer{Class: tx.Unknown, Cause: tx.Unreachable, Message: `reply to another call: id "999"`}},
		{"another hash", func(w http.ResponseWriter, _ *http.Request, body []byte) {
			fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":"%s"}`, idOf(body), chain.Hash{1})
		}, tx.Answer{Class: tx.Unknown, Message: "response contradicts the request: the node calls the transaction " + chain.Hash{1}.String()}},
		{"no hash", func(w http.ResponseWriter, _ *http.Request, body []byte) {
			fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":true}`, idOf(body))
		}, tx.Answer{Class: tx.Unknown, Message: "response contradicts the request: json: cannot unmarshal bool into Go value of type *chain.Hash"}},
		{"null", func(w http.ResponseWriter, _ *http.Request, body []byte) {
			fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":null}`, idOf(body))
		}, tx.Answer{Class: tx.Unknown, Message: "response contradicts the request: the node calls the transaction " + chain.Hash{}.String()}},
		{"endless", func(w http.ResponseWriter, _ *http.Request, _ []byte) {
			junk := make([]byte, 64<<10)
			for range 1600 { // 100 MiB
				if _, err := w.Write(junk); err != nil {
					return
				}
			}
		}, tx.Answer{Class: tx.Unknown, Cause: tx.Unreachable, Message: "reply is larger than 1048576 bytes"}},
		{"redirect", func(w http.ResponseWriter, r *http.Request, _ []byte) {
			http.Redirect(w, r, "http://169.254.169.254/", http.StatusTemporaryRedirect)
		}, tx.Answer{Class: tx.Unknown, Cause: tx.Unreachable, Code: 307, Message: "HTTP 307"}},
		{"cut", func(http.ResponseWriter, *http.Request, []byte) { panic(http.ErrAbortHandler) },
			tx.Answer{Class: tx.Unknown, Cause: tx.Unreachable, Message: "EOF"}},
		{"long text with control characters", func(w http.ResponseWriter, _ *http.Request, body []byte) {
			fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"error":{"code":-32000,"message":"a\u0000b\n%s"}}`, idOf(body), long)
		}, tx.Answer{Class: tx.Retry, Code: -32000, Message: "a b " + strings.Repeat("ü", (tx.MaxMessageBytes-4)/2)}},
	} {
		t.Run(test.name, func(t *testing.T) {
			g := &gateway{node: newChain(t, chaintest.Rules{}).Node("a")}
			p := open(t, nil, serve(t, g))
			g.misbehave(send, test.instead)
			got := p.Send(t.Context(), raw, hash, 0, tx.Sending{})
			test.want.Endpoint = "a"
			if diff := cmp.Diff([]tx.Answer{test.want}, got, cmpopts.IgnoreFields(tx.Answer{}, "Took")); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// drip answers one space at a time, for ever.
func drip(w http.ResponseWriter, r *http.Request, _ []byte) {
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-r.Context().Done():
			return
		case <-tick.C:
		}
		fmt.Fprint(w, " ")
		w.(http.Flusher).Flush()
	}
}

// If no endpoint accepts the bytes, each is waited for until its own deadline.
func TestSendHasADeadlinePerEndpoint(t *testing.T) {
	c := newChain(t, chaintest.Rules{})
	slow, b := &gateway{node: c.Node("slow")}, c.Node("b")
	p := open(t, func(c *Config) { c.SendTimeout = 100 * time.Millisecond }, serve(t, slow), serve(t, b))
	slow.misbehave(send, drip)
	b.Set(chaintest.Faults{Refuse: func(chain.Signed) *chaintest.Refusal {
		return &chaintest.Refusal{Code: -32000, Message: "fee payer cannot resolve to sender"}
	}})
	raw, hash := plain(alice, key5, 0)
	for name, answers := range map[string][]tx.Answer{
		"Send": p.Send(t.Context(), raw, hash, 0, tx.Sending{}), "SendAll": p.SendAll(t.Context(), raw, hash, 1, tx.Sending{}),
	} {
		if len(answers) != 2 || answers[0].Class != tx.Unknown || answers[0].Cause != tx.Unreachable || answers[1].Class != tx.Permanent {
			t.Errorf("%s: answers %+v", name, answers)
		}
		if !strings.Contains(answers[0].Message, "deadline") || answers[0].Took > time.Second {
			t.Errorf("%s: message %q after %s", name, answers[0].Message, answers[0].Took)
		}
	}
}

// A hanging node delays nobody once another has accepted the bytes. Its answer is unknown, and
// a late result counts for its health.
func TestSendDoesNotWaitForTheSlow(t *testing.T) {
	c := newChain(t, chaintest.Rules{})
	slow := &gateway{node: c.Node("slow")}
	calls := make(chan Call, 16)
	p := open(t, func(c *Config) {
		c.SendTimeout = 300 * time.Millisecond
		c.Observe = func(made Call) {
			if made.Method == send {
				calls <- made
			}
		}
	}, serve(t, slow), serve(t, c.Node("b")))
	slow.misbehave(send, drip)
	for attempt := range 3 {
		raw, hash := plain(alice, key5, uint64(attempt))
		began := time.Now()
		answers := p.Send(t.Context(), raw, hash, 2*attempt, tx.Sending{Client: fmt.Sprint(attempt)})
		if took := time.Since(began); took > 200*time.Millisecond {
			t.Errorf("took %s", took)
		}
		want := []tx.Answer{{Endpoint: "a", Class: tx.Unknown, Message: notYet}, {Endpoint: "b", Class: tx.Taken}}
		if diff := cmp.Diff(want, answers, cmpopts.IgnoreFields(tx.Answer{}, "Took")); diff != "" {
			t.Error(diff)
		}
	}
	late := 0
	for range 6 {
		if made := <-calls; made.Endpoint == "a" && made.Outcome == TimedOut {
			late++
		}
	}
	if late != 3 {
		t.Errorf("%d late answers were observed, want 3", late)
	}
	for began := time.Now(); p.Status()[0].Failures == 0; { // shortly after it is observed
		if time.Since(began) > 10*time.Second {
			t.Fatalf("late answers did not count: %+v", p.Status()[0])
		}
		runtime.Gosched()
	}
}

// An endpoint that could not be sent the bytes in time is not sent them after the caller has
// its report.
func TestSendHandsNothingOutAfterItsReport(t *testing.T) {
	c := newChain(t, chaintest.Rules{})
	full := c.Node("full")
	p := open(t, nil, serve(t, full), serve(t, c.Node("b")))
	leave := fill(t, p.endpoints[0].meter.places, waiter{use: broadcast})
	raw, hash := plain(alice, key5, 0)
	answers := p.SendAll(t.Context(), raw, hash, 1, tx.Sending{})
	want := []tx.Answer{{Endpoint: "a", Class: tx.Retry, Message: notAsked}, {Endpoint: "b", Class: tx.Taken}}
	if diff := cmp.Diff(want, answers, cmpopts.IgnoreFields(tx.Answer{}, "Took")); diff != "" {
		t.Error(diff)
	}
	leave()
	p.Close() // waits for running requests
	if got := full.Calls()[send]; got != 0 {
		t.Errorf("handed out %d times", got)
	}
}

func TestSendAfterACutReplyIsKnown(t *testing.T) {
	c := newChain(t, chaintest.Rules{})
	n := c.Node("a")
	p := open(t, nil, serve(t, n))
	raw, hash := plain(alice, key5, 0)
	n.Set(chaintest.Faults{Cut: 1})
	if got := p.Send(t.Context(), raw, hash, 0, tx.Sending{})[0]; got.Class != tx.Unknown || got.Cause != tx.Unreachable {
		t.Errorf("cut reply: %+v", got)
	}
	n.Set(chaintest.Faults{})
	if got := p.Send(t.Context(), raw, hash, 1, tx.Sending{})[0]; got.Class != tx.Known {
		t.Errorf("again: %+v", got)
	}
	if got := len(c.Received()); got != 2 {
		t.Errorf("%d deliveries", got)
	}
}

// An endpoint that calls a transaction by another hash is blamed if another endpoint calls it by
// its own. Alone it is not: the client chose the bytes.
func TestAnotherHashIsProven(t *testing.T) {
	c := newCourt(t, 3, nil)
	c.liar.replace(t, send, `"result":"`+chain.Hash{1}.String()+`"`)
	raw, hash := plain(alice, key5, 0)
	lies := func() uint64 { return c.pool.Status()[0].Lies }
	if got := c.pool.sendTo(t.Context(), c.pool.endpoints[:1], raw, errandOf(hash, tx.Sending{})); got[0].Class != tx.Unknown || lies() != 0 {
		t.Errorf("alone: %+v, %d lies", got, lies())
	}
	c.pool.SendAll(t.Context(), raw, hash, 1, tx.Sending{})
	for began := time.Now(); lies() == 0; { // it may answer after the others
		if time.Since(began) > 10*time.Second {
			t.Fatal("no lie was noticed")
		}
	}
}

func TestSendRotates(t *testing.T) {
	c := newChain(t, chaintest.Rules{})
	p := open(t, nil, serve(t, c.Node("a")), serve(t, c.Node("b")), serve(t, c.Node("c")))
	raw, hash := plain(alice, key5, 0)
	for attempt, want := range [][]string{{"a", "b"}, {"b", "c"}, {"c", "a"}, {"a", "b"}} {
		var got []string
		for _, answer := range p.Send(t.Context(), raw, hash, attempt, tx.Sending{}) {
			got = append(got, answer.Endpoint)
		}
		if !slices.Equal(got, want) {
			t.Errorf("attempt %d asked %v, want %v", attempt, got, want)
		}
	}
}

func TestSendWhenNothingIsHealthy(t *testing.T) {
	c := newChain(t, chaintest.Rules{})
	a, b := c.Node("a"), c.Node("b")
	clock := newTimer()
	p := open(t, func(c *Config) { c.Now = clock.now }, serve(t, a), serve(t, b))
	raw, hash := plain(alice, key5, 0)
	a.Set(chaintest.Faults{Down: true})
	b.Set(chaintest.Faults{Down: true})
	for attempt := range 4 {
		if len(p.Send(t.Context(), raw, hash, attempt, tx.Sending{})) == 0 {
			t.Fatal("no answer")
		}
		for _, e := range p.endpoints {
			_, _, _ = p.Reader().block(t.Context(), e, "latest")
		}
	}
	if got := p.Endpoints(); len(got) != 0 {
		t.Fatalf("in rotation: %v", got)
	}
	if got := p.Send(t.Context(), raw, hash, 9, tx.Sending{}); len(got) != 1 || got[0].Class == tx.Permanent || got[0].Cause != tx.Unreachable {
		t.Errorf("answers %+v", got)
	}
	a.Set(chaintest.Faults{})
	b.Set(chaintest.Faults{})
	if got := p.Send(t.Context(), raw, hash, 0, tx.Sending{}); got[0].Class != tx.Taken {
		t.Errorf("the least bad endpoint: %+v", got)
	}
	clock.advance(coolLast)
	for _, e := range p.endpoints {
		p.probe(t.Context(), e)
	}
	if got := p.Endpoints(); len(got) == 0 {
		t.Error("nothing came back")
	}
}

func TestSendAllAsksAll(t *testing.T) {
	c := newChain(t, chaintest.Rules{})
	a, b, foreign := c.Node("a"), c.Node("b"), c.Node("c")
	foreign.Set(chaintest.Faults{ChainID: 1})
	heard := make(chan struct{}, 16) // a has answered
	behind := &gateway{node: b}
	p := open(t, func(c *Config) {
		c.Fanout = 1
		c.Observe = func(made Call) {
			if made.Endpoint == "a" && made.Method == send {
				heard <- struct{}{}
			}
		}
	}, serve(t, a), serve(t, behind), serve(t, foreign))
	raw, hash := plain(alice, key5, 0)
	refuse := chaintest.Faults{Refuse: func(chain.Signed) *chaintest.Refusal {
		return &chaintest.Refusal{Code: -32000, Message: "fee payer cannot resolve to sender"}
	}}
	a.Set(refuse)
	classes := func() (got []tx.Class) {
		for _, answer := range p.SendAll(t.Context(), raw, hash, 1, tx.Sending{}) {
			got = append(got, answer.Class)
		}
		return got
	}
	behind.misbehave(send, func(w http.ResponseWriter, r *http.Request, body []byte) {
		select {
		case <-heard:
		case <-r.Context().Done():
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		b.ServeHTTP(w, r)
	})
	if got := classes(); !slices.Equal(got, []tx.Class{tx.Permanent, tx.Taken}) {
		t.Errorf("classes %v", got)
	}
	behind.misbehave("", nil)
	b.Set(chaintest.Faults{Down: true})
	a.Set(chaintest.Faults{Down: true})
	for range 3 {
		for _, e := range p.endpoints[:2] {
			_, _, _ = p.Reader().block(t.Context(), e, "latest")
		}
	}
	if got := p.Endpoints(); len(got) != 0 {
		t.Fatalf("in rotation %v", got)
	}
	a.Set(refuse) // a single refusal must not decide
	if got := classes(); !slices.Equal(got, []tx.Class{tx.Permanent, tx.Unknown, tx.Retry}) {
		t.Errorf("classes %v", got)
	}
}

func TestSendToAForeignChainIsNotSent(t *testing.T) {
	c := newChain(t, chaintest.Rules{})
	n := c.Node("a")
	n.Set(chaintest.Faults{ChainID: 1})
	p := open(t, nil, serve(t, n))
	raw, hash := plain(alice, key5, 0)
	got := p.Send(t.Context(), raw, hash, 0, tx.Sending{})
	if len(got) != 1 || got[0].Class != tx.Retry || got[0].Cause != tx.Unreachable || !strings.Contains(got[0].Message, "chain id is 1, not 42431") {
		t.Errorf("answers %+v", got)
	}
	if len(c.Received()) != 0 {
		t.Error("the bytes went to another chain")
	}
	foreign := (*Ejected)(nil)
	if _, err := p.Reader().Head(t.Context()); !errors.As(err, &foreign) {
		t.Errorf("read from another chain: %v", err)
	}
}
