package web3signer_test

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/infra/keys"
	"github.com/tempo-watchtower/watchtower/infra/keys/keystest"
	"github.com/tempo-watchtower/watchtower/infra/keys/web3signer"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// held is a test key of this kind.
func held(kind chain.SignatureKind) *keystest.Key {
	return &keystest.Key{Kind: kind, Secret: []byte("32 bytes of a secret of a test's")}
}

// asked requests a signature from a service.
type asked func(ctx context.Context, digest chain.Hash) ([]byte, error)

// signer is the signer of a key, with ask as its service.
func signer(t *testing.T, k *keystest.Key, ask asked) *keys.Signer {
	t.Helper()
	s, err := keys.InCustody(k.SPKI(), ask)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// willing signs.
func willing(k *keystest.Key) asked {
	return func(_ context.Context, digest chain.Hash) ([]byte, error) {
		return k.Sign(digest, keystest.Trouble{Form: keystest.DER}), nil
	}
}

// handler serves signers; unset settings take the test's defaults.
func handler(t *testing.T, s web3signer.Settings, signers ...*keys.Signer) http.Handler {
	t.Helper()
	if s.AtOnce == 0 {
		s.AtOnce = 4
	}
	if s.Timeout == 0 {
		s.Timeout = 30 * time.Second
	}
	if s.Log == nil {
		s.Log = slog.New(slog.DiscardHandler)
	}
	h, err := web3signer.Handler(signers, s)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// The relayer's client gets a signer like any other from it.
func TestContract(t *testing.T) {
	for _, kind := range []chain.SignatureKind{chain.Secp256k1, chain.P256} {
		t.Run(string(kind), func(t *testing.T) {
			k := held(kind)
			server := httptest.NewServer(handler(t, web3signer.Settings{}, signer(t, k, willing(k))))
			t.Cleanup(server.Close)
			keystest.Contract(t, keystest.Case{
				Open: func(t *testing.T) *keys.Signer {
					r, err := keys.NewRemote(keys.RemoteSettings{URL: server.URL, Timeout: time.Minute, Connections: 32})
					if err != nil {
						t.Fatal(err)
					}
					t.Cleanup(r.Close)
					all, err := r.Signers(t.Context())
					if err != nil || len(all) != 1 {
						t.Fatalf("%d signers (%v)", len(all), err)
					}
					return all[0]
				},
				Address: k.Address(), Kind: kind, Secrets: keystest.Secrets{k.Secret},
			})
		})
	}
}

// ask sends a request without a network.
func ask(t *testing.T, h http.Handler, method, path, body string, change func(*http.Request)) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), method, "http://127.0.0.1:9000"+path, strings.NewReader(body))
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	if change != nil {
		change(r)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// nameOf is a key's path in the API.
func nameOf(k *keystest.Key) string { return "/api/v1/eth1/sign/0x" + hex.EncodeToString(k.Public()) }

const something = `{"data":"0x02"}`

// An invalid request, or one for an unknown key, gets no signature and reaches no service.
func TestRequests(t *testing.T) {
	a, b := held(chain.Secp256k1), held(chain.P256)
	times := 0
	h := handler(t, web3signer.Settings{}, signer(t, a, willing(a)), signer(t, b, func(context.Context, chain.Hash) ([]byte, error) {
		times++
		return nil, errors.New("asked")
	}))
	list := `["0x` + hex.EncodeToString(a.Public()) + `","0x` + hex.EncodeToString(b.Public()) + `"]`
	if w := ask(t, h, "GET", "/api/v1/eth1/publicKeys", "", nil); w.Code != 200 || w.Body.String() != list {
		t.Errorf("the keys: %d %s, want %s", w.Code, w.Body, list)
	}
	if w := ask(t, h, "POST", nameOf(a), something, nil); w.Code != 200 || len(w.Body.String()) != 2+2*65 {
		t.Errorf("a signature: %d %s", w.Code, w.Body)
	}
	upper := func(r *http.Request) {
		r.URL.Path = "/api/v1/eth1/sign/" + strings.ToUpper(hex.EncodeToString(a.Public()))
	}
	if w := ask(t, h, "POST", nameOf(a), something, upper); w.Code != 200 {
		t.Errorf("in capitals, without 0x: %d %s", w.Code, w.Body)
	}
	for _, c := range []struct {
		what, method, path, body string
		change                   func(*http.Request)
		status                   int
	}{
		{"no such key", "POST", "/api/v1/eth1/sign/0x00", something, nil, 404},
		{"no such route", "POST", "/sign", something, nil, 404},
		{"keys of validators", "GET", "/api/v1/eth2/publicKeys", "", nil, 404},
		{"a wrong method", "GET", nameOf(b), "", nil, 405},
		{"not JSON", "POST", nameOf(b), "0x02", nil, 400},
		{"a page's form", "POST", nameOf(b), something, func(r *http.Request) { r.Header.Set("Content-Type", "text/plain") }, 400},
		{"no data", "POST", nameOf(b), `{}`, nil, 400},
		{"empty data", "POST", nameOf(b), `{"data":"0x"}`, nil, 400},
		{"not hex", "POST", nameOf(b), `{"data":"0xzz"}`, nil, 400},
		{"half a byte", "POST", nameOf(b), `{"data":"0x012"}`, nil, 400},
		{"too much", "POST", nameOf(b), `{"data":"0x` + strings.Repeat("00", keys.MaxPayload+1) + `"}`, nil, 400},
		{"without end", "POST", nameOf(b), `{"data":"0x` + strings.Repeat("00", 4*keys.MaxPayload), nil, 400},
	} {
		if w := ask(t, h, c.method, c.path, c.body, c.change); w.Code != c.status {
			t.Errorf("%s: %d %s, want %d", c.what, w.Code, w.Body, c.status)
		}
	}
	if times != 0 {
		t.Errorf("the service was asked %d times", times)
	}
}

func TestSettings(t *testing.T) {
	for _, s := range []web3signer.Settings{{AtOnce: 0, Timeout: time.Second}, {AtOnce: 1}} {
		if _, err := web3signer.Handler(nil, s); !errors.Is(err, keys.ErrBadSetting) {
			t.Errorf("%+v: %v", s, err)
		}
	}
}

// A log names the failed key and the reason, and neither the payload nor a signature.
func TestLog(t *testing.T) {
	k := held(chain.P256)
	var log bytes.Buffer
	other := held(chain.P256)
	other.Secret = bytes.ToUpper(other.Secret)
	h := handler(t, web3signer.Settings{Log: slog.New(slog.NewTextHandler(&log, nil))}, signer(t, k, willing(other)))
	w := ask(t, h, "POST", nameOf(k), `{"data":"0x02c0ffee"}`, nil)
	if w.Code != http.StatusBadGateway || w.Body.String() != "Bad Gateway" {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	if text := log.String(); !strings.Contains(text, k.Address().String()) || !strings.Contains(text, "another key") || strings.Contains(text, "c0ffee") {
		t.Errorf("the log says %s", text)
	}
	keystest.Secrets{k.Secret, other.Secret}.Missing(t, "the log", log.String())
}
