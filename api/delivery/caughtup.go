package delivery

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/tempo-watchtower/watchtower/api/rest"
	"github.com/tempo-watchtower/watchtower/commands/delivery/grouping"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/eventlog"
	"github.com/tempo-watchtower/watchtower/eventlog/follower"
	"github.com/tempo-watchtower/watchtower/eventlog/projector"
	"github.com/tempo-watchtower/watchtower/projections/delivery/groups"
	"github.com/tempo-watchtower/watchtower/projections/delivery/owners"
	"github.com/tempo-watchtower/watchtower/projections/delivery/transactions"
)

// catchUpMax is the longest time that a request waits for the read models.
const catchUpMax = 3 * time.Second

// caughtUp waits until the groups of a sender show every acceptance that was recorded before the
// call and that the viewer may read: these transactions have joined their groups, and the read models
// have applied it. So a client that got a transaction's acceptance, from any replica, finds the
// transaction in its group. A group sums up many streams; a request can fold one transaction's
// stream itself, but not all of these.
//
// The grouper is slower than the read models. It need not have reached the end of the log, but the
// newest of these acceptances, which the read models know: transactions of other clients delay no
// request by the time that it takes to group them. A transaction that only claims its sender has no
// such acceptance: after its claim is confirmed it joins within the grouper's own time.
//
// Each poll takes a place: the grouper's checkpoint and the log's end are read on connections that
// leases use, the other checkpoints on connections of lists. No place is held between two polls.
func (a *api) caughtUp(ctx context.Context, r rest.Request, v viewer, sender chain.Address) error {
	ctx, cancel := context.WithTimeoutCause(ctx, catchUpMax, catchingUp)
	defer cancel()
	queue := func(ctx context.Context) (func(), error) { return a.queuePlace(ctx, r) }
	head := placed(queue, a.Submit.Transactions.Store.Head)
	joined := placed(queue, func(ctx context.Context) (eventlog.Position, error) {
		return a.Groups.Checkpoints.Checkpoint(ctx, grouping.Reader)
	})
	accepted := []positionRead{placed(r.EnterList, a.checkpoint(transactions.Name)), placed(r.EnterList, a.checkpoint(owners.Name))}
	models := []positionRead{placed(r.EnterList, a.checkpoint(groups.Name)), accepted[0]}
	if v.members() != nil {
		models = append(models, accepted[1])
	}
	newest := placed(r.EnterList, func(ctx context.Context) (eventlog.Position, error) {
		return a.Query.Newest(ctx, sender, v.names, v.members() == nil)
	})
	if err := a.awaitGrouper(ctx, head, joined, accepted, newest); err != nil {
		return err
	}
	// The joins were appended to the log as well, so the read models must reach its new end.
	return a.reached(ctx, head, models...)
}

// awaitGrouper waits until the grouper has passed the newest acceptance that concerns the viewer. It
// looks for that acceptance only if the grouper is behind the log.
func (a *api) awaitGrouper(ctx context.Context, head, joined positionRead, accepted []positionRead, newest positionRead) error {
	end, err := head(ctx)
	if err != nil {
		return a.behind(ctx, err)
	}
	if at, err := joined(ctx); err != nil || at >= end {
		return a.behind(ctx, err)
	}
	if err := a.reached(ctx, head, accepted...); err != nil {
		return err
	}
	return a.reached(ctx, newest, joined)
}

// positionRead is a function that reads a position of the log: its end, or a checkpoint.
type positionRead = func(context.Context) (eventlog.Position, error)

// placed returns a read that takes a place and gives it back.
func placed(place rest.Place, read positionRead) positionRead {
	return func(ctx context.Context) (eventlog.Position, error) { return rest.Placed(ctx, place, read) }
}

// checkpoint returns the function that reads a read model's checkpoint.
func (a *api) checkpoint(name string) positionRead {
	p := projector.Projector{Name: name, DB: a.Query.DB}
	return p.Checkpoint
}

// ownersKnown waits until the owners are known of all transactions that lists show, if the
// viewer's lists depend on owners. It only has to wait while the owners' read model is built
// for the first time or rebuilt: a list never omits rows because of that.
func (a *api) ownersKnown(ctx context.Context, v viewer) error {
	if v.audits() {
		return nil
	}
	ctx, cancel := context.WithTimeoutCause(ctx, catchUpMax, catchingUp)
	defer cancel()
	at, err := a.checkpoint(transactions.Name)(ctx)
	if err == nil {
		err = follower.Reached(ctx, at, a.checkpoint(owners.Name))
	}
	if err != nil {
		return a.behind(ctx, err)
	}
	return nil
}

// reached waits until the readers have reached the present end of the log.
func (a *api) reached(ctx context.Context, end positionRead, readers ...positionRead) error {
	head, err := end(ctx)
	for i := 0; err == nil && i < len(readers); i++ {
		err = follower.Reached(ctx, head, readers[i])
	}
	if err != nil {
		return a.behind(ctx, err)
	}
	return nil
}

// behind returns catchingUp if the wait timed out, a refusal as it is, and other errors wrapped.
func (a *api) behind(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	if context.Cause(ctx) == catchingUp { //nolint:errorlint // it is this very value
		return catchingUp.Because("the read models have not reached the end of the log within %s", catchUpMax)
	}
	if errors.Is(err, rest.ErrRateLimited) {
		return err
	}
	return fmt.Errorf("read the read models' checkpoints: %w", err)
}
