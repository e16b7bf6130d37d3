package worker

import (
	"context"
	"errors"
	"slices"

	"github.com/tempo-watchtower/watchtower/commands"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/relay/fee"
	"github.com/tempo-watchtower/watchtower/domain/relay/intent"
)

// candidate is a claimed intent that may get a nonce in this turn.
type candidate struct {
	intent.Claimed
	reads   bool // the intent is read in this turn
	loaded  int  // bytes that were read; 0: none
	blocked bool // it was read in vain
	job     *job
	why     error // why it gets no nonce; nil also for reasons that are not worth reporting
	// back means that the intent returns to the queue, unless it was returned before (see
	// [actor.putOff]). later means that it returns in any case. parked means that it keeps its
	// claim until its estimate arrives, elsewhere that another lane has it.
	back, later, parked, elsewhere bool
}

// prepare reads the claimed intents, estimates their gas, and checks that they may pay its
// price. It does not read intents that cannot continue anyway, nor more of one client than
// [actor.choose] allows. An intent whose estimate is slow keeps its claim until the estimate
// arrives, and its ordering group waits. An intent that can never be executed ends here,
// before it has a nonce.
//
// On a transient error the intent is returned to the queue, with the intents behind it in
// its ordering group, unless it was so before: see [actor.putOff]. An intent that may not
// pay enough yet is returned too if it is in a group. Otherwise it keeps its claim until
// that lapses, and delays no other claim meanwhile. If an intent has a nonce of another
// lane, which the queue does not know yet, its group waits until the queue does, since this
// lane cannot know in which lane the group continues.
func (a *actor) prepare(ctx context.Context, claimed []intent.Claimed) error {
	all := make([]candidate, len(claimed))
	for i, c := range claimed {
		all[i].Claimed = c
	}
	a.choose(ctx, all)
	var untimely error
	if slices.ContainsFunc(all, func(c candidate) bool { return c.reads && c.Deadline != 0 }) {
		untimely = a.timely(a.askOnce(ctx))
	}
	_ = commands.Each(len(all), a.Settings.AtOnce, func(i int) error {
		if c := &all[i]; c.reads {
			c.job, c.why = a.inspect(ctx, c, untimely)
		}
		return nil
	})
	var read []chain.IntentID
	for _, c := range all {
		if c.job != nil {
			read = append(read, c.ID)
		}
	}
	a.measures.await(ctx, read)
	trouble := commands.Each(len(all), a.Settings.AtOnce, func(i int) error { return a.consider(ctx, &all[i]) })
	return errors.Join(trouble, a.giveBack(ctx, a.keepReady(all)))
}

// consider quotes a candidate that was read, and decides what happens to it otherwise. It
// returns the error to report.
func (a *actor) consider(ctx context.Context, c *candidate) error {
	if c.why == nil && c.job != nil {
		c.job, c.why = a.quoted(ctx, c.job)
	}
	c.back = c.why != nil
	c.blocked = c.back && !errors.Is(c.why, errMeasuring)
	switch {
	case errors.Is(c.why, errMeasuring):
		a.park(c.Claimed)
		c.back, c.parked, c.why = false, true, nil
	case errors.Is(c.why, errLater):
		c.back, c.later, c.why = false, true, nil
	case errors.Is(c.why, errCrowded), errors.Is(c.why, errUnread):
		c.why = nil
	case errors.Is(c.why, fee.ErrMarket):
		c.back, c.why = c.Row != intent.Row{}, nil
	case errors.Is(c.why, errElsewhere):
		c.back, c.elsewhere, c.why = false, c.Row != intent.Row{}, nil
	}
	return c.why
}

// keepReady sets a.ready to the jobs that may continue, and returns the intents that return to
// the queue.
func (a *actor) keepReady(all []candidate) (returned []chain.IntentID) {
	a.ready = nil
	kept := map[intent.Row]bool{} // groups with an intent that was returned or is in another lane
	for _, c := range all {
		if waits := c.Row != (intent.Row{}) && kept[c.Row]; c.loaded > 0 && (c.blocked || c.job != nil && waits) {
			a.readInVain(c.Client, c.ID, c.loaded)
		}
		if c.parked {
			kept[c.Row] = true
			continue
		}
		if c.elsewhere || c.back && a.putOff(c.ID, c.From) {
			kept[c.Row], a.leaves = true, a.leaves || c.Row != intent.Row{}
			if c.why != nil {
				a.waits(c.why)
			}
			continue
		}
		if c.back || c.later || c.Row != (intent.Row{}) && kept[c.Row] {
			kept[c.Row] = true
			returned = append(returned, c.ID)
			continue
		}
		if c.job != nil {
			a.ready = append(a.ready, c.job)
		}
	}
	return returned
}

// errElsewhere means that an intent has a nonce of another lane.
var errElsewhere = errors.New("it has a nonce of another lane")

// inspect reads a claimed intent. It returns the intent's job, or nil if it is not to be
// executed. untimely is the error if the chain's time, which decides deadlines, is unknown.
func (a *actor) inspect(ctx context.Context, c *candidate, untimely error) (*job, error) {
	j := &job{id: c.ID, behind: c.Behind}
	var err error
	if j.intent, err = a.Intents.Load(ctx, intent.Stream(c.ID)); err != nil {
		return nil, err
	}
	it := j.intent.State
	request := it.Requested.Request
	c.loaded = request.Size()
	if it.Requested.ID.IsZero() || it.End != nil || !a.mayCarryOut(request) {
		return nil, nil
	}
	if p := it.Place; p != nil {
		if *p != a.placeOf(p.Nonce) {
			return nil, errElsewhere
		}
		return nil, nil
	}
	if request.Deadline != 0 {
		if now := a.time(); now >= request.Deadline {
			return nil, unlessRefused(a.tellIntent(ctx, j, intent.Expire{Now: now, At: a.Now()}))
		}
		if untimely != nil {
			return nil, untimely
		}
	}
	if err := a.measure(ctx, j.id, request); err != nil {
		return nil, err
	}
	return j, nil
}
