package delivery

import (
	"slices"
	"time"

	"github.com/tempo-watchtower/watchtower/api/rest"
	"github.com/tempo-watchtower/watchtower/domain/access"
	"github.com/tempo-watchtower/watchtower/eventlog"
)

// Figures of package rest on which charges and waits of delivery's routes depend.
const (
	absentStep  = 10 * time.Millisecond // answers about what is not shown wait for a multiple of it
	answerMax   = 64 << 10              // most bytes of an answer that is stored
	bodyUnit    = 16 << 10              // bytes that count as one request
	followBatch = 100                   // events that a stream reads at once
	listQueue   = 32                    // lists of one client that wait for a place
	listShare   = 3                     // places for lists that one client can hold
	stepsMax    = 20                    // steps of one page
)

// The two formats of an event stream.
const (
	typeSSE   = "text/event-stream"
	typeLines = "application/x-ndjson"
)

// Codes of package rest for errors that are not refusals.
const (
	chainUnavailable   = eventlog.Refusal("chain-unavailable")
	internal           = eventlog.Refusal("internal")
	invalidTransaction = eventlog.Refusal("invalid-transaction")
	txTooLarge         = eventlog.Refusal("tx-too-large")
	unavailable        = eventlog.Refusal("unavailable")
	wrongChain         = eventlog.Refusal("wrong-chain")
)

// allKinds are the rows of the table that maps refusals to HTTP.
func allKinds() []rest.Kind { return append(rest.Kinds(), kinds()...) }

// allRoutes are the routes of the public listener.
func allRoutes(c Config) []rest.Route { return newAPI(c).served(rest.NewFront(c.Config, kinds()...)) }

// isOpen reports whether a route needs no key.
func isOpen(r rest.Route) bool { return !slices.Contains(access.Scopes(), r.Scope) }
