package memory

import (
	"bytes"
	"cmp"
	"context"
	"maps"
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
	client    string
	heldUntil time.Time
	expiresAt time.Time
	answer    *request.Answer
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
				name: c.Name, print: c.Print, claim: c.ID, client: c.Client,
				heldUntil: micro(now.Add(c.Hold)), expiresAt: micro(now.Add(c.Keep)),
			}
		}
	})
	return stage, answer, err
}

// Answer stores the answer, if the claim is still held.
func (r Requests) Answer(ctx context.Context, name request.Name, claim event.ID, a request.Answer) error {
	return r.enter(ctx, func() {
		if at := r.requests[name]; at != nil && at.claim == claim {
			at.answer = &a
		}
	})
}

// Release lets the next caller execute a request, if the claim is still held.
func (r Requests) Release(ctx context.Context, name request.Name, claim event.ID) error {
	return r.enter(ctx, func() {
		if at := r.requests[name]; at != nil && at.claim == claim {
			delete(r.requests, name)
		}
	})
}

// Forget removes expired requests, and requests of a client beyond its share. If no client
// exceeds its share, it removes the oldest requests beyond the maximum. It removes at most
// b.Limit of each.
func (r Requests) Forget(ctx context.Context, b request.Bounds) (f request.Forgotten, err error) {
	err = r.enter(ctx, func() {
		remove := func(all []*remembered) {
			for _, at := range all {
				delete(r.requests, at.name)
			}
			f.Removed += len(all)
		}
		all, expired, now := r.byAge(), 0, r.now()
		for expired < min(b.Limit, len(all)) && !all[expired].expiresAt.After(now) {
			expired++
		}
		remove(all[:expired])
		of := map[string][]*remembered{}
		for _, at := range all[expired:] {
			of[at.client] = append(of[at.client], at)
		}
		beyond := 0
		for _, client := range slices.Sorted(maps.Keys(of)) {
			if n := min(len(of[client])-b.Share, b.Limit-beyond); b.Share > 0 && n > 0 {
				remove(of[client][:n])
				of[client] = of[client][n:]
				beyond += n
			}
		}
		if beyond < b.Limit {
			left := r.byAge()
			remove(left[:min(b.Limit, max(0, len(left)-b.Most))])
		}
		clients := map[string]int{}
		for _, at := range r.requests {
			clients[at.client]++
			f.Largest = max(f.Largest, clients[at.client])
		}
	})
	return f, err
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
