package keys_test

import (
	"context"
	"encoding/hex"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/eventlog"
	"github.com/tempo-watchtower/watchtower/infra/chain/tempo"
	"github.com/tempo-watchtower/watchtower/infra/keys"
	"github.com/tempo-watchtower/watchtower/infra/keys/keystest"
)

func keyOf(kind chain.SignatureKind, secret string) *keystest.Key {
	return &keystest.Key{Kind: kind, Secret: unhex(secret)}
}

// remote makes a client of a server; change may alter the settings.
func remote(t *testing.T, url string, change func(*keys.RemoteSettings)) *keys.Remote {
	t.Helper()
	settings := keys.RemoteSettings{URL: url, Timeout: 30 * time.Second, Connections: 4}
	if change != nil {
		change(&settings)
	}
	r, err := keys.NewRemote(settings)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Close)
	return r
}

func remoteSigner(t *testing.T, url string, change func(*keys.RemoteSettings)) *keys.Signer {
	t.Helper()
	signers, err := remote(t, url, change).Signers(t.Context())
	return only(t, signers, err)
}

// A remote signer passes the contract with each encoding of signatures.
func TestRemoteContract(t *testing.T) {
	for name, trouble := range map[string]keystest.Trouble{
		"as Web3Signer":      {LowS: true},
		"either s":           {},
		"higher s":           {HighS: true},
		"higher s, v from 0": {HighS: true, Form: keystest.RSV0},
		"no v":               {Form: keystest.RS},
		"v that is wrong":    {Form: keystest.RSWrongV},
		"v that is strange":  {Form: keystest.RSStrangeV},
		"DER":                {Form: keystest.DER},
	} {
		for _, kind := range []chain.SignatureKind{chain.Secp256k1, chain.P256} {
			t.Run(name+", "+string(kind), func(t *testing.T) {
				held := keyOf(kind, secretB)
				server := keystest.Serve(t, held)
				server.Misbehave(trouble)
				keystest.Contract(t, keystest.Case{
					Open:    func(t *testing.T) *keys.Signer { return remoteSigner(t, server.URL, nil) },
					Address: held.Address(), Kind: kind, Secrets: secrets,
				})
			})
		}
	}
}

// With random k the same payload has a different and valid signature each time.
func TestRandomK(t *testing.T) {
	server := keystest.Serve(t, keyOf(chain.Secp256k1, secretA))
	s := remoteSigner(t, server.URL, nil)
	seen := map[string]bool{}
	for range 8 {
		sig, err := s.Sign(t.Context(), []byte("payload"))
		if err != nil {
			t.Fatal(err)
		}
		seen[string(sig)] = true
		if account, _, err := tempo.VerifyPrimitive(sig, chain.Keccak([]byte("payload"))); err != nil || account != accountA {
			t.Errorf("signed by %s (%v)", account, err)
		}
	}
	if len(seen) != 8 || server.Signed() != 8 {
		t.Errorf("%d signatures, of %d that were made, want 8 of 8", len(seen), server.Signed())
	}
}

func TestRemoteKeys(t *testing.T) {
	a, b := keyOf(chain.Secp256k1, secretA), keyOf(chain.P256, secretB)
	server := keystest.Serve(t, a, b)
	signers, err := remote(t, server.URL+"/", nil).Signers(t.Context())
	if err != nil || len(signers) != 2 || signers[0].Address() != accountA || signers[1].Address() != b.Address() || signers[1].Kind() != chain.P256 {
		t.Fatalf("signers %v (%v)", signers, err)
	}
	point := hex.EncodeToString(signers[0].PublicKey())
	for body, says := range map[string]string{
		`[]`:                                  "lists no keys",
		`{}`:                                  "lists no keys",
		`[""]`:                                "entry 0",
		`["0x` + secretA + `"]`:               "entry 0",
		`["0xzz"]`:                            "entry 0",
		`["` + point + `","0x` + point + `"]`: "twice",
		`["0x` + secretA + secretB + `"]`:     "entry 0", // on no curve
		`["` + strings.Repeat(`x","`, keys.MaxKeys) + `"]`: "lists no keys",
	} {
		server.Misbehave(keystest.Trouble{Body: body})
		_, err := remote(t, server.URL, nil).Signers(t.Context())
		refusal(t, err, keys.ErrBadKey, says)
	}
	_, err = remote(t, server.URL+"/elsewhere", nil).Signers(t.Context())
	refusal(t, err, keys.ErrBadSetting, "404")
}

