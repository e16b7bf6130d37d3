//go:build chaos && linux

package main_test

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/tempo-watchtower/watchtower/cmd/devnet/wallet"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/infra/testenv"
	"github.com/tempo-watchtower/watchtower/proof/rig"
)

// skewed builds the program with a wall clock that jumps as WATCHTOWER_TEST_CLOCK says. Only the
// standard library's time.Now is changed, none of our code: the kernel has no wall clock per
// process, and a Go program ignores preloaded libraries.
func skewed(t *testing.T, ctx context.Context) string {
	t.Helper()
	root, err := exec.CommandContext(ctx, "go", "env", "GOROOT").Output()
	check(t, err)
	folder := filepath.Join(string(bytes.TrimSpace(root)), "src", "time")
	const now = "sec, nsec, mono := runtimeNow()\n"
	text := readFile(t, filepath.Join(folder, "time.go"))
	if bytes.Count(text, []byte(now)) != 1 {
		t.Fatal("time.Now of this Go is another: see where its clock is read")
	}
	dir := t.TempDir()
	patched := filepath.Join(dir, "time.go")
	check(t, os.WriteFile(patched, bytes.Replace(text, []byte(now), []byte(now+"\tsec += skewBy(mono)\n"), 1), 0o600))
	skew, err := filepath.Abs("testdata/clock/skew.txt")
	check(t, err)
	overlay, err := json.Marshal(map[string]any{"Replace": map[string]string{
		filepath.Join(folder, "time.go"): patched, filepath.Join(folder, "skew.go"): skew,
	}})
	check(t, err)
	path := filepath.Join(dir, "overlay.json")
	check(t, os.WriteFile(path, overlay, 0o600))
	program, err := rig.Build(ctx, dir, "-overlay", path)
	check(t, err)
	return program
}

// Row 23. Of three replicas one is an hour ahead, one an hour behind, and both clocks then jump
// by two hours; the third has its own monotonic clock. Transactions end as they do with one
// clock.
func TestClocksApart(t *testing.T) {
	testenv.Islands(t) // a time namespace also requires root
	w := newWorld(t, shared, "--block-time", "1")
	apart := skewed(t, t.Context()) // recompiles everything, the standard library too
	w.lasting(t, patience)
	var replicas []*rig.Service
	var urls []string
	for _, clock := range []string{"0:3600,12:-3600", "0:-3600,12:3600", ""} {
		r := w.service(t)
		r.Program = apart
		if clock != "" {
			r.Env = []string{"WATCHTOWER_TEST_CLOCK=" + clock}
		} else {
			r.Wrap = []string{"unshare", "-T", "--monotonic", "1000000"}
		}
		check(t, r.Start(w.ctx))
		replicas, urls = append(replicas, r), append(urls, r.URL)
	}
	payments, to := rig.Payments(9960, 400)
	honest := urls[2:]
	windowTo := chain.Address{0: 0x7b, 19: 1}
	window := func(n int, after, before uint64) rig.Payment {
		return rig.Pay(wallet.Dev(n), wallet.Tempo{
			NonceKey: chain.NonceKey{30: 3, 31: byte(n + 1)}, Window: chain.Window{After: after, Before: before},
			Calls: []chain.Call{wallet.Transfer(wallet.PathUSD, windowTo, 1)},
		})
	}
	now := uint64(time.Now().Unix())
	var windows []rig.Payment
	for n := range 8 {
		windows = append(windows, window(n, now+uint64(8+2*n), now+600))
	}
	gap := rig.Pay(wallet.Dev(9), wallet.Tempo{ // its predecessor is never submitted
		NonceKey: chain.NonceKey{30: 4, 31: 1}, Nonce: 1, Window: chain.Window{Before: now + 25},
		Calls: []chain.Call{wallet.Transfer(wallet.PathUSD, windowTo, 1)},
	})
	w.insist(t, append([]rig.Payment{gap}, windows...), 4, honest...)
	failed, longest := w.insist(t, payments, 8, urls...)
	w.delivered(t, honest[0], payments, rig.Sealed)
	w.delivered(t, honest[0], windows, rig.Sealed)
	ended, err := rig.Await(w.ctx, honest[0], gap.Hash, func(t rig.Transaction) bool { return t.Finalized })
	if err != nil || ended.Status != "expired" {
		t.Errorf("what cannot be mined is %s: %v", ended.Status, err)
	}
	w.paidOnce(t, to, len(payments))
	w.paidOnce(t, windowTo, len(windows))
	w.trueReceipts(t, honest[0], append(payments, windows...))
	t.Logf("%d calls without an answer, the longest acceptance took %v, latest first answer of a node %v", failed,
		longest.Round(time.Millisecond), w.late(t, honest[0], payments).Round(time.Millisecond))
	for _, r := range replicas {
		check(t, r.Stop(w.ctx))
	}
}
