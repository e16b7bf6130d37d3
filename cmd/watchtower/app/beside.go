package app

import (
	"context"
	"net"
	"net/http"

	"github.com/tempo-watchtower/watchtower/api"
	"github.com/tempo-watchtower/watchtower/cmd/watchtower/config"
	"github.com/tempo-watchtower/watchtower/commands"
	"github.com/tempo-watchtower/watchtower/commands/tail"
	"github.com/tempo-watchtower/watchtower/domain/event"
	"github.com/tempo-watchtower/watchtower/domain/payload"
	"github.com/tempo-watchtower/watchtower/infra/chain/rpc"
	"github.com/tempo-watchtower/watchtower/projections"
)

// Inside is what delivery is made of, for what runs beside it in the same process.
type Inside struct {
	Ports        Ports
	Settings     Settings
	Store        commands.Store // the log, as delivery writes it
	Transactions commands.Transactions
	Vault        commands.Vault
	Submit       *commands.Submit // which takes transactions on as the API does
	Pools        []*rpc.Pool      // of the configuration's chains, in its order
	Tail         *tail.Tail       // where requests wait for what is recorded; it leaves before the service stops
	// Front is what an API beside delivery's has in common with it: see [api.NewFront].
	Front api.Config

	app *App
}

// Part is what runs in this process beside delivery.
type Part struct {
	// Run works until the service's work stops, and closes what was opened for it.
	Run func(context.Context)
	// Server, when set, serves on Listener for as long as delivery's own listeners do,
	// and ends with them: with what it has begun, before the work stops.
	Server   *http.Server
	Listener net.Listener
	// Admin are its operators' routes on the internal listener, and Kinds what these are
	// refused with.
	Admin []api.Route
	Kinds []api.Kind
	// Wants reports whether bytes in the vault that no transaction names are wanted all the
	// same; nil wants none.
	Wants func(ctx context.Context, ref payload.Ref) (bool, error)
}

// Inside shows what delivery is made of, by this configuration. pools are those of its
// chains, in its order.
func (a *App) Inside(c config.Config, pools []*rpc.Pool) Inside {
	return Inside{
		Ports: a.ports, Settings: a.settings, Store: a.store, Transactions: a.transactions,
		Vault: a.vault, Submit: a.submit, Pools: pools, Tail: a.tail, Front: a.front(c), app: a,
	}
}

// Beside has a part run beside delivery, as a customer of it, from Run on until the
// service's work stops. It is to be said before Open.
func (a *App) Beside(p Part) { a.beside = append(a.beside, p) }

// wants reports whether any part wants bytes that no transaction names.
func (a *App) wants(ctx context.Context, ref payload.Ref) (bool, error) {
	for _, p := range a.beside {
		if p.Wants == nil {
			continue
		}
		if wanted, err := p.Wants(ctx, ref); err != nil || wanted {
			return wanted, err
		}
	}
	return false, nil
}

// Owner takes leases for this process, where delivery takes them.
func (i Inside) Owner() commands.Owner { return i.Settings.owner(i.Ports.Storage.Leases, i.Ports.Log) }

// Read runs a reader of the log while this process has the lease of its name, until ctx
// ends: it is watched as delivery's own are, as far as it tells where it is ([Inside.Moved]).
func (i Inside) Read(ctx context.Context, name string, work func(context.Context) error) {
	i.app.own(name, work)(ctx)
}

// Moved notes where a reader is.
func (i Inside) Moved(reader string, at event.Position) { i.app.moved(reader, at) }

// Project keeps a read model, which has a name, a filter and a fold, up to date until ctx
// ends: beside delivery's own, from the same log, watched in the same way, and by one
// replica at a time.
func (i Inside) Project(ctx context.Context, p projections.Projector) {
	p.DB, p.Log = i.Ports.Storage.View, i.Store
	p.Moved = func(at event.Position, _ bool) { i.app.moved(p.Name, at) }
	i.app.own(projectionPrefix+p.Name, p.Run)(ctx)
}
