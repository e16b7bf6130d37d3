package worker

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/tempo-watchtower/watchtower/commands"
	"github.com/tempo-watchtower/watchtower/domain/relay/intent"
	"github.com/tempo-watchtower/watchtower/domain/relay/lane"
	"github.com/tempo-watchtower/watchtower/eventlog/pause"
)

// overError ends an actor: the lane's stream differs from the actor's state, or the log
// cannot be reached. The actor then releases its lease, so that another process can try.
type overError struct{ error }

func (e overError) Unwrap() error { return e.error }

func (a *actor) run(ctx context.Context) error {
	ctx, stop := context.WithCancel(ctx)
	defer a.measures.running.Wait()
	defer stop()
	tick := time.NewTicker(a.Settings.Poll)
	defer tick.Stop()
	for {
		began := a.Now()
		err := a.turn(ctx)
		a.report(began, err)
		if over := (overError{}); errors.As(err, &over) {
			return over.error
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		a.tell(err, a.Now())
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-a.box.wake:
			_ = pause.For(ctx, gather) // the turn checks ctx
		case <-tick.C:
			a.claim = a.claim || a.isDue()
		case <-a.calls.due(a.Now()):
		}
	}
}

// gather is the pause after a wake-up, so that one append covers several events.
const gather = 5 * time.Millisecond

// trouble is the last logged error of a lane's turns.
type trouble struct {
	text string // empty: none
	at   time.Time
}

// toldMax is the longest logged error, in bytes: many nonces may have the same error.
const toldMax = 1024

// tellEvery is how often a lasting error is logged again, so that a reader of later logs
// finds why intents wait.
const tellEvery = time.Minute

// tell logs an error when it begins, changes and ends, and from time to time while it
// lasts.
func (a *actor) tell(trouble error, now time.Time) {
	text := ""
	if trouble != nil {
		text = trouble.Error()
		text = text[:min(len(text), toldMax)]
	}
	switch {
	case text == a.trouble.text && (trouble == nil || now.Sub(a.trouble.at) < tellEvery):
		return
	case trouble != nil:
		a.Log.Warn("lane fails, retrying", "lane", lane.Stream(a.ID), "err", text)
	default:
		a.Log.Info("lane works again", "lane", lane.Stream(a.ID))
	}
	a.trouble.text, a.trouble.at = text, now
}

// turn takes the next steps with all nonces. The next turn retries a failed step; the later
// steps run all the same. Each step is in the file with its name, unless a name is given.
func (a *actor) turn(ctx context.Context) error {
	var trouble error
	a.silent = nil
	for _, step := range []func(context.Context) error{
		a.poll,    // read the chain's blocks
		a.look,    // ask the chain for the nonce it wants
		a.refresh, // read the nonces with news
		a.warn,    // funds.go: report a signer that lacks funds
		a.settle,  // tell intents what became of their attempts, close nonces
		a.expire,  // end intents whose deadline has passed
		a.giveWay, // take nonces from intents that cannot pay
		a.account, // funds.go: count the money in flight
		a.take,    // claim intents and reserve nonces for them
		a.remind,  // putoff.go: log why intents wait
		a.place,   // tell intents their nonces, take unwanted nonces back
		a.fill,    // give holes to no-ops
		a.square,  // return the budget of purposes without a nonce
		a.sign,    // order, price and sign attempts, store their bytes
		a.record,  // tell intents their attempts
		a.hand,    // hand attempts to delivery
	} {
		err := step(ctx)
		if over := (overError{}); errors.As(err, &over) || ctx.Err() != nil {
			return err
		}
		trouble = errors.Join(trouble, err)
	}
	return trouble
}

// command handles a command on the lane. A refusal leaves the lane unchanged. If this
// process no longer holds the lane, or on any other error, the actor ends.
func (a *actor) command(ctx context.Context, c lane.Command) error {
	next, err := a.Lanes.DoFrom(ctx, lane.Stream(a.ID), a.held, c, byLane())
	if err != nil && (errors.Is(err, lane.ErrFenced) || !commands.IsRefusal(err)) {
		return overError{fmt.Errorf("%T: %w", c, err)}
	}
	if err != nil {
		return fmt.Errorf("%T: %w", c, err)
	}
	a.held = next
	return nil
}

// tellIntent handles a command on the intent of a job.
func (a *actor) tellIntent(ctx context.Context, j *job, c intent.Command) error {
	r, err := a.Intents.DoFrom(ctx, intent.Stream(j.id), j.intent, c, aboutIntent(j.intent.State))
	if err != nil && !commands.IsRefusal(err) {
		return overError{fmt.Errorf("%T: %w", c, err)}
	}
	j.intent = r
	return err
}

// each runs a step on many nonces or intents, AtOnce of them concurrently.
func each[T any](a *actor, all []T, do func(T) error) error {
	return commands.Each(len(all), a.Settings.AtOnce, func(i int) error { return do(all[i]) })
}
