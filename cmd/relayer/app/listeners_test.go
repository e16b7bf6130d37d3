package app

import (
	"bytes"
	"context"
	"encoding/hex"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/spf13/pflag"

	"github.com/tempo-watchtower/watchtower/api/webguard"
	"github.com/tempo-watchtower/watchtower/cmd/devnet/wallet"
	delivery "github.com/tempo-watchtower/watchtower/cmd/program/app"
	"github.com/tempo-watchtower/watchtower/cmd/program/config"
	"github.com/tempo-watchtower/watchtower/cmd/signers/program"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/infra/keys/keystest"
)

// listeners is the number of listeners of all programs, without the playground's chain.
const listeners = 7

// running is every listener of every program, none of which needs a key.
type running struct {
	log                         *lines
	relay, relayAPI, relayAdmin string
	api, admin                  string
	figures, signer             string
	level                       *slog.LevelVar
	counted                     counter
	key                         signing
}

// counter is a collector that counts its collections.
type counter struct{ asked *atomic.Int64 }

func (c counter) Describe(chan<- *prometheus.Desc) {}
func (c counter) Collect(chan<- prometheus.Metric) { c.asked.Add(1) }

// signing is a custodian that counts its signatures.
type signing struct {
	key  *keystest.Key
	made *atomic.Int64
}

func (s signing) PublicKey(context.Context, string) ([]byte, error) { return []byte(s.key.PEM()), nil }

func (s signing) Sign(_ context.Context, _ string, digest chain.Hash) ([]byte, error) {
	s.made.Add(1)
	return s.key.Sign(digest, keystest.Trouble{Form: keystest.DER}), nil
}

// serveAll serves until the test ends. args are settings of delivery and relay.
func serveAll(t *testing.T, args ...string) *running {
	t.Helper()
	w := &running{
		log: new(lines), level: new(slog.LevelVar), counted: counter{new(atomic.Int64)},
		key: signing{&keystest.Key{Kind: chain.P256, Secret: []byte("32 bytes, a secret of a test's .")}, new(atomic.Int64)},
	}
	args = append(args, "--store=embedded::memory:", "--listen=127.0.0.1:0", "--metrics-listen=127.0.0.1:0")
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan error, 3)
	programs := 0
	run := func(listening chan []string, serve func(func(...net.Addr)) error) []string {
		programs++
		go func() {
			ended <- serve(func(at ...net.Addr) {
				var urls []string
				for _, a := range at {
					urls = append(urls, "http://"+a.String())
				}
				listening <- urls
			})
		}()
		select {
		case urls := <-listening:
			return urls
		case err := <-ended:
			t.Fatal(err)
			return nil
		}
	}
	t.Cleanup(func() {
		stop()
		for range programs {
			if err := <-ended; err != nil {
				t.Error(err)
			}
		}
	})
	logged := func() delivery.Options {
		return delivery.Options{Log: slog.New(slog.NewJSONHandler(w.log, &slog.HandlerOptions{Level: slog.LevelDebug})), Level: w.level}
	}

	urls := run(make(chan []string, 1), func(listening func(...net.Addr)) error {
		o := Options{Options: logged(), Environ: []string{variable}}
		o.Listening = func(public, internal net.Addr) { listening(public, internal) }
		return Serve(ctx, resolved(t, append(args, "--relay-listen=127.0.0.1:0", "--signers-allowed="+list(wallet.Dev(0).Address()), "--signers-environment")...), o)
	})
	w.relayAPI, w.relayAdmin, w.relay = urls[0], urls[1], w.log.fronts()[0]
	urls = run(make(chan []string, 1), func(listening func(...net.Addr)) error {
		flags := pflag.NewFlagSet("watchtower", pflag.ContinueOnError)
		config.Flags(flags)
		must(t, flags.Parse(append(args, "--chains=42431=http://127.0.0.1:9")))
		c, _, err := config.Resolve(flags, nil, nil)
		must(t, err)
		o := logged()
		o.Listening = func(public, internal net.Addr) { listening(public, internal) }
		return delivery.Serve(ctx, c, o)
	})
	w.api, w.admin = urls[0], urls[1]
	urls = run(make(chan []string, 1), func(listening func(...net.Addr)) error {
		p := program.Program{Name: "signer", Service: func(*flag.FlagSet) program.Open {
			return func(context.Context) (program.Custodian, error) { return w.key, nil }
		}}
		return p.Run(ctx, []string{"-listen", "127.0.0.1:0", "-keys", w.key.key.Address().String() + "=k"}, io.Discard, func(a net.Addr) { listening(a) })
	})
	w.signer = urls[0]

	free, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // to learn a free port
	must(t, err)
	must(t, free.Close())
	hosts, _ := strings.CutPrefix(args[0], "--api-hosts=")
	end, err := delivery.ServeFigures(ctx, free.Addr().String(), webguard.Guard{Hosts: strings.Split(hosts, ",")}, w.counted)
	must(t, err)
	t.Cleanup(end)
	w.figures = "http://" + free.Addr().String()
	return w
}

func (w *running) wish(key string) string {
	alice := wallet.Dev(0).Address()
	return fmt.Sprintf(`{"chainId":42431,"key":%q,"signer":%q,"to":%q}`, key, alice, alice)
}

