package main_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/relay/intent"
	"github.com/tempo-watchtower/watchtower/eventlog/pause"
	"github.com/tempo-watchtower/watchtower/infra/testenv"
	"github.com/tempo-watchtower/watchtower/infra/testenv/server"
)

// settler is a run of examples/settle, which knows the orders and gets the messages, and no more.
type settler struct {
	name     string
	cmd      *exec.Cmd
	out, err bytes.Buffer
}

func (w *world) settler(t *testing.T, program, orders, name string, args ...string) *settler {
	t.Helper()
	s := &settler{name: name, cmd: exec.CommandContext(w.ctx, program, append([]string{"-orders", orders}, args...)...)}
	s.cmd.Stdout, s.cmd.Stderr = &s.out, &s.err
	check(t, s.cmd.Start())
	return s
}

// settled is a line of examples/settle.
type settled struct {
	Order   string
	Paid    bool
	Reason  intent.Reason
	Hash    chain.Hash
	Block   uint64
	GasUsed uint64
}

// A receiver of webhooks, of the event stream or of a broker settles orders by the messages alone:
// it needs no look-up. An order with a notBefore is not paid earlier.
func TestSettleByMessages(t *testing.T) {
	t.Parallel()
	program := filepath.Join(t.TempDir(), "settle")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", program, "../../examples/settle").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	nats, err := server.NewNATS(testenv.Need(t, testenv.NATSVar))
	check(t, err)
	t.Cleanup(func() { check(t, nats.Remove()) })
	check(t, nats.Start(t.Context()))
	w := newWorld(t, kinds()[0], inPostgres, webhookFlags(t)...)
	s := w.relayer(t)
	check(t, s.Start(w.ctx))
	c := w.client(t, s)

	begin := time.Now().Add(5 * time.Second).Unix()
	wishes := map[string]map[string]any{}
	orders := map[string]any{}
	for _, key := range []string{"paid", "later", "reverted", "withdrawn"} {
		calls := []intent.Call{w.pay}
		wishes[key] = map[string]any{"chainId": w.id, "key": key, "pool": "hot", "calls": calls, "subject": "alice", "metadata": map[string]string{"invoice": "4711"}}
		switch key {
		case "later":
			wishes[key]["notBefore"] = begin
		case "withdrawn":
			wishes[key]["notBefore"] = begin + 3600
		case "reverted": // it pays more than the signer has
			calls[0].Data = slices.Clone(calls[0].Data)
			calls[0].Data[len(calls[0].Data)-20] = 0xff
			wishes[key]["gas"] = map[string]any{"limit": 500_000}
		}
		orders[key] = map[string]any{"chainId": w.id, "calls": calls}
	}
	list := filepath.Join(t.TempDir(), "orders.json")
	text, err := json.Marshal(orders)
	check(t, err)
	check(t, os.WriteFile(list, text, 0o600))

	at := free(t)
	hook := "http://" + at + "/" + hush
	var own struct{ Secrets []string }
	if status, err := c.do(http.MethodPost, "/v1/webhooks", map[string]string{"url": hook}, &own); status != http.StatusOK || err != nil {
		t.Fatalf("%d %v", status, err)
	}
	var stderr bytes.Buffer
	forwarder, _ := w.forwarder(t, nats.URL(), &stderr)
	settlers := []*settler{
		w.settler(t, program, list, "webhooks", "-listen", at, "-secret", own.Secrets[0]),
		w.settler(t, program, list, "events", "-events", c.url+"/v1/events"),
	}
	ids := map[string]chain.IntentID{}
	for key, wish := range wishes {
		wish["webhooks"] = []string{hook}
		var made shown
		if status, err := c.do(http.MethodPost, "/v1/intents", wish, &made); status != http.StatusAccepted || err != nil {
			t.Fatalf("%s: %d %v", key, status, err)
		}
		ids[key] = made.ID
	}
	var waits shown
	if _, err := c.do(http.MethodGet, "/v1/intents/"+ids["withdrawn"].String(), nil, &waits); err != nil || waits.WaitingFor == nil || waits.WaitingFor.Code != "not-before" {
		t.Errorf("it waits for %+v, %v", waits.WaitingFor, err)
	}
	var canceled shown
	if status, err := c.do(http.MethodPost, "/v1/intents/"+ids["withdrawn"].String()+"/cancel", nil, &canceled); status != http.StatusOK || err != nil || canceled.Status != intent.StatusCanceled {
		t.Errorf("it is canceled with %d %v: %+v", status, err, canceled)
	}
	// The broker's consumer comes when the stream of messages exists.
	w.becomes(t, "the forwarder publishes", func() bool {
		settlers = append(settlers[:2], w.settler(t, program, list, "nats", "-nats", nats.URL(), "-subject", "told"))
		ended := make(chan error, 1)
		go func() { ended <- settlers[2].cmd.Wait() }()
		select {
		case err := <-ended:
			if err == nil { // it has settled all
				settlers[2].cmd = nil
				return true
			}
			_ = pause.For(w.ctx, 100*time.Millisecond)
			return false
		case <-w.ctx.Done():
			return true
		}
	})
	w.endsAs(t, c, ids, begin, settlers)
	check(t, forwarder.Process.Signal(syscall.SIGTERM))
	if err := forwarder.Wait(); err != nil {
		t.Errorf("%v: %s", err, &stderr)
	}
	check(t, s.Stop(w.ctx))
}

// endsAs compares the settlers' lines with the intents.
func (w *world) endsAs(t *testing.T, c client, ids map[string]chain.IntentID, begin int64, settlers []*settler) {
	t.Helper()
	want := map[string]settled{"withdrawn": {Order: "withdrawn", Reason: intent.Withdrawn}}
	for _, s := range settlers {
		if s.cmd != nil {
			if err := s.cmd.Wait(); err != nil {
				t.Errorf("%s: %v: %s", s.name, err, &s.err)
			}
		}
		got := map[string]settled{}
		for line := range strings.Lines(s.out.String()) {
			var one settled
			check(t, json.Unmarshal([]byte(line), &one))
			if _, again := got[one.Order]; again {
				t.Errorf("%s settles %s twice", s.name, one.Order)
			}
			got[one.Order] = one
		}
		for key, id := range ids {
			var shown struct {
				Receipt *struct {
					Block   struct{ Number, Time uint64 }
					GasUsed uint64
					Status  uint64
				}
				TxHash chain.Hash
			}
			_, err := c.do(http.MethodGet, "/v1/intents/"+id.String(), nil, &shown)
			check(t, err)
			if key == "withdrawn" {
				continue
			}
			r := shown.Receipt
			if r == nil {
				t.Fatalf("%s has no receipt", key)
			}
			want[key] = settled{Order: key, Paid: r.Status == 1, Hash: shown.TxHash, Block: r.Block.Number, GasUsed: r.GasUsed}
			if key == "reverted" {
				want[key] = settled{Order: key, Reason: intent.Reverted, Hash: shown.TxHash, Block: r.Block.Number, GasUsed: r.GasUsed}
			}
			if key == "later" && r.Block.Time < uint64(begin) {
				t.Errorf("it was not to begin before %d, and is in a block of %d", begin, r.Block.Time)
			}
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%s: %s", s.name, d)
		}
		t.Log(fmt.Sprint(s.name, ": ", strings.ReplaceAll(s.out.String(), "\n", " ")))
	}
}
