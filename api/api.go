// Package api is the REST API of delivery: it accepts signed transactions and reports their
// status. openapi.yaml is its contract.
//
// Every error is an RFC 9457 problem with a code that never changes. problem.go has the one
// table that maps errors to HTTP. Times are Unix seconds, except the times of recorded events.
// The Host header only decides whether a request without a key is answered (package webguard).
// No answer repeats it or depends on headers that a proxy adds.
package api

import (
	"cmp"
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/gorilla/mux"

	"github.com/tempo-watchtower/watchtower/commands"
	"github.com/tempo-watchtower/watchtower/commands/tail"
	"github.com/tempo-watchtower/watchtower/domain/access"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/delivery/group"
	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
	"github.com/tempo-watchtower/watchtower/eventlog"
	"github.com/tempo-watchtower/watchtower/projections/delivery/transactions"
)

// Config holds the settings and dependencies of the API.
type Config struct {
	// Submit accepts transactions. The API also uses its log, vault and decoders.
	Submit *commands.Submit
	// Query reads the rows of the read model.
	Query  transactions.Query
	Groups Groups
	// Board is the due queue. It has the counters that are not worth an event.
	Board Board
	// Stale has an entry for each chain that is served. The function asks the chain in a client's
	// name whether a transaction's nonce is used up, and records the answer.
	Stale map[chain.ID]func(ctx context.Context, client string, hash chain.Hash, meta eventlog.Meta) (tx.State, error)
	// Tail is where requests wait for new events. Call its Leave before stopping the service.
	Tail *tail.Tail
	// Transient, when set, reports whether a database error is transient. Transient errors
	// are answered with 503 and not as internal errors.
	Transient func(error) bool
	Health    Health
	Limits    Limits
	Rates     Rates
	// Lists and Scans are shared with the other APIs of the process; nil makes places of its own.
	Lists, Scans *Places
	// Cancels are the places of cancels that read their groups or visit members, LargeCancels of
	// cancels with large answers; nil makes them.
	Cancels, LargeCancels *Places
	// RPC answers /rpc; the zero value does not.
	RPC RPC
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
	// Canceler cancels groups.
	Canceler Canceler
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
	// Submitted, when set, is called for each raw transaction with its outcome: accepted,
	// known, refused or failed.
	Submitted func(outcome string)
	// QuotaUsed, when set, is called whenever the use of a quota changes. It gets the quota's
	// name, the use by the client that uses most of it, and the limit.
	QuotaUsed func(quota string, used, limit int)
}

