package worker

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/tempo-watchtower/watchtower/commands"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/relay/intent"
	"github.com/tempo-watchtower/watchtower/domain/relay/lane"
	"github.com/tempo-watchtower/watchtower/domain/relay/signer"
)

// queueView is what a lane knows of the queue, and the intents that it has claimed.
type queueView struct {
	ready  []*job    // claimed, to be given a nonce in this turn
	claim  bool      // there may be more intents to claim
	called bool      // claim was set by a call to this lane
	idle   idle      // polls without anything to claim
	calls  calls     // calls that an OnlyAsked lane answers later
	roomy  int       // room for more intents, when last checked
	loaded int       // nonces in flight at that check
	shared time.Time // last claim from the lane's pools
	served string    // client of the last claimed intent
	wider  int       // size of the next claim; 0: the room
	sweep  sweep     // position in the queue behind blocked intents
	claims int       // number of times the claimed set was discarded, see holder
	leaves bool      // a claimed intent's ordering group has to wait, see putOff

	since   map[chain.IntentID]time.Time // intents left to other lanes, and since when
	delayed map[chain.IntentID]delay     // intents that could not continue lately
	unclear unclear                      // why some of these wait
	reading map[string]*reading          // bytes read for blocked intents, by client
	weighed int                          // nonces in flight when a client had too much gas there; 0: no client had
	short   bool                         // an intent got no nonce because the signer has too little
}

// claimMax bounds how many intents are claimed at once.
const claimMax = 500

// take claims as many intents as there is room for, and reserves nonces for those intents
// that may be signed.
func (a *actor) take(ctx context.Context) error {
	defer a.tellPart()
	lighter := a.held.State.InFlight() < a.weighed
	if !a.claim && !lighter || !a.held.State.Known && !a.OnlyAsked {
		return nil
	}
	if err := a.isPaused(); err != nil {
		return err
	}
	a.weighed = 0
	room, err := a.room(ctx)
	a.roomy, a.loaded = room, a.held.State.InFlight()
	if err != nil || room == 0 {
		a.tellPart()
		if a.called {
			a.News.wakeOthers(a.box) // the call was for this lane alone
		}
		return err
	}
	defer a.leave()
	a.waitFor = nil
	parked := a.parked()
	claimed, trouble := a.claimShare(ctx, room)
	turn, err := a.inTurn(ctx, append(parked, claimed...))
	trouble = errors.Join(trouble, err, a.prepare(ctx, turn), a.fit(ctx, room))
	if err = a.lookFirst(ctx); err == nil {
		err = a.admit(ctx)
	}
	if vain := len(a.ready) == 0; a.called || !vain {
		a.calls.answered(vain, a.Now(), a.Settings.Poll)
	}
	if a.weighed == 0 {
		a.widen(room, claimed)
	} else {
		a.wider, a.sweep = 0, sweep{} // the queue's head may be claimed once less gas is in flight
	}
	if over := (overError{}); errors.As(err, &over) {
		return err
	}
	return errors.Join(trouble, err, a.reserve(ctx))
}

// holder names the claimant: this run of this process and this lane, since it was opened or
// the claimed set was last discarded. Claims under an older name count as another
// claimant's, and make later intents of their ordering groups wait until they lapse.
// Otherwise these would get lower nonces.
func (a *actor) holder() string {
	return fmt.Sprintf("%s %s %d.%d", a.Holder, lane.Stream(a.ID), a.token, a.claims)
}

func (a *actor) giveBack(ctx context.Context, ids []chain.IntentID) error {
	if len(ids) == 0 {
		return nil
	}
	err := a.Queue.Return(ctx, a.holder(), ids)
	if err != nil {
		a.claims++
	}
	return err
}

// fail ends an intent that can never be executed. A refusal means that it has already ended
// otherwise.
func (a *actor) fail(ctx context.Context, j *job, why error) error {
	reason := intent.Refused
	if errors.Is(why, ErrReverts) {
		reason = intent.Simulation
	}
	return unlessRefused(a.tellIntent(ctx, j, intent.Fail{Reason: reason, Detail: why.Error(), At: a.Now()}))
}

// unlessRefused returns nil for a refusal, and other errors unchanged.
func unlessRefused(err error) error {
	if commands.IsRefusal(err) {
		return nil
	}
	return err
}

