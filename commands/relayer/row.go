package relayer

import (
	"context"
	"slices"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/intent"
)

// inTurn leaves, of what was claimed, what may get a nonce as far as its row goes. The rest
// is given back: the queue has not heard yet what became of those before it, and will.
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

// follows reports whether a nonce that is handed out next, after those that intents get
// now, is one for what stands right behind an intent in its row. The queue may be behind:
// where it says that the intent is in this lane it may have been given back since, or have
// come out. So it is the lane that is asked. Of those further ahead nothing has to be asked,
// as one does not lose its nonce while one behind it keeps its own, unless it was somebody
// else who has used it. An intent that may give its nonce up is followed once it is mined.
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
