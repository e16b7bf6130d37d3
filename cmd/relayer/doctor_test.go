package main_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tempo-watchtower/watchtower/cmd/devnet/wallet"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/relay/intent"
	"github.com/tempo-watchtower/watchtower/eventlog/pause"
	"github.com/tempo-watchtower/watchtower/proof/rig"
)

// diagnosis is the part of the doctor's output used in tests.
type diagnosis struct {
	Well          bool
	Cursor, Wants *uint64
	Front         *struct {
		Nonce    uint64
		Intent   chain.IntentID
		Attempts []struct{ Hash chain.Hash }
	}
	Holes []struct {
		Nonce uint64
		Fill  *struct{ Intent chain.IntentID }
	}
	Findings []struct{ Code, Says, Next, Do string }
}

func (d diagnosis) has(code string) bool {
	return slices.ContainsFunc(d.Findings, func(f struct{ Code, Says, Next, Do string }) bool { return f.Code == code })
}

// says returns the text of a finding. There may be other findings, for example that a lease of
// one second has just expired on a busy machine.
func (d diagnosis) says(code string) string {
	for _, f := range d.Findings {
		if f.Code == code {
			return f.Says
		}
	}
	return ""
}

// doctor examines the lane of a signer. The exit status is 1 exactly if there is a finding.
func (w *world) doctor(t *testing.T, signer int, args ...string) (d diagnosis) {
	t.Helper()
	args = append([]string{"doctor", wallet.Dev(signer).Address().String(), "--json"}, args...)
	c, err := rig.Run(w.ctx, nil, nil, program, append(args, w.flags...)...)
	check(t, err)
	var all []diagnosis
	if err := json.Unmarshal([]byte(c.Stdout), &all); err != nil || len(all) != 1 || c.Status != map[bool]int{true: 0, false: 1}[all[0].Well] {
		t.Fatalf("the doctor ends with %d, %v: %s", c.Status, err, c.Says())
	}
	return all[0]
}

// mining makes the node produce a block per second, or none.
func (w *world) mining(t *testing.T, on bool) {
	t.Helper()
	seconds := map[bool]int{true: 1, false: 0}[on]
	check(t, rig.Call(w.ctx, w.node.URL(), new(any), "evm_setIntervalMining", seconds))
}

