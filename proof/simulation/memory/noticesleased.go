package memory

import (
	"context"
	"slices"
	"time"

	"github.com/tempo-watchtower/watchtower/domain/fair"
	"github.com/tempo-watchtower/watchtower/domain/notice"
)

// Lease leases deliveries to a holder, chosen by [notice.Policy.Choose]. until is the time until
// there may be more: 0 if there may be more now, a minute if nothing is due before.
func (s Notices) Lease(ctx context.Context, c notice.Claim) (leased []notice.Sending, until time.Duration, err error) {
	if c.Limit <= 0 {
		return nil, 0, nil
	}
	err = s.enter(ctx, func() {
		now := micro(s.now())
		due := s.due(c, now)
		offers := make([]notice.Offer, len(due))
		for i, b := range due {
			b.lapse(now)
			offers[i], _ = b.offered(s.policy, now)
		}
		var full []string
		leased, full = s.policy.Choose(c, offers, now)
		for _, n := range leased {
			l := s.box(n.Endpoint).find(n.Key)
			l.holder, l.until = c.Holder, micro(now.Add(c.TTL))
		}
		for _, b := range due {
			b.move(s.policy, now)
		}
		if len(leased) < c.Limit {
			until = s.next(now, append(full, c.Full()...))
		}
	})
	return leased, until, err
}

// due lists endpoints with due deliveries, at most one per free slot. Clients take turns; a
// client's endpoints are ordered by due time.
func (d *data) due(c notice.Claim, now time.Time) []*box {
	full, byClient := c.Full(), map[string][]*box{}
	for _, b := range d.boxes {
		if !b.due.IsZero() && !b.due.After(now) && !slices.Contains(full, b.Client) {
			byClient[b.Client] = append(byClient[b.Client], b)
		}
	}
	for _, of := range byClient {
		slices.SortStableFunc(of, func(a, b *box) int { return a.due.Compare(b.due) })
	}
	return fair.Deal(c.Turn, c.Limit, byClient)
}

// lapse ends the expired leases.
func (b *box) lapse(now time.Time) {
	for _, l := range b.open {
		if l.holder != "" && !l.until.After(now) {
			l.holder = ""
		}
	}
}

// next is the time until something may be due, except for clients without free slots.
func (d *data) next(now time.Time, full []string) time.Duration {
	until := horizon
	for _, b := range d.boxes {
		if !b.due.IsZero() && !slices.Contains(full, b.Client) {
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

// Dead lists an endpoint's dead deliveries after a key, ordered by intent and sequence.
func (s Notices) Dead(ctx context.Context, endpoint notice.EndpointID, after notice.Key, limit int) (dead []notice.Notice, err error) {
	after.Endpoint = endpoint
	err = s.enter(ctx, func() {
		b := s.box(endpoint)
		if b == nil {
			return
		}
		for _, l := range b.letters {
			if l.Stage == notice.Dead && l.Key.Compare(after) > 0 && len(dead) < limit {
				dead = append(dead, l.told(s.now()))
			}
		}
	})
	return dead, err
}

// Open lists an endpoint's queued deliveries, for judges.
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

// Endpoint returns an endpoint's state; ok is false for an endpoint that never had a delivery.
func (s Notices) Endpoint(ctx context.Context, id notice.EndpointID) (e notice.Endpoint, ok bool, err error) {
	err = s.enter(ctx, func() {
		if b := s.box(id); b != nil {
			e, ok = b.Endpoint, true
		}
	})
	return e, ok, err
}

// Endpoints lists a client's endpoints after an id, ordered by id; with nil those of all clients.
func (s Notices) Endpoints(ctx context.Context, client *string, after notice.EndpointID, limit int) (found []notice.Endpoint, err error) {
	err = s.enter(ctx, func() {
		for _, b := range s.boxes {
			if compareBox(b, after) > 0 && len(found) < limit && (client == nil || b.Client == *client) {
				found = append(found, b.Endpoint)
			}
		}
	})
	return found, err
}

// Forget removes at most limit deliveries that were settled before a time.
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

// Depth counts queued and dead deliveries, and the endpoints.
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
		if l.told(now).Stage == notice.Queued && !l.NextAt.After(now) && b.Failures == 0 && b.Disabled == notice.Enabled && !b.PausedUntil.After(now) {
			d.Due++
			d.OldestDue = max(d.OldestDue, now.Sub(l.NextAt))
		}
	}
}

// Queued counts a client's queued notices, up to most.
func (s Notices) Queued(ctx context.Context, client string, most int) (n int, err error) {
	err = s.enter(ctx, func() {
		for _, b := range s.boxes {
			if b.Client == client && b.Disabled == notice.Enabled {
				n += len(b.open)
			}
		}
		n = min(n, most)
	})
	return n, err
}

// InUse lists a client's endpoints in use, up to most.
func (s Notices) InUse(ctx context.Context, client string, most int) (used []notice.EndpointID, err error) {
	err = s.enter(ctx, func() {
		now := micro(s.now())
		for _, b := range s.boxes {
			recent := !b.asked.IsZero() && now.Sub(b.asked) < notice.UseFor
			if b.Client == client && b.Disabled == notice.Enabled && (recent || !b.due.IsZero()) && len(used) < most {
				used = append(used, b.ID)
			}
		}
	})
	return used, err
}