// reserve hands nonces to the jobs in a.ready, in order. An intent behind another of its
// ordering group needs a higher nonce. It waits until no lower nonce is free, and returns
// to the queue if the intent before it gets none.
func (a *actor) reserve(ctx context.Context) error {
	var now, later []chain.IntentID
	free := a.freeBelow()
	for _, j := range a.ready {
		if !j.behind.IsZero() && (free || !a.follows(j.behind, now)) {
			later = append(later, j.id)
		} else {
			now = append(now, j.id)
		}
	}
	if len(now) > 0 {
		err := a.command(ctx, lane.Reserve{Token: a.token, Intents: now, Budget: a.Settings.Budget, At: a.Now()})
		if err != nil {
			return err
		}
		a.crash("lane.reserved")
	}
	a.slots() // begins their jobs
	for _, j := range a.ready {
		if _, holds := a.held.State.Held(j.id); !holds && !slices.Contains(later, j.id) {
			later = append(later, j.id)
		}
	}
	a.ready = nil
	return a.giveBack(ctx, later)
}

// freeBelow reports whether a nonce is free below an intent's nonce.
func (a *actor) freeBelow() bool {
	free := false
	for slot := range a.held.State.Slots() {
		if free && !slot.Intent.IsZero() {
			return true
		}
		free = free || slot.IsFree()
	}
	return false
}

// claimShare claims intents for the lane, up to room: all intents for its signer, and as
// many intents of its pools as bring it level with the other lanes of this process. It
// leaves the rest to them, but takes it if they have not within [Settings.Poll]. Between
// processes, and while more intents wait than a lane has room for, the fastest claims most.
func (a *actor) claimShare(ctx context.Context, room int) ([]intent.Claimed, error) {
	mine, others := signer.Share{InFlight: a.held.State.InFlight(), Room: room}, a.News.others(a.box)
	pools, now := a.Pools, a.Now()
	if len(others) > 0 && signer.Claim(1, mine, others) == 0 && now.Sub(a.shared) < a.Settings.Poll && !a.hasRows() && a.wider == 0 {
		pools = nil // other lanes have less to do
		if a.called {
			defer a.News.wakeOthers(a.box)
		}
	} else {
		a.shared = now
	}
	claimed, err := a.Queue.Claim(ctx, intent.Claim{Lane: a.ID, Pools: pools, Holder: a.holder(), TTL: a.Settings.Claim, Limit: a.reach(room), After: a.after(), Turn: a.served, OnlyAsked: a.OnlyAsked, Client: a.Client})
	if err != nil {
		a.claims++
		return nil, fmt.Errorf("claim intents: %w", err)
	}
	a.idle.found(len(claimed))
	if n := len(claimed); n > 0 {
		a.served = claimed[n-1].Client
	}
	a.claim = len(claimed) == a.reach(room)
	if pools == nil || len(others) == 0 || a.claim {
		return claimed, nil
	}
	mine.Room = a.reach(room) // the claim may exceed the room; the excess is returned
	kept, left := a.split(claimed, mine, others, now)
	if len(left) == 0 {
		return kept, nil
	}
	if err := a.giveBack(ctx, left); err != nil {
		return kept, err
	}
	a.News.wakeOthers(a.box)
	return kept, nil
}

// split divides a claim into the intents that the lane keeps and the last ones, which it
// leaves to other lanes if these may execute them. An ordering group stays together.
func (a *actor) split(claimed []intent.Claimed, mine signer.Share, others []signer.Share, now time.Time) (kept []intent.Claimed, left []chain.IntentID) {
	since, free := map[chain.IntentID]time.Time{}, 0
	for _, c := range claimed {
		first, seen := a.since[c.ID]
		switch {
		case c.From.Signer != nil || c.Row.Order != "" || seen && now.Sub(first) >= a.Settings.Poll: // this lane keeps it
		case seen:
			since[c.ID], free = first, free+1
		default:
			since[c.ID], free = now, free+1
		}
	}
	mine.InFlight += len(claimed) - free
	mine.Room -= len(claimed) - free
	share := signer.Claim(free, mine, others)
	for _, c := range claimed {
		delete(a.since, c.ID)
		_, shared := since[c.ID]
		if shared && share <= 0 {
			left = append(left, c.ID)
			continue
		}
		if shared {
			share--
			delete(since, c.ID)
		}
		kept = append(kept, c)
	}
	for id, first := range a.since { // other lanes have it, and may still return it
		if now.Sub(first) <= 2*a.Settings.Claim && len(since) < putOffMax {
			since[id] = first
		}
	}
	a.since = since
	return kept, left
}

// hasRows reports whether an intent of an ordering group is open in the lane: only this
// lane can claim the next intents of the group.
func (a *actor) hasRows() bool {
	for _, j := range a.jobs {
		if j.intent.State.Requested.Request.Order != "" {
			return true
		}
	}
	return false
}