// The doctor finds the fault of a lane, beside a running relayer, a stopped one, and none. The
// faults: another sender uses its key, the node drops its transaction, the lane has no holder,
// an operator paused its signer. In the end all intents are carried out.
func TestDoctorExplains(t *testing.T) {
	t.Parallel()
	on(t, func(t *testing.T, store func(t *testing.T, dir string) []string) {
		w := newWorld(t, kinds()[1], store)
		alice := wallet.Dev(0).Address()
		w.says(t, 2, "inspect", nil, "doctor") // there is no store yet
		first, second := w.one(0, "first"), w.one(0, "second")
		w.ask(t, first)
		if out := w.says(t, 1, "[never-opened]", nil, "doctor", alice.String()); !strings.Contains(out, "The lane was never opened.") {
			t.Errorf("it says %s", out)
		}
		s := w.relayer(t)
		check(t, s.Start(w.ctx))
		c := w.client(t, s)
		w.becomes(t, "the first is completed", func() bool { return w.status(t, c, first) == intent.StatusCompleted })
		w.becomes(t, "all is well", func() bool { return w.doctor(t, 0).Well })

		// Another sender uses the key.
		var theirs chain.Hash
		check(t, rig.Call(w.ctx, w.node.URL(), &theirs, "eth_sendTransaction", map[string]string{"from": alice.String(), "to": alice.String()}))
		w.strangers[theirs] = true
		var d diagnosis
		w.becomes(t, "the use is seen", func() bool { d = w.doctor(t, 0); return d.has("external-use") })
		if *d.Wants != *d.Cursor+1 || !strings.Contains(d.says("external-use"), "nonce 1 is used by foreign transactions") {
			t.Errorf("%+v", d)
		}

		w.create(t, []client{c}, second)
		w.becomes(t, "the second is completed at another nonce", func() bool { return w.status(t, c, second) == intent.StatusCompleted })
		if d := w.doctor(t, 0); *d.Cursor != 3 {
			t.Errorf("the cursor is at %d", *d.Cursor)
		}

		// The relayer is stopped, and its transaction is dropped.
		w.mining(t, false)
		third := w.one(0, "third")
		w.create(t, []client{c}, third)
		w.becomes(t, "a node has the third", func() bool {
			if d = w.doctor(t, 0); d.Front == nil || d.Front.Intent != third.ID() || len(d.Front.Attempts) == 0 {
				return false
			}
			var known any
			check(t, rig.Call(w.ctx, w.node.URL(), &known, "eth_getTransactionByHash", d.Front.Attempts[0].Hash))
			return known != nil
		})
		check(t, s.Signal(syscall.SIGSTOP))
		check(t, rig.Call(w.ctx, w.node.URL(), new(any), "anvil_dropAllTransactions"))
		if d = w.doctor(t, 0); !d.has("dropped") {
			t.Errorf("nobody is told that it was dropped: %+v", d)
		}
		w.becomes(t, "its lease lapses", func() bool { return w.doctor(t, 0).has("not-held") })
		w.says(t, 1, "You can: Start a relayer with the key of "+alice.String(), nil, "doctor", alice.String())
		check(t, s.Signal(syscall.SIGCONT))

		w.operator(s).order(t, http.MethodPost, w.key(0)+"/pause", map[string]any{})
		if d = w.doctor(t, 0); !d.has("signer-paused") {
			t.Errorf("nobody is told that the signer is paused: %+v", d)
		}
		w.operator(s).order(t, http.MethodPost, w.key(0)+"/resume", map[string]any{})
		w.mining(t, true)
		w.done(t, s) // the same bytes are sent again
		w.becomes(t, "all is well again", func() bool { return w.doctor(t, 0).Well })
		w.becomes(t, "so are the lanes of all signers", func() bool {
			c, err := rig.Run(w.ctx, nil, nil, program, append([]string{"doctor", "--chain", w.id.String()}, w.flags...)...)
			check(t, err)
			return c.Status == 0 && strings.Count(c.Stdout, "Nothing is wrong.") == len(keys)
		})
		check(t, s.Stop(w.ctx))
		if d = w.doctor(t, 0); !d.has("not-held") || len(d.Findings) != 1 {
			t.Errorf("after its end: %+v", d)
		}
		w.says(t, 2, "chain 1 is not among the chains", nil, "doctor", "--chain", "1")
		w.says(t, 2, "no lane has this nonce key", nil, "doctor", "--nonce-key", "0x1")
		w.judge(t)
	}, "embedded", "postgres", "eventstoredb", "redis")
}

