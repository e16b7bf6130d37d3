// Package api is the REST API of delivery: it takes signed transactions on and
// tells what became of them. openapi.yaml is its contract.
//
// Every error is an RFC 9457 problem with a code that never changes; the one
// table from errors to HTTP is in problem.go. Times are Unix seconds, save those
// of recorded events. The Host header decides only whether a request without a key is
// answered (package webguard); no answer repeats it, or depends on what a proxy adds.
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
	"github.com/tempo-watchtower/watchtower/domain/event"
	"github.com/tempo-watchtower/watchtower/domain/group"
	"github.com/tempo-watchtower/watchtower/domain/tx"
	"github.com/tempo-watchtower/watchtower/projections/transactions"
)

// Config is what the API is made from.
type Config struct {
	// Submit takes transactions on. Its log, vault and decoders are read too.
	Submit *commands.Submit
	// Query reads the rows of the read model.
	Query  transactions.Query
	Groups Groups
	// Board is the due queue: it counts what is not worth an event.
	Board Board
	// Stale, for each chain that is served, asks the chain whether a transaction's
	// nonce is used up, and records it.
	Stale map[chain.ID]func(ctx context.Context, hash chain.Hash, meta event.Meta) (tx.State, error)
	// Tail is where requests wait for what is recorded. Whoever stops the service
	// calls its Leave first.
	Tail *tail.Tail
	// Transient, when set, says which of the databases' errors may pass: they are
	// answered by 503, where others are faults of ours.
	Transient func(error) bool
	Health    Health
	Limits    Limits
	Rates     Rates
	// Lists and Scans are shared with the other APIs of the process; nil makes places of its own.
	Lists, Scans *Places
	// RPC answers /rpc; the zero value does not.
	RPC RPC
	// Origins are those of pages whose scripts may use the API (CORS): none, some
	// such as https://app.example, or "*" for all. While requests are answered without
	// a key "*" allows none.
	Origins []string
	// Hosts are the names, besides loopback's, that clients reach the API by while it
	// answers without keys.
	Hosts  []string
	Access Access
	// Admin is for [Internal].
	Admin Admin
	// Idempotency says how requests with an Idempotency-Key are remembered.
	Idempotency Idempotency
	// Canceler cancels groups.
	Canceler Canceler
	// CursorKey authenticates the cursors of lists. Replicas that share their
	// clients must share it. At least [CursorKeyBytes].
	CursorKey []byte
	Now       func() time.Time
	Random    io.Reader // for request ids
	Log       *slog.Logger
	// Requested, when set, is told of each request that was answered: its route's
	// template ("none" without one), its method ("other" for a strange one).
	Requested func(route, method, code string, took time.Duration)
	// Traced, when set, is told of each request that came with a W3C traceparent.
	Traced func(traceparent, route, method, code string, began time.Time, took time.Duration)
	// Submitted, when set, is told what became of each raw transaction:
	// accepted, known, refused or failed.
	Submitted func(outcome string)
	// QuotaUsed, when set, gets a quota's name, its use by the client that uses most of
	// it, and its limit, whenever the use changes.
	QuotaUsed func(quota string, used, limit int)
}

// Board shows the due queue's rows of a chain's transactions, in any order. A
// transaction that it is done with has none.
type Board interface {
	Find(ctx context.Context, id chain.ID, hashes []chain.Hash) ([]tx.Work, error)
}

// Limits bound what one client can make the service do.
type Limits struct {
	BodyBytes        int64 // of a request
	BatchItems       int   // raw transactions in one request
	TransactionBytes int   // of one raw transaction
	HeaderBytes      int   // of a request's line and headers; net/http adds 4 KiB
	Connections      int   // open at once
	Streams          int   // of events, open at once
	ClientStreams    int   // of them, of one client; 0 is [ClientStreams]
	// HeaderTimeout and ReadTimeout bound how long a request's header, and the
	// whole request, may take to arrive; WriteTimeout how long from its header
	// to the end of the answer; IdleTimeout the pause between two requests.
	HeaderTimeout, ReadTimeout, WriteTimeout, IdleTimeout time.Duration
	// StreamSilence is the longest silence on a stream of events; a client that
	// hears nothing for several times as long may take it for dead. StreamWrite is
	// how long a client may take to take what it is sent: a slower one is cut, for
	// nothing is kept for it, and goes on where it was.
	StreamSilence, StreamWrite time.Duration
	// WorkTimeout bounds what is done between reading and answering; what
	// WriteTimeout leaves bounds it too.
	WorkTimeout time.Duration
}

