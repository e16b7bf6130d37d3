package memory

import (
	"bytes"
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"github.com/tempo-watchtower/watchtower/domain/request"
	"github.com/tempo-watchtower/watchtower/eventlog"
)

// remembered is a request that a client may repeat.
type remembered struct {
	name      request.Name
	print     request.Print
	claim     eventlog.ID
	client    string
	heldUntil time.Time
	expiresAt time.Time
	answer    *request.Answer
}

// isRunning reports whether a caller may be carrying the request out.
func (r *remembered) isRunning(now time.Time) bool {
	return r.answer == nil && r.heldUntil.After(now)
}

// Requests stores requests that clients may repeat, and their answers.
type Requests struct{ *Store }

// Requests returns the remembered requests.
func (s *Store) Requests() Requests { return Requests{s} }

// Claim claims a request. The answer is set if the stage is request.Answered.
func (r Requests) Claim(ctx context.Context, c request.Claim) (stage request.Stage, answer request.Answer, err error) {
	err = r.enter(ctx, func() {
		now := r.now()
		at := r.requests[c.Name]
		switch {
		case at == nil || !at.expiresAt.After(now) && !at.isRunning(now) || at.claim == c.ID:
		case at.print != c.Print:
			stage = request.Differs
		case at.answer != nil:
			stage, answer = request.Answered, *at.answer
		case at.isRunning(now):
			stage = request.Running
		}
		if stage == request.Claimed {
			r.requests[c.Name] = &remembered{
				name: c.Name, print: c.Print, claim: c.ID, client: c.Client,
				heldUntil: micro(now.Add(c.Hold)), expiresAt: micro(now.Add(c.Keep)),
			}
		}
	})
	return stage, answer, err
}

// Answer stores the answer, if the claim is still held.
func (r Requests) Answer(ctx context.Context, name request.Name, claim eventlog.ID, a request.Answer) error {
	return r.enter(ctx, func() {
		if at := r.requests[name]; at != nil && at.claim == claim {
			at.answer = &a
		}
	})
}

// Release lets the next caller execute a request, if the claim is still held.
func (r Requests) Release(ctx context.Context, name request.Name, claim eventlog.ID) error {
	return r.enter(ctx, func() {
		if at := r.requests[name]; at != nil && at.claim == claim {
			delete(r.requests, name)
		}
	})
}

// Usage counts the stored requests, and lists the clients with more than share, unless share is
// 0.
func (r Requests) Usage(ctx context.Context, share int) (u request.Usage, err error) {
	err = r.enter(ctx, func() {
		clients := map[string]int{}
		for _, at := range r.requests {
			clients[at.client]++
		}
		for _, client := range slices.Sorted(maps.Keys(clients)) {
			n := clients[client]
			u.All += n
			u.Largest = max(u.Largest, n)
			if share > 0 && n > share {
				u.Beyond = append(u.Beyond, request.Count{Client: client, Records: n})
			}
		}
	})
	return u, err
}

// Forget removes the oldest requests of a client or of all clients, and returns their number. It
// keeps running requests.
func (r Requests) Forget(ctx context.Context, o request.Oldest) (removed int, err error) {
	err = r.enter(ctx, func() {
		now := r.now()
		for _, at := range r.byAge() {
			expired := !at.expiresAt.After(now)
			if at.isRunning(now) {
				continue
			}
			if removed < o.Limit && (expired || !o.Expired) && (o.Client == nil || at.client == *o.Client) {
				delete(r.requests, at.name)
				removed++
			}
		}
	})
	return removed, err
}

// byAge lists all requests, first to expire first.
func (r Requests) byAge() (all []*remembered) {
	for _, at := range r.requests {
		all = append(all, at)
	}
	slices.SortFunc(all, func(a, b *remembered) int {
		return cmp.Or(a.expiresAt.Compare(b.expiresAt), bytes.Compare(a.name[:], b.name[:]))
	})
	return all
}
