package app

import (
	"context"

	"github.com/tempo-watchtower/watchtower/commands"
	"github.com/tempo-watchtower/watchtower/infra/chain/rpc"
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
}

// Inside shows what delivery is made of. pools are those of the configuration's chains, in
// its order.
func (a *App) Inside(pools []*rpc.Pool) Inside {
	return Inside{
		Ports: a.ports, Settings: a.settings, Store: a.store, Transactions: a.transactions,
		Vault: a.vault, Submit: a.submit, Pools: pools,
	}
}

// Beside has a part run beside delivery, as a customer of it, from Run on until the
// service's work stops.
func (a *App) Beside(part func(context.Context)) { a.beside = append(a.beside, part) }

// Owner takes leases for this process, where delivery takes them.
func (i Inside) Owner() commands.Owner { return i.Settings.owner(i.Ports.Storage.Leases, i.Ports.Log) }
