package program_test

import (
	"context"
	"crypto/tls"
	"encoding/hex"
	"flag"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/tempo-watchtower/watchtower/cmd/signers/program"
	"github.com/tempo-watchtower/watchtower/cmd/signers/program/programtest"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/infra/keys"
	"github.com/tempo-watchtower/watchtower/infra/keys/keystest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// drawer is a custodian with one key in memory.
type drawer struct{ key *keystest.Key }

func (d drawer) PublicKey(_ context.Context, key string) ([]byte, error) {
	if key != "top" {
		return nil, keys.ErrRejected.Because("there is no such key")
	}
	return []byte(d.key.PEM()), nil
}

func (d drawer) Sign(_ context.Context, _ string, digest chain.Hash) ([]byte, error) {
	return d.key.Sign(digest, keystest.Trouble{Form: keystest.DER}), nil
}

func held() drawer {
	return drawer{&keystest.Key{Kind: chain.P256, Secret: []byte("32 bytes, a secret of a test's .")}}
}

func (d drawer) program() program.Program {
	return program.Program{Name: "signer-drawer", Keys: "top", Service: func(*flag.FlagSet) program.Open {
		return func(context.Context) (program.Custodian, error) { return d, nil }
	}}
}

// run runs the program until the test ends, and returns its address.
func run(t *testing.T, d drawer, args ...string) string {
	t.Helper()
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	listening, ended := make(chan net.Addr, 1), make(chan error, 1)
	go func() { ended <- d.program().Run(ctx, args, io.Discard, func(a net.Addr) { listening <- a }) }()
	t.Cleanup(stop)
	select {
	case at := <-listening:
		t.Cleanup(func() {
			stop()
			if err := <-ended; err != nil {
				t.Error(err)
			}
		})
		return at.String()
	case err := <-ended:
		t.Fatal(err)
		return ""
	}
}

// Clients without a certificate of a configured authority are refused; clients with one find the
// keys.
func TestTLS(t *testing.T) {
	d := held()
	server, client, stranger := keystest.Certificate(t, "server"), keystest.Certificate(t, "client"), keystest.Certificate(t, "stranger")
	at := run(t, d, "-listen", "127.0.0.1:0", "-keys", d.key.Address().String()+"=top",
		"-certificate", server.Certificate, "-certificate-key", server.Key, "-clients", client.Certificate)
	look := func(url string, shown keystest.Papers) ([]*keys.Signer, error) {
		r, err := keys.NewRemote(keys.RemoteSettings{
			URL: url, Authorities: server.Certificate, Certificate: shown.Certificate, Key: shown.Key, Timeout: 30 * time.Second, Connections: 1,
		})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(r.Close)
		return r.Signers(t.Context())
	}
	all, err := look("https://"+at, client)
	if err != nil || len(all) != 1 {
		t.Fatalf("%d signers (%v), want 1", len(all), err)
	}
	if _, err := all[0].Sign(t.Context(), []byte("payload")); err != nil || all[0].Address() != d.key.Address() {
		t.Errorf("%s: %v", all[0], err)
	}
	for what, shown := range map[string]keystest.Papers{"a stranger": stranger, "nobody": {}} {
		if all, err := look("https://"+at, shown); err == nil {
			t.Errorf("%s finds %v", what, all)
		}
	}
	if all, err := look("http://"+at, keystest.Papers{}); err == nil {
		t.Errorf("without TLS, somebody finds %v", all)
	}
}

// A web page in a browser on this machine is refused, under every host name and for every
// request; with TLS also in a browser that has a client certificate.
func TestPages(t *testing.T) {
	d := held()
	at := run(t, d, "-listen", "127.0.0.1:0", "-keys", d.key.Address().String()+"=top")
	papers := keystest.Certificate(t, "both")
	secured := run(t, d, "-listen", "127.0.0.1:0", "-keys", d.key.Address().String()+"=top",
		"-certificate", papers.Certificate, "-certificate-key", papers.Key, "-clients", papers.Certificate)
	pair, err := tls.LoadX509KeyPair(papers.Certificate, papers.Key)
	if err != nil {
		t.Fatal(err)
	}
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{
		Certificates: []tls.Certificate{pair}, InsecureSkipVerify: true, //nolint:gosec // the server is ours
	}}}
	defer client.CloseIdleConnections()
	port := at[strings.LastIndex(at, ":"):]
	for _, c := range []struct {
		what, url, host, kind string
		header                []string
		status                int
	}{
		{"a client", "http://" + at, "", "application/json", nil, 400},
		{"of localhost", "http://" + at, "localhost" + port, "application/json", nil, 400},
		{"of this machine's IPv6", "http://" + at, "[::1]" + port, "application/json", nil, 400},
		{"of a name that was rebound", "http://" + at, "evil.example" + port, "application/json", nil, 403},
		{"of another page", "http://" + at, "", "application/json", []string{"Origin", "http://evil.example"}, 403},
		{"of another page's form", "http://" + at, "", "text/plain", nil, 415},
		{"of another page's image", "http://" + at, "", "application/json", []string{"Sec-Fetch-Site", "cross-site"}, 403},
		{"TLS, a client, by any name", "https://" + secured, "signer.example", "application/json", nil, 400},
		{"TLS, of another page", "https://" + secured, "", "application/json", []string{"Origin", "http://evil.example"}, 403},
		{"TLS, of another page's form", "https://" + secured, "", "text/plain", nil, 415},
	} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, c.url+"/api/v1/eth1/sign/"+hex.EncodeToString(d.key.Public()), strings.NewReader("{}"))
		if err != nil {
			t.Fatal(err)
		}
		r.Host = c.host
		r.Header.Set("Content-Type", c.kind)
		for i := 0; i < len(c.header); i += 2 {
			r.Header.Set(c.header[i], c.header[i+1])
		}
		res, err := client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		if res.Body.Close(); res.StatusCode != c.status {
			t.Errorf("%s: %s, want %d", c.what, res.Status, c.status)
		}
	}
}

