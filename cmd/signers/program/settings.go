package program

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"time"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/infra/keys"
)

// Limits of the settings.
const (
	mostAtOnce  = 1000
	leastTime   = 10 * time.Millisecond
	mostTime    = 5 * time.Minute
	readTimeout = 10 * time.Second // for a request to arrive
)

// listedKey is a permitted key: its account, and its name at the service.
type listedKey struct {
	address string // empty if not listed
	name    string
}

type settings struct {
	listen                               string
	keys                                 []listedKey
	certificate, certificateKey, clients string
	atOnce                               int
	timeout                              time.Duration
}

// usageError is an invalid setting.
type usageError struct{ text string }

func (e *usageError) Error() string { return e.text }

func badSetting(format string, args ...any) error { return &usageError{fmt.Sprintf(format, args...)} }

// settings parses the arguments.
func (p Program) settings(args []string, stderr io.Writer) (s settings, connect Open, err error) {
	var list string
	flags := flag.NewFlagSet(p.Name, flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.StringVar(&list, "keys", "", "the keys that may be used: 0xADDRESS=KEY,0xADDRESS=KEY. KEY is "+p.Keys)
	flags.StringVar(&s.listen, "listen", "127.0.0.1:9000", "the address to listen on; an address other than loopback requires -certificate, -certificate-key and -clients")
	flags.StringVar(&s.certificate, "certificate", "", "a PEM `file` with this server's certificate, read again for each connection")
	flags.StringVar(&s.certificateKey, "certificate-key", "", "the PEM `file` with the key of -certificate")
	flags.StringVar(&s.clients, "clients", "", "a PEM `file` with the certificate authorities for clients' certificates; other clients are refused")
	flags.IntVar(&s.atOnce, "at-once", 16, "how many requests to the service run at once; 1 to 1000")
	flags.DurationVar(&s.timeout, "timeout", 5*time.Second, "how long one signature may take, with all attempts; 10ms to 5m")
	connect = p.Service(flags)
	switch err := flags.Parse(args); {
	case errors.Is(err, flag.ErrHelp):
		return s, nil, err
	case err != nil:
		return s, nil, badSetting("%v", err)
	case flags.NArg() > 0:
		return s, nil, badSetting("%q is not a flag", flags.Arg(0))
	}
	return s, connect, errors.Join(s.parseKeys(list), s.check())
}

// parseKeys parses the list of keys.
func (s *settings) parseKeys(list string) error {
	if strings.TrimSpace(list) == "" {
		return badSetting("-keys is empty")
	}
	for entry := range strings.SplitSeq(list, ",") {
		address, name, named := strings.Cut(strings.TrimSpace(entry), "=")
		if !named {
			address, name = "", address // open determines it
		} else if a, err := chain.ParseAddress(address); err != nil {
			return badSetting("-keys: %q is not an address", address)
		} else {
			address = a.String()
		}
		if name == "" {
			return badSetting("-keys: an entry is empty")
		}
		s.keys = append(s.keys, listedKey{address, name})
	}
	if len(s.keys) > keys.MaxKeys {
		return badSetting("-keys has %d keys, more than %d", len(s.keys), keys.MaxKeys)
	}
	return nil
}

// check checks the settings against their limits. A client of the listener can have anything
// signed: so only this machine, or holders of a certificate, may reach it.
func (s *settings) check() error {
	host, _, err := net.SplitHostPort(s.listen)
	if err != nil {
		return badSetting("-listen: %q is not HOST:PORT", s.listen)
	}
	ip := net.ParseIP(host)
	here := host == "localhost" || ip != nil && ip.IsLoopback()
	some, all := s.certificate != "" || s.certificateKey != "" || s.clients != "", s.certificate != "" && s.certificateKey != "" && s.clients != ""
	switch {
	case some && !all:
		return badSetting("-certificate, -certificate-key and -clients: all three are needed, or none")
	case !here && !all:
		return badSetting("-listen: %s can be reached from other machines, which requires -certificate, -certificate-key and -clients", s.listen)
	case s.atOnce < 1 || s.atOnce > mostAtOnce:
		return badSetting("-at-once: %d is not between 1 and %d", s.atOnce, mostAtOnce)
	case s.timeout < leastTime || s.timeout > mostTime:
		return badSetting("-timeout: %s is not between %s and %s", s.timeout, leastTime, mostTime)
	}
	return nil
}

// tls reads the certificates, so that errors are reported at the start; nil without
// certificates.
func (s *settings) tls() (*tls.Config, error) {
	if s.certificate == "" {
		return nil, nil
	}
	load := func() (*tls.Certificate, error) {
		pair, err := tls.LoadX509KeyPair(s.certificate, s.certificateKey)
		if err != nil { // its text is left out, since it may quote the key
			return nil, badSetting("%s and %s are not a PEM certificate and its key", s.certificate, s.certificateKey)
		}
		return &pair, nil
	}
	if _, err := load(); err != nil {
		return nil, err
	}
	text, err := os.ReadFile(s.clients)
	if err != nil {
		return nil, err
	}
	known := x509.NewCertPool()
	if !known.AppendCertsFromPEM(text) {
		return nil, badSetting("%s has no PEM certificate", s.clients)
	}
	return &tls.Config{
		MinVersion:     tls.VersionTLS12,
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return load() },
		ClientAuth:     tls.RequireAndVerifyClientCert,
		ClientCAs:      known,
	}, nil
}
