package intent

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tempo-watchtower/watchtower/domain/chain"
)

// detailMax is the length in bytes at which a reason's text is cut.
const detailMax = 512

func (s State) create(c Create) ([]Event, error) {
	id, digest := c.Request.ID(), c.Request.Digest()
	if was := s.Requested; !was.ID.IsZero() {
		if was.ID != id || was.Digest != digest {
			return nil, ErrDiffers.Because("the key %s belongs to another request, intent %s", was.Request.Key, was.ID)
		}
		return nil, nil
	}
	if err := c.Request.Check(); err != nil {
		return nil, err
	}
	if c.Request.passed(secondsOf(c.At)) {
		return nil, ErrDeadlinePassed.Because("the deadline %d is not after %d", c.Request.Deadline, secondsOf(c.At))
	}
	return []Event{Requested{id, digest, c.Request, c.Origin, c.At}}, nil
}

func (s State) assign(c Assign) ([]Event, error) {
	switch {
	case c.Assignment < 1 || c.Token == 0:
		panic(fmt.Sprintf("intent: %+v is not an assignment", c))
	case s.Place != nil && c.Assignment == s.Assignment && c.Place == *s.Place:
		return s.takeOver(c), nil
	case s.End != nil:
		return nil, ErrSettled.Because("it is %s", s.End.Status)
	case s.Place != nil || c.Assignment <= s.Assignment:
		return nil, ErrAssigned.Because("assignment %d has already been made", s.Assignment)
	case c.Assignment != s.Assignment+1:
		panic(fmt.Sprintf("intent: assignment %d after %d", c.Assignment, s.Assignment))
	case s.Requested.Request.Signer != nil && *s.Requested.Request.Signer != c.Place.Signer:
		panic(fmt.Sprintf("intent: %s is to sign, not %s", s.Requested.Request.Signer, c.Place.Signer))
	}
	return []Event{Assigned{s.Sequence + 1, c.Assignment, c.Place, c.Token, c.At}}, nil
}

// takeOver records a new lane holder. It adds nothing once the place cannot be released any more.
func (s State) takeOver(c Assign) []Event {
	if c.Token <= s.Token || s.End != nil || s.live() {
		return nil
	}
	return []Event{TakenOver{c.Assignment, c.Token, c.At}}
}

func (s State) requeue(c Requeue) ([]Event, error) {
	if c.Assignment < s.Assignment || s.Place == nil && c.Assignment == s.Assignment {
		return nil, nil // that place was lost before
	}
	if c.Assignment != s.Assignment {
		return nil, ErrNotAssigned.Because("it already had %d assignments", s.Assignment)
	}
	if c.Evidence.Kind == Released && c.Token < s.Token {
		return nil, ErrFenced.Because("token %d is outdated: the current holder has %d", c.Token, s.Token)
	}
	if err := s.rulesOut(c.Evidence); err != nil {
		return nil, err
	}
	gone := Requeued{Assignment: s.Assignment, Evidence: c.Evidence, At: c.At}
	if s.live() {
		gone.Sequence, gone.Was = s.Sequence+1, s.Attempts[len(s.Attempts)-1].Hash
	}
	events := []Event{gone}
	if s.Stop.Reason != "" {
		events = append(events, s.Evolve(gone).stopped(chain.Hash{}, chain.Block{}, c.At))
	}
	return events, nil
}

// rulesOut checks that no attempt at the place is in the chain or can ever be.
func (s State) rulesOut(e Evidence) error {
	made, own := s.attempt(e.Hash)
	noop := e.Kind == Filled
	switch {
	case s.End != nil:
		return ErrSettled.Because("it is %s", s.End.Status)
	case s.Receipt != nil:
		return ErrLive.Because("block %d holds %s", s.Receipt.Block.Number, s.Mined)
	case e.Kind == Released && s.live():
		return ErrLive.Because("any node may have %s", s.Attempts[len(s.Attempts)-1].Hash)
	case e.Kind == Lapsed && !s.live():
		return ErrNotAssigned.Because("no signed attempt could expire")
	case noop && (!s.GivesWay() || !own || made.Kind != NoOp || made.Assignment != s.Assignment):
		return ErrLive.Because("%s is not a no-op that took its nonce", e.Hash)
	case own && !noop:
		return ErrLive.Because("%s is one of its own attempts", e.Hash)
	case e.Kind != Released && e.Block.IsZero():
		panic(fmt.Sprintf("intent: evidence %+v without a block", e))
	case !slices.Contains([]EvidenceKind{Released, Rival, Lapsed, Filled}, e.Kind):
		panic(fmt.Sprintf("intent: unknown evidence %q", e.Kind))
	}
	return nil
}

