package main_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"testing"
	"time"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/relay/intent"
	"github.com/tempo-watchtower/watchtower/proof/rig"
)

// client is a user of one relayer's API of intents.
type client struct {
	ctx context.Context
	url string
}

// client waits until the relayer is ready and reads the address of the API of intents from its
// log.
func (w *world) client(t *testing.T, s *rig.Service) client {
	t.Helper()
	log, err := os.ReadFile(s.Log)
	check(t, err)
	c := client{ctx: w.ctx}
	for line := range bytes.Lines(log) {
		var entry struct{ Msg, Relay string }
		if json.Unmarshal(line, &entry) == nil && entry.Msg == "listening for intents" {
			c.url = entry.Relay
		}
	}
	if c.url == "" {
		t.Fatal("the relayer does not say where it listens for intents")
	}
	return c
}

// shown is the part of an intent's JSON used in tests.
type shown struct {
	ID           chain.IntentID
	Status       intent.Status
	AlreadyKnown *bool
	LeastFee     string `json:"leastFeePerGas"`
	Attempts     []struct {
		Kind   intent.AttemptKind
		TxHash chain.Hash
		MaxFee chain.Amount `json:"maxFeePerGas"`
	}
	Confirmations []struct{ Number uint64 }
	WaitingFor    *struct{ Code, Detail string }
	WaitingSince  int64

	Outcome *struct{ TxHash *chain.Hash }
	Waited  *struct{ Reached bool }
}

// wish is the body of a request for an intent.
func wish(r intent.Request) any {
	type gas struct {
		Limit  uint64        `json:"limit,omitempty"`
		MaxFee intent.Amount `json:"maxFeePerGas,omitzero"`
	}
	var hooks []string
	for _, h := range r.Webhooks {
		hooks = append(hooks, h.URL)
	}
	var key *intent.NoncePolicy
	if r.NonceKey.Mode != intent.NonceAny {
		key = &r.NonceKey
	}
	return struct {
		Chain chain.ID `json:"chainId"`
		Key   string   `json:"key"`
		intent.From
		Calls    []intent.Call       `json:"calls"`
		Gas      gas                 `json:"gas"`
		Order    string              `json:"orderingKey,omitempty"`
		NonceKey *intent.NoncePolicy `json:"nonceKey,omitempty"`
		Webhooks []string            `json:"webhooks,omitempty"`
	}{r.Chain, r.Key, r.From, r.Calls, gas{r.Gas.Limit, r.Gas.MaxFee}, r.Order, key, hooks}
}

// do sends a request and reads the answer; body may be nil.
func (c client) do(method, path string, body, into any) (status int, err error) {
	var sent io.Reader = http.NoBody
	if body != nil {
		text, err := json.Marshal(body)
		if err != nil {
			return 0, err
		}
		sent = bytes.NewReader(text)
	}
	req, err := http.NewRequestWithContext(c.ctx, method, c.url+path, sent)
	if err != nil {
		return 0, err
	}
	if body != nil || method == http.MethodPost {
		req.Header.Set("Content-Type", "application/json")
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, err
	}
	defer res.Body.Close() //nolint:errcheck // read to its end
	text, err := io.ReadAll(res.Body)
	if err != nil {
		return res.StatusCode, err
	}
	if err := json.Unmarshal(text, into); err != nil {
		return res.StatusCode, fmt.Errorf("%d %s: %w", res.StatusCode, text, err)
	}
	return res.StatusCode, nil
}

// must sends a request and requires a status.
func (c client) must(t *testing.T, want int, method, path string, body any) (s shown) {
	t.Helper()
	status, err := c.do(method, path, body, &s)
	if err != nil || status != want {
		t.Fatalf("%s %s answers %d, not %d: %+v, %v", method, path, status, want, s, err)
	}
	return s
}

// found lists the intents of a query, newest first.
func (c client) found(t *testing.T, query string) (ids []chain.IntentID) {
	t.Helper()
	var page struct{ Intents []shown }
	status, err := c.do(http.MethodGet, "/v1/intents?"+query, nil, &page)
	if err != nil || status != http.StatusOK {
		t.Fatalf("the list answers %d, %v", status, err)
	}
	for _, one := range page.Intents {
		ids = append(ids, one.ID)
	}
	return ids
}

// becomes polls until so returns true.
func (w *world) becomes(t *testing.T, what string, so func() bool) {
	t.Helper()
	for !so() {
		select {
		case <-w.ctx.Done():
			t.Fatalf("%s: never", what)
		case <-time.After(20 * time.Millisecond):
		}
	}
}
