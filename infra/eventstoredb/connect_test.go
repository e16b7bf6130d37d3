package eventstoredb_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tempo-watchtower/watchtower/infra/eventstoredb"
	"github.com/tempo-watchtower/watchtower/infra/eventstoredb/esdbtest"
)

// Errors say which part of a URL is wrong, and do not show the URL.
func TestURL(t *testing.T) {
	const secret = "canary-7f3a91"
	for text, want := range map[string]string{
		"esdb://admin:" + secret + "@h:1?tls=perhaps":              "tls is invalid",
		"esdb://admin:" + secret + "@h:1?tlsCaFile=/none/such.pem": "tlsCaFile: open /none/such.pem",
		"esdb://admin:" + secret + "@h:1?tsl=false":                `parameter "tsl"`,
		"esdb://admin:" + secret + "@h:1?tls=true&tls=false":       "tls twice",
		"esdb://admin:" + secret + "@h:1?nodePreference=follower":  "must be leader",
		"esdb://admin:" + secret + "@h:1?streamPrefix=$x":          "not a valid prefix of a stream name",
		"esdb://admin:" + secret + "/1@h:2113":                     "not an esdb:// URL",
		"esdb://admin:%zz" + secret + "@h:1":                       "not an esdb:// URL",
		"postgres://admin:" + secret + "@h":                        "not an esdb:// URL",
		"esdb://":                                                  "not an esdb:// URL",
	} {
		_, err := eventstoredb.Open(t.Context(), text, eventstoredb.Options{})
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), secret) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}

// Open reports a server that refuses the client at once, and an absent server in time.
func TestOpenFails(t *testing.T) {
	dead := double(t, esdbtest.Options{})
	dead.Stop()
	for name, c := range map[string]struct{ url, want string }{
		"away": {dead.URL(), "refused"},
	} {
		t.Run(name, func(t *testing.T) {
			began := time.Now()
			_, err := eventstoredb.Open(t.Context(), c.url, eventstoredb.Options{Patience: 300 * time.Millisecond})
			if err == nil || !strings.Contains(err.Error(), c.want) || time.Since(began) > 10*time.Second {
				t.Errorf("after %s: %v", time.Since(began), err)
			}
		})
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := eventstoredb.Open(ctx, dead.URL(), eventstoredb.Options{}); err == nil || time.Since(deadlineOf(ctx)) > 5*time.Second {
		t.Errorf("%v, %s after the deadline", err, time.Since(deadlineOf(ctx)))
	}
}

func deadlineOf(ctx context.Context) time.Time {
	deadline, _ := ctx.Deadline()
	return deadline
}

// Name and password go over TLS, and are checked.
func TestSecure(t *testing.T) {
	const password = "pass/word@1"
	certificate, ca := certified(t)
	server := double(t, esdbtest.Options{
		TLS: &tls.Config{Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS12}, User: "admin", Password: password,
	})
	u := func(password, query string) string {
		return "esdb://admin:" + url.QueryEscape(password) + "@" + server.Address() + "?" + query
	}
	l := open(t, u(password, "tlsCaFile="+url.QueryEscape(ca)), eventstoredb.Options{}).log
	stands(t, l, "one", 0, 2)
	for name, c := range map[string]struct{ url, want string }{
		"wrong password": {u("wrong", "tlsCaFile="+url.QueryEscape(ca)), "Unauthenticated"},
		"unknown CA":     {u(password, ""), "certificate"},
	} {
		_, err := eventstoredb.Open(t.Context(), c.url, eventstoredb.Options{Patience: 3 * time.Second})
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "wrong") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// certified makes a certificate for this machine, and a file with its CA.
func certified(t *testing.T) (tls.Certificate, string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	must(t, err)
	name := filepath.Join(t.TempDir(), "ca.pem")
	must(t, os.WriteFile(name, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600))
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, name
}