// An answer maps to a refusal, a transient error, or an unknown outcome.
func TestRemoteTrouble(t *testing.T) {
	none := eventlog.Refusal("")
	other := keyOf(chain.Secp256k1, secretB)
	for _, c := range []struct {
		name    string
		trouble keystest.Trouble
		refusal eventlog.Refusal
		unknown bool
		says    string
		after   time.Duration
	}{
		{name: "another key", trouble: keystest.Trouble{By: other}, refusal: keys.ErrWrongKey, says: accountB.String()},
		{name: "another key, in DER", trouble: keystest.Trouble{By: other, Form: keystest.DER}, refusal: keys.ErrWrongKey, says: accountB.String()},
		{name: "key not there", trouble: keystest.Trouble{Status: 404}, refusal: keys.ErrUnknownKey, says: "404"},
		{name: "bad request", trouble: keystest.Trouble{Status: 400, Body: secretA}, refusal: keys.ErrRejected, says: "400"},
		{name: "not allowed", trouble: keystest.Trouble{Status: 403, Body: secretA}, refusal: keys.ErrRejected, says: "403"},
		{name: "accepted", trouble: keystest.Trouble{Status: 202}, refusal: keys.ErrRejected, says: "202"},
		{name: "rate limit", trouble: keystest.Trouble{Status: 429, Header: http.Header{"Retry-After": {"7"}}}, says: "429", after: 7 * time.Second},
		{name: "rate limit, by date", trouble: keystest.Trouble{Status: 429, Header: http.Header{
			"Date": {"Sun, 06 Nov 1994 08:49:37 GMT"}, "Retry-After": {"Sun, 06 Nov 1994 08:49:40 GMT"}}}, says: "429", after: 3 * time.Second},
		{name: "rate limit, by a date gone", trouble: keystest.Trouble{Status: 429, Header: http.Header{
			"Date": {"Sun, 06 Nov 1994 08:49:37 GMT"}, "Retry-After": {"Sun, 06 Nov 1994 08:49:30 GMT"}}}, says: "429"},
		{name: "rate limit for a year", trouble: keystest.Trouble{Status: 429, Header: http.Header{"Retry-After": {"31536000"}}}, says: "429", after: keys.MaxRetryAfter},
		{name: "rate limit, strange", trouble: keystest.Trouble{Status: 429, Header: http.Header{"Retry-After": {secretA}}}, says: "429"},
		{name: "failure", trouble: keystest.Trouble{Status: 500, Body: secretA}, says: "500"},
		{name: "not available", trouble: keystest.Trouble{Status: 503, Header: http.Header{"Retry-After": {"2"}}}, says: "503", after: 2 * time.Second},
		{name: "huge", trouble: keystest.Trouble{Huge: true}, says: "too long"},
		{name: "empty", trouble: keystest.Trouble{Body: " "}, says: "not a signature"},
		{name: "not hex", trouble: keystest.Trouble{Body: "0x" + secretA[1:] + "g"}, says: "not a signature"},
		{name: "a key", trouble: keystest.Trouble{Body: "0x" + secretA}, says: "not a signature"},
		{name: "zeros", trouble: keystest.Trouble{Body: "0x" + strings.Repeat("00", 65)}, says: "not a signature"},
		{name: "ones", trouble: keystest.Trouble{Body: "0x" + strings.Repeat("ff", 65)}, says: "not a signature"},
		{name: "JSON", trouble: keystest.Trouble{Body: `{"signature":"` + secretA + `"}`}, says: "not a signature"},
		{name: "cut", trouble: keystest.Trouble{Cut: true}, unknown: true, says: "connection broke"},
	} {
		t.Run(c.name, func(t *testing.T) {
			server := keystest.Serve(t, keyOf(chain.Secp256k1, secretA))
			s := remoteSigner(t, server.URL, nil)
			server.Misbehave(c.trouble)
			sig, err := s.Sign(t.Context(), []byte("payload"))
			if sig != nil || err == nil || !strings.Contains(err.Error(), c.says) {
				t.Fatalf("signature %x and error %v, want one that says %q", sig, err, c.says)
			}
			secrets.Printed(t, err)
			got := none
			if errors.As(err, &got); got != c.refusal {
				t.Errorf("the error %v is the refusal %q, want %q", err, got, c.refusal)
			}
			if errors.Is(err, eventlog.ErrUnknown) != c.unknown {
				t.Errorf("the error %v is of unknown outcome: %v, want %v", err, !c.unknown, c.unknown)
			}
			var busy *keys.Busy
			if errors.As(err, &busy) != (c.refusal == none && c.trouble.Status != 0) || busy != nil && busy.RetryAfter() != c.after {
				t.Errorf("the error %v is %+v, want a wait of %s", err, busy, c.after)
			}
			// The signer works again as before.
			server.Misbehave(keystest.Trouble{})
			if _, err := s.Sign(t.Context(), []byte("payload")); err != nil {
				t.Errorf("afterwards: %v", err)
			}
		})
	}
}

