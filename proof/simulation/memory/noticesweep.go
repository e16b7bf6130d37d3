package memory

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/tempo-watchtower/watchtower/domain/notice"
	"github.com/tempo-watchtower/watchtower/eventlog"
)

// put sets an endpoint's state. Sweep gives up the queued deliveries of an endpoint disabled by
// that. An endpoint enabled before Sweep has finished keeps the rest.
func (b *box) put(e notice.Endpoint) {
	switch {
	case e.Disabled != notice.Enabled && b.Disabled == notice.Enabled:
		b.sweep, b.swept = notice.GivingUp, notice.Key{Endpoint: b.ID}
	case e.Disabled == notice.Enabled && b.sweep == notice.GivingUp:
		b.sweep = notice.NoSweep
	}
	b.Endpoint = e
}

// CarryOut applies commands about endpoints in their order, adds deliveries as Enqueue does, and
// moves the reader's checkpoint, atomically.
func (s Notices) CarryOut(ctx context.Context, reader string, from, to eventlog.Position, wishes []notice.Event, news []notice.News) error {
	return s.applied(ctx, reader, from, to, func() {
		now := micro(s.now())
		for _, n := range news { // an endpoint may exist by its news alone
			s.know(n, now)
		}
		for _, w := range wishes {
			if b := s.box(notice.About(w)); b != nil {
				b.carryOut(w, now)
				b.move(s.policy, now)
			}
		}
		for _, n := range news {
			s.post(n, now).move(s.policy, now)
		}
	})
}

func (b *box) carryOut(wish notice.Event, now time.Time) {
	switch w := wish.(type) {
	case notice.WasDisabled:
		if w.Reason == notice.Operator {
			b.put(b.Disable(w.Reason, now))
		}
	case notice.WasEnabled:
		b.put(b.Enable())
	case notice.RedeliveryAsked:
		if b.Disabled == notice.Enabled {
			b.redeliver(w, now)
		}
	}
}

func (b *box) redeliver(w notice.RedeliveryAsked, now time.Time) {
	if len(w.Notices) == 0 {
		b.sweep, b.swept = notice.Requeuing, notice.Key{Endpoint: b.ID}
	}
	for _, k := range w.Keys() {
		if l := b.find(k); l != nil && l.Stage != notice.Queued {
			b.requeue(l, now)
		}
	}
}

func (b *box) requeue(l *letter, now time.Time) {
	l.Stage, l.Attempts, l.NextAt, l.settled = notice.Queued, 0, now, time.Time{}
	b.queue(l)
}

// Sweep does the next part of an endpoint's pending work: on up to most deliveries. Clients
// take turns, and so do a client's endpoints.
func (s Notices) Sweep(ctx context.Context, turn string, most int) (client string, found bool, err error) {
	err = s.enter(ctx, func() {
		now := micro(s.now())
		var next *box
		behind := func(b *box) int { // 0: it has its turn in this round
			if b.Client > turn {
				return 0
			}
			return 1
		}
		for _, b := range s.boxes {
			if b.sweep != notice.NoSweep && (next == nil ||
				cmp.Or(cmp.Compare(behind(b), behind(next)), cmp.Compare(b.Client, next.Client), b.sweptAt.Compare(next.sweptAt)) < 0) {
				next = b
			}
		}
		if next == nil {
			return
		}
		client, found = next.Client, true
		next.sweptAt = now
		if next.some(most, now) < most {
			next.sweep = notice.NoSweep
		}
		next.move(s.policy, now)
	})
	return client, found, err
}

// some does the next part, and returns the number of deliveries.
func (b *box) some(most int, now time.Time) (n int) {
	if b.sweep == notice.GivingUp {
		open := slices.Clone(b.open)
		for _, l := range open[:min(most, len(open))] {
			l.Stage, l.holder, l.Last.Cause, l.settled = notice.Dead, "", notice.Off, now
			b.queue(l)
			n++
		}
		return n
	}
	for _, l := range b.letters {
		if n < most && l.Stage == notice.Dead && l.Key.Compare(b.swept) > 0 {
			b.requeue(l, now)
			b.swept = l.Key
			n++
		}
	}
	return n
}

// Count counts an endpoint's deliveries at a stage, queued or dead, up to most.
func (s Notices) Count(ctx context.Context, endpoint notice.EndpointID, stage notice.Stage, most int) (n int, err error) {
	err = s.enter(ctx, func() {
		if b := s.box(endpoint); b != nil {
			for _, l := range b.letters {
				if n < most && l.Stage == stage {
					n++
				}
			}
		}
	})
	return n, err
}
