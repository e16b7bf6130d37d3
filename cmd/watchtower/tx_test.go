package main_test

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/tempo-watchtower/watchtower/cmd/devnet/wallet"
	"github.com/tempo-watchtower/watchtower/proof/rig"
)

// told runs a command against a service, and returns its output and exit status.
func (w *world) told(t *testing.T, url, in string, args ...string) (out string, status int) {
	t.Helper()
	cmd := exec.CommandContext(w.ctx, program, args...)
	cmd.Stdin, cmd.Env = strings.NewReader(in), append(os.Environ(), "WATCHTOWER_URL="+url)
	var said, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &errs
	err := cmd.Run()
	if ended := (*exec.ExitError)(nil); err != nil && !errors.As(err, &ended) {
		t.Fatal(err)
	}
	return said.String() + errs.String(), cmd.ProcessState.ExitCode()
}

// A payment is submitted, followed to its end, listed and explained by commands alone.
func TestTransactionsByCommand(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, store func(t *testing.T, dir string) []string) {
		w := newWorld(t, store, "--block-time", "1")
		s := w.service(t)
		check(t, s.Start(w.ctx))
		payments, _ := rig.Payments(4200, 3)
		var lines []string
		for _, p := range payments {
			lines = append(lines, "0x"+hex.EncodeToString(p.Raw))
		}
		hash, on := payments[0].Hash.String(), rig.TempoChain.String()
		file := filepath.Join(w.dir, "payments.txt")
		check(t, os.WriteFile(file, []byte(strings.Join(lines[1:], "\n")), 0o600))
		for _, c := range []struct {
			name, in string
			args     []string
			status   int
			want     []string
		}{
			{"validated", lines[0], []string{"tx", "validate", "--chain", on}, 0, []string{hash}},
			{"submitted", lines[0], []string{"tx", "submit", "--chain", on, file, "-"}, 0, []string{"NUMBER", hash, payments[2].Hash.String()}},
			{"submitted again", "", []string{"tx", "submit", "--chain", on, lines[0], "-o", "csv"}, 0, []string{"number,hash,status,", ",known already"}},
			{"of another chain", "", []string{"tx", "submit", "--chain", "1", lines[0]}, 3, []string{"unsupported-chain"}},
			{"one is refused", "", []string{"tx", "submit", "--chain", on, lines[0], "0x7601"}, 3, []string{"1 of 2 were refused", "invalid-transaction"}},
			{"awaited", "", []string{"tx", "wait", hash, "--for", "final", "--timeout", "2m"}, 0, []string{"executed, final", "mined"}},
			{"awaited on its chain", "", []string{"tx", "wait", hash, "--chain", on, "--timeout", "1s"}, 0, []string{"executed"}},
			{"awaited on another", "", []string{"tx", "wait", hash, "--chain", "1", "--timeout", "1s"}, 4, []string{"unknown-transaction"}},
			{"never final again", "", []string{"tx", "wait", "0x" + strings.Repeat("11", 32), "--timeout", "1s"}, 4, []string{"unknown"}},
			{"shown", "", []string{"tx", "get", hash}, 0, []string{"status", "executed, final"}},
			{"its events", "", []string{"tx", "events", hash}, 0, []string{"tx.accepted.v1", "tx.mined.v1"}},
			{"listed", "", []string{"tx", "list", "--status", "executed", "--limit", "1", "-o", "jsonl"}, 0, []string{`"status":"executed"`}},
			{"its nonce is used", "", []string{"tx", "cancel", hash}, 3, []string{"already-settled"}},
			{"no such page", "", []string{"tx", "list", "--cursor", "x"}, 3, []string{"invalid-cursor"}},
			{"inspected", "", []string{"tx", "inspect", lines[0]}, 0, []string{hash, "call 1"}},
			{"no transaction", "", []string{"tx", "inspect", "0x76c0"}, 1, []string{"no transaction that can be delivered"}},
			{"no service", "", []string{"tx", "get", hash, "--url", "http://127.0.0.1:1"}, 5, []string{"cannot be reached"}},
		} {
			out, status := w.told(t, s.URL, c.in, c.args...)
			for _, want := range c.want {
				if !strings.Contains(out, want) {
					t.Errorf("%s: no %q in\n%s", c.name, want, out)
				}
			}
			if status != c.status {
				t.Errorf("%s: status %d, want %d\n%s", c.name, status, c.status, out)
			}
		}
		var one struct{ Hash, Problem string }
		out, _ := w.told(t, s.URL, "", "tx", "inspect", lines[0], "-o", "json", "--chain", "1")
		check(t, json.Unmarshal([]byte(out), &one))
		if one.Hash != hash || !strings.Contains(one.Problem, "not for chain 1") {
			t.Errorf("inspected: %+v", one)
		}
		check(t, s.Stop(w.ctx))
	})
}

// A group is found, explained and canceled by commands, with its owner's signature.
func TestGroupsByCommand(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, store func(t *testing.T, dir string) []string) {
		w := newWorld(t, store, "--block-time", "1")
		s := w.service(t)
		check(t, s.Start(w.ctx))
		account := wallet.Dev(3)
		key, payments := subscription(account, 1, 1, 5) // nonce 0 is missing
		_, err := rig.Submit(w.ctx, s.URL, rig.TempoChain, raws(payments)...)
		check(t, err)
		sender, id, on := account.Address().String(), key.Group().String(), rig.TempoChain.String()
		out, status := w.told(t, s.URL, "", "groups", "list", sender)
		if status != 0 || !strings.Contains(out, id) {
			t.Errorf("list: %d\n%s", status, out)
		}
		out, status = w.told(t, s.URL, "", "groups", "get", sender, id)
		if status != 0 || !strings.Contains(out, "use up the nonces 1-5 ") {
			t.Errorf("get: %d\n%s", status, out)
		}
		out, status = w.told(t, s.URL, "", "groups", "cancel-message", sender, id, "--chain", on)
		var message struct {
			PrimaryType string
			Message     struct{ Expires int64 }
		}
		if err := json.Unmarshal([]byte(out), &message); err != nil || status != 0 || message.PrimaryType != "CancelGroup" || message.Message.Expires == 0 {
			t.Errorf("cancel-message: %d, %v\n%s", status, err, out)
		}
		for name, c := range map[string]struct {
			by     wallet.Key
			status int
			want   string
		}{"a stranger's signature": {wallet.Dev(5), 3, "watchtower:"}, "the owner's": {account, 0, "5 transactions were canceled"}} {
			signature, err := typedBy(c.by)([]byte(out))
			check(t, err)
			said, status := w.told(t, s.URL, "", "groups", "cancel", sender, id, "--chain", on,
				"--expires", strconv.FormatInt(message.Message.Expires, 10), "--signature", "0x"+hex.EncodeToString(signature))
			if status != c.status || !strings.Contains(said, c.want) {
				t.Errorf("%s: %d\n%s", name, status, said)
			}
		}
		check(t, s.Stop(w.ctx))
	})
}
