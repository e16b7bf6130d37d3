package app_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/tempo-watchtower/watchtower/cmd/program/app"
)

// ask sends a request, with an API key unless key is empty, and returns the status.
func ask(t *testing.T, method, url, body, key string, into any) int {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	if key != "" {
		req.Header.Set("Authorization", "Bearer "+key)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close() //nolint:errcheck // read as far as it matters
	if into != nil {
		if err := json.NewDecoder(res.Body).Decode(into); err != nil {
			t.Fatal(err)
		}
	}
	return res.StatusCode
}

// An API key created on the internal listener closes the API to requests without it within
// moments. After the key is revoked no request is accepted.
func TestKeysCloseTheService(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	listening, ended := make(chan [2]string, 1), make(chan error, 1)
	go func() {
		ended <- app.Serve(ctx, settings(t, "--chains", "1=http://127.0.0.1:9"), app.Options{
			Log: slog.New(slog.DiscardHandler), Level: new(slog.LevelVar),
			Listening: func(public, internal net.Addr) {
				listening <- [2]string{"http://" + public.String(), "http://" + internal.String()}
			},
		})
	}()
	at := <-listening
	list, keys := at[0]+"/v1/transactions", at[1]+"/admin/keys"
	becomes := func(want int, key string) {
		t.Helper()
		deadline := time.After(20 * time.Second)
		for ask(t, http.MethodGet, list, "", key, nil) != want {
			select {
			case <-time.After(time.Millisecond):
			case <-deadline:
				t.Fatalf("the API never answered %d", want)
			}
		}
	}
	becomes(http.StatusOK, "")
	var made struct{ ID, Token string }
	body := `{"name":"all","scopes":["read","admin"],"senders":[],"ratePerSecond":0,"rateBurst":0,"expiresAt":0}`
	if status := ask(t, http.MethodPost, keys, body, "", &made); status != http.StatusCreated {
		t.Fatalf("create answers %d", status)
	}
	becomes(http.StatusUnauthorized, "")
	becomes(http.StatusOK, made.Token)
	if status := ask(t, http.MethodGet, at[0]+"/health", "", "", nil); status == http.StatusUnauthorized {
		t.Error("/health asks for a key")
	}
	if status := ask(t, http.MethodDelete, keys+"/"+made.ID, "", made.Token, nil); status != http.StatusNoContent {
		t.Errorf("revoke answers %d", status)
	}
	becomes(http.StatusUnauthorized, made.Token)
	becomes(http.StatusUnauthorized, "")
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
