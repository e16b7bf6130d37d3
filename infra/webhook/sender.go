package webhook

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
	"strconv"
	"sync/atomic"
	"time"

	"github.com/tempo-watchtower/watchtower/domain/notice"
	"github.com/tempo-watchtower/watchtower/infra/retryafter"
)

// Limits of one attempt.
const (
	TimeoutMin = time.Second
	TimeoutMax = time.Minute
	headerMax  = 32 << 10 // bytes of an answer's header
	drainMax   = 64 << 10 // bytes of an answer's body that are read and discarded
	drainTime  = time.Second
	idleTime   = 30 * time.Second
	idleMax    = 256 // idle connections kept
)

// Options are the settings of a Sender.
type Options struct {
	Guard *Guard
	// Timeout bounds one attempt, from the lookup of the name to the answer's header. The
	// specification recommends 15 to 30 seconds.
	Timeout time.Duration
	// Roots are the certificate authorities for receivers' certificates; nil means the
	// system's.
	Roots *x509.CertPool
	// Agent is the User-Agent header.
	Agent string
	Now   func() time.Time
	// Transport carries requests instead of the Sender's own connections, to hosts whose
	// addresses the guard has just checked; nil means own connections. It must report progress
	// to the request's httptrace.ClientTrace.
	Transport http.RoundTripper
}

// Sender makes attempts. It is safe for concurrent use.
type Sender struct {
	guard     *Guard
	timeout   time.Duration
	agent     string
	now       func() time.Time
	transport http.RoundTripper
	idle      interface{ CloseIdleConnections() } // nil if Transport is set: the connections are not ours
}

// carried passes a request to another transport if the guard allows its host.
type carried struct {
	guard *Guard
	by    http.RoundTripper
}

func (c carried) RoundTrip(r *http.Request) (*http.Response, error) {
	if _, err := c.guard.addresses(r.Context(), r.URL.Hostname()); err != nil {
		return nil, err
	}
	return c.by.RoundTrip(r)
}

// New makes a Sender, which the caller closes.
func New(o Options) (*Sender, error) {
	if o.Timeout < TimeoutMin || o.Timeout > TimeoutMax {
		return nil, fmt.Errorf("an attempt's time is %s, not between %s and %s", o.Timeout, TimeoutMin, TimeoutMax)
	}
	s := &Sender{guard: o.Guard, timeout: o.Timeout, agent: o.Agent, now: o.Now}
	if o.Transport != nil {
		s.transport = carried{o.Guard, o.Transport}
		return s, nil
	}
	// No proxy, even if the environment sets one: it would connect to addresses that the guard
	// has not checked. HTTP/1.1 only: one request per connection.
	own := &http.Transport{
		DialContext:            o.Guard.dial,
		TLSClientConfig:        &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: o.Roots},
		TLSHandshakeTimeout:    o.Timeout,
		ResponseHeaderTimeout:  o.Timeout,
		MaxResponseHeaderBytes: headerMax,
		DisableCompression:     true,
		MaxIdleConns:           idleMax,
		MaxIdleConnsPerHost:    1,
		IdleConnTimeout:        idleTime,
	}
	s.transport, s.idle = own, own
	return s, nil
}

// Close closes the idle connections.
func (s *Sender) Close() {
	if s.idle != nil {
		s.idle.CloseIdleConnections()
	}
}

// stage is the progress of an attempt.
type stage = int32

const (
	connecting stage = iota
	securing
	sending // from here on the receiver may have the message
	hearing // the receiver is answering
)

// Send makes one attempt. It ends within the timeout plus a second for the answer's body. If
// ctx ends, the outcome is the same as for a broken connection. Redirects are not followed. Of
// the receiver's answer only status and Retry-After are used.
func (s *Sender) Send(ctx context.Context, e Endpoint, m Message) notice.Outcome {
	if err := m.check(e.Secrets); err != nil {
		return notice.Outcome{Class: notice.Failed, Cause: notice.Unfit}
	}
	u, err := s.guard.parse(e.URL)
	if err != nil {
		return notice.Outcome{Class: notice.Failed, Cause: notice.Forbidden}
	}
	var at atomic.Int32
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		TLSHandshakeStart: func() { at.Store(securing) },
		GotConn:           func(httptrace.GotConnInfo) { at.Store(sending) },
		// A receiver may answer before it has read the whole request.
		GotFirstResponseByte: func() { at.Store(hearing) },
	})
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, u.String(), bytes.NewReader(m.Body))
	if err != nil {
		return notice.Outcome{Class: notice.Failed, Cause: notice.Forbidden}
	}
	s.fill(request.Header, e, m)
	// Without an http.Client there are no redirects, no cookies and no Referer.
	response, err := s.transport.RoundTrip(request)
	if err != nil {
		return failed(err, at.Load())
	}
	drain(response.Body, cancel)
	return answered(response)
}

func (s *Sender) fill(h http.Header, e Endpoint, m Message) {
	now := s.now()
	h.Set("Content-Type", "application/json")
	h.Set("User-Agent", s.agent)
	h.Set(HeaderID, m.ID)
	h.Set(HeaderTimestamp, strconv.FormatInt(now.Unix(), 10))
	h.Set(HeaderSignature, Sign(e.Secrets, m.ID, now, m.Body))
}

// drain reads a body to its end, so that the connection can be reused, if the body is short and
// arrives at once. Otherwise the connection is closed.
func drain(body io.ReadCloser, cancel func()) {
	limit := time.AfterFunc(drainTime, cancel)
	defer limit.Stop()
	_, _ = io.CopyN(io.Discard, body, drainMax)
	_ = body.Close()
}

// answered classifies an answer by its header: a receiver that answers 2xx has received the
// message, even if the body fails. Source: Standard Webhooks 1.0.0, "Delivery success and
// failure".
func answered(response *http.Response) notice.Outcome {
	o := notice.Outcome{Class: notice.Failed, Cause: notice.Status, Status: response.StatusCode}
	switch status := response.StatusCode; {
	case status >= 200 && status <= 299:
		o.Class, o.Cause = notice.Delivered, notice.NoCause
	case status == http.StatusGone:
		o.Class = notice.Gone
	case status == http.StatusTooManyRequests, status == http.StatusServiceUnavailable:
		o.Class, o.RetryAfter = notice.Later, retryafter.Of(response.Header)
	}
	return o
}

// failed classifies an attempt without an answer.
func failed(err error, at stage) notice.Outcome {
	o := notice.Outcome{Class: notice.Failed, Cause: notice.Connect}
	if at >= sending {
		o.Class = notice.Unknown
	}
	var kept *refused
	var network net.Error
	switch {
	case errors.As(err, &kept):
		o.Cause = kept.cause
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &network) && network.Timeout():
		o.Cause = notice.Timeout
	case at == securing:
		o.Cause = notice.TLS
	case at == sending: // silence is no protocol error; net/http returns several errors for it
		o.Cause = notice.Cut
	case at == hearing && (errors.As(err, &network) || errors.Is(err, io.EOF) ||
		errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, context.Canceled)):
		o.Cause = notice.Cut
	case at == hearing:
		o.Cause = notice.Protocol
	}
	return o
}