// Invalid arguments are reported before any request to the service.
func TestArguments(t *testing.T) {
	d := held()
	papers := keystest.Certificate(t, "server")
	nonsense := filepath.Join(t.TempDir(), "nonsense")
	if err := os.WriteFile(nonsense, []byte("nonsense"), 0o600); err != nil {
		t.Fatal(err)
	}
	good := d.key.Address().String() + "=top"
	secured := func(certificate, key, clients string) string {
		return "-keys " + good + " -certificate " + certificate + " -certificate-key " + key + " -clients " + clients
	}
	for _, c := range []struct{ args, says string }{
		{"", "-keys is empty"},
		{"-keys ,", "an entry is empty"},
		{"-keys " + good + ",", "an entry is empty"},
		{"-keys 0x12=top", "is not an address"},
		{"-keys top", "list it as " + good},
		{"-keys " + d.key.Address().String() + "=bottom", "no such key"},
		{"-keys 0x0000000000000000000000000000000000000001=top", "not of 0x0000000000000000000000000000000000000001"},
		{"-keys " + good + "," + good, "the same key"},
		{"-keys " + strings.Repeat("top,", keys.MaxKeys) + "top", "more than 1000"},
		{"-keys " + good + " -nonsense", "nonsense"},
		{"-keys " + good + " more", "is not a flag"},
		{"-keys " + good + " -timeout 1h", "-timeout"},
		{"-keys " + good + " -timeout 1ms", "-timeout"},
		{"-keys " + good + " -at-once 0", "-at-once"},
		{"-keys " + good + " -at-once 1001", "-at-once"},
		{"-keys " + good + " -listen 9000", "is not HOST:PORT"},
		{"-keys " + good + " -listen :9000", "other machines"},
		{"-keys " + good + " -listen 0.0.0.0:9000", "other machines"},
		{"-keys " + good + " -listen signer.example:9000", "other machines"},
		{"-keys " + good + " -certificate x", "all three are needed, or none"},
		{"-keys " + good + " -certificate x -certificate-key y -listen :9000", "all three are needed, or none"},
		{secured(nonsense, nonsense, papers.Certificate), "are not a PEM certificate and its key"},
		{secured(papers.Certificate, papers.Key, nonsense), "has no PEM certificate"},
		{secured(papers.Certificate, papers.Key, "/none"), "no such file"},
	} {
		ctx, stop := context.WithCancel(t.Context())
		err := d.program().Run(ctx, strings.Fields(c.args), io.Discard, func(net.Addr) { stop() }) // in case it starts
		stop()
		if err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v, want %q", c.args, err, c.says)
		}
	}
	programtest.Documented(t, d.program())
}

// A listen address in use is an error; the program does not wait for it.
func TestTaken(t *testing.T) {
	d := held()
	list := d.key.Address().String() + "=top"
	at := run(t, d, "-listen", "127.0.0.1:0", "-keys", list)
	if err := d.program().Run(t.Context(), []string{"-listen", at, "-keys", list}, io.Discard, nil); err == nil || !strings.Contains(err.Error(), "in use") {
		t.Errorf("the second one ends with %v", err)
	}
}
