package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/tempo-watchtower/watchtower/cmd/devnet/wallet"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
	"github.com/tempo-watchtower/watchtower/infra/testenv"
	"github.com/tempo-watchtower/watchtower/proof/rig"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m,
		// rig's idle connections exist a moment longer than the server.
		goleak.IgnoreAnyFunction("net/http.(*persistConn).readLoop"),
		goleak.IgnoreAnyFunction("net/http.(*persistConn).writeLoop"),
	)
}

// bring starts a simulated chain and the service for one test.
func bring(t *testing.T) (*devChain, *delivery) {
	t.Helper()
	o := options{chain: simulatedChain, node: "127.0.0.1:0", listen: "127.0.0.1:0", metrics: "127.0.0.1:0"}
	c, err := startChain(t.Context(), o, t.Output())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { check(t, c.stop()) })
	s, err := startDelivery(t.Context(), o, c, t.Output())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { check(t, s.stop()) })
	return c, s
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Error(err)
	}
}

func TestDemoOnTheSimulatedChain(t *testing.T) {
	c, s := bring(t)
	var out bytes.Buffer
	d := newDemo(s.url, c.url, newPaper(&out))
	d.after, d.gap = 2*time.Second, 500*time.Millisecond
	if err := d.run(t.Context()); err != nil {
		t.Fatalf("%v\n%s", err, out.String())
	}
	for text, times := range map[string]int{
		"accepted": 3, "eligible in": 1, "attempt 1": 3, "executed in block": 3,
		"its owner sends nonce 0": 1, "3/3 delivered": 1, "\x1b": 0,
	} {
		if got := strings.Count(out.String(), text); got != times {
			t.Errorf("%q is there %d times, want %d", text, got, times)
		}
	}
	if t.Failed() {
		t.Log(out.String())
	}
}

// Without its predecessor the third transaction is not delivered, and the demo fails.
func TestDemoThatFails(t *testing.T) {
	c, s := bring(t)
	var out bytes.Buffer
	d := newDemo(s.url, c.url, newPaper(&out))
	d.after, d.gap, d.patience = 0, time.Hour, 4*time.Second
	err := d.run(t.Context())
	if err == nil || !strings.HasPrefix(err.Error(), "2/3 delivered") || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("error is %v\n%s", err, out.String())
	}
}

// The program as in the README, on the real chain: twice on the same data.
func TestDemoOnAnvil(t *testing.T) {
	t.Setenv("PATH", filepath.Dir(testenv.Need(t, testenv.AnvilVar))) // no other anvil, and none from npm
	data := t.TempDir()
	for range 2 {
		var out bytes.Buffer
		status := run(t.Context(), []string{"--demo", "--exit", "--chain", "anvil", "--data", data, "--tools", t.TempDir()}, &out, t.Output())
		if status != 0 || !strings.Contains(out.String(), "3/3 delivered") {
			t.Fatalf("status %d:\n%s", status, out.String())
		}
		t.Log(out.String())
	}
}

// After a signal the program stops everything, with the matching exit status.
func TestInterrupted(t *testing.T) {
	for _, c := range []struct {
		args   []string
		until  string
		status int
	}{
		{[]string{"--chain=simulated", "--listen=127.0.0.1:0", "--metrics-listen=127.0.0.1:0"}, "API ", 0},
		{[]string{"--chain=simulated", "--demo", "--exit"}, "API ", statusInterrupted},
		{[]string{"--chain=simulated", "--chain-only", "--chain-listen=127.0.0.1:0"}, "watchtower serve --chains 42431=http://127.0.0.1:", 0},
	} {
		ctx, cancel := context.WithCancel(t.Context())
		out := newWatched(c.until, cancel)
		if status := run(ctx, c.args, out, t.Output()); status != c.status {
			t.Errorf("%v: status %d, want %d", c.args, status, c.status)
		}
	}
}

// watched is an output that calls a function when a text appears in it.
type watched struct {
	text string
	call func()
}

func newWatched(text string, call func()) *watched { return &watched{text, call} }

func (w *watched) Write(b []byte) (int, error) {
	if bytes.Contains(b, []byte(w.text)) {
		w.call()
	}
	return len(b), nil
}

