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
	"github.com/tempo-watchtower/watchtower/projections/transactions"
)

// catchUpMax is how long a request waits for the read models.
const catchUpMax = 3 * time.Second

// caughtUp waits until groups show everything that was recorded when it was called:
// that every accepted transaction has joined its group, and that the read models
// have seen it. Whoever was told that a transaction is accepted finds it in its
// group. A group is a sum over many streams, which no request could fold by itself,
// as it does for one transaction.
func (a *api) caughtUp(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, catchUpMax, catchingUp)
	defer cancel()
	joined := func(ctx context.Context) (event.Position, error) {
		return a.Groups.Checkpoints.Checkpoint(ctx, grouping.Reader)
	}
	if err := a.reached(ctx, joined); err != nil {
		return err
	}
	// What joined was recorded, too: behind that the read models are to be.
	shown := func(name string) func(context.Context) (event.Position, error) {
		p := projections.Projector{Name: name, DB: a.Groups.Query.DB}
		return p.Checkpoint
	}
	return a.reached(ctx, shown(groups.Name), shown(transactions.Name))
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
