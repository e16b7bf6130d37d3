// Package rest has what all HTTP APIs of this service share. It has the server and its limits, the
// exchange of request and answer, API keys, rates and charges, the places of reads, problems, the
// reading of JSON and of queries, cursors, event streams, waits, idempotency keys, health, the
// operators' routes and the page that shows a contract.
//
// A package with routes makes a [Front], and lists each of its routes as a [Route]. A route answers a
// [Request]. Package rest knows none of these routes. It imports package api/webguard, and no other
// package of api. It reads no transaction, group or intent.
//
// Every error is an RFC 9457 problem with a code that never changes. problem.go has the rows of the
// table that maps errors to HTTP that are the same for all APIs. A package with routes adds its own
// rows, as a [Kind]. Times are Unix seconds, except the times of recorded events.
// The Host header only decides whether a request without a key is answered (package webguard).
// No answer repeats it or depends on headers that a proxy adds.
package rest

import (
	"cmp"
	"context"
	"io"
	"log/slog"
	"time"
)

// Config holds the settings and dependencies that all APIs share.
type Config struct {
	// Transient, when set, reports whether a database error is transient. Transient errors
	// are answered with 503 and not as internal errors.
	Transient func(error) bool
	Health    Health
	Limits    Limits
	Rates     Rates
	// Lists and Scans are shared with the other APIs of the process; nil makes places of its own.
	Lists, Scans *Places
	// Origins are the origins of pages whose scripts may use the API (CORS): none, a list such
	// as https://app.example, or "*" for all. While requests are answered without a key, "*"
	// allows none.
	Origins []string
	// Hosts are the names, besides loopback's, by which clients may reach the API while it
	// answers without keys.
	Hosts  []string
	Access Access
	// Admin is used by [Internal] only.
	Admin Admin
	// Idempotency configures how requests with an Idempotency-Key are remembered.
	Idempotency Idempotency
	// CursorKey authenticates the cursors of lists. Replicas behind one address must share it.
	// It has at least [CursorKeyBytes] bytes.
	CursorKey []byte
	Now       func() time.Time
	// Pause waits for d or until ctx ends; nil means with a timer.
	Pause  func(ctx context.Context, d time.Duration)
	Random io.Reader // for request ids
	Log    *slog.Logger
	// Requested, when set, is called for each request that was answered. route is the route's
	// template, or "none"; method is "other" if it is not a standard method.
	Requested func(route, method, code string, took time.Duration)
	// Traced, when set, is called for each request with a W3C traceparent.
	Traced func(traceparent, route, method, code string, began time.Time, took time.Duration)
	// QuotaUsed, when set, is called whenever the use of a quota changes. It gets the quota's
	// name, the use by the client that uses most of it, and the limit.
	QuotaUsed func(quota string, used, limit int)
}

// Limits bound the resources that one client can use.
type Limits struct {
	BodyBytes        int64 // of a request's body
	BatchItems       int   // raw transactions in one request
	TransactionBytes int   // size of one raw transaction
	HeaderBytes      int   // size of a request's line and headers; net/http adds 4 KiB
	Connections      int   // connections open at once
	Streams          int   // event streams open at once
	ClientStreams    int   // event streams open at once per client; 0 means [ClientStreams]
	// HeaderTimeout and ReadTimeout bound how long a request's header, and the whole request,
	// may take to arrive. WriteTimeout bounds the time from the header to the end of the
	// answer, IdleTimeout the pause between two requests.
	HeaderTimeout, ReadTimeout, WriteTimeout, IdleTimeout time.Duration
	// StreamSilence is the longest silence on an event stream. A client that receives nothing
	// for several times as long may take the stream for dead. StreamWrite is how long a client
	// may take to receive one write. A slower client is disconnected, since nothing is buffered
	// for it; it resumes where it was.
	StreamSilence, StreamWrite time.Duration
	// WorkTimeout bounds the work between reading a request and answering it. The time that
	// WriteTimeout leaves bounds it too.
	WorkTimeout time.Duration
}

// ClientStreams is the default number of event streams that one client may have open at one
// process.
const ClientStreams = 64

// DefaultLimits returns limits for an API that is open to the internet.
func DefaultLimits() Limits {
	return Limits{
		BodyBytes: 1 << 20, BatchItems: 1000, TransactionBytes: 128 << 10,
		HeaderBytes: 8 << 10, Connections: 4096,
		Streams: 256, ClientStreams: ClientStreams, StreamSilence: 15 * time.Second, StreamWrite: 10 * time.Second,
		HeaderTimeout: 5 * time.Second, ReadTimeout: 15 * time.Second,
		WriteTimeout: 30 * time.Second, IdleTimeout: time.Minute, WorkTimeout: 10 * time.Second,
	}
}

// api is the configuration plus the state of one listener.
type api struct {
	Config
	more    []Kind // the kinds of a [Front]
	limiter *limiter
	refused Seldom // limits the log lines about clients over quota
	// internal is true for the listener that clients do not use.
	internal bool
	follows  chan struct{} // holds one element for each open event stream
	// streaming, waiting and working count each client's open streams, requests that wait on
	// purpose, and other requests in progress.
	streaming, waiting, working rests
	dependencies                dependencies
}

func newAPI(c Config) *api {
	if c.Lists == nil {
		c.Lists = NewLists()
	}
	if c.Scans == nil {
		c.Scans = NewScans()
	}
	return &api{Config: c, limiter: newLimiter(cmp.Or(c.Rates.Clients, RateClients)), follows: make(chan struct{}, c.Limits.Streams)}
}
