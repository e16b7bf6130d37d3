package webhook

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"math/big"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// sinkName is the name in the sinks' certificate.
const sinkName = "sink.example.org"

// sink is a receiver with any behaviour. serve handles each connection by itself, and must end
// when the client is gone or the test ends.
type sink struct {
	port  uint16
	roots *x509.CertPool
	calls atomic.Int32  // connections so far
	ended chan struct{} // closed by the test's cleanup
}

// newSink listens on a loopback address, with a certificate for a name.
func newSink(t *testing.T, address, name string, config func(*tls.Config), serve func(s *sink, conn net.Conn)) *sink {
	t.Helper()
	certificate, roots := certify(t, name)
	c := &tls.Config{Certificates: []tls.Certificate{certificate}}
	if config != nil {
		config(c)
	}
	listener, err := net.Listen("tcp", address)
	must(t, err)
	s := &sink{port: uint16(listener.Addr().(*net.TCPAddr).Port), roots: roots, ended: make(chan struct{})}
	var all sync.WaitGroup
	all.Go(func() {
		for {
			raw, err := listener.Accept()
			if err != nil {
				return
			}
			s.calls.Add(1)
			all.Go(func() {
				defer raw.Close()
				stop := context.AfterFunc(t.Context(), func() { raw.Close() })
				defer stop()
				conn := tls.Server(raw, c)
				if conn.Handshake() == nil {
					serve(s, conn)
				}
			})
		}
	})
	t.Cleanup(func() {
		close(s.ended)
		listener.Close()
		all.Wait()
	})
	return s
}

// certify makes a self-signed certificate.
func certify(t *testing.T, name string) (tls.Certificate, *x509.CertPool) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), DNSNames: []string{name}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	must(t, err)
	parsed, err := x509.ParseCertificate(der)
	must(t, err)
	roots := x509.NewCertPool()
	roots.AddCert(parsed)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, roots
}

// at resolves every name to these addresses.
func at(addresses ...string) func(context.Context, string) ([]netip.Addr, error) {
	return func(context.Context, string) (found []netip.Addr, _ error) {
		for _, a := range addresses {
			found = append(found, netip.MustParseAddr(a))
		}
		return found, nil
	}
}

// loopbackOnly are rules that treat 127.0.0.1 like a public address, and no other loopback
// address.
func loopbackOnly(ports ...uint16) Rules {
	return Rules{Ports: ports, Networks: []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}, Lookup: at("127.0.0.1")}
}

func newSender(t *testing.T, r Rules, roots *x509.CertPool) *Sender {
	t.Helper()
	return newSenderWithin(t, 30*time.Second, r, roots) // long, so that a busy machine does not matter
}

func newSenderWithin(t *testing.T, timeout time.Duration, r Rules, roots *x509.CertPool) *Sender {
	t.Helper()
	g, err := NewGuard(r)
	must(t, err)
	s, err := New(Options{Guard: g, Timeout: timeout, Roots: roots, Agent: "test", Now: time.Now})
	must(t, err)
	t.Cleanup(s.Close)
	return s
}

func newSecret(t *testing.T) Secret {
	t.Helper()
	s, err := NewSecret(rand.Reader)
	must(t, err)
	return s
}