func TestUsage(t *testing.T) {
	for _, args := range [][]string{
		{"--exit"}, {"--group"}, {"--chain=mainnet"}, {"extra"}, {"--log-level=loud"},
		{"--chain=simulated", "--data=x"}, {"--nonsense"}, {"--chain-only", "--demo"},
	} {
		var out, log bytes.Buffer
		if status := run(t.Context(), args, &out, &log); status != statusUsage || log.Len() == 0 || out.Len() != 0 {
			t.Errorf("%v: status %d, output %q, log %q", args, status, out.String(), log.String())
		}
	}
}

func TestPortTaken(t *testing.T) {
	_, s := bring(t)
	taken := strings.TrimPrefix(s.url, "http://")
	var log bytes.Buffer
	status := run(t.Context(), []string{"--chain=simulated", "--listen=" + taken, "--metrics-listen=127.0.0.1:0"}, t.Output(), &log)
	if status != statusFailed || !strings.Contains(log.String(), "choose other ports with --listen and --metrics-listen") {
		t.Errorf("status %d, log %q", status, log.String())
	}
}

// The chain listens where programs look for it, on another port if that is taken, and on no other if the
// user has named it. It is never open to other machines.
func TestChainsPort(t *testing.T) {
	taken, err := nodeListener(t.Context(), options{node: "127.0.0.1:0"})
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close() //nolint:errcheck // a test's own
	at := taken.Addr().String()
	if _, err := nodeListener(t.Context(), options{node: at}); !errors.Is(err, syscall.EADDRINUSE) {
		t.Errorf("a taken port: %v", err)
	}
	other, err := nodeListener(t.Context(), options{node: at, anyNode: true})
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close() //nolint:errcheck // a test's own
	for _, bad := range []string{"0.0.0.0:0", "localhost:0", "127.0.0.1", ":0"} {
		if _, err := nodeListener(t.Context(), options{node: bad}); err == nil {
			t.Errorf("%s is taken", bad)
		}
	}
	if o, err := parse(nil, t.Output()); err != nil || o.node != standardNode || !o.anyNode {
		t.Errorf("%+v, %v", o, err)
	}
}

// A journey ends with a verdict, and succeeds only with a successful receipt.
func TestJourneys(t *testing.T) {
	mined := func(status uint64) tx.Mined {
		return tx.Mined{Receipt: chain.Receipt{Block: chain.Block{Number: 4}, Status: status}}
	}
	for _, c := range []struct {
		event       tx.Event
		what        string
		ended, good bool
	}{
		{tx.Accepted{EligibleAt: 10, At: time.Unix(10, 0)}, "accepted", false, false},
		{tx.Accepted{EligibleAt: 12, At: time.Unix(10, 0)}, "accepted, eligible in 2.00 s", false, false},
		{tx.Broadcast{Attempt: 2}, "broadcast, attempt 2", false, false},
		{tx.Rejected{Reason: "txpool is full"}, "refused: txpool is full", false, false},
		{tx.Rejected{Reason: "oversized data", Permanent: true}, "refused permanently: oversized data", true, false},
		{mined(1), "executed in block 4", true, true},
		{mined(0), "reverted in block 4", true, false},
		{tx.StaleByNonce{}, "another transaction used its nonce", true, false},
		{tx.Expired{}, "expired", true, false},
	} {
		var j journey
		what, _ := j.take(c.event)
		if what != c.what || j.ended != c.ended || j.good != c.good {
			t.Errorf("%T: %q, ended %v, good %v", c.event, what, j.ended, j.good)
		}
	}
}

// Each payment signed for the user is new, and accepted by a service.
func TestSign(t *testing.T) {
	_, s := bring(t)
	for range 2 {
		var out, errs bytes.Buffer
		if status := run(t.Context(), []string{"--sign"}, &out, &errs); status != 0 {
			t.Fatalf("status %d: %s", status, errs.String())
		}
		raw, err := hex.DecodeString(strings.TrimPrefix(strings.TrimSpace(out.String()), "0x"))
		if err != nil {
			t.Fatal(err)
		}
		results, err := rig.Submit(t.Context(), s.url, chainID, raw)
		if err != nil || !results[0].OK || results[0].AlreadyKnown {
			t.Errorf("%+v, %v", results, err)
		}
	}
}

