package delivery

import (
	"context"

	"github.com/tempo-watchtower/watchtower/api/rest"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/projections"
)

// enterGroups waits for a list place, and charges for an answer about a sender's groups, or
// about one of them. It charges one unit for each hundred of the client's own transactions that
// the answer sums up, and never more than the client's burst.
func (a *api) enterGroups(ctx context.Context, r rest.Request, v viewer, sender chain.Address, groupID *chain.GroupID) (leave func(), err error) {
	if leave, err = r.EnterList(ctx); err != nil || !v.sums(sender) {
		return leave, err
	}
	n, err := a.Groups.Query.Owned(ctx, sender, groupID, v.members(), rest.CountedMax)
	if err == nil {
		err = r.ChargeUpToBurst(max(1, n*rest.StepUnits/projections.StepRows))
	}
	if err != nil {
		leave()
		return nil, err
	}
	return leave, nil
}