// ClientStreams is how many streams of events one client may have open at one process
// unless set otherwise.
const ClientStreams = 64

// DefaultLimits are those of an API that strangers can reach.
func DefaultLimits() Limits {
	return Limits{
		BodyBytes: 1 << 20, BatchItems: 1000, TransactionBytes: 128 << 10,
		HeaderBytes: 8 << 10, Connections: 4096,
		Streams: 256, ClientStreams: ClientStreams, StreamSilence: 15 * time.Second, StreamWrite: 10 * time.Second,
		HeaderTimeout: 5 * time.Second, ReadTimeout: 15 * time.Second,
		WriteTimeout: 30 * time.Second, IdleTimeout: time.Minute, WorkTimeout: 10 * time.Second,
	}
}

// api is the configuration with the routes' methods.
type api struct {
	Config
	more    []kind // of a [Front]
	limiter *limiter
	refused seldom // clients, by quotas
	// internal: the listener is not for clients.
	internal bool
	follows  chan struct{} // a place for each stream of events
	owned    owned
	groups   event.Codec[group.Event]
	// streaming and waiting are the clients' shares of what rests.
	streaming, waiting rests
	// published makes the contract's forms, once.
	published func() (published, error)
}

func newAPI(c Config) *api {
	if c.Lists == nil {
		c.Lists = NewLists()
	}
	if c.Scans == nil {
		c.Scans = NewScans()
	}
	return &api{Config: c, limiter: newLimiter(cmp.Or(c.Rates.Clients, RateClients)), follows: make(chan struct{}, c.Limits.Streams), groups: group.Codec(), published: publishing()}
}

// endpoint answers a request, or says with an error why not; then it has written
// nothing.
type endpoint func(w http.ResponseWriter, r *http.Request) error

// A route is one method on one path, and what a client needs for it.
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
		{http.MethodGet, "/health", public, nobody, a.health},
		{http.MethodGet, "/livez", probing, nobody, a.live},
		{http.MethodGet, "/readyz", probing, nobody, a.ready},
	}
}

// New makes the handler of the public listener. A configuration that cannot work
// panics.
func New(c Config) http.Handler {
	switch {
	case len(c.CursorKey) < CursorKeyBytes:
		panic("api: the cursor key is too short")
	case c.Tail == nil:
		panic("api: there is nothing to wait with")
	case c.Limits.BodyBytes <= 0 || c.Limits.BatchItems <= 0 || c.Limits.TransactionBytes <= 0 || c.Limits.WorkTimeout <= 0,
		c.Limits.Streams <= 0 || c.Limits.StreamSilence <= 0 || c.Limits.StreamWrite <= 0:
		panic("api: a limit is not set")
	}
	a := newAPI(c)
	return a.requests(a.guarded(a.Access.keyless, crossOrigin(c.Origins, router(a.routes()))))
}

// Internal makes the handler of the listener that is not for clients: exposition
// answers GET /metrics. Of the configuration it does not need what delivers.
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
		// Whatever keys there are, /metrics needs none. On an address that other machines
		// reach it is for monitors, by whatever name, as soon as keys are in use.
		return !c.Admin.Exposed || c.Access.keyless()
	}, router(routes)))
}

// router matches paths as they were sent: it mends none and redirects nobody.
func router(routes []route) http.Handler {
	m := mux.NewRouter().SkipClean(true).UseEncodedPath()
	allowed := map[string][]string{}
	for _, t := range routes {
		if t.scope == "" {
			panic("api: nobody has said who may " + t.method + " " + t.path)
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
		if r.RequestURI == "*" { // also how a client of HTTP/2 begins
			return ErrInvalidRequest.Because("nothing is asked of *")
		}
		return ErrNotFound
	}}.serve)
	return m
}

// serve answers a request, or shows the problem.
func (t route) serve(w http.ResponseWriter, r *http.Request) {
	on := exchangeOf(r)
	if t.path != "" {
		on.route = t.path
	}
	err := on.api.admit(w, r, on, t.scope)
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
		on.fail(w, err)
	}
}

// work bounds what is done for a request once it has been read. A tenth of the
// time that net/http gives the answer is left for the answer itself.
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
