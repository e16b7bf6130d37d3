package worker

import (
	"context"
	"slices"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/relay/intent"
)

// inTurn returns the claimed intents that may get a nonce as far as their ordering group
// allows. It returns the others to the queue, whose state of the intents before them is out
// of date.
func (a *actor) inTurn(ctx context.Context, claimed []intent.Claimed) ([]intent.Claimed, error) {
	var turn []intent.Claimed
	var now, back []chain.IntentID
	for _, c := range claimed {
		if !c.Behind.IsZero() && !a.follows(c.Behind, now) {
			back = append(back, c.ID)
			continue
		}
		turn, now = append(turn, c), append(now, c.ID)
	}
	return turn, a.giveBack(ctx, back)
}

// follows reports whether the next nonce handed out, after the intents in now, keeps the
// order behind an intent of an ordering group. It asks the lane, because the queue may be
// out of date: the intent may have ended since, or lost its nonce. Intents further ahead
// need no check. An intent does not lose its nonce while one behind it keeps its own,
// unless a rival used the nonce. Behind an intent that may give its nonce up, the next one
// waits until it is mined.
func (a *actor) follows(ahead chain.IntentID, now []chain.IntentID) bool {
	if slices.Contains(now, ahead) {
		i := slices.IndexFunc(a.ready, func(j *job) bool { return j.id == ahead })
		return i < 0 || a.mayBeFollowed(a.ready[i])
	}
	slot, holds := a.held.State.Held(ahead)
	if !holds {
		return false
	}
	j := a.jobs[slot.Nonce]
	if j == nil || j.id != ahead || j.unread || !a.placed(standing{slot, j}) {
		return false
	}
	return standing{slot, j}.landed() || a.mayBeFollowed(j)
}
