package memory

import (
	"bytes"
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/tempo-watchtower/watchtower/domain/event"
	"github.com/tempo-watchtower/watchtower/domain/request"
)

// remembered is a request that a client may repeat.
type remembered struct {
	name      request.Name
	print     request.Print
	claim     event.ID
	heldUntil time.Time
	expiresAt time.Time
	answer    *request.Answer
}

// Requests remembers requests that clients may repeat, and what was answered.
type Requests struct{ *Store }

// Requests are what is remembered of requests.
func (s *Store) Requests() Requests { return Requests{s} }

// Claim asks for a request. The answer is there when the stage is request.Answered.
func (r Requests) Claim(ctx context.Context, c request.Claim) (stage request.Stage, answer request.Answer, err error) {
	err = r.enter(ctx, func() {
		now := r.now()
		at := r.requests[c.Name]
		switch {
		case at == nil || !at.expiresAt.After(now) || at.claim == c.ID:
		case at.print != c.Print:
			stage = request.Differs
		case at.answer != nil:
			stage, answer = request.Answered, *at.answer
		case at.heldUntil.After(now):
			stage = request.Running
		}
		if stage == request.Claimed {
			r.requests[c.Name] = &remembered{
				name: c.Name, print: c.Print, claim: c.ID,
				heldUntil: micro(now.Add(c.Hold)), expiresAt: micro(now.Add(c.Keep)),
			}
		}
	})
	return stage, answer, err
}

// Answer keeps what was answered, if the claim is still held.
func (r Requests) Answer(ctx context.Context, name request.Name, claim event.ID, a request.Answer) error {
	return r.enter(ctx, func() {
		if at := r.requests[name]; at != nil && at.claim == claim {
			at.answer = &a
		}
	})
}

// Release lets whoever asks next carry a request out, if the claim is still held.
func (r Requests) Release(ctx context.Context, name request.Name, claim event.ID) error {
	return r.enter(ctx, func() {
		if at := r.requests[name]; at != nil && at.claim == claim {
			delete(r.requests, name)
		}
	})
}

// Forget removes at most limit requests that have expired, and as many of the oldest
// where more than most are kept.
func (r Requests) Forget(ctx context.Context, most, limit int) (removed int, err error) {
	err = r.enter(ctx, func() {
		now := r.now()
		all := make([]*remembered, 0, len(r.requests))
		for _, at := range r.requests {
			all = append(all, at)
		}
		slices.SortFunc(all, func(a, b *remembered) int {
			return cmp.Or(a.expiresAt.Compare(b.expiresAt), bytes.Compare(a.name[:], b.name[:]))
		})
		expired := 0
		for expired < min(limit, len(all)) && !all[expired].expiresAt.After(now) {
			expired++
		}
		removed = expired + min(limit, max(0, len(all)-expired-most))
		for _, at := range all[:removed] {
			delete(r.requests, at.name)
		}
	})
	return removed, err
}
