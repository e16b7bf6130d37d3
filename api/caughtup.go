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

// catchUpMax is the longest time that a request waits for the read models.
const catchUpMax = 3 * time.Second

// caughtUp waits until the groups show every event that was recorded before the call: every
// accepted transaction has joined its group, and the read models have applied it. So a client
// that got a transaction's acceptance finds the transaction in its group. A group sums up many
// streams; a request can fold one transaction's stream itself, but not all of these.
func (a *api) caughtUp(ctx context.Context, v viewer) error {
	ctx, cancel := context.WithTimeoutCause(ctx, catchUpMax, catchingUp)
	defer cancel()
	joined := func(ctx context.Context) (event.Position, error) {
		return a.Groups.Checkpoints.Checkpoint(ctx, grouping.Reader)
	}
	if err := a.reached(ctx, joined); err != nil {
		return err
	}
	// The joins were appended to the log as well, so the read models must reach its new end.
	models := []func(context.Context) (event.Position, error){a.checkpoint(groups.Name), a.checkpoint(transactions.Name)}
	if v.members() != nil {
		models = append(models, a.checkpoint(owners.Name))
	}
	return a.reached(ctx, models...)
}

// checkpoint returns the function that reads a read model's checkpoint.
func (a *api) checkpoint(name string) func(context.Context) (event.Position, error) {
	p := projections.Projector{Name: name, DB: a.Query.DB}
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
		err = commands.Reached(ctx, at, a.checkpoint(owners.Name))
	}
	if err != nil {
		return a.behind(ctx, err)
	}
	return nil
}

// reached waits until the readers have reached the present end of the log.
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

// behind returns catchingUp if the wait timed out, and other errors wrapped.
func (a *api) behind(ctx context.Context, err error) error {
	if context.Cause(ctx) == catchingUp { //nolint:errorlint // it is this very value
		return catchingUp.Because("the read models have not reached the end of the log within %s", catchUpMax)
	}
	return fmt.Errorf("read the read models' checkpoints: %w", err)
}
