package main_test

import (
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tempo-watchtower/watchtower/domain/relay/intent"
)

// run runs a command of the relayer on a store and returns what it prints.
func (w *world) run(t *testing.T, flags []string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(w.ctx, w.program, append(args, flags...)...)
	cmd.Env = append(os.Environ(), keys...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("relayer %s: %v: %s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

// A backup is made while the relayer pays. A relayer whose store is restored from it does not pay again
// what it paid after the backup: it is halted until an operator ends the halt, and says so.
func TestRestoredRelayerIsHalted(t *testing.T) {
	t.Parallel()
	w := newWorld(t, kinds()[1], inFiles)
	s := w.relayer(t)
	check(t, s.Start(w.ctx))
	c := w.client(t, s)
	w.registered(t, s)
	w.operator(s).order(t, http.MethodPost, w.key(0)+"/pause", map[string]any{})
	before, waits, after := w.one(1, "before"), w.one(0, "waits"), w.one(1, "after")
	w.create(t, []client{c}, before, waits)
	w.becomes(t, "it is paid before the backup", func() bool { return w.status(t, c, before) == intent.StatusCompleted })

	copied, restored := filepath.Join(w.dir, "copy"), filepath.Join(w.dir, "restored")
	t.Log(w.run(t, w.flags, "backup", copied))
	w.operator(s).order(t, http.MethodPost, w.key(0)+"/resume", map[string]any{})
	w.create(t, []client{c}, after)
	for what, r := range map[string]intent.Request{"a payment that waited in the backup": waits, "a payment that the backup does not know": after} {
		w.becomes(t, what+" is paid", func() bool { return w.status(t, c, r) == intent.StatusCompleted })
	}
	check(t, s.Stop(w.ctx))
	w.judge(t)

	key, err := os.ReadFile(filepath.Join(w.dir, "data", "vault.key"))
	check(t, err)
	w.flags = with(without(w.flags, "--store", "embedded:"), "--vault-key-file="+filepath.Join(w.dir, "vault.key"))
	check(t, os.WriteFile(filepath.Join(w.dir, "vault.key"), key, 0o600))
	w.flags = append([]string{"--store", "embedded:" + restored}, w.flags...)
	w.run(t, w.flags, "restore", copied)
	s = w.relayer(t)
	check(t, s.Start(w.ctx))
	c = w.client(t, s)
	w.operator(s).order(t, http.MethodPost, w.key(0)+"/resume", map[string]any{})
	var p struct{ Code, Detail string }
	if status, err := c.do(http.MethodPost, "/v1/intents", wish(after), &p); err != nil || status != http.StatusServiceUnavailable || p.Code != "halted" || !strings.Contains(p.Detail, "restored from a backup") {
		t.Errorf("a repeated payment that the backup does not know: %d %+v, %v", status, p, err)
	}
	w.becomes(t, "the waiting payment says why it waits", func() bool {
		shown := c.must(t, http.StatusOK, http.MethodGet, at(waits), nil)
		return shown.WaitingFor != nil && shown.WaitingFor.Code == "halted"
	})
	if got := c.must(t, http.StatusOK, http.MethodGet, at(before), nil).Status; got != intent.StatusCompleted {
		t.Errorf("a payment of before the backup is %s", got)
	}
	// The operator cancels what was paid after the backup, and then ends the halt.
	c.must(t, http.StatusOK, http.MethodPost, at(waits)+"/cancel", map[string]string{"reason": "it was paid after the backup"})
	w.operator(s).order(t, http.MethodPost, "/safeguards/resume", map[string]any{"scope": map[string]any{"kind": "deployment"}})
	later := w.one(0, "later")
	w.create(t, []client{c}, later)
	w.becomes(t, "new payments go on, at the chain's nonce", func() bool { return w.status(t, c, later) == intent.StatusCompleted })
	check(t, s.Stop(w.ctx))
	w.run(t, w.flags, "verify")
}

// A relayer whose server was restored is halted by a command.
func TestRestoredServerIsHalted(t *testing.T) {
	t.Parallel()
	w := newWorld(t, kinds()[1], inPostgres)
	check(t, os.WriteFile(filepath.Join(w.dir, "vault.key"), []byte(strings.Repeat("07", 32)+"\n"), 0o600)) // it is kept apart, and is there
	w.run(t, w.flags, "restored")
	s := w.relayer(t)
	check(t, s.Start(w.ctx))
	var p struct{ Code, Detail string }
	if status, err := w.client(t, s).do(http.MethodPost, "/v1/intents", wish(w.one(0, "halted")), &p); err != nil || status != http.StatusServiceUnavailable || p.Code != "halted" || !strings.Contains(p.Detail, "a backup that ends at position") {
		t.Errorf("%d %+v, %v", status, p, err)
	}
	check(t, s.Stop(w.ctx))
}