// A lasting nonce gap: an intent of an ordering group has a nonce, and no node estimates its
// gas. The nonces above are signed and cannot land. The doctor explains it, a dry run changes
// nothing, and filling repairs the lane. The intent is carried out later, when nodes estimate
// again.
func TestDoctorFills(t *testing.T) {
	t.Parallel()
	on(t, func(t *testing.T, store func(t *testing.T, dir string) []string) {
		w := newWorld(t, kinds()[1], store, "--lane-stall=1h") // otherwise the nonce would be given back automatically
		nodes := w.throughDoor(t)
		alice := wallet.Dev(0).Address().String()
		poor, rich := w.one(0, "poor"), w.one(0, "rich")
		poor.Order, rich.Gas = "row", intent.Gas{Limit: gasEnough}
		w.ask(t, poor)
		s := w.relayer(t, "WATCHTOWER_CRASH_AT=lane.reserved") // the intent has a nonce, but no attempt
		check(t, s.Launch())
		select {
		case <-s.Ended():
		case <-w.ctx.Done():
			t.Fatal("the relayer never reserved a nonce")
		}
		nodes.set(dark)
		s = w.relayer(t)
		check(t, s.Start(w.ctx))
		c := w.client(t, s)
		w.create(t, []client{c}, rich)
		var d diagnosis
		w.becomes(t, "there is a gap", func() bool {
			d = w.doctor(t, 0)
			return d.has("hole-held") && !d.has("not-held") && d.Holes[0].Fill != nil
		})
		if d.Holes[0].Nonce != 0 || d.Holes[0].Fill.Intent != poor.ID() || !strings.Contains(d.Findings[0].Says, "no node has estimated its gas") {
			t.Errorf("%+v", d)
		}
		out := w.says(t, 1, "nonce 0: intent "+poor.ID().String()+" gives it back", nil, "doctor", alice, "--fill")
		if !strings.Contains(out, "100000 gas at ") || !strings.Contains(out, "nothing changes without --dry-run=false") {
			t.Errorf("it says %s", out)
		}
		if got := w.status(t, c, rich); got == intent.StatusCompleted || len(w.doctor(t, 0).Holes) != 1 {
			t.Errorf("the dry run has filled it: %s", got)
		}
		url := "--admin-url=" + w.operator(s).url
		w.says(t, 2, "--reason is required", nil, "doctor", alice, "--fill", "--dry-run=false", url)
		w.says(t, 0, "nonce 0: intent "+poor.ID().String()+" gives it back, as requested", nil, "doctor", alice, "--fill", "--dry-run=false", "--reason=it blocks", url)
		w.becomes(t, "what was above it is done", func() bool { return w.status(t, c, rich) == intent.StatusCompleted })
		if shown := c.must(t, http.StatusOK, http.MethodGet, at(poor), nil); shown.Status != intent.StatusWaiting || len(shown.Attempts) > 0 {
			t.Errorf("the intent is %+v", shown)
		}
		nodes.set(open)
		w.done(t, s)
		w.says(t, 0, "There is nothing to fill.", nil, "doctor", alice, "--fill", "--dry-run=false", "--reason=again", url)
		check(t, s.Stop(w.ctx))
		if out := w.says(t, 0, "intent.yield_requested.v1", nil, "audit", "show", string(intent.Stream(poor.ID()))); !strings.Contains(out, "by operator, position") {
			t.Errorf("nobody is told who wished it: %s", out)
		}
		w.judge(t)
	}, "embedded", "postgres", "eventstoredb")
}

// baseFee sets the base fee of the node's next block.
func (w *world) baseFee(t *testing.T, wei uint64) {
	t.Helper()
	check(t, rig.Call(w.ctx, w.node.URL(), new(any), "anvil_setNextBlockBaseFeePerGas", fmt.Sprintf("0x%x", wei)))
}

// dearer keeps the base fee constant until release; it would fall with every empty block.
func (w *world) dearer(t *testing.T, wei uint64) (release func()) {
	t.Helper()
	return w.dearerAt(t, w.node.URL(), wei)
}

// dearerAt is dearer for the chain of a node.
func (w *world) dearerAt(t *testing.T, url string, wei uint64) (release func()) {
	t.Helper()
	check(t, rig.Call(w.ctx, url, new(any), "anvil_setNextBlockBaseFeePerGas", fmt.Sprintf("0x%x", wei)))
	ctx, cancel := context.WithCancel(w.ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for pause.For(ctx, 200*time.Millisecond) == nil {
			err := rig.Call(ctx, url, new(any), "anvil_setNextBlockBaseFeePerGas", fmt.Sprintf("0x%x", wei))
			if err != nil && ctx.Err() == nil {
				t.Error(err)
				return
			}
		}
	}()
	release = func() { cancel(); <-ended }
	t.Cleanup(release)
	return release
}