// A caller without an answer gets an unknown outcome; a caller that never connected gets a
// plain error.
func TestRemoteSilence(t *testing.T) {
	server := keystest.Serve(t, keyOf(chain.Secp256k1, secretA))
	s := remoteSigner(t, server.URL, nil)
	ctx, leave := context.WithCancel(t.Context())
	server.Misbehave(keystest.Trouble{Hang: true, Reached: leave})
	if _, err := s.Sign(ctx, []byte("payload")); !errors.Is(err, eventlog.ErrUnknown) || !errors.Is(err, context.Canceled) {
		t.Errorf("left while waiting: %v", err)
	}
	server.Misbehave(keystest.Trouble{Hang: true})
	hasty := remote(t, server.URL, func(s *keys.RemoteSettings) { s.Timeout = 50 * time.Millisecond })
	if _, err := hasty.Signers(t.Context()); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("no answer in time: %v", err)
	}

	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	url := "http://" + listener.Addr().String()
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	_, err = remote(t, url, nil).Signers(t.Context())
	if refusal := eventlog.Refusal(""); err == nil || errors.Is(err, eventlog.ErrUnknown) || errors.As(err, &refusal) || !strings.Contains(err.Error(), "not reached") {
		t.Errorf("nobody there: %v", err)
	}
}

// A redirect is not followed: it would carry the payload elsewhere.
func TestRemoteRedirect(t *testing.T) {
	elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("the redirect was followed") }))
	defer elsewhere.Close()
	server := keystest.Serve(t, keyOf(chain.Secp256k1, secretA))
	s := remoteSigner(t, server.URL, nil)
	for _, status := range []int{301, 302, 303, 307, 308} {
		server.Misbehave(keystest.Trouble{Status: status, Header: http.Header{"Location": {elsewhere.URL}}})
		_, err := s.Sign(t.Context(), []byte("payload"))
		refusal(t, err, keys.ErrBadSetting, "redirects")
	}
}