// intent submits an intent as a client, and returns its id.
func (w *running) intent(t *testing.T, key string) string {
	t.Helper()
	status, answer := send(t, http.MethodPost, w.relay+"/v1/intents", w.wish(key), "")
	var made struct{ ID string }
	if err := json.Unmarshal(answer, &made); err != nil || status != http.StatusAccepted {
		t.Fatalf("%d %s, %v", status, answer, err)
	}
	return made.ID
}

// allowed are requests that change nothing, beginning with the relay's.
func (w *running) allowed(id string) []target {
	json := []sending{{http.MethodPost, "/v1/intents", w.wish("page")}}
	return []target{
		{w.relay, []string{"/v1/intents", "/v1/intents/" + id}, json},
		{w.relayAPI, []string{"/v1/transactions", "/docs", "/livez"}, nil},
		{w.relayAdmin, []string{"/metrics", "/admin/keys", "/admin/signers"}, nil},
		{w.api, []string{"/v1/transactions", "/health"}, nil},
		{w.admin, []string{"/metrics", "/admin/keys"}, nil},
		{w.figures, []string{"/metrics"}, nil},
	}
}

// targets are requests of every kind to every listener. The requests of allowed come first, in
// order.
func (w *running) targets(id string) []target {
	all := append(w.allowed(id), target{w.signer, []string{"/api/v1/eth1/publicKeys", "/upcheck"}, []sending{
		{http.MethodPost, "/api/v1/eth1/sign/0x" + hex.EncodeToString(w.key.key.Public()), `{"data":"0x02c0ffee"}`},
	}})
	post := func(path, body string) sending { return sending{http.MethodPost, path, body} }
	hash := "0x" + strings.Repeat("12", 32)
	deliver := []sending{
		post("/v1/transactions", `{"chainId":42431,"transactions":["0x76"]}`),
		post("/rpc/42431", `{"jsonrpc":"2.0","id":1,"method":"eth_chainId","params":[]}`),
		{Method: http.MethodDelete, Path: "/v1/transactions/" + hash},
	}
	operate := []sending{
		post("/admin/keys", `{"name":"page","scopes":["admin"],"senders":[],"ratePerSecond":0,"rateBurst":0,"expiresAt":0}`),
		post("/admin/drain", ""),
		{http.MethodPut, "/admin/log-level", `{"level":"debug"}`},
	}
	all[0].Gets = append(all[0].Gets, "/v1/events?after=0")
	all[0].Sends = append(all[0].Sends, post("/v1/intents/"+id+"/cancel", ""), post("/v1/webhooks/try", `{"url":"https://hooks.example/"}`),
		post("/rpc/42431", fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"eth_sendTransaction","params":[{"from":%q,"to":%q}]}`, wallet.Dev(0).Address(), wallet.Dev(0).Address())))
	all[2].Sends = append(operate, post("/admin/safeguards/halt", `{"scope":{"kind":"deployment"},"reason":"fire"}`))
	all[1].Sends, all[3].Sends, all[4].Sends = deliver, deliver, operate
	all[3].Gets = append(all[3].Gets, "/v1/events?after=0", "/openapi.json", "/readyz")
	return all
}

// unchanged checks that only the client has changed anything.
func (w *running) unchanged(t *testing.T, id string) {
	t.Helper()
	for _, c := range []struct{ url, says string }{
		{w.relay + "/v1/intents/" + id, `"status":"waiting"`},
		{w.relayAdmin + "/admin/keys", `"keys":[]`},
		{w.admin + "/admin/keys", `"keys":[]`},
		{w.api + "/readyz", `"status":"ok"`},
		{w.relayAPI + "/readyz", `"status":"ok"`},
	} {
		if status, answer := send(t, http.MethodGet, c.url, "", ""); status != http.StatusOK || !strings.Contains(string(answer), c.says) {
			t.Errorf("%s: %d %s", c.url, status, answer)
		}
	}
	var page struct{ Intents []json.RawMessage }
	if _, answer := send(t, http.MethodGet, w.relay+"/v1/intents", "", ""); json.Unmarshal(answer, &page) != nil || len(page.Intents) != 1 {
		t.Errorf("the intents are %s", answer)
	}
	if w.level.Level() != slog.LevelInfo || w.key.made.Load() != 0 || w.counted.asked.Load() != 0 {
		t.Errorf("log level %s, %d signatures, figures asked %d times", w.level.Level(), w.key.made.Load(), w.counted.asked.Load())
	}
}

// requests lists the requests in the log from an index on whose status is neither 403 nor 415,
// and counts the others.
func (l *lines) requests(from int) (answered []string, refused int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for line := range bytes.Lines(l.text.Bytes()[from:]) {
		var entry struct {
			Msg, Method, Route string
			Status             int
		}
		switch err := json.Unmarshal(line, &entry); {
		case err != nil || entry.Msg != "request":
		case entry.Status == http.StatusForbidden || entry.Status == http.StatusUnsupportedMediaType:
			refused++
		default:
			answered = append(answered, fmt.Sprintf("%s %s %d", entry.Method, entry.Route, entry.Status))
		}
	}
	return answered, refused
}

func (l *lines) length() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Len()
}
