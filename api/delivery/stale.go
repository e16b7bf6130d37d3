package delivery

import (
	"context"
	"maps"
	"net/http"
	"slices"

	"github.com/tempo-watchtower/watchtower/api/rest"
	"github.com/tempo-watchtower/watchtower/commands"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
	"github.com/tempo-watchtower/watchtower/projections/delivery/transactions"
)

// stale answers DELETE /v1/transactions/{hash}.
func (a *api) stale(r rest.Request) error {
	hash, id, _, err := named(r, "chainId")
	if err != nil {
		return err
	}
	ctx, cancel := r.Work()
	defer cancel()
	if id, err = a.only(ctx, id, hash); err != nil {
		return err
	}
	ask := a.Stale[id]
	if ask == nil {
		return commands.ErrUnsupportedChain.Because("chain %s is not served here any more", id)
	}
	if _, err := ask(ctx, r.Client(), hash, r.Meta()); err != nil {
		return err
	}
	row, err := a.find(ctx, id, hash)
	if err != nil {
		return err
	}
	described, err := a.describe(ctx, a.viewer(r), []transactions.Row{row})
	if err != nil {
		return err
	}
	return r.Reply(http.StatusOK, described[0])
}

// only finds the one chain that has a transaction with this hash. A read may show the newest of
// several, but a change must name the chain.
func (a *api) only(ctx context.Context, id chain.ID, hash chain.Hash) (chain.ID, error) {
	found := map[chain.ID]bool{}
	rows, err := a.Query.Find(ctx, id, hash)
	if err != nil {
		return 0, err
	}
	for _, row := range rows {
		found[row.State.Accepted.Chain] = true
	}
	for _, id := range a.candidates(id) {
		for _, err := range a.stream(ctx, tx.Stream(id, hash), 0) {
			if err != nil {
				return 0, err
			}
			found[id] = true
			break
		}
	}
	switch chains := slices.Sorted(maps.Keys(found)); len(chains) {
	case 0:
		return 0, tx.ErrUnknown
	case 1:
		return chains[0], nil
	default:
		return 0, ErrAmbiguousChain.Because("it is on the chains %v: name one with chainId", chains)
	}
}