func TestRemoteTLS(t *testing.T) {
	server, papers := keystest.ServeTLS(t, keyOf(chain.Secp256k1, secretA))
	known := func(s *keys.RemoteSettings) {
		s.Authorities, s.Certificate, s.Key = papers.Authorities, papers.Certificate, papers.Key
	}
	if _, err := remoteSigner(t, server.URL, known).Sign(t.Context(), []byte("payload")); err != nil {
		t.Error(err)
	}
	for name, change := range map[string]func(*keys.RemoteSettings){
		"without a certificate": func(s *keys.RemoteSettings) { s.Authorities = papers.Authorities },
		"server not known":      func(s *keys.RemoteSettings) { s.Certificate, s.Key = papers.Certificate, papers.Key },
		"without TLS": func(s *keys.RemoteSettings) {
			known(s)
			s.URL = strings.Replace(s.URL, "https", "http", 1)
		},
	} {
		if _, err := remote(t, server.URL, change).Signers(t.Context()); err == nil {
			t.Errorf("%s, the signer answers", name)
		}
	}
}

func TestRemoteSettings(t *testing.T) {
	_, papers := keystest.ServeTLS(t)
	const password = phrase
	for _, c := range []struct {
		says   string
		change func(*keys.RemoteSettings)
	}{
		{"URL", func(s *keys.RemoteSettings) { s.URL = "" }},
		{"URL", func(s *keys.RemoteSettings) { s.URL = "signer:9000" }},
		{"URL", func(s *keys.RemoteSettings) { s.URL = "ftp://signer/" + password }},
		{"URL", func(s *keys.RemoteSettings) { s.URL = "https://user:" + password + "@signer" }},
		{"URL", func(s *keys.RemoteSettings) { s.URL = "https://signer?token=" + password }},
		{"URL", func(s *keys.RemoteSettings) { s.URL = "https://\x7f" + password }},
		{"must be https", func(s *keys.RemoteSettings) { s.URL = "http://10.0.0.1:9000" }},
		{"must be https", func(s *keys.RemoteSettings) { s.URL = "http://localhost.example.org" }},
		{"timeout", func(s *keys.RemoteSettings) { s.Timeout = 0 }},
		{"timeout", func(s *keys.RemoteSettings) { s.Timeout = time.Hour }},
		{"connections", func(s *keys.RemoteSettings) { s.Connections = 0 }},
		{"no certificate in PEM", func(s *keys.RemoteSettings) { s.Authorities = papers.Key }},
		{"are not a certificate and its key", func(s *keys.RemoteSettings) { s.Certificate = papers.Certificate }},
		{"are not a certificate and its key", func(s *keys.RemoteSettings) { s.Certificate, s.Key = papers.Authorities, papers.Key }},
	} {
		settings := keys.RemoteSettings{URL: "https://signer:9000", Timeout: time.Second, Connections: 1}
		c.change(&settings)
		_, err := keys.NewRemote(settings)
		refusal(t, err, keys.ErrBadSetting, c.says)
	}
	for _, url := range []string{"http://127.0.0.1:9000", "http://[::1]:9000/signer", "http://localhost", "https://signer.example.org/a/"} {
		if _, err := keys.NewRemote(keys.RemoteSettings{URL: url, Timeout: time.Second, Connections: 1}); err != nil {
			t.Errorf("%s: %v", url, err)
		}
	}
	if _, err := keys.NewRemote(keys.RemoteSettings{URL: "http://signer:9000", Unencrypted: true, Timeout: time.Second, Connections: 1}); err != nil {
		t.Error(err)
	}
}

// A signature by another P-256 key is refused; its account cannot be determined.
func TestAnotherKeyOfP256(t *testing.T) {
	held := keyOf(chain.P256, secretA)
	server := keystest.Serve(t, held)
	s := remoteSigner(t, server.URL, nil)
	for _, other := range []*keystest.Key{keyOf(chain.P256, secretB), keyOf(chain.Secp256k1, secretA)} {
		server.Misbehave(keystest.Trouble{By: other})
		sig, err := s.Sign(t.Context(), []byte("payload"))
		refusal(t, err, keys.ErrWrongKey, held.Address().String())
		if sig != nil {
			t.Errorf("refused, it gives %x", sig)
		}
	}
}
