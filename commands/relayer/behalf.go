package relayer

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/tempo-watchtower/watchtower/domain/chain"
)

// A client may ask for many lanes, each of which reads the chain. These lanes read in the names of
// the clients whose intents they hold, only when an intent could be signed or has a nonce, and less
// often after failures.

// restMost bounds the pause of an OnlyAsked lane after failed reads, in polls.
const restMost = 16

// rest is the pause between reads of the chain after failures.
type rest struct {
	wait  time.Duration
	until time.Time
	why   error // the last failure
}

// resting returns the last failure while the lane reads nothing because of it.
func (a *actor) resting() error {
	if a.Now().Before(a.rest.until) {
		return a.rest.why
	}
	return nil
}

// rests makes the lane pause after a failed read. The pause of an OnlyAsked lane doubles. Any other
// lane reads again at its next poll, and not at each news of intents before.
func (a *actor) rests(why error) error {
	wait := a.Settings.Poll / 2
	if a.OnlyAsked {
		wait = min(max(2*a.rest.wait, a.Settings.Poll), restMost*a.Settings.Poll)
	}
	a.rest = rest{wait, a.Now().Add(wait), why}
	return why
}

// reads returns the chain as the lane reads it next. The clients whose intents it holds take turns.
func (a *actor) reads() Chain {
	if a.Behalf == nil {
		return a.Node
	}
	clients := a.clients()
	if len(clients) == 0 {
		return a.Behalf(a.Client)
	}
	i, _ := slices.BinarySearch(clients, a.payer+"\x00") // the first after the last payer
	a.payer = clients[i%len(clients)]
	return a.Behalf(a.payer)
}

// clients returns the clients with an intent in the lane, sorted.
func (a *actor) clients() (all []string) {
	for _, j := range a.ready {
		all = append(all, clientOf(j))
	}
	for _, s := range a.slots() {
		if !s.id.IsZero() && !s.job.intent.State.Requested.ID.IsZero() {
			all = append(all, clientOf(s.job))
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

func clientOf(j *job) string { return j.intent.State.Requested.Request.Client }

// at returns the canonical block at a height, read in the name of the client of an intent.
func (a *actor) at(ctx context.Context, of *job, number uint64) (chain.Block, error) {
	if err := a.resting(); err != nil {
		return chain.Block{}, err
	}
	node := a.Node
	if a.Behalf != nil {
		node = a.Behalf(clientOf(of))
	}
	b, err := node.At(ctx, number)
	if err != nil {
		return b, a.rests(err)
	}
	return b, nil
}

// isLooking reports whether the lane has to ask for the nonce that the chain wants before it hands
// out another.
func (a *actor) isLooking() bool {
	return !a.held.State.Known || a.Now().Sub(a.looked) >= a.Settings.Look
}

// lookFirst asks for the nonce that the chain wants before an OnlyAsked lane hands out nonces: see
// [actor.look]. If nodes do not answer, the intents return to the queue.
func (a *actor) lookFirst(ctx context.Context) error {
	if !a.OnlyAsked || len(a.ready) == 0 || !a.isLooking() {
		return nil
	}
	_, err := a.wants(ctx)
	if over := (overError{}); err == nil || errors.As(err, &over) {
		return err
	}
	all := a.ready
	a.ready = nil
	return errors.Join(err, a.giveBack(ctx, idsOf(all)))
}
