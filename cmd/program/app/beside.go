package app

import (
	"context"
	"net"
	"net/http"

	"github.com/tempo-watchtower/watchtower/api"
	"github.com/tempo-watchtower/watchtower/cmd/program/config"
	"github.com/tempo-watchtower/watchtower/commands"
	"github.com/tempo-watchtower/watchtower/commands/tail"
	"github.com/tempo-watchtower/watchtower/domain/payload"
	"github.com/tempo-watchtower/watchtower/eventlog"
	"github.com/tempo-watchtower/watchtower/eventlog/lease"
	"github.com/tempo-watchtower/watchtower/eventlog/port"
	"github.com/tempo-watchtower/watchtower/eventlog/projector"
	"github.com/tempo-watchtower/watchtower/infra/chain/rpc"
)

// Inside is the parts of delivery, for a program that runs beside it in the same process.
type Inside struct {
	Ports        Ports
	Settings     Settings
	Store        port.Store // the log, as delivery writes it
	Transactions commands.Transactions
	Vault        commands.Vault
	Submit       *commands.Submit // accepts transactions as the API does
	Pools        []*rpc.Pool      // of the configuration's chains, in its order
	Tail         *tail.Tail       // where requests wait for recorded events; closed before the service stops
	// Front is the configuration that APIs beside delivery's share with it: see [api.NewFront].
	Front api.Config

	app *App
}

// Part runs in this process beside delivery.
type Part struct {
	// Run works until the service's work stops, and closes the resources opened for it.
	Run func(context.Context)
	// Server, when set, serves on Listener as long as delivery's own listeners serve. It stops
	// with them: it finishes its open requests before the work stops.
	Server   *http.Server
	Listener net.Listener
	// Admin are the part's operator routes on the internal listener, and Kinds the error kinds
	// with which these refuse.
	Admin []api.Route
	Kinds []api.Kind
	// Wants reports whether to keep bytes in the vault that no transaction names; nil keeps
	// none.
	Wants func(ctx context.Context, ref payload.Ref) (bool, error)
}

// Inside returns the parts of delivery under this configuration. pools are the pools of its
// chains, in its order.
func (a *App) Inside(c config.Config, pools []*rpc.Pool) Inside {
	return Inside{
		Ports: a.ports, Settings: a.settings, Store: a.store, Transactions: a.transactions,
		Vault: a.vault, Submit: a.submit, Pools: pools, Tail: a.tail, Front: a.front(c), app: a,
	}
}

// Beside registers a part that runs beside delivery, as a customer of it, from Run until the
// service's work stops. Call it before Open.
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

// Owner acquires leases for this process, in delivery's lease table.
func (i Inside) Owner() lease.Owner { return i.Settings.owner(i.Ports.Storage.Leases, i.Ports.Log) }

// Read runs a reader of the log while this process holds the lease called name, until ctx ends.
// The reader is monitored like delivery's own if it reports its position with [Inside.Moved].
func (i Inside) Read(ctx context.Context, name string, work func(context.Context) error) {
	i.app.own(name, work)(ctx)
}

// Moved records a reader's position.
func (i Inside) Moved(reader string, at eventlog.Position) { i.app.moved(reader, at) }

// Project keeps a read model, which has a name, a filter and a fold, up to date until ctx ends.
// It reads the same log as delivery's own, is monitored in the same way, and runs on one replica
// at a time.
func (i Inside) Project(ctx context.Context, p projector.Projector) {
	p.DB, p.Log = i.Ports.Storage.View, i.Store
	p.Moved = func(at eventlog.Position, _ bool) { i.app.moved(p.Name, at) }
	i.app.own(projectionPrefix+p.Name, p.Run)(ctx)
}
