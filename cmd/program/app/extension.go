package app

import (
	"context"
	"net"
	"net/http"

	"github.com/tempo-watchtower/watchtower/api/rest"
	"github.com/tempo-watchtower/watchtower/cmd/program/config"
	"github.com/tempo-watchtower/watchtower/domain/payload"
	"github.com/tempo-watchtower/watchtower/eventlog"
	"github.com/tempo-watchtower/watchtower/eventlog/lease"
	"github.com/tempo-watchtower/watchtower/eventlog/projector"
	"github.com/tempo-watchtower/watchtower/infra/chain/rpc"
)

// Extension is what a program adds to delivery, and runs in the same process. It uses delivery as
// a client does.
// The zero Extension adds nothing.
type Extension struct {
	// Run works until the service's work stops, and closes the resources opened for it.
	Run func(context.Context)
	// Server, when set, serves on Listener as long as delivery's own listeners serve. It stops
	// with them: it finishes its open requests before the work stops.
	Server   *http.Server
	Listener net.Listener
	// Admin are further operator routes on the internal listener, and Kinds the error kinds with
	// which these refuse.
	Admin []rest.Route
	Kinds []rest.Kind
	// Program is the name of the program, as the console shows it; empty: watchtower.
	Program string
	// Wants reports whether to keep bytes in the vault that no transaction names; nil keeps
	// none.
	Wants func(ctx context.Context, ref payload.Ref) (bool, error)
}

// Extend builds the service's extension, which may use the exported parts of the service. Call
// it before Open. pools are the pools of the configuration's chains, in its order.
func (a *App) Extend(c config.Config, pools []*rpc.Pool, build func(*App) (Extension, error)) error {
	a.Pools, a.Front = pools, a.front(c)
	var err error
	a.extension, err = build(a)
	return err
}

// wants reports whether the extension wants bytes that no transaction names.
func (a *App) wants(ctx context.Context, ref payload.Ref) (bool, error) {
	if a.extension.Wants == nil {
		return false, nil
	}
	return a.extension.Wants(ctx, ref)
}

// Owner acquires leases for this process, in delivery's lease table.
func (a *App) Owner() lease.Owner { return a.Settings.owner(a.Ports.Storage.Leases, a.Ports.Log) }

// Read runs a reader of the log while this process holds the lease called name, until ctx ends.
// The reader is monitored like delivery's own if it reports its position with [App.Moved].
func (a *App) Read(ctx context.Context, name string, work func(context.Context) error) {
	a.own(name, work)(ctx)
}

// Moved records a reader's position.
func (a *App) Moved(reader string, at eventlog.Position) { a.moved(reader, at) }

// Project keeps a read model, which has a name, a filter and a fold, up to date until ctx ends.
// It reads the same log as delivery's own, is monitored in the same way, and runs on one replica
// at a time.
func (a *App) Project(ctx context.Context, p projector.Projector) {
	p.DB, p.Log = a.Ports.Storage.View, a.Store
	p.Moved = func(at eventlog.Position, _ bool) { a.moved(p.Name, at) }
	a.own(projectionPrefix+p.Name, p.Run)(ctx)
}
