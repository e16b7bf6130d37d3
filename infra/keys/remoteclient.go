package keys

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"github.com/tempo-watchtower/watchtower/eventlog"
)

// RemoteSettings are the connection settings of a remote signer.
type RemoteSettings struct {
	// URL is the base URL of its API: https, or http on this machine's loopback interface or
	// with Unencrypted. It has no user, no query and no fragment.
	URL string
	// Unencrypted allows http to another machine, for networks that encrypt.
	Unencrypted bool
	// Authorities is a PEM file with the certificate authorities for the server's certificate;
	// empty means the system's.
	Authorities string
	// Certificate and Key are PEM files with our client certificate, or empty. They are read
	// for each connection, because certificates are renewed while we run.
	Certificate, Key string
	// Timeout bounds one exchange, including the wait for a connection. 1 ms to 5 minutes.
	Timeout time.Duration
	// Connections is the largest number of open connections. 1 to 1000.
	Connections int
	// Transport sends the requests; nil means connections by the settings above. It must call
	// the request's net/http/httptrace when it has a connection.
	Transport http.RoundTripper
}

// remoteClient speaks HTTP to one remote signer.
type remoteClient struct {
	base    string
	host    string // its name in errors
	timeout time.Duration
	http    *http.Client
}

func newRemoteClient(s RemoteSettings) (*remoteClient, error) {
	u, err := s.parse()
	if err != nil {
		return nil, err
	}
	if s.Timeout < time.Millisecond || s.Timeout > 5*time.Minute {
		return nil, ErrBadSetting.Because("a remote signer's timeout of %s is not between 1ms and 5m", s.Timeout)
	}
	if s.Connections < 1 || s.Connections > 1000 {
		return nil, ErrBadSetting.Because("%d connections to a remote signer are not between 1 and 1000", s.Connections)
	}
	secured, err := s.tls()
	if err != nil {
		return nil, err
	}
	transport := s.Transport
	if transport == nil {
		transport = s.connections(secured)
	}
	return &remoteClient{
		base: strings.TrimSuffix(u.String(), "/"), host: u.Host, timeout: s.Timeout,
		http: &http.Client{
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
			Transport:     transport,
		},
	}, nil
}

func (s RemoteSettings) connections(secured *tls.Config) *http.Transport {
	return &http.Transport{
		Proxy:                  nil, // a proxy would see the payloads, and could request signatures
		TLSClientConfig:        secured,
		DisableCompression:     true, // decompression is unbounded
		MaxConnsPerHost:        s.Connections,
		MaxIdleConnsPerHost:    s.Connections,
		IdleConnTimeout:        90 * time.Second,
		TLSHandshakeTimeout:    s.Timeout,
		MaxResponseHeaderBytes: 16 << 10,
	}
}

// parse reads the URL. Errors do not repeat it: it may contain a password.
func (s RemoteSettings) parse() (*url.URL, error) {
	u, err := url.Parse(s.URL)
	if err != nil || u.Hostname() == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" || (u.Scheme != "https" && u.Scheme != "http") {
		return nil, ErrBadSetting.Because("a remote signer's URL must be https://host:port/path, without user, query and fragment")
	}
	if u.Scheme == "http" && !s.Unencrypted && !loopback(u.Hostname()) {
		return nil, ErrBadSetting.Because("the remote signer %s is on another machine, so its URL must be https", u.Host)
	}
	return u, nil
}

func loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// tls reads the certificates, so that their errors are returned at once.
func (s RemoteSettings) tls() (*tls.Config, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if s.Authorities != "" {
		text, err := readFile(s.Authorities)
		if err != nil {
			return nil, err
		}
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(text) {
			return nil, ErrBadSetting.Because("%s holds no certificate in PEM", s.Authorities)
		}
	}
	if s.Certificate == "" && s.Key == "" {
		return config, nil
	}
	load := func() (*tls.Certificate, error) {
		pair, err := tls.LoadX509KeyPair(s.Certificate, s.Key)
		if err != nil { // its text is left out, for it has read the key
			return nil, ErrBadSetting.Because("%s and %s are not a certificate and its key in PEM", s.Certificate, s.Key)
		}
		return &pair, nil
	}
	if _, err := load(); err != nil {
		return nil, err
	}
	config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return load() }
	return config, nil
}

// exchange sends one request, and returns the body of an answer 200 of at most most bytes. It
// does not retry: the caller knows how long a signature is of use.
func (c *remoteClient) exchange(ctx context.Context, method, route string, body []byte, most int) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	var connected atomic.Bool
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GotConn: func(httptrace.GotConnInfo) { connected.Store(true) },
	})
	request, err := http.NewRequestWithContext(ctx, method, c.base+route, bytes.NewReader(body))
	if err != nil {
		return nil, errors.New("the request cannot be made")
	}
	if body != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	response, err := c.http.Do(request)
	if err != nil {
		return nil, lost(ctx, err, connected.Load())
	}
	defer response.Body.Close() //nolint:errcheck // there is nothing to lose
	if response.StatusCode != http.StatusOK {
		return nil, refused(response.StatusCode, response.Header)
	}
	answer, err := io.ReadAll(io.LimitReader(response.Body, int64(most)+1))
	switch {
	case err != nil:
		return nil, lost(ctx, err, true)
	case len(answer) > most:
		return nil, errTooLong
	}
	return answer, nil
}

// lost is the error without an answer. Before there was a connection, nothing was requested,
// and it shows the network's error. Afterwards the outcome is unknown, and it leaves out the
// error's text, which may quote the answer.
func lost(ctx context.Context, err error, connected bool) error {
	if !connected {
		if wrapped := (*url.Error)(nil); errors.As(err, &wrapped) {
			err = wrapped.Err // without the URL
		}
		return fmt.Errorf("not reached: %w", err)
	}
	if cause := ctx.Err(); cause != nil {
		return fmt.Errorf("%w: no response: %w", eventlog.ErrUnknown, cause)
	}
	return fmt.Errorf("%w: the connection broke before the response was complete", eventlog.ErrUnknown)
}
