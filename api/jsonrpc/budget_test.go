package jsonrpc

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/tempo-watchtower/watchtower/api/delivery"
	"github.com/tempo-watchtower/watchtower/api/rpcroute"
)

// Answers to slow clients are held in bounded memory. Over the limit, large requests are told
// to retry and small ones are served; memory is free again once the answers are read.
func TestHeldAnswersAreBounded(t *testing.T) {
	const large = 9 << 20 // more than sockets buffer
	s := newStack(t, func(c *Config, _ *delivery.Config) { c.Limits.HeldBytes = large })
	s.node.does("eth_getLogs", func(json.RawMessage, int64) (json.RawMessage, error) {
		return json.RawMessage(`"` + strings.Repeat("x", large) + `"`), nil
	})
	s.node.says("eth_blockNumber", `"0x1"`)
	ask := func() reply { return s.call("eth_getLogs", `[{}]`) }

	slow, err := new(net.Dialer).DialContext(t.Context(), "tcp", strings.TrimPrefix(s.url, "http://"))
	check(t, err)
	defer slow.Close() //nolint:errcheck // the test is over with it
	const body = `{"jsonrpc":"2.0","id":7,"method":"eth_getLogs","params":[{}]}`
	_, err = fmt.Fprintf(slow, "POST /rpc HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
	check(t, err)
	res, err := http.ReadResponse(bufio.NewReader(slow), nil) //nolint:bodyclose // its beginning: it is under way, and ends with the connection
	check(t, err)
	if res.StatusCode != http.StatusOK {
		t.Fatal(res.Status)
	}
	ask().wantError(t, codeLimit, "too many large responses are being sent: try again")
	s.call("eth_blockNumber", `[]`).wantResult(t, `"0x1"`)

	_, err = io.Copy(io.Discard, res.Body)
	check(t, err)
	deadline := time.After(30 * time.Second)
	for ask().Error != nil {
		select {
		case <-deadline:
			t.Fatal("what was sent is not room again")
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// A client that reads slowly keeps only itself from large answers: other clients have their
// shares, and it has its own again once it has read its answers.
func TestSlowReaderKeepsItsOwnShareAlone(t *testing.T) {
	const large = 200 << 10
	s := newStack(t)
	s.config.Limits.HeldBytes = shares * 3 * large
	s.node.says("eth_getLogs", `"`+strings.Repeat("x", large)+`"`)
	rpc := New(s.config)
	ask := func(ctx context.Context, client string) bool {
		t.Helper()
		answer, err := rpc.Answer(ctx, rpcroute.Request{
			Body: []byte(`{"jsonrpc":"2.0","id":7,"method":"eth_getLogs","params":[{}]}`), Client: client,
			Charge: func(int) error { return nil }, Weigh: func(int) {},
		})
		check(t, err)
		return len(answer) > large
	}
	slow, sent := context.WithCancel(t.Context())
	for ask(slow, "mallory") { // until its share is used up
	}
	for range 3 {
		for _, client := range []string{"alice", "bob", "carol"} {
			if !ask(t.Context(), client) {
				t.Errorf("%s got no answer", client)
			}
		}
	}
	sent()
	deadline := time.After(30 * time.Second)
	for !ask(t.Context(), "mallory") {
		select {
		case <-deadline:
			t.Fatal("what was sent is not room again")
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// After any sequence of takes and releases, the share and the whole are as before, and the
// client is forgotten. A request without a client name may take the whole.
func TestShares(t *testing.T) {
	b := newBudgets(100)
	first, second, other, nobody := b.hold("a"), b.hold("a"), b.hold("b"), b.hold("")
	for _, step := range []struct {
		h    *holding
		n    int64
		want bool
		left int64
	}{
		{first, smallAnswer + 20, true, 80}, {second, smallAnswer + 6, false, 80}, {second, smallAnswer + 5, true, 75},
		{other, smallAnswer + 25, true, 50}, {nobody, smallAnswer + 50, true, 0},
	} {
		if got := step.h.take(step.n); got != step.want || b.all.rest() != step.left {
			t.Errorf("%d: %v, %d left; want %v, %d", step.n, got, b.all.rest(), step.want, step.left)
		}
	}
	nobody.release()
	first.release()
	first.release()
	if !second.take(20) || second.take(1) {
		t.Error("what a client gave back is not its own again")
	}
	second.release()
	other.release()
	if b.all.rest() != 100 || len(b.clients) != 0 {
		t.Errorf("%d left, %d clients remembered", b.all.rest(), len(b.clients))
	}
}

// After any sequence of takes and releases, the budget is whole again.
func TestHolding(t *testing.T) {
	shared := &budget{left: 100}
	a, b := &holding{of: shared}, &holding{of: shared}
	for _, step := range []struct {
		h    *holding
		n    int64
		want bool
		left int64
	}{
		{a, smallAnswer, true, 100}, {a, 60, true, 40}, {b, smallAnswer + 41, false, 40}, {b, smallAnswer, true, 40},
		{b, 40, true, 0}, {a, 1, false, 0}, {a, 0, true, 0},
	} {
		if got := step.h.take(step.n); got != step.want || shared.rest() != step.left {
			t.Errorf("%d: %v, %d left; want %v, %d", step.n, got, shared.rest(), step.want, step.left)
		}
	}
	a.release()
	a.release()
	if shared.rest() != 60 || a.take(1) {
		t.Errorf("%d left", shared.rest())
	}
	b.release()
	if shared.rest() != 100 {
		t.Errorf("%d left", shared.rest())
	}
}
