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

	"github.com/tempo-watchtower/watchtower/domain/event"
)

// RemoteSettings say how a remote signer is reached.
type RemoteSettings struct {
	// URL is where its API begins: https, or http if it is on this machine's loopback
	// interface or Unencrypted says so. Without a user, a query and a fragment.
	URL string
	// Unencrypted allows http to another machine, for networks that encrypt.
	Unencrypted bool
	// Authorities is a PEM file with those who may have signed the server's
	// certificate; empty, the system's.
	Authorities string
	// Certificate and Key are PEM files with what we show the server, or empty. They
	// are read anew for each connection: certificates are renewed while we run.
	Certificate, Key string
	// Timeout is for one exchange, with the wait for a connection. 1 ms to 5 minutes.
	Timeout time.Duration
	// Connections is the most that are open at a time. 1 to 1000.
	Connections int
	// Transport sends the requests; nil is over connections as the settings above say. It
	// tells the request's net/http/httptrace when it has a connection.
	Transport http.RoundTripper
}

// remoteClient speaks HTTP to one remote signer.
type remoteClient struct {
	base    string
	host    string // what errors call it
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
		Proxy:                  nil, // a proxy would see what is signed, and could ask for more
		TLSClientConfig:        secured,
		DisableCompression:     true, // which could unpack without end
		MaxConnsPerHost:        s.Connections,
		MaxIdleConnsPerHost:    s.Connections,
		IdleConnTimeout:        90 * time.Second,
		TLSHandshakeTimeout:    s.Timeout,
		MaxResponseHeaderBytes: 16 << 10,
	}
}

// parse reads the URL. Its text is not repeated: there may be a password in it.
func (s RemoteSettings) parse() (*url.URL, error) {
	u, err := url.Parse(s.URL)
	if err != nil || u.Hostname() == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" || (u.Scheme != "https" && u.Scheme != "http") {
		return nil, ErrBadSetting.Because("a remote signer's URL is https://host:port/path, without a user, a query and a fragment")
	}
	if u.Scheme == "http" && !s.Unencrypted && !loopback(u.Hostname()) {
		return nil, ErrBadSetting.Because("the remote signer %s is on another machine, and not reached by https", u.Host)
	}
	return u, nil
}

func loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// tls reads the certificates, so that what is wrong with them is said at once.
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
		if err != nil { // whose text is left out, for it has read the key
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

// exchange asks once, and gives the body of an answer of 200 that is no longer than
// most. Nothing is asked a second time here: whoever wants a signature knows how
// long it is of use.
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

// lost says that no answer came. Before there was a connection nothing was asked,
// and the network's error is shown; afterwards nobody knows, and the error's text,
// which may quote what came, is left out.
func lost(ctx context.Context, err error, connected bool) error {
	if !connected {
		if wrapped := (*url.Error)(nil); errors.As(err, &wrapped) {
			err = wrapped.Err // without the URL
		}
		return fmt.Errorf("not reached: %w", err)
	}
	if cause := ctx.Err(); cause != nil {
		return fmt.Errorf("%w: no answer: %w", event.ErrUnknown, cause)
	}
	return fmt.Errorf("%w: the connection broke before a whole answer came", event.ErrUnknown)
}
