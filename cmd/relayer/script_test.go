package main_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/tempo-watchtower/watchtower/cmd/devnet/wallet"
	"github.com/tempo-watchtower/watchtower/domain/relay/intent"
)

// Each file is a session at the command line against a running relayer: commands and their
// expected output.
func TestScripts(t *testing.T) {
	t.Parallel()
	w := newWorld(t, kinds()[1], inFiles, webhookFlags(t)...)
	var gone atomic.Bool
	gone.Store(true)
	hook := httptest.NewServer(http.HandlerFunc(func(answer http.ResponseWriter, _ *http.Request) {
		if gone.Load() {
			answer.WriteHeader(http.StatusGone)
			return
		}
		answer.WriteHeader(http.StatusNoContent)
	}))
	t.Cleanup(hook.Close)
	s := w.relayer(t)
	check(t, s.Start(w.ctx))
	url, operator := w.client(t, s).url, w.operator(s)

	stranger := wallet.Dev(5).Address()
	first, second, third, fourth, other, elsewhere, hooked := w.one(0, "first"), w.one(0, "second"), w.one(0, "third"), w.one(0, "fourth"), w.one(0, "first"), w.one(0, "other"), w.one(2, "hooked")
	other.Calls = []intent.Call{{To: &stranger, Value: intent.NewAmount(2)}}
	elsewhere.Signer = &stranger
	given := map[string]any{
		"wish.json": wish(first), "second.json": wish(second), "third.json": wish(third), "fourth.json": wish(fourth), "other.json": wish(other),
		"list.json": []any{wish(first), wish(elsewhere)}, "hooked.json": hookedWish(hooked, hook.URL),
	}
	stories := testscript.Params{
		Dir: "testdata/script",
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){
			"until":   until,
			"capture": capture,
			"status":  status,
			"back":    func(*testscript.TestScript, bool, []string) { gone.Store(false) },
			"makekey": func(ts *testscript.TestScript, _ bool, _ []string) {
				ts.Check(os.WriteFile(ts.MkAbs("admin.key"), []byte(operator.makeKey(t, "admin")), 0o600))
				awaitClosed(ts, operator)
			},
		},
		Setup: func(env *testscript.Env) error {
			for name, body := range given {
				text, err := json.Marshal(body)
				check(t, err)
				check(t, os.WriteFile(env.Cd+"/"+name, text, 0o600))
			}
			check(t, os.WriteFile(env.Cd+"/gone.url", []byte(hook.URL+"\n"), 0o600))
			for name, value := range map[string]string{
				"relayer": program, "XDG_CONFIG_HOME": env.WorkDir + "/config", "RELAYER_URL": url, "RELAYER_ADMIN_URL": operator.url,
				"alice": wallet.Dev(0).Address().String(), "bob": wallet.Dev(1).Address().String(),
				"first": first.ID().String(), "second": second.ID().String(), "fourth": fourth.ID().String(), "hooked": hooked.ID().String(),
			} {
				env.Setenv(name, value)
			}
			return nil
		},
	}
	t.Run("story", func(t *testing.T) { testscript.Run(t, stories) }) // waits for all of them
	// The scripts compete with other tests for processors, and may outlast the world's time.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(w.ctx), time.Minute)
	defer cancel()
	check(t, s.Stop(ctx))
}

// hookedWish is the body of a request for an intent with a webhook.
func hookedWish(r intent.Request, url string) any {
	text, err := json.Marshal(wish(r))
	if err != nil {
		panic(err) // the text is valid JSON
	}
	return json.RawMessage(bytes.Replace(text, []byte("{"), []byte(`{"webhooks":["`+url+`"],`), 1))
}

// until repeats a command until its output matches, or, with ! before the pattern, does not
// match.
func until(ts *testscript.TestScript, _ bool, args []string) {
	pattern, not := strings.CutPrefix(args[0], "!")
	want := regexp.MustCompile("(?m)" + pattern)
	for deadline := time.Now().Add(patience / 3); ; {
		err := ts.Exec(args[1], args[2:]...)
		if out := ts.ReadFile("stdout"); err == nil && want.MatchString(out) != not {
			return
		} else if time.Now().After(deadline) {
			ts.Fatalf("%v never says %q: %v\n%s%s", args[1:], args[0], err, out, ts.ReadFile("stderr"))
		}
	}
}

// capture stores the match of a pattern in the last output in a variable.
func capture(ts *testscript.TestScript, _ bool, args []string) {
	found := regexp.MustCompile("(?m)" + args[1]).FindString(ts.ReadFile("stdout"))
	if found == "" {
		ts.Fatalf("%q is not in the output", args[1])
	}
	ts.Setenv(args[0], found)
}

// status runs a command, and expects it to end with an exit status.
func status(ts *testscript.TestScript, _ bool, args []string) {
	got := 0
	err := ts.Exec(args[1], args[2:]...)
	if ended := (*exec.ExitError)(nil); errors.As(err, &ended) {
		got = ended.ExitCode()
	} else {
		ts.Check(err)
	}
	if strconv.Itoa(got) != args[0] {
		ts.Fatalf("%v ended with %d, want %s\n%s%s", args[1:], got, args[0], ts.ReadFile("stdout"), ts.ReadFile("stderr"))
	}
}

// makeKey creates an API key with some scopes at the internal listener.
func (c client) makeKey(t *testing.T, scopes ...string) string {
	t.Helper()
	var made struct{ Token string }
	body := map[string]any{"name": "ops", "scopes": scopes, "senders": []string{}, "ratePerSecond": 0, "rateBurst": 0, "expiresAt": 0}
	if status, err := c.do(http.MethodPost, "/admin/keys", body, &made); err != nil || status != http.StatusCreated {
		t.Fatalf("a key is answered with %d, %v", status, err)
	}
	return made.Token
}

// awaitClosed waits until requests without a key are refused.
func awaitClosed(ts *testscript.TestScript, c client) {
	for {
		var p struct{ Code string }
		status, err := c.do(http.MethodGet, "/admin/signers", nil, &p)
		ts.Check(err)
		if status == http.StatusUnauthorized {
			return
		}
	}
}
