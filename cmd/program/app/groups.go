package app

import (
	"context"
	"fmt"

	"github.com/tempo-watchtower/watchtower/api/delivery"
	"github.com/tempo-watchtower/watchtower/commands/delivery/grouping"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/eventlog"
	"github.com/tempo-watchtower/watchtower/eventlog/projector"
	"github.com/tempo-watchtower/watchtower/projections/delivery/groups"
)

// groupParts lists the parts that build groups and their read model; one replica runs each.
func (a *App) groupParts(own func(string, func(context.Context) error) func(context.Context)) []func(context.Context) {
	parts := []func(context.Context){
		own(grouping.Reader, a.grouper().Run),
		own(projectionPrefix+groups.Name, a.groupProjector().Run),
	}
	for _, c := range a.Ports.Chains {
		parts = append(parts, own(fmt.Sprintf("grouping.keys.%s", c.ID), a.verifier(c).Run))
	}
	return parts
}

// shownGroups is the API's access to groups.
func (a *App) shownGroups() delivery.Groups {
	shown := delivery.Groups{
		Query: groups.Query{DB: a.Ports.Storage.View}, Checkpoints: a.Ports.Storage.Checkpoints, Nonces: map[chain.ID]func(string) delivery.Nonces{},
	}
	for _, c := range a.Ports.Chains {
		shown.Nonces[c.ID] = func(client string) delivery.Nonces { return c.OnBehalf(client) }
	}
	return shown
}

func (a *App) grouper() *grouping.Grouper {
	return &grouping.Grouper{
		Store: a.Store, Checkpoints: a.Ports.Storage.Checkpoints, Transactions: a.Transactions, Groups: a.groups,
		Now: a.Ports.Now, Log: a.Ports.Log,
		Moved: func(at eventlog.Position) {
			a.moved(grouping.Reader, at)
		},
		LeftOut: func(on chain.ID, transactions int) {
			a.Ports.Metrics.LeftOut(on.String(), transactions)
		},
	}
}

func (a *App) verifier(c Chain) *grouping.Verifier {
	return &grouping.Verifier{
		Chain: c.ID, Claims: groups.Query{DB: a.Ports.Storage.View}, Keychain: c.Keychain,
		Transactions: a.Transactions, Vault: a.Vault, Decode: Decode, Poll: a.Settings.WatcherPoll,
		Now: a.Ports.Now, Log: a.Ports.Log,
	}
}

func (a *App) groupProjector() *projector.Projector {
	return &projector.Projector{
		Name: groups.Name, DB: a.Ports.Storage.View, Log: a.Store, Filter: groups.Filter(),
		Fold: groups.Projection{Groups: a.groups.Codec, Transactions: a.Transactions.Codec}.Fold,
		Moved: func(at eventlog.Position, _ bool) {
			a.moved(groups.Name, at)
		},
	}
}
