package api

import (
	"context"
	"fmt"
	"time"

	"github.com/tempo-watchtower/watchtower/commands"
	"github.com/tempo-watchtower/watchtower/commands/grouping"
	"github.com/tempo-watchtower/watchtower/domain/event"
	"github.com/tempo-watchtower/watchtower/projections"
	"github.com/tempo-watchtower/watchtower/projections/groups"
	"github.com/tempo-watchtower/watchtower/projections/owners"
	"github.com/tempo-watchtower/watchtower/projections/transactions"
)

// catchUpMax is how long a request waits for the read models.
const catchUpMax = 3 * time.Second

// caughtUp waits until groups show everything that was recorded when it was called:
// that every accepted transaction has joined its group, and that the read models
// have seen it. Whoever was told that a transaction is accepted finds it in its
// group. A group is a sum over many streams, which no request could fold by itself,
// as it does for one transaction.
func (a *api) caughtUp(ctx context.Context, v viewer) error {
	ctx, cancel := context.WithTimeoutCause(ctx, catchUpMax, catchingUp)
	defer cancel()
	joined := func(ctx context.Context) (event.Position, error) {
		return a.Groups.Checkpoints.Checkpoint(ctx, grouping.Reader)
	}
	if err := a.reached(ctx, joined); err != nil {
		return err
	}
	// What joined was recorded, too: behind that the read models are to be.
	models := []func(context.Context) (event.Position, error){a.checkpoint(groups.Name), a.checkpoint(transactions.Name)}
	if v.members() != nil {
		models = append(models, a.checkpoint(owners.Name))
	}
	return a.reached(ctx, models...)
}

// checkpoint reads how far a read model is.
func (a *api) checkpoint(name string) func(context.Context) (event.Position, error) {
	p := projections.Projector{Name: name, DB: a.Query.DB}
	return p.Checkpoint
}

// ownersKnown waits until the owners are known of all transactions that lists show, if
// the viewer's lists depend on that. It is so at all times but while the owners' read
// model is made for the first time, or rebuilt: a list is not short of what is not yet in
// it.
func (a *api) ownersKnown(ctx context.Context, v viewer) error {
	if v.audits() {
		return nil
	}
	ctx, cancel := context.WithTimeoutCause(ctx, catchUpMax, catchingUp)
	defer cancel()
	at, err := a.checkpoint(transactions.Name)(ctx)
	if err == nil {
		err = commands.Reached(ctx, at, a.checkpoint(owners.Name))
	}
	if err != nil {
		return a.behind(ctx, err)
	}
	return nil
}

// reached waits until readers have come to where the log ends now.
func (a *api) reached(ctx context.Context, readers ...func(context.Context) (event.Position, error)) error {
	head, err := a.Submit.Transactions.Store.Head(ctx)
	for i := 0; err == nil && i < len(readers); i++ {
		err = commands.Reached(ctx, head, readers[i])
	}
	if err != nil {
		return a.behind(ctx, err)
	}
	return nil
}

// behind tells running out of patience from other trouble.
func (a *api) behind(ctx context.Context, err error) error {
	if context.Cause(ctx) == catchingUp { //nolint:errorlint // it is this very value
		return catchingUp.Because("the read models have not come to the end of the log within %s", catchUpMax)
	}
	return fmt.Errorf("read how far the read models are: %w", err)
}
