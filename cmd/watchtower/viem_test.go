package main_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tempo-watchtower/watchtower/infra/testenv"
	"github.com/tempo-watchtower/watchtower/infra/testenv/server"
)

// script runs a script of testdata/viem against a service and a node and returns the lines it
// prints.
func (w *world) script(t *testing.T, name, service, node string) []map[string]any {
	t.Helper()
	cmd := exec.CommandContext(w.ctx, "node", filepath.Join("testdata", "viem", name), service, node)
	cmd.Env = append(os.Environ(), testenv.ViemVar+"="+testenv.Need(t, testenv.ViemVar))
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s: %v\n%s\n%s", name, err, out, errs.String())
	}
	var lines []map[string]any
	for scan := bufio.NewScanner(bytes.NewReader(out)); scan.Scan(); {
		var line map[string]any
		if err := json.Unmarshal(scan.Bytes(), &line); err != nil {
			t.Fatalf("%s printed %q: %v", name, scan.Text(), err)
		}
		lines = append(lines, line)
	}
	return lines
}

func executed(t *testing.T, lines []map[string]any, kinds ...string) {
	t.Helper()
	seen := map[any]any{}
	for _, l := range lines {
		seen[l["kind"]] = l["status"]
	}
	for _, kind := range kinds {
		if seen[kind] != "executed" {
			t.Errorf("%s is %v, want executed", kind, seen[kind])
		}
	}
	t.Logf("%d transactions: %v", len(lines), seen)
}

// viem, a widely used client, signs with every kind of key that Tempo has.
func TestViem(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, store func(t *testing.T, dir string) []string) {
		w := newWorld(t, store, "--block-time", "1")
		s := w.service(t)
		check(t, s.Start(w.ctx))
		executed(t, w.script(t, "submit.mjs", s.URL, w.chain.URL()), "secp256k1", "p256", "webauthn", "sponsored", "2d-nonce-0", "2d-nonce-1", "scheduled")
		check(t, s.Stop(w.ctx))
	})
}

// An Ethereum transaction of type 2, on a chain other than Tempo.
func TestViemEthereum(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, store func(t *testing.T, dir string) []string) {
		w := newWorld(t, store)
		plain, err := server.NewAnvil(testenv.Need(t, testenv.AnvilVar), "--block-time", "1")
		check(t, err)
		t.Cleanup(func() { check(t, plain.Remove()) })
		check(t, plain.Start(w.ctx))
		w.chains = fmt.Sprintf("31337=%s;%s", plain.URL(), w.chains)
		s := w.service(t)
		check(t, s.Start(w.ctx))
		executed(t, w.script(t, "submit-ethereum.mjs", s.URL, plain.URL()), "eip1559")
		check(t, s.Stop(w.ctx))
	})
}

// Owners cancel with every kind of Tempo key, signing with viem; and their signatures are valid
// for nothing else.
func TestViemCancels(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, store func(t *testing.T, dir string) []string) {
		w := newWorld(t, store, "--block-time", "1")
		s := w.service(t)
		check(t, s.Start(w.ctx))
		got := map[string]string{}
		for _, line := range w.script(t, "cancel.mjs", s.URL, w.chain.URL()) {
			got[line["kind"].(string)] = fmt.Sprintf("%v %v %v", line["status"], line["canceled"], line["code"])
		}
		want := map[string]string{}
		for _, kind := range []string{"secp256k1", "p256", "webauthn"} {
			// A secp256k1 signature over other data yields another account.
			stranger := "401 <nil> invalid-signature"
			if kind == "secp256k1" {
				stranger = "403 <nil> not-the-owner"
			}
			want[kind+" expired"] = "401 <nil> authorization-expired"
			want[kind+" other chain"], want[kind+" other deployment"], want[kind+" other group"] = stranger, stranger, stranger
			want[kind+" typed"], want[kind+" id"] = "200 3 <nil>", "200 3 <nil>"
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("answers (-want +got):\n%s", diff)
		}
		check(t, s.Stop(w.ctx))
	})
}
