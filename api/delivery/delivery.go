// Package delivery is the REST API of delivery: it accepts signed transactions and reports their
// status. openapi.yaml of package api is its contract.
//
// Its routes are served by a [rest.Front], and get a [rest.Request]. It imports packages api,
// api/rest and api/rpcroute, and no other package of api. What it serves under /rpc is answered by
// package api/jsonrpc, which it does not know.
package delivery

import (
	"context"
	"net/http"
	"net/url"
	"slices"

	"github.com/gorilla/mux"

	contracts "github.com/tempo-watchtower/watchtower/api"
	"github.com/tempo-watchtower/watchtower/api/rest"
	"github.com/tempo-watchtower/watchtower/api/rpcroute"
	"github.com/tempo-watchtower/watchtower/commands"
	"github.com/tempo-watchtower/watchtower/commands/tail"
	"github.com/tempo-watchtower/watchtower/domain/access"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/delivery/group"
	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
	"github.com/tempo-watchtower/watchtower/eventlog"
	"github.com/tempo-watchtower/watchtower/eventlog/states"
	"github.com/tempo-watchtower/watchtower/projections/delivery/transactions"
)

// Config holds the settings and dependencies of the API.
type Config struct {
	// Config is what it shares with the other APIs.
	rest.Config
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
	// Cancels are the places of cancels that read their groups or visit members, LargeCancels of
	// cancels with large answers; nil makes them.
	Cancels, LargeCancels *rest.Places
	// RPC answers /rpc; the zero value does not.
	RPC rpcroute.Endpoint
	// Canceler cancels groups.
	Canceler Canceler
	// Submitted, when set, is called for each raw transaction with its outcome: accepted,
	// known, refused or failed.
	Submitted func(outcome string)
}

// Board reads the due queue's rows of a chain's transactions, in any order. A transaction that
// needs no more work has no row.
type Board interface {
	Find(ctx context.Context, id chain.ID, hashes []chain.Hash) ([]tx.Work, error)
}

// api is the configuration plus caches and places. The routes are its methods.
type api struct {
	Config
	unread  rest.Seldom // limits the log lines about nonces of groups that could not be read
	owned   owned
	states  *states.States[tx.State] // of transactions that are followed
	groups  eventlog.Codec[group.Event]
	decodes *rest.Places // of reads that decode transactions
	nonces  *rest.Places // of reads of the next free nonce
}

func newAPI(c Config) *api {
	if c.Cancels == nil {
		c.Cancels = NewCancels()
	}
	if c.LargeCancels == nil {
		c.LargeCancels = NewLargeCancels()
	}
	a := &api{Config: c, groups: group.Codec(), decodes: newDecodes(), nonces: newNonces()}
	a.states = a.newStates()
	return a
}

// New returns the handler of the public listener. It panics if the configuration cannot work.
func New(c Config) http.Handler {
	switch {
	case c.Tail == nil:
		panic("delivery: there is no tail to wait with")
	case c.Limits.TransactionBytes <= 0:
		panic("delivery: a limit is not set")
	}
	front := rest.NewFront(c.Config, kinds()...)
	return front.Handler(newAPI(c).served(front))
}

// served returns all routes of the public listener: delivery's own, the documents' and the monitors'.
func (a *api) served(front *rest.Front) []rest.Route {
	return slices.Concat(a.kept(a.routes()), front.Contract(contracts.Delivery()), front.Problems(), front.Health())
}

// kept returns routes that restrict a client to its own transactions.
func (a *api) kept(routes []route) (all []rest.Route) {
	for _, t := range routes {
		all = append(all, rest.Route{
			Method: t.method, Path: t.path, Scope: t.scope, Once: t.once, Answer: t.answer,
			Within: func(r rest.Request) error { return a.within(r, t) },
		})
	}
	return all
}

// A route is one method on one path, with the scope that a client needs for it.
type route struct {
	method, path string
	scope        access.Scope
	keeps        keeps
	once         bool // see [rest.Route]
	answer       func(rest.Request) error
}

func (a *api) routes() []route {
	return []route{
		{http.MethodPost, "/v1/transactions", access.Submit, byItself, true, a.submit},
		{http.MethodGet, "/v1/transactions", access.Read, byItself, false, a.list},
		{http.MethodGet, "/v1/transactions/{hash}", access.Read, byHash, false, a.transaction},
		{http.MethodDelete, "/v1/transactions/{hash}", access.Cancel, byHash, false, a.stale},
		{http.MethodGet, "/v1/transactions/{hash}/events", access.Read, byHash, false, a.events},
		{http.MethodPost, "/rpc", access.RPC, byItself, false, a.rpc},
		{http.MethodPost, "/rpc/{chainId}", access.RPC, byItself, false, a.rpc},
		{http.MethodGet, "/v1/senders/{sender}/groups", access.Read, bySender, false, a.listGroups},
		{http.MethodGet, "/v1/senders/{sender}/groups/{groupId}", access.Read, bySender, false, a.group},
		{http.MethodPost, "/v1/senders/{sender}/groups/{groupId}/cancel", access.Cancel, bySender, true, a.cancelGroup},
		{http.MethodGet, "/v1/events", access.Read, byItself, false, a.follow},
	}
}

// hashOf reads the transaction hash in a request's path.
func hashOf(r rest.Request) (chain.Hash, error) {
	text, err := url.PathUnescape(mux.Vars(r.Request)["hash"])
	if err != nil {
		return chain.Hash{}, rest.InParameter("hash", ErrInvalidHash.Because("the path is not well escaped"))
	}
	hash, err := chain.ParseHash(text)
	if err != nil {
		return hash, rest.InParameter("hash", ErrInvalidHash.Because("%v", err))
	}
	return hash, nil
}