func (s State) attempted(c Attempt) ([]Event, error) {
	if c.Hash.IsZero() || !slices.Contains([]AttemptKind{First, Bump, NoOp}, c.Kind) {
		panic(fmt.Sprintf("intent: %+v is not an attempt", c))
	}
	_, known := s.attempt(c.Hash)
	switch {
	case known:
		return nil, nil
	case s.Place == nil || c.Assignment != s.Assignment:
		return nil, ErrNotAssigned.Because("assignment %d is not its current assignment", c.Assignment)
	case s.End != nil: // its bytes must not be sent
		return nil, ErrSettled.Because("it is %s", s.End.Status)
	case !s.ToNoOp() && c.Kind == NoOp:
		return nil, ErrNotCanceling.Because("its cancellation was not requested")
	}
	made := Attempted{s.Sequence + 1, c.Assignment, len(s.Attempts) + 1, c.Kind, c.Hash, chain.Hash{}, c.Fee, c.At}
	if s.live() {
		made.Replaces = s.Attempts[len(s.Attempts)-1].Hash
	}
	return []Event{made}, nil
}

func (s State) cancel(c Cancel) ([]Event, error) {
	if s.End != nil && s.End.Status != StatusCanceled {
		return nil, ErrSettled.Because("it is %s", s.End.Status)
	}
	return s.stop(CancelRequested{Withdrawn, c.Detail, c.At}), nil
}

func (s State) expire(c Expire) ([]Event, error) {
	if !s.Requested.Request.passed(c.Now) {
		return nil, ErrDeadlineOpen.Because("it is %d, the deadline is %d", c.Now, s.Requested.Request.Deadline)
	}
	return s.stop(CancelRequested{Reason: Deadline, At: c.At}), nil
}

func (s State) fail(c Fail) ([]Event, error) {
	if c.Reason != Simulation && c.Reason != Refused {
		panic(fmt.Sprintf("intent: the relay does not fail it for %q", c.Reason))
	}
	return s.stop(CancelRequested{c.Reason, c.Detail, c.At}), nil
}

// stop ends an intent without a place at once. For an intent with a place it records that it is
// to end. The first reason stays.
func (s State) stop(c CancelRequested) []Event {
	c.Detail = cut(c.Detail)
	if s.End != nil || s.Stop.Reason != "" {
		return nil
	}
	if s.Place == nil {
		s.Stop = c
		return []Event{s.stopped(chain.Hash{}, chain.Block{}, c.At)}
	}
	return []Event{c}
}

func (s State) speedUp(c SpeedUp) ([]Event, error) {
	ceiling := s.Requested.Request.Gas.MaxFee
	switch {
	case c.Fee.Cmp(s.Floor) <= 0:
		return nil, nil
	case s.End != nil:
		return nil, ErrSettled.Because("it is %s", s.End.Status)
	case s.Stop.Reason != "":
		return nil, ErrCanceling.Because("it is being stopped: %s", s.Stop.Reason)
	case !ceiling.IsZero() && c.Fee.Cmp(ceiling) > 0:
		return nil, ErrOverCeiling.Because("its limit is %s, less than %s", ceiling, c.Fee)
	case s.SpeedUps >= SpeedUpsMax:
		return nil, ErrSpeedUps.Because("the intent was sped up %d times", s.SpeedUps)
	case c.Fee.Cmp(s.LeastSpeedUp()) < 0:
		return nil, ErrSmallRaise.Because("the fee was raised to %s before: the next is at least %s, not %s", s.Floor, s.LeastSpeedUp(), c.Fee)
	}
	return []Event{SpeedUpRequested(c)}, nil
}

func (s State) yield(c Yield) ([]Event, error) {
	switch {
	case s.End != nil:
		return nil, ErrSettled.Because("it is %s", s.End.Status)
	case s.Place == nil || c.Assignment != s.Assignment:
		return nil, ErrNotAssigned.Because("assignment %d is not its current assignment", c.Assignment)
	case s.live():
		return nil, ErrLive.Because("any node may have %s", s.Attempts[len(s.Attempts)-1].Hash)
	case s.Stop.Reason != "" || s.Yields():
		return nil, nil
	}
	return []Event{YieldRequested{c.Assignment, cut(c.Detail), c.At}}, nil
}

func (s State) giveWay(c GiveWay) ([]Event, error) {
	switch {
	case s.End != nil:
		return nil, ErrSettled.Because("it is %s", s.End.Status)
	case s.Place == nil || c.Assignment != s.Assignment:
		return nil, ErrNotAssigned.Because("assignment %d is not its current assignment", c.Assignment)
	case !s.live():
		return nil, ErrNotSigned.Because("nothing was signed at assignment %d", c.Assignment)
	case s.ToNoOp():
		return nil, nil
	case s.Receipt != nil:
		return nil, ErrLive.Because("block %d holds %s", s.Receipt.Block.Number, s.Mined)
	}
	return []Event{GiveWayRequested{c.Assignment, cut(c.Detail), c.At}}, nil
}

// cut shortens a text to detailMax bytes.
func cut(detail string) string {
	return strings.ToValidUTF8(detail[:min(len(detail), detailMax)], "")
}
