package delivery

import (
	"bytes"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/tempo-watchtower/watchtower/domain/access"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
	"github.com/tempo-watchtower/watchtower/infra/chain/chaintest"
	"github.com/tempo-watchtower/watchtower/infra/chain/rpc"
)

// counted is a log that counts the lines with a text.
type counted struct {
	text  []byte
	lines atomic.Int64
}

func (c *counted) Write(line []byte) (int, error) {
	if bytes.Contains(line, c.text) {
		c.lines.Add(1)
	}
	return len(line), nil
}

// throttled starts a chain with a node that answers 429 with Retry-After while refusing is set, and
// configures the API to ask it.
func throttled(t *testing.T, refusing *atomic.Bool) (*rpc.Pool, func(*Config)) {
	t.Helper()
	c := chaintest.New(chaintest.Options{Chain: testChain, Decode: chaintest.DecodePlain})
	t.Cleanup(c.Close)
	node := c.Node("a")
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if refusing.Load() {
			w.Header().Set("Retry-After", "300")
			w.WriteHeader(http.StatusTooManyRequests)
			return
		}
		node.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	pool, err := rpc.Open(t.Context(), rpc.Config{Chain: testChain, Endpoints: []rpc.Endpoint{{Name: "a", URL: server.URL}}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	r := pool.Reader()
	return pool, func(config *Config) {
		config.Groups.Nonces = map[chain.ID]func(string) Nonces{testChain: inNameOf(r)}
		config.Stale = staleBy(config, r)
	}
}

// One client's requests make a node ask for a pause of five minutes. The client's next requests are
// answered without the node. Other clients' requests, own reads and broadcasts go on, and the log
// has one line about it.
func TestNodesAreAskedInTheClientsName(t *testing.T) {
	const requests = 20
	for _, method := range []string{http.MethodGet, http.MethodDelete} {
		t.Run(method, func(t *testing.T) {
			var refusing atomic.Bool
			log := &counted{text: []byte("the nonce of a group could not be read")}
			pool, asked := throttled(t, &refusing)
			keys := newRing(t)
			s := grouped(t, asked, keys.config, func(c *Config) { c.Log = slog.New(slog.NewTextHandler(log, nil)) })
			targets, bearers := map[string]string{}, map[string]string{}
			for i, name := range []string{"ann", "bob"} {
				token, _ := keys.Create(access.Key{Client: name, Scopes: []access.Scope{access.Submit, access.Read, access.Cancel}})
				bearers[name] = "Bearer " + token
				key := payroll(byte(i))
				raw := payment(key, 0)
				if res := s.do(http.MethodPost, "/v1/transactions", submissionOf(testChain, raw), "Authorization", bearers[name]); res.status != http.StatusOK {
					t.Fatalf("%s submits: %s", name, res)
				}
				targets[name] = groupPath(key)
				if method == http.MethodDelete {
					targets[name] = "/v1/transactions/" + chain.Keccak(raw).String()
				}
			}
			// wantAsked checks the answer to a client's request: whether a node was asked.
			wantAsked := func(when, name string, want bool) {
				t.Helper()
				res := s.do(method, targets[name], nil, "Authorization", bearers[name])
				switch {
				case method == http.MethodGet:
					if got := !strings.Contains(string(res.body), `"currentNonce":null`); res.status != http.StatusOK || got != want {
						t.Errorf("%s, %s: %s", when, name, res)
					}
				case want:
					wantProblem(t, when+", "+name, res, http.StatusBadRequest, tx.ErrNonceCurrent)
				default:
					wantProblem(t, when+", "+name, res, http.StatusServiceUnavailable, chainUnavailable)
				}
			}
			wantAsked("at first", "ann", true)
			refusing.Store(true)
			for n := range requests {
				wantAsked(fmt.Sprint("request ", n), "ann", false)
			}
			refusing.Store(false)
			if got := pool.Status()[0]; got.State != rpc.Healthy || got.Budget.Pause != 0 {
				t.Errorf("the node is %s, paused for %s", got.State, got.Budget.Pause)
			}
			if _, err := pool.Reader().Head(t.Context()); err != nil {
				t.Errorf("own read: %v", err)
			}
			raw := payment(payroll(7), 0, func(t *chain.Signed) { t.Window = chain.Window{} })
			if got := pool.Send(t.Context(), raw, chain.Keccak(raw), 0, tx.Sending{}); got[0].Class != tx.Taken {
				t.Errorf("broadcast: %+v", got)
			}
			wantAsked("in ann's pause", "bob", true)
			wantAsked("in ann's pause", "ann", false)
			if n := log.lines.Load(); method == http.MethodGet && n != 1 {
				t.Errorf("%d lines say that the nonce was not read", n)
			}
		})
	}
}
