package memory

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/tempo-watchtower/watchtower/domain/notice"
)

// Lease gives at most limit notices that are due to a holder: of each intent at an endpoint
// the first that is queued, and at each endpoint no more at one time than the policy says.
// One of each endpoint comes before a second of any. until is how long it is until there may
// be more: 0 when there may be now, a minute when nothing is due before.
func (s Notices) Lease(ctx context.Context, holder string, ttl time.Duration, limit int) (leased []notice.Sending, until time.Duration, err error) {
	if limit <= 0 {
		return nil, 0, nil
	}
	err = s.enter(ctx, func() {
		now := micro(s.now())
		due := s.due(now, limit)
		offers, most := make([][]*letter, len(due)), 0
		for i, b := range due {
			offers[i] = b.offer(s.policy, now)
			most = max(most, len(offers[i]))
		}
		for place := range most {
			for i, offer := range offers {
				if place < len(offer) && len(leased) < limit {
					l := offer[place]
					l.holder, l.until = holder, micro(now.Add(ttl))
					leased = append(leased, notice.Sending{Notice: l.told(now), URL: due[i].URL})
				}
			}
		}
		for _, b := range due {
			b.move(s.policy, now)
		}
		if len(leased) < limit {
			until = s.next(now)
		}
	})
	return leased, until, err
}

// due are the endpoints at which something is due, that which has been for longest first.
func (d *data) due(now time.Time, limit int) (due []*box) {
	for _, b := range d.boxes {
		if !b.due.IsZero() && !b.due.After(now) {
			due = append(due, b)
		}
	}
	slices.SortStableFunc(due, func(a, b *box) int { return a.due.Compare(b.due) })
	return due[:min(len(due), limit)]
}

// offer is what of an endpoint may be leased.
func (b *box) offer(p notice.Policy, now time.Time) (offer []*letter) {
	for _, l := range b.open {
		if l.holder != "" && !l.until.After(now) {
			l.holder = ""
		}
	}
	held, _ := b.held()
	free := b.slots(p) - held
	if b.Disabled != notice.Enabled || b.PausedUntil.After(now) || free <= 0 {
		return nil
	}
	for l := range b.heads {
		if l.holder == "" && !l.NextAt.After(now) {
			offer = append(offer, l)
		}
	}
	slices.SortFunc(offer, func(a, b *letter) int { return cmp.Or(a.NextAt.Compare(b.NextAt), cmp.Compare(a.no, b.no)) })
	return offer[:min(len(offer), free)]
}

// next is how long it is until something may be due.
func (d *data) next(now time.Time) time.Duration {
	until := horizon
	for _, b := range d.boxes {
		if !b.due.IsZero() {
			until = min(until, max(0, b.due.Sub(now)))
		}
	}
	return until
}

// Find returns a notice; ok is false when there is none.
func (s Notices) Find(ctx context.Context, k notice.Key) (n notice.Notice, ok bool, err error) {
	err = s.enter(ctx, func() {
		b := s.box(k.Endpoint)
		if b == nil {
			return
		}
		if l := b.find(k); l != nil {
			n, ok = l.told(s.now()), true
		}
	})
	return n, ok, err
}

// Dead lists an endpoint's dead notices behind a key, ordered by intent and sequence.
func (s Notices) Dead(ctx context.Context, endpoint notice.EndpointID, after notice.Key, limit int) (dead []notice.Notice, err error) {
	after.Endpoint = endpoint
	err = s.enter(ctx, func() {
		b := s.box(endpoint)
		if b == nil {
			return
		}
		for _, l := range b.letters {
			if l.Stage == notice.Dead && compareKeys(l.Key, after) > 0 && len(dead) < limit {
				dead = append(dead, l.told(s.now()))
			}
		}
	})
	return dead, err
}

// Open lists what is queued for an endpoint, for judges.
func (s Notices) Open(endpoint notice.EndpointID) (open []notice.Notice) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if b := s.box(endpoint); b != nil {
		for _, l := range b.open {
			open = append(open, l.told(s.now()))
		}
	}
	return open
}

// Endpoint is how an endpoint stands; ok is false for one that nothing was ever for.
func (s Notices) Endpoint(ctx context.Context, id notice.EndpointID) (e notice.Endpoint, ok bool, err error) {
	err = s.enter(ctx, func() {
		if b := s.box(id); b != nil {
			e, ok = b.Endpoint, true
		}
	})
	return e, ok, err
}

// Endpoints lists endpoints behind an id, ordered by it.
func (s Notices) Endpoints(ctx context.Context, after notice.EndpointID, limit int) (found []notice.Endpoint, err error) {
	err = s.enter(ctx, func() {
		for _, b := range s.boxes {
			if compareBox(b, after) > 0 && len(found) < limit {
				found = append(found, b.Endpoint)
			}
		}
	})
	return found, err
}

// Forget removes at most limit notices that were delivered or given up before a time.
func (s Notices) Forget(ctx context.Context, before time.Time, limit int) (gone int, err error) {
	err = s.enter(ctx, func() {
		var old []*letter
		for _, b := range s.boxes {
			for _, l := range b.letters {
				if !l.settled.IsZero() && l.settled.Before(before) {
					old = append(old, l)
				}
			}
		}
		slices.SortStableFunc(old, func(a, b *letter) int { return a.settled.Compare(b.settled) })
		for _, l := range old[:min(len(old), max(limit, 0))] {
			b := s.box(l.Endpoint)
			at, _ := slices.BinarySearchFunc(b.letters, l.Key, compareLetters)
			b.letters = slices.Delete(b.letters, at, at+1)
			gone++
		}
	})
	return gone, err
}

// Depth counts the notices that are queued or dead, and the endpoints.
func (s Notices) Depth(ctx context.Context) (d notice.Depth, err error) {
	err = s.enter(ctx, func() {
		now := micro(s.now())
		for _, b := range s.boxes {
			b.count(&d, now)
		}
	})
	return d, err
}

func (b *box) count(d *notice.Depth, now time.Time) {
	switch {
	case b.Disabled != notice.Enabled:
		d.Disabled++
	case b.Failures > 0:
		d.Failing++
	default:
		d.Working++
	}
	for _, l := range b.letters {
		switch l.told(now).Stage {
		case notice.Queued:
			d.Queued++
		case notice.Delivering:
			d.Delivering++
		case notice.Dead:
			d.Dead++
		case notice.Settled:
		}
	}
	for l := range b.heads {
		if l.told(now).Stage == notice.Queued && !l.NextAt.After(now) && b.Failures == 0 && !b.PausedUntil.After(now) {
			d.Due++
			d.OldestDue = max(d.OldestDue, now.Sub(l.NextAt))
		}
	}
}
