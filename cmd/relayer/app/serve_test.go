package app

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tempo-watchtower/watchtower/cmd/devnet/wallet"
	delivery "github.com/tempo-watchtower/watchtower/cmd/program/app"
	"github.com/tempo-watchtower/watchtower/cmd/program/config"
	"github.com/tempo-watchtower/watchtower/cmd/relayer/settings"
)

// lines is a log that can be read while it is written.
type lines struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

// fronts returns the logged addresses of the API of intents.
func (l *lines) fronts() (urls []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for line := range bytes.Lines(l.text.Bytes()) {
		var entry struct{ Relay string }
		if json.Unmarshal(line, &entry) == nil && entry.Relay != "" {
			urls = append(urls, entry.Relay)
		}
	}
	return urls
}

// send sends a request, with an API key unless key is empty.
func send(t *testing.T, method, url, body, key string) (status int, answer []byte) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	must(t, err)
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	if key != "" {
		req.Header.Set("X-API-Key", key)
	}
	res, err := http.DefaultClient.Do(req)
	must(t, err)
	defer res.Body.Close() //nolint:errcheck // read to its end
	answer, err = io.ReadAll(res.Body)
	must(t, err)
	return res.StatusCode, answer
}

// The API of intents has its own listener, which serves as long as delivery's. It checks the
// keys that the operator creates there. Strangers on other machines are refused before a key
// exists.
func TestServe(t *testing.T) {
	defer http.DefaultTransport.(*http.Transport).CloseIdleConnections()
	alice := wallet.Dev(0).Address()
	log := new(lines)
	options := Options{Options: delivery.Options{Log: slog.New(slog.NewJSONHandler(log, nil)), Level: new(slog.LevelVar)}, Environ: []string{variable}}
	at := func(listen string) settings.Settings {
		return resolved(t, "--store=embedded::memory:", "--listen=127.0.0.1:0", "--metrics-listen=127.0.0.1:0", "--relay-listen="+listen,
			"--signers-allowed="+list(alice), "--signers-environment")
	}
	if problems := (config.Problems{}); !errors.As(Serve(t.Context(), at("0.0.0.0:0"), options), &problems) || problems[0].Setting != "relay.listen" {
		t.Fatalf("strangers may come in: %v", problems)
	}

	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	listening, ended := make(chan string, 1), make(chan error, 1)
	options.Listening = func(_, internal net.Addr) { listening <- "http://" + internal.String() }
	here := at("127.0.0.1:0")
	go func() { ended <- Serve(ctx, here, options) }()
	var admin string
	select {
	case admin = <-listening:
	case err := <-ended:
		t.Fatal(err)
	}
	urls := log.fronts()
	if len(urls) != 1 {
		t.Fatalf("it listens for intents at %v", urls)
	}
	front := urls[0]
	wish := `{"chainId": 42431, "key": "k", "signer": "` + alice.String() + `", "to": "` + alice.String() + `"}`
	if status, answer := send(t, http.MethodPost, front+"/v1/intents", wish, ""); status != http.StatusAccepted {
		t.Errorf("an intent is answered with %d %s", status, answer)
	}
	status, answer := send(t, http.MethodPost, admin+"/admin/keys", `{"name":"shop","scopes":["read"],"senders":[],"ratePerSecond":0,"rateBurst":0,"expiresAt":0}`, "")
	var made struct{ Token string }
	if err := json.Unmarshal(answer, &made); status != http.StatusCreated || err != nil {
		t.Fatalf("%d %s, %v", status, answer, err)
	}
	deadline := time.After(20 * time.Second)
	for status = 0; status != http.StatusUnauthorized; {
		status, _ = send(t, http.MethodGet, front+"/v1/intents", "", "")
		select {
		case <-time.After(time.Millisecond):
		case <-deadline:
			t.Fatalf("whoever has no key is still answered with %d", status)
		}
	}
	if status, answer := send(t, http.MethodGet, front+"/v1/intents", "", made.Token); status != http.StatusOK {
		t.Errorf("with the key: %d %s", status, answer)
	}
	if status, answer := send(t, http.MethodPost, front+"/v1/intents", wish, made.Token); status != http.StatusForbidden {
		t.Errorf("without its scope: %d %s", status, answer)
	}
	if status, answer := send(t, http.MethodGet, front+"/openapi.yaml", "", ""); status != http.StatusOK || !bytes.Contains(answer, []byte("Watchtower relay")) {
		t.Errorf("the contract is answered with %d", status)
	}
	stop()
	must(t, <-ended)
	if _, err := http.DefaultClient.Get(front + "/openapi.yaml"); err == nil { //nolint:bodyclose,noctx // nobody answers
		t.Error("it listens after its end")
	}
}
