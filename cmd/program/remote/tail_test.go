package remote

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	watchtower "github.com/tempo-watchtower/watchtower/clients/go"
)

// delivery is the listener that the tests' commands call.
var delivery = Listener{Name: "the service", Variable: "WATCHTOWER_URL", Standard: "http://127.0.0.1:1", Keys: []string{"WATCHTOWER_API_KEY"}, Member: Delivery}

// A tail requests the events of its flags with its key, resumes where the connection broke, and
// ends at the requested position.
func TestTail(t *testing.T) {
	var asked []string
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.URL.Query().Encode()+" "+r.Header.Get("X-Api-Key"))
		const event = `{"id":"00000000-0000-0000-0000-000000000001","name":"tx.mined.v1","version":1,"position":%d,"at":"2026-11-21T03:04:05Z","data":{"a":"<\u001b[31m>"},"stream":"tx-1-0x01","chainId":1,"txHash":"0x01","meta":{"actor":"watcher"}}` + "\n"
		fmt.Fprintf(w, event, 5+len(asked)) //nolint:errcheck // a test's own server
		if len(asked) == 2 {
			fmt.Fprintln(w, `{"position":9,"end":true}`) //nolint:errcheck // likewise
		}
	}))
	defer service.Close()
	key := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(key, []byte("secret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		args []string
		want string
	}{
		{[]string{"--json"}, `"actor":"watcher"`},
		{nil, `"position":7`},
	} {
		asked = nil
		cmd := Tail(delivery, "watchtower")
		var out bytes.Buffer
		cmd.SetOut(&out)
		cmd.SetArgs(append(tt.args, "--url", service.URL, "--key-file", key, "--after", "5", "--until", "9", "--name", "tx.mined", "--chain", "1"))
		if err := cmd.ExecuteContext(t.Context()); err != nil {
			t.Fatal(err)
		}
		if want := []string{"after=5&chainId=1&name=tx.mined&until=9 secret", "after=6&chainId=1&name=tx.mined&until=9 secret"}; fmt.Sprint(asked) != fmt.Sprint(want) {
			t.Errorf("asked for %q, want %q", asked, want)
		}
		lines := strings.Split(strings.TrimSpace(out.String()), "\n")
		if len(lines) != 2 || !strings.Contains(out.String(), tt.want) {
			t.Errorf("%v shows %q", tt.args, lines)
		}
		for _, line := range lines {
			if !json.Valid([]byte(line)) {
				t.Errorf("%q is not JSON", line)
			}
		}
	}
}

// Output for people is one line per event, without terminal control characters.
func TestTailForPeople(t *testing.T) {
	line, err := pretty(watchtower.Event{
		Name: "tx.mined.v1", Position: 7, ChainID: 1, TxHash: "0x01", Meta: watchtower.Meta{Actor: "watch\x1ber"},
		Data: json.RawMessage("{\"message\":\"\x1b[31m\u009b" + strings.Repeat("x", 500) + "\"}\n"),
	})
	if err != nil || bytes.Count(line, []byte("\n")) != 1 || bytes.ContainsAny(line, "\x1b\u009b") || len(line) > 300 || !bytes.Contains(line, []byte("1/0x01")) {
		t.Errorf("%q, %v", line, err)
	}
}

// When no server listens, standard error says so once, and once more when it is back. Standard
// output has events only.
func TestTailTellsOfTrouble(t *testing.T) {
	tries := 0
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		switch tries++; tries {
		case 1, 2: // as if no server listened
			conn, _, err := w.(http.Hijacker).Hijack()
			if err == nil {
				conn.Close() //nolint:errcheck,gosec // that is the trouble
			}
		case 3:
			w.WriteHeader(http.StatusServiceUnavailable)
		default:
			fmt.Fprintln(w, `{"position":9,"end":true}`) //nolint:errcheck // a test's own server
		}
	}))
	defer service.Close()
	cmd := Tail(delivery, "watchtower")
	var out, said bytes.Buffer
	cmd.SetOut(&out)
	cmd.SetErr(&said)
	cmd.SetArgs([]string{"--url", strings.Replace(service.URL, "://", "://me:secret@", 1), "--until", "9"})
	if err := cmd.ExecuteContext(t.Context()); err != nil {
		t.Fatal(err)
	}
	prefix := "watchtower: " + service.URL + ": "
	want := prefix + "not reachable, retrying: EOF\n" + prefix + "reachable but not ready, retrying: 503 Service Unavailable\n" + prefix + "reachable again\n"
	if said.String() != want || out.Len() > 0 {
		t.Errorf("said %q, want %q; shows %q", said.String(), want, out.String())
	}
}

// Mistakes in flags are reported before any request.
func TestTailRefuses(t *testing.T) {
	for _, args := range [][]string{{"--after", "x"}, {"--until", "-1"}, {"--key-file", filepath.Join(t.TempDir(), "nothing")}, {"more"}} {
		cmd := Tail(delivery, "watchtower")
		cmd.SetArgs(append(args, "--url", "http://127.0.0.1:1"))
		cmd.SetOut(&bytes.Buffer{})
		cmd.SetErr(&bytes.Buffer{})
		ctx, cancel := context.WithCancel(t.Context())
		cancel() // no request is sent
		if err := cmd.ExecuteContext(ctx); err == nil {
			t.Errorf("%v were taken", args)
		}
	}
}

// A program reads the key in its own variable, or else in watchtower's.
func TestKeyOfTheEnvironment(t *testing.T) {
	t.Setenv("XDG_CONFIG_HOME", t.TempDir())
	for _, c := range []struct{ own, shared, want string }{
		{"relay", "delivery", "relay"}, {"", "delivery", "delivery"}, {"", "", ""},
	} {
		t.Setenv("RELAYER_API_KEY", c.own)
		t.Setenv("WATCHTOWER_API_KEY", c.shared)
		d := Door{Listener: delivery}
		d.Keys = []string{"RELAYER_API_KEY", "WATCHTOWER_API_KEY"}
		if got, err := d.key(); err != nil || got != c.want {
			t.Errorf("%+v: %q, %v", c, got, err)
		}
	}
}