// Board reads the due queue's rows of a chain's transactions, in any order. A transaction that
// needs no more work has no row.
type Board interface {
	Find(ctx context.Context, id chain.ID, hashes []chain.Hash) ([]tx.Work, error)
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

// api is the configuration plus the state of one listener. The routes are its methods.
type api struct {
	Config
	more    []kind // the kinds of a [Front]
	limiter *limiter
	refused seldom // limits the log lines about clients over quota
	unread  seldom // limits the log lines about nonces of groups that could not be read
	// internal is true for the listener that clients do not use.
	internal bool
	follows  chan struct{} // holds one element for each open event stream
	owned    owned
	groups   eventlog.Codec[group.Event]
	decodes  *Places // of reads that decode transactions
	nonces   *Places // of reads of the next free nonce
	// streaming, waiting and working count each client's open streams, requests that wait on
	// purpose, and other requests in progress.
	streaming, waiting, working rests
	dependencies                dependencies
	// published renders the contract once and returns it.
	published func() (published, error)
}

func newAPI(c Config) *api {
	if c.Lists == nil {
		c.Lists = NewLists()
	}
	if c.Scans == nil {
		c.Scans = NewScans()
	}
	if c.Cancels == nil {
		c.Cancels = NewCancels()
	}
	if c.LargeCancels == nil {
		c.LargeCancels = NewLargeCancels()
	}
	return &api{Config: c, limiter: newLimiter(cmp.Or(c.Rates.Clients, RateClients)), follows: make(chan struct{}, c.Limits.Streams), groups: group.Codec(), decodes: newDecodes(), nonces: newNonces(), published: publishing()}
}

// endpoint answers a request, or returns an error that says why not. If it returns an error it
// has written nothing.
type endpoint func(w http.ResponseWriter, r *http.Request) error

// A route is one method on one path, with the scope that a client needs for it.
type route struct {
	method, path string
	scope        access.Scope
	keeps        keeps
	endpoint     endpoint
}

func (a *api) routes() []route {
	return []route{
		{http.MethodPost, "/v1/transactions", access.Submit, byItself, a.once(a.submit)},
		{http.MethodGet, "/v1/transactions", access.Read, byItself, a.list},
		{http.MethodGet, "/v1/transactions/{hash}", access.Read, byHash, a.transaction},
		{http.MethodDelete, "/v1/transactions/{hash}", access.Cancel, byHash, a.stale},
		{http.MethodGet, "/v1/transactions/{hash}/events", access.Read, byHash, a.events},
		{http.MethodPost, "/rpc", access.RPC, byItself, a.rpc},
		{http.MethodPost, "/rpc/{chainId}", access.RPC, byItself, a.rpc},
		{http.MethodGet, "/v1/senders/{sender}/groups", access.Read, bySender, a.listGroups},
		{http.MethodGet, "/v1/senders/{sender}/groups/{groupId}", access.Read, bySender, a.group},
		{http.MethodPost, "/v1/senders/{sender}/groups/{groupId}/cancel", access.Cancel, bySender, a.once(a.cancelGroup)},
		{http.MethodGet, "/v1/events", access.Read, byItself, a.follow},
		{http.MethodGet, "/openapi.yaml", public, nobody, a.openapi},
		{http.MethodGet, "/openapi.json", public, nobody, a.openapiJSON},
		{http.MethodGet, "/docs", public, nobody, a.docs},
		{http.MethodGet, healthPath, public, nobody, a.health},
		{http.MethodGet, "/livez", probing, nobody, a.live},
		{http.MethodGet, "/readyz", probing, nobody, a.ready},
	}
}

// New returns the handler of the public listener. It panics if the configuration cannot work.
func New(c Config) http.Handler {
	switch {
	case len(c.CursorKey) < CursorKeyBytes:
		panic("api: the cursor key is too short")
	case c.Tail == nil:
		panic("api: there is no tail to wait with")
	case c.Limits.BodyBytes <= 0 || c.Limits.BatchItems <= 0 || c.Limits.TransactionBytes <= 0 || c.Limits.WorkTimeout <= 0,
		c.Limits.Streams <= 0 || c.Limits.StreamSilence <= 0 || c.Limits.StreamWrite <= 0:
		panic("api: a limit is not set")
	}
	a := newAPI(c)
	return a.requests(a.guarded(a.Access.keyless, crossOrigin(c.Origins, router(a.routes()))))
}

// Internal returns the handler of the listener that is not for clients. exposition answers GET
// /metrics. It does not need the parts of the configuration that deliver.
func Internal(c Config, exposition http.Handler) http.Handler {
	a := newAPI(c)
	a.internal = true
	metrics := func(w http.ResponseWriter, r *http.Request) error {
		exposition.ServeHTTP(w, r)
		return nil
	}
	routes := []route{{http.MethodGet, "/metrics", probing, nobody, metrics}}
	if c.Admin.Level != nil {
		a.Access = Access{Keys: c.Access.Keys, Always: c.Admin.Exposed}
		a.add(c.Admin.Kinds)
		routes = append(routes, a.adminRoutes()...)
	}
	return a.requests(a.guarded(func() bool {
		// /metrics never needs a key. On an address that other machines can reach, monitors may
		// use any host name once keys are in use.
		return !c.Admin.Exposed || c.Access.keyless()
	}, router(routes)))
}

// router matches paths exactly as they were sent: it cleans no path and never redirects.
func router(routes []route) http.Handler {
	m := mux.NewRouter().SkipClean(true).UseEncodedPath()
	allowed := map[string][]string{}
	for _, t := range routes {
		if t.scope == "" {
			panic("api: no scope is set for " + t.method + " " + t.path)
		}
		methods := []string{t.method}
		if t.method == http.MethodGet {
			methods = append(methods, http.MethodHead)
		}
		allowed[t.path] = append(allowed[t.path], methods...)
		m.Path(t.path).Methods(methods...).HandlerFunc(t.serve)
	}
	for path, methods := range allowed {
		slices.Sort(methods)
		allow := strings.Join(methods, ", ")
		m.Path(path).HandlerFunc(route{path: path, scope: public, endpoint: func(w http.ResponseWriter, r *http.Request) error {
			w.Header().Set("Allow", allow)
			return ErrMethodNotAllowed.Because("%s answers to %s", path, allow)
		}}.serve)
	}
	m.NotFoundHandler = http.HandlerFunc(route{scope: public, endpoint: func(_ http.ResponseWriter, r *http.Request) error {
		if r.RequestURI == "*" { // HTTP/2 clients begin with it too
			return ErrInvalidRequest.Because("OPTIONS * has no resource")
		}
		return ErrNotFound
	}}.serve)
	return m
}

// serve answers a request, or writes the problem if an error is returned.
func (t route) serve(w http.ResponseWriter, r *http.Request) {
	on := exchangeOf(r)
	if t.path != "" {
		on.route = t.path
	}
	err := on.api.admit(w, r, on, t.scope)
	if err == nil && t.counts() {
		err = on.begin(w)
		defer on.place.end() // after a panic too
	}
	on.sought = on.search()
	if err == nil && t.scope != probing && t.scope != public {
		err = on.api.within(r, on, t)
	}
	if err == nil && t.method == http.MethodPost {
		err = notFromPages(r)
	}
	if err == nil {
		err = t.endpoint(w, r)
	}
	if err != nil {
		t.hidden(r, on, err)
		on.fail(w, err)
	}
}

// work returns the context for the work of a request after it has been read. It leaves a tenth
// of WriteTimeout for the answer itself.
func (a *api) work(r *http.Request) (context.Context, context.CancelFunc) {
	left := a.Limits.WriteTimeout*9/10 - a.Now().Sub(exchangeOf(r).began)
	return context.WithTimeout(r.Context(), min(a.Limits.WorkTimeout, left))
}

// hashOf reads the transaction hash in a request's path.
func hashOf(r *http.Request) (chain.Hash, error) {
	text, err := url.PathUnescape(mux.Vars(r)["hash"])
	if err != nil {
		return chain.Hash{}, ErrInvalidHash.Because("the path is not well escaped")
	}
	hash, err := chain.ParseHash(text)
	if err != nil {
		return hash, ErrInvalidHash.Because("%v", err)
	}
	return hash, nil
}