// A group signed for the user is shown as one complete group, and paid in order.
func TestSignGroup(t *testing.T) {
	_, s := bring(t)
	var out, errs bytes.Buffer
	if status := run(t.Context(), []string{"--sign", "--group"}, &out, &errs); status != 0 {
		t.Fatalf("status %d: %s", status, errs.String())
	}
	var texts []string
	if err := json.Unmarshal(out.Bytes(), &texts); err != nil || len(texts) != groupSize {
		t.Fatalf("%s: %v", out.String(), err)
	}
	raws := make([][]byte, len(texts))
	for i, text := range texts {
		var err error
		if raws[i], err = hex.DecodeString(strings.TrimPrefix(text, "0x")); err != nil {
			t.Fatal(err)
		}
	}
	shown := postGroup(t, s.url, raws)
	if shown.Members[1].EligibleAt-shown.Members[0].EligibleAt < uint64(groupEvery.Seconds())-5 {
		t.Errorf("the members are %+v", shown.Members)
	}

	raws, err := signGroup(rand.Reader, time.Now(), time.Second)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range postGroup(t, s.url, raws).Members {
		if _, err := rig.Await(t.Context(), s.url, m.TxHash, rig.Executed); err != nil {
			t.Error(err)
		}
	}
}

// group is a group in the API.
type group struct {
	Members []struct {
		TxHash            chain.Hash
		Nonce, EligibleAt uint64
	}
}

// postGroup submits a group's members, and returns the group as the API shows it.
func postGroup(t *testing.T, url string, raws [][]byte) (shown group) {
	t.Helper()
	results, err := rig.Submit(t.Context(), url, chainID, raws...)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range results {
		if !r.OK {
			t.Fatalf("%+v", results)
		}
	}
	groups := fmt.Sprintf("%s/v1/senders/%s/groups", url, wallet.Dev(0).Address())
	var newest []struct{ GroupID string }
	get(t, groups, &newest)
	if len(newest) == 0 {
		t.Fatal("the sender has no group")
	}
	get(t, groups+"/"+newest[0].GroupID, &shown)
	if len(shown.Members) != groupSize {
		t.Fatalf("%+v", shown)
	}
	for i, m := range shown.Members {
		if m.Nonce != uint64(i) || m.TxHash != results[i].TxHash {
			t.Errorf("member %d is %+v", i, m)
		}
	}
	return shown
}

func get(t *testing.T, url string, into any) {
	t.Helper()
	res, err := http.Get(url) //nolint:noctx // the test's own server
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close() //nolint:errcheck // it is read
	if err := json.NewDecoder(res.Body).Decode(into); err != nil || res.StatusCode != http.StatusOK {
		t.Fatalf("%s: %s, %v", url, res.Status, err)
	}
}

// A web page in a browser on this machine cannot call the simulated chain.
func TestPagesReachNoChain(t *testing.T) {
	defer http.DefaultTransport.(*http.Transport).CloseIdleConnections()
	listener, err := nodeListener(t.Context(), options{node: "127.0.0.1:0"})
	if err != nil {
		t.Fatal(err)
	}
	c := simulate(listener, "for a test")
	defer func() {
		if err := c.stop(); err != nil {
			t.Error(err)
		}
	}()
	for _, tt := range []struct {
		host, header, value string
		status              int
	}{
		{"", "Content-Type", "application/json", http.StatusOK},
		{"evil.example", "Content-Type", "application/json", http.StatusForbidden},
		{"", "Origin", "http://evil.example", http.StatusForbidden},
		{"", "Sec-Fetch-Site", "cross-site", http.StatusForbidden},
		{"", "Content-Type", "text/plain", http.StatusUnsupportedMediaType},
	} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, c.url, strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"eth_chainId","params":[]}`))
		if err != nil {
			t.Fatal(err)
		}
		r.Host = tt.host
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set(tt.header, tt.value)
		res, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		if res.Body.Close(); res.StatusCode != tt.status {
			t.Errorf("%+v: %s", tt, res.Status)
		}
	}
}
