package app

import (
	"cmp"
	"context"
	"encoding/hex"

	"github.com/tempo-watchtower/watchtower/commands/delivery/canceler"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
	"github.com/tempo-watchtower/watchtower/eventlog"
	"github.com/tempo-watchtower/watchtower/infra/chain/tempo"
	"github.com/tempo-watchtower/watchtower/projections/delivery/transactions"
)

// stale returns, for each configured chain, the function that asks it about used nonces in a
// client's name.
func (a *App) stale() map[chain.ID]func(context.Context, string, chain.Hash, eventlog.Meta) (tx.State, error) {
	ask := map[chain.ID]func(context.Context, string, chain.Hash, eventlog.Meta) (tx.State, error){}
	for _, c := range a.Ports.Chains {
		w := a.watcher(c)
		ask[c.ID] = func(ctx context.Context, client string, hash chain.Hash, meta eventlog.Meta) (tx.State, error) {
			return w.Stale(ctx, c.OnBehalf(client), hash, meta)
		}
	}
	return ask
}

// canceler cancels groups, for the API and as a process manager.
func (a *App) canceler() *canceler.Canceler {
	c := &canceler.Canceler{
		Store: a.Store, Checkpoints: a.Ports.Storage.Checkpoints, Transactions: a.Transactions, Groups: a.groups,
		Payloads: a.Ports.Storage.Payloads, CatchUp: a.grouper().CatchUp,
		Check: tempo.CheckPrimitive, Verify: tempo.VerifyPrimitive,
		Deployment: a.deployment(), GroupIDForm: a.Settings.GroupIDSignatures,
		Moved: func(at eventlog.Position) { a.moved(canceler.Reader, at) },
		Now:   a.Ports.Now, Crash: a.Ports.Crash, Log: a.Ports.Log,
	}
	rows := transactions.Query{DB: a.Ports.Storage.View}
	c.Rows = func(ctx context.Context, id chain.ID, hashes []chain.Hash) (map[chain.Hash]tx.State, error) {
		all, err := rows.FindAll(ctx, id, hashes)
		found := make(map[chain.Hash]tx.State, len(all))
		for _, r := range all {
			found[r.State.Accepted.Hash] = r.State
		}
		return found, err
	}
	for _, chain := range a.Ports.Chains {
		c.Chains = append(c.Chains, chain.ID)
	}
	return c
}

// deployment is the name in owners' signatures: the configured name, or one derived from the
// vault's key, which all replicas share and other deployments do not.
func (a *App) deployment() string {
	return cmp.Or(a.Settings.Deployment, hex.EncodeToString(a.Ports.Master.Derive("deployment")[:8]))
}
