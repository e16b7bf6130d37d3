package app

import (
	"context"
	"fmt"

	"github.com/tempo-watchtower/watchtower/api"
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
	for _, c := range a.ports.Chains {
		parts = append(parts, own(fmt.Sprintf("grouping.keys.%s", c.ID), a.verifier(c).Run))
	}
	return parts
}

// shownGroups is the API's access to groups.
func (a *App) shownGroups() api.Groups {
	shown := api.Groups{
		Query: groups.Query{DB: a.ports.Storage.View}, Checkpoints: a.ports.Storage.Checkpoints, Nonces: map[chain.ID]func(string) api.Nonces{},
	}
	for _, c := range a.ports.Chains {
		shown.Nonces[c.ID] = func(client string) api.Nonces { return c.OnBehalf(client) }
	}
	return shown
}

func (a *App) grouper() *grouping.Grouper {
	return &grouping.Grouper{
		Store: a.store, Checkpoints: a.ports.Storage.Checkpoints, Transactions: a.transactions, Groups: a.groups,
		Now: a.ports.Now, Log: a.ports.Log,
		Moved: func(at eventlog.Position) {
			a.moved(grouping.Reader, at)
		},
		LeftOut: func(on chain.ID, transactions int) {
			a.ports.Metrics.LeftOut(on.String(), transactions)
		},
	}
}

func (a *App) verifier(c Chain) *grouping.Verifier {
	return &grouping.Verifier{
		Chain: c.ID, Claims: groups.Query{DB: a.ports.Storage.View}, Keychain: c.Keychain,
		Transactions: a.transactions, Vault: a.vault, Decode: Decode, Poll: a.settings.WatcherPoll,
		Now: a.ports.Now, Random: a.ports.Random, Log: a.ports.Log,
	}
}

func (a *App) groupProjector() *projector.Projector {
	return &projector.Projector{
		Name: groups.Name, DB: a.ports.Storage.View, Log: a.store, Filter: groups.Filter(),
		Fold: groups.Projection{Groups: a.groups.Codec, Transactions: a.transactions.Codec}.Fold,
		Moved: func(at eventlog.Position, _ bool) {
			a.moved(groups.Name, at)
		},
	}
}
