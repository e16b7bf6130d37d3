// Package relay is the REST API of the relay: it accepts intents from clients and reports their
// status. openapi.yaml is its contract. This package signs nothing, and the relay never signs
// bytes that a client sent: an intent only lists the calls to make.
//
// Package rest serves its routes, with the same problems, keys and rates as delivery's. Of the packages
// of api it imports rest alone. A client sees only its own intents; other clients' intents do not exist
// for it.
package relay

import (
	"context"
	_ "embed"
	"net/http"
	"slices"

	"github.com/tempo-watchtower/watchtower/api/rest"
	"github.com/tempo-watchtower/watchtower/commands"
	"github.com/tempo-watchtower/watchtower/commands/relay/intake"
	"github.com/tempo-watchtower/watchtower/commands/tail"
	"github.com/tempo-watchtower/watchtower/domain/access"
	"github.com/tempo-watchtower/watchtower/domain/relay/intent"
	"github.com/tempo-watchtower/watchtower/eventlog"
	"github.com/tempo-watchtower/watchtower/eventlog/states"
	"github.com/tempo-watchtower/watchtower/projections/relay/intents"
)

// Config holds the settings and dependencies of the API.
type Config struct {
	// API is the configuration that all APIs share: see [rest.NewFront].
	API    rest.Config
	Intake *intake.Desk
	// Query reads the rows of the read model.
	Query intents.Query
	// Tail is where requests wait for new events.
	Tail *tail.Tail
	// Client returns the owner of intents that are requested with a key; nil means
	// [access.Key.Owner].
	Client func(access.Key) string
	// Webhooks is nil if webhook delivery is off. With it, the intake checks webhooks' URLs.
	Webhooks *Webhooks
	// MessageData is the most bytes of inputs of an intent's calls in an event.
	MessageData int
	// WaitsFor, when set, returns the reason why an intent is not signed yet; nil if none is
	// known.
	WaitsFor func(ctx context.Context, row intents.Row) (*WaitsFor, error)
	// Fleet are the signers, pools and lanes.
	Fleet *Fleet
	// RPC answers the routes of /rpc, by which wallets use the relay as their node; nil: there are none.
	RPC func(rest.Request) error
}

// contractYAML is the contract as written.
//
//go:embed openapi.yaml
var contractYAML []byte

// desk is the configuration plus caches. The routes are its methods.
type desk struct {
	Config
	owners   rest.Recent[eventlog.Stream, string] // owner of each intent's stream
	tellings [2]tellings                          // public forms of the newest events, by viewer
	stories  *states.States[intent.Story]         // of intents that are followed
	tries    *commands.Places[string]             // places of test deliveries
	// diagnoses are the places of diagnoses of lanes.
	diagnoses *rest.Places
}

// New returns the handler of the relay's listener. It panics if the configuration cannot work.
func New(c Config) http.Handler {
	if c.Intake == nil || c.Tail == nil {
		panic("relay: the intake or the tail is missing")
	}
	if c.Webhooks != nil && c.Intake.Webhooks == nil {
		panic("relay: the intake checks no webhooks")
	}
	if c.Client == nil {
		c.Client = access.Key.Owner
	}
	if c.Fleet == nil {
		panic("relay: the fleet is missing")
	}
	front := rest.NewFront(c.API, kinds()...)
	d := &desk{Config: c, tries: commands.NewPlaces[string](tryPlaces, tryShare, tryQueue), diagnoses: rest.NewPlaces(diagnosePlaces, diagnoseShare, diagnoseQueue)}
	d.stories = d.newStories()
	return front.Handler(d.served(front))
}

// served returns all routes of the relay's listener.
func (d *desk) served(front *rest.Front) []rest.Route {
	return slices.Concat(d.routes(), front.Contract(contractYAML), front.Problems())
}

func (d *desk) routes() []rest.Route {
	return slices.Concat(d.webhookRoutes(), d.fleetRoutes(), d.rpcRoutes(), []rest.Route{
		{Method: http.MethodPost, Path: "/v1/intents", Scope: access.Submit, Answer: d.create},
		{Method: http.MethodGet, Path: "/v1/intents", Scope: access.Read, Answer: d.list},
		{Method: http.MethodGet, Path: "/v1/intents/{id}", Scope: access.Read, Answer: d.intent},
		{Method: http.MethodGet, Path: "/v1/intents/{id}/events", Scope: access.Read, Answer: d.events},
		{Method: http.MethodPost, Path: "/v1/intents/{id}/cancel", Scope: access.Cancel, Answer: d.cancel},
		{Method: http.MethodPost, Path: "/v1/intents/{id}/speed-up", Scope: access.Submit, Answer: d.speedUp},
		{Method: http.MethodGet, Path: "/v1/events", Scope: access.Read, Answer: d.follow},
	})
}

func (d *desk) rpcRoutes() (all []rest.Route) {
	if d.RPC == nil {
		return nil
	}
	for _, path := range []string{"/rpc", "/rpc/{chainId}", "/rpc/{chainId}/{pool}"} {
		all = append(all, rest.Route{Method: http.MethodPost, Path: path, Scope: access.RPC, Answer: d.RPC})
	}
	return all
}

// client returns the owner of the intents of a request. All requests without a key belong to
// one client.
func (d *desk) client(r rest.Request) string {
	key, ok := r.Key()
	if !ok {
		return ""
	}
	return d.Client(key)
}

// reach returns the client whose intents a request may read; nil for every client's, with the
// scopes audit and admin.
func (d *desk) reach(r rest.Request) *string {
	if key, ok := r.Key(); ok && key.Audits() {
		return nil
	}
	client := d.client(r)
	return &client
}

// sway returns the client whose intents and endpoints a request may change; nil for every
// client's, with the scope admin. The scope audit gives no right to change.
func (d *desk) sway(r rest.Request) *string {
	if key, ok := r.Key(); ok && key.May(access.Admin) {
		return nil
	}
	client := d.client(r)
	return &client
}
