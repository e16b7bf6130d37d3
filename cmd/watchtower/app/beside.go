package app

import (
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

func (a *App) inside(pools []*rpc.Pool) Inside {
	return Inside{
		Ports: a.ports, Settings: a.settings, Store: a.store, Transactions: a.transactions,
		Vault: a.vault, Submit: a.submit, Pools: pools,
	}
}

// Owner takes leases for this process, where delivery takes them.
func (i Inside) Owner() commands.Owner { return i.Settings.owner(i.Ports.Storage.Leases, i.Ports.Log) }
