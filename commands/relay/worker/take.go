package worker

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/tempo-watchtower/watchtower/commands"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/relay/intent"
	"github.com/tempo-watchtower/watchtower/domain/relay/lane"
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
