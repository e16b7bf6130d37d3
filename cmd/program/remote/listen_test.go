package remote

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	watchtower "github.com/tempo-watchtower/watchtower/clients/go"
)

// Events are posted once, in order, signed so that a client's verifier accepts them, also across a broken
// connection. What the URL answers is printed.
func TestListen(t *testing.T) {
	const secret = "whsec_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="
	verifier, err := watchtower.NewWebhookVerifier(secret)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		id, body, err := verifier.Read(r)
		if err != nil {
			t.Error(err)
		}
		if got = append(got, id+" "+string(body)); len(got) == 2 {
			w.WriteHeader(http.StatusTeapot)
		}
	}))
	defer receiver.Close()
	var asked []string
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.URL.RawQuery)
		switch len(asked) {
		case 1:
			fmt.Fprint(w, `{"id":"a","name":"tx.mined.v1","position":6}`+"\n"+`{"position":7}`+"\n") //nolint:errcheck // a test's own server
		case 2:
			fmt.Fprint(w, `{"id":"b","name":"tx.finalized.v1","position":8}`+"\n") //nolint:errcheck // likewise
		default:
			cancel()
		}
	}))
	defer service.Close()
	file := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(file, []byte(secret+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := Listen(delivery, "watchtower", nil, EventPosting)
	var out, said bytes.Buffer
	cmd.SetOut(&out)
	cmd.SetErr(&said)
	cmd.SetArgs([]string{"--url", service.URL, "--forward-to", receiver.URL, "--after", "5", "--secret-file", file})
	if err := cmd.ExecuteContext(ctx); err != nil {
		t.Fatal(err)
	}
	want := []string{`msg_a {"id":"a","name":"tx.mined.v1","position":6}`, `msg_b {"id":"b","name":"tx.finalized.v1","position":8}`}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("posted %q, want %q", got, want)
	}
	if len(asked) < 3 || asked[0] != "after=5" || asked[1] != "after=7" || asked[2] != "after=8" {
		t.Errorf("asked %q", asked)
	}
	if lines := strings.Split(strings.TrimSpace(out.String()), "\n"); len(lines) != 2 || !strings.HasSuffix(lines[0], "msg_a  200 OK") || !strings.HasSuffix(lines[1], "418 I'm a teapot") {
		t.Errorf("printed %q", out.String())
	}
	if strings.Contains(said.String()+out.String(), "whsec_") {
		t.Error("a given secret is printed")
	}
}

// Mistakes are reported before any request.
func TestListenRefuses(t *testing.T) {
	for _, args := range [][]string{{}, {"--forward-to", "localhost:3000"}, {"--forward-to", "http://127.0.0.1:1", "--after", "x"}, {"--forward-to", "http://127.0.0.1:1", "--secret-file", os.DevNull + "x"}} {
		cmd := Listen(delivery, "watchtower", nil, EventPosting)
		cmd.SetArgs(append(args, "--url", "http://127.0.0.1:1"))
		cmd.SetOut(&bytes.Buffer{})
		cmd.SetErr(&bytes.Buffer{})
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := cmd.ExecuteContext(ctx); err == nil {
			t.Errorf("%v were taken", args)
		}
	}
}

// A JSON list is taken like lines.
func TestListed(t *testing.T) {
	for text, want := range map[string]string{`["0x01", "0x02"]`: "0x01\n0x02", "0x01\n0x02": "0x01\n0x02", "[broken": "[broken"} {
		if got := string(listed([]byte(text))); got != want {
			t.Errorf("%q: %q", text, got)
		}
	}
}
