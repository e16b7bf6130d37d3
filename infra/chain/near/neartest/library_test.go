package neartest

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/mr-tron/base58"

	"github.com/tempo-watchtower/watchtower/infra/testenv"
)

// TestLibrary lets near-api-js, NEAR's own client, use a node of the chain as it would use a real one.
func TestLibrary(t *testing.T) {
	testenv.Need(t, testenv.NEARVar)
	w := newWorld(t, Options{Producers: 2})
	w.SetContract(w.bob.account)
	w.SetFailing(w.bob.account, "breaks", "Smart contract panicked: no")
	ctx, stop := context.WithCancel(t.Context())
	blocks := make(chan struct{})
	go func() { defer close(blocks); w.Chain.Run(ctx, 20*time.Millisecond) }()
	defer func() { stop(); <-blocks }()

	secrets, err := json.Marshal(map[string]string{w.alice.account: w.alice.secret(), w.bob.account: w.bob.secret()})
	if err != nil {
		t.Fatal(err)
	}
	drive := exec.CommandContext(ctx, "node", filepath.Join("testdata", "drive.mjs"), w.server.URL, string(secrets))
	var errs bytes.Buffer
	drive.Stderr = &errs
	out, err := drive.Output()
	if err != nil {
		t.Fatalf("%v\n%s\n%s", err, out, errs.String())
	}
	got := map[string]map[string]any{}
	for lines := bufio.NewScanner(bytes.NewReader(out)); lines.Scan(); {
		var line map[string]any
		if err := json.Unmarshal(lines.Bytes(), &line); err != nil {
			t.Fatalf("%v: %s", err, lines.Text())
		}
		t.Log(lines.Text())
		got[line["step"].(string)] = line
	}
	for step, want := range map[string]map[string]any{
		"network": {"network": "testnet"}, "state": {"balance": "100"}, "keys": {"keys": 1.0},
		"transfer": {"status": "SuccessValue"}, "signAndSend": {"status": "SuccessValue"}, "call": {"status": "SuccessValue"},
		"fails": {"status": "Failure", "failures": 1.0}, "addKey": {"status": "SuccessValue"}, "deleteKey": {"status": "SuccessValue"},
		"createAccount": {"status": "SuccessValue"}, "meta": {"status": "SuccessValue", "failures": 0.0}, "async": {"sent": true},
	} {
		for member, value := range want {
			if got[step][member] != value {
				t.Errorf("%s: %s is %v, want %v (%v)", step, member, got[step][member], value, got[step])
			}
		}
	}
	for _, step := range []string{"missingKey", "missingAccount", "unknownTransaction", "broke"} {
		if got[step]["error"] == nil {
			t.Errorf("%s: no error: %v", step, got[step])
		}
	}
}

// secret is the key's secret half as NEAR's tools write it.
func (s signer) secret() string { return "ed25519:" + base58.Encode(s.private) }
