// Package relay is the REST API of the relay: it takes on what clients want done, and
// tells what became of it. openapi.yaml is its contract. Nothing here signs, and nothing
// that a client sends is ever signed as it is: a client says what is to be called.
//
// It answers as package api does, of which it has its problems, keys and rates. A client
// sees its own intents alone: those of others are not there for it.
package relay

import (
	"context"
	_ "embed"
	"net/http"

	"github.com/tempo-watchtower/watchtower/api"
	"github.com/tempo-watchtower/watchtower/commands/intake"
	"github.com/tempo-watchtower/watchtower/commands/tail"
	"github.com/tempo-watchtower/watchtower/domain/access"
	"github.com/tempo-watchtower/watchtower/domain/event"
	"github.com/tempo-watchtower/watchtower/projections/intents"
)

// Config is what the API is made from.
type Config struct {
	// API is what it has in common with the one of delivery: see [api.NewFront].
	API    api.Config
	Intake *intake.Desk
	// Query reads the rows of the read model.
	Query intents.Query
	// Tail is where requests wait for what is recorded.
	Tail *tail.Tail
	// Client names whose intents those are that are asked for with a key; nil means
	// [access.Key.Owner].
	Client func(access.Key) string
	// Webhooks is nil where none are called.
	Webhooks *Webhooks
	// WaitsFor, when set, tells what keeps an intent from being signed for; nil when nothing
	// is known.
	WaitsFor func(ctx context.Context, row intents.Row) (*WaitsFor, error)
}

// contractYAML is the contract as it is written.
//
//go:embed openapi.yaml
var contractYAML []byte

// desk is the configuration with the routes' methods.
type desk struct {
	Config
	owners api.Recent[event.Stream, string] // whose intents are whose
}

// New makes the handler of the relay's listener. A configuration that cannot work
// panics.
func New(c Config) http.Handler {
	if c.Intake == nil || c.Tail == nil {
		panic("relay: there is nobody to serve clients, or nothing to wait with")
	}
	if c.Client == nil {
		c.Client = access.Key.Owner
	}
	return api.NewFront(c.API, kinds()...).Handler((&desk{Config: c}).routes())
}

func (d *desk) routes() []api.Route {
	return append(d.webhookRoutes(), []api.Route{
		{Method: http.MethodPost, Path: "/v1/intents", Scope: access.Submit, Answer: d.create},
		{Method: http.MethodGet, Path: "/v1/intents", Scope: access.Read, Answer: d.list},
		{Method: http.MethodGet, Path: "/v1/intents/{id}", Scope: access.Read, Answer: d.intent},
		{Method: http.MethodGet, Path: "/v1/intents/{id}/events", Scope: access.Read, Answer: d.events},
		{Method: http.MethodPost, Path: "/v1/intents/{id}/cancel", Scope: access.Cancel, Answer: d.cancel},
		{Method: http.MethodPost, Path: "/v1/intents/{id}/speed-up", Scope: access.Submit, Answer: d.speedUp},
		{Method: http.MethodGet, Path: "/v1/events", Scope: access.Read, Answer: d.follow},
		{Method: http.MethodGet, Path: "/openapi.yaml", Scope: api.Public, Answer: func(r api.Request) error {
			return r.Document("application/yaml", contractYAML)
		}},
	}...)
}

// client is whose intents a request is about. All who need no key are one client.
func (d *desk) client(r api.Request) string {
	key, ok := r.Key()
	if !ok {
		return ""
	}
	return d.Client(key)
}

// reach returns the client whose intents a request may read; nil is every client's, for
// the scopes audit and admin.
func (d *desk) reach(r api.Request) *string {
	if key, ok := r.Key(); ok && key.Audits() {
		return nil
	}
	client := d.client(r)
	return &client
}

// sway returns the client whose intents and endpoints a request may change; nil is every
// client's, for the scope admin. The scope audit changes nothing.
func (d *desk) sway(r api.Request) *string {
	if key, ok := r.Key(); ok && key.May(access.Admin) {
		return nil
	}
	client := d.client(r)
	return &client
}
