package worker

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

// behalf is in whose names a lane reads the chain.
type behalf struct {
	rests    map[string]rest // after failed reads, by payer
	payer    string          // client in whose name the chain was read last
	waitFor  []string        // clients whose intents returned to the queue, see [actor.lookFirst]
	newcomer bool            // there may be intents of a client that the paused lane does not know
	greeted  time.Time       // last claim of the paused lane
}

// rest is the pause between reads of the chain in one client's name after failures.
type rest struct {
	wait  time.Duration
	until time.Time
	why   error // the last failure
}

// restingFor returns the last failure of reads in a payer's name, while the lane makes none because
// of it.
func (a *actor) restingFor(payer string) error {
	if r := a.rests[payer]; a.Now().Before(r.until) {
		return r.why
	}
	return nil
}

// resting returns the last failure of the next payer while the lane reads nothing in anybody's name.
func (a *actor) resting() error {
	_, err := a.nextPayer()
	return err
}

// restFor makes the lane pause its reads in a payer's name after a failed one. The pause of an
// OnlyAsked lane doubles. Any other lane reads again at its next poll, and not at each news of
// intents before.
func (a *actor) restFor(payer string, why error) error {
	wait := a.Settings.Poll / 2
	if a.OnlyAsked {
		wait = min(max(2*a.rests[payer].wait, a.Settings.Poll), restMost*a.Settings.Poll)
	}
	a.rests[payer] = rest{wait, a.Now().Add(wait), why}
	return why
}

// payers returns the clients in whose names the lane reads the chain, from the one whose turn is next.
func (a *actor) payers() []string {
	if a.Behalf == nil {
		return []string{""}
	}
	clients := a.clients()
	if len(clients) == 0 {
		return []string{a.Client}
	}
	i, _ := slices.BinarySearch(clients, a.payer+"\x00") // the first after the last payer
	i %= len(clients)
	return slices.Concat(clients[i:], clients[:i])
}

// nextPayer returns the next payer in whose name the lane may read, or else the last failure of the
// next one.
func (a *actor) nextPayer() (payer string, err error) {
	payers := a.payers()
	i := slices.IndexFunc(payers, func(p string) bool { return a.restingFor(p) == nil })
	if i < 0 {
		return payers[0], a.restingFor(payers[0])
	}
	return payers[i], nil
}

// reads returns the chain as the lane reads it next. The clients whose intents it holds take turns.
func (a *actor) reads() Chain {
	payer, _ := a.nextPayer()
	return a.readsFor(payer)
}

// readsFor returns the chain as read in a payer's name.
func (a *actor) readsFor(payer string) Chain {
	if a.payer = payer; a.Behalf == nil {
		return a.Node
	}
	return a.Behalf(payer)
}

// inTurns reads the chain in the name of the next payer. If that fails soon, as when the payer's share
// of the calls is used up, the lane reads in the next one's name at once: one client's share decides
// for no other client.
func (a *actor) inTurns(read func(Chain) error) (err error) {
	began := a.Now()
	for range a.payers() {
		payer, resting := a.nextPayer()
		if resting != nil {
			return resting
		}
		if err = read(a.readsFor(payer)); err == nil {
			delete(a.rests, payer)
			return nil
		}
		if err = a.restFor(payer, err); a.Now().Sub(began) >= a.Settings.Poll/2 {
			return err // nodes are slow: the next turn goes on
		}
	}
	return err
}

// clients returns the sorted clients with an intent in the lane, or with an intent that returned to
// the queue because the chain could not be read.
func (a *actor) clients() (all []string) {
	all = slices.Clone(a.waitFor)
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
	payer := ""
	if a.Behalf != nil {
		payer = clientOf(of)
	}
	if err := a.restingFor(payer); err != nil {
		return chain.Block{}, err
	}
	node := a.Node
	if a.Behalf != nil {
		node = a.Behalf(payer)
	}
	b, err := node.At(ctx, number)
	if err != nil {
		return b, a.restFor(payer, err)
	}
	return b, nil
}

// isLooking reports whether the lane has to ask for the nonce that the chain wants before it hands
// out another.
func (a *actor) isLooking() bool {
	return !a.held.State.Known || a.Now().Sub(a.looked) >= a.Settings.Look
}

// isPaused returns why an OnlyAsked lane claims nothing now: it has to read the chain before it hands
// out a nonce, and may not in the name of any client that it knows. It claims all the same after a new
// intent, at most once in each poll: the intent's client may have calls left.
func (a *actor) isPaused() error {
	if !a.OnlyAsked || !a.isLooking() {
		return nil
	}
	why := a.resting()
	a.newcomer = why != nil && (a.newcomer || a.called)
	if a.newcomer && a.Now().Sub(a.greeted) >= a.Settings.Poll {
		a.newcomer, a.greeted = false, a.Now()
		return nil
	}
	return why
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
	a.waitFor = a.clients()
	all := a.ready
	a.ready = nil
	return errors.Join(err, a.giveBack(ctx, idsOf(all)))
}
