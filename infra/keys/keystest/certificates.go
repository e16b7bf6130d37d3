package keystest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// Papers are the PEM files with which a client connects to a server of [ServeTLS].
type Papers struct {
	Authorities      string // certificate authority of the server's certificate
	Certificate, Key string // certificate and key of the client
}

// ServeTLS starts a server like [Serve] that accepts only TLS clients with a known certificate.
func ServeTLS(t testing.TB, held ...*Key) (*Server, Papers) {
	t.Helper()
	dir := t.TempDir()
	server, serverFile, _ := certificate(t, dir, "server")
	client, clientFile, keyFile := certificate(t, dir, "client")
	known := x509.NewCertPool()
	known.AddCert(client.Leaf)
	s := serve(t, &tls.Config{
		MinVersion:   tls.VersionTLS12,
		Certificates: []tls.Certificate{server},
		ClientAuth:   tls.RequireAndVerifyClientCert,
		ClientCAs:    known,
	}, held)
	return s, Papers{Authorities: serverFile, Certificate: clientFile, Key: keyFile}
}

// Certificate makes a self-signed certificate for this name and 127.0.0.1.
func Certificate(t testing.TB, name string) Papers {
	t.Helper()
	_, file, key := certificate(t, t.TempDir(), name)
	return Papers{Certificate: file, Key: key}
}

// certificate makes a self-signed certificate, and writes its files.
func certificate(t testing.TB, dir, name string) (pair tls.Certificate, certificateFile, keyFile string) {
	t.Helper()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(err)
	now := time.Now()
	der, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: now.Add(-time.Hour), NotAfter: now.Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, DNSNames: []string{name},
		IsCA: true, BasicConstraintsValid: true,
		KeyUsage:    x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}, &x509.Certificate{SerialNumber: big.NewInt(1)}, key.Public(), key)
	must(err)
	leaf, err := x509.ParseCertificate(der)
	must(err)
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	must(err)
	certificateFile, keyFile = filepath.Join(dir, name+".pem"), filepath.Join(dir, name+".key")
	must(os.WriteFile(certificateFile, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600))
	must(os.WriteFile(keyFile, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret}), 0o600))
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key, Leaf: leaf}, certificateFile, keyFile
}
