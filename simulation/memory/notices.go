package memory

import (
	"bytes"
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/tempo-watchtower/watchtower/domain/event"
	"github.com/tempo-watchtower/watchtower/domain/notice"
)

// Notices is the queue of notices to endpoints; see commands/notifier for what it promises.
type Notices struct {
	*Store
	policy notice.Policy
}

// Notices is the queue of notices, under a policy.
func (s *Store) Notices(p notice.Policy) Notices { return Notices{s, p} }

// letter is a notice in the queue. Queued is its stage also while somebody sends it.
type letter struct {
	notice.Notice
	no      int       // of two that are due at one time, the first that came goes first
	holder  string    // of the lease; empty: there is none
	until   time.Time // it runs
	settled time.Time // when it was delivered or given up
}

// told is a notice as it is shown.
func (l *letter) told(now time.Time) notice.Notice {
	n := l.Notice
	n.Body = bytes.Clone(n.Body)
	if l.holder != "" && l.until.After(now) {
		n.Stage = notice.Delivering
	}
	return n
}

// box is an endpoint and its notices, by intent and sequence.
type box struct {
	notice.Endpoint
	letters []*letter
	open    []*letter // those that are queued
	due     time.Time // when something may be leased; zero: nothing ever, as yet
	asked   time.Time // when an intent was last asked for with it
}

func compareKeys(a, b notice.Key) int {
	return cmp.Or(bytes.Compare(a.Endpoint[:], b.Endpoint[:]), bytes.Compare(a.Intent[:], b.Intent[:]), cmp.Compare(a.Seq, b.Seq))
}

func compareLetters(l *letter, k notice.Key) int { return compareKeys(l.Key, k) }

// find is the letter with a key, and nil if there is none.
func (b *box) find(k notice.Key) *letter {
	if at, ok := slices.BinarySearchFunc(b.letters, k, compareLetters); ok {
		return b.letters[at]
	}
	return nil
}

// queue has a letter be among those that are queued, or not any more, as its stage says.
func (b *box) queue(l *letter) {
	at, is := slices.BinarySearchFunc(b.open, l.Key, compareLetters)
	switch to := l.Stage == notice.Queued; {
	case to && !is:
		b.open = slices.Insert(b.open, at, l)
	case !to && is:
		b.open = slices.Delete(b.open, at, at+1)
	}
}

// heads yields the first of each intent that is queued.
func (b *box) heads(yield func(*letter) bool) {
	for i, l := range b.open {
		if (i == 0 || b.open[i-1].Intent != l.Intent) && !yield(l) {
			return
		}
	}
}

// offered is what the policy decides by, and when the first lease lapses.
func (b *box) offered(p notice.Policy, now time.Time) (o notice.Offer, lapse time.Time) {
	o.Endpoint = b.Endpoint
	var heads []*letter
	for _, l := range b.open {
		if l.holder != "" {
			o.Leased++
			lapse = sooner(lapse, l.until)
		}
	}
	for l := range b.heads {
		if l.holder == "" {
			heads = append(heads, l)
		}
	}
	slices.SortFunc(heads, func(a, b *letter) int { return cmp.Or(a.NextAt.Compare(b.NextAt), cmp.Compare(a.no, b.no)) })
	for _, l := range heads[:min(len(heads), p.Concurrency)] {
		o.Heads = append(o.Heads, l.told(now))
	}
	return o, lapse
}

// sooner is the earlier of two times, of which a zero one is none.
func sooner(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// move says when the endpoint is due.
func (b *box) move(p notice.Policy, now time.Time) {
	o, lapse := b.offered(p, now)
	b.due = p.DueAt(o, lapse, now)
}

// giveUp ends what is queued.
func (b *box) giveUp(now time.Time) {
	for _, l := range slices.Clone(b.open) {
		l.Stage, l.holder, l.Last.Cause, l.settled = notice.Dead, "", notice.Off, now
		b.queue(l)
	}
}

// box is an endpoint's; nil when nothing was ever for it.
func (d *data) box(id notice.EndpointID) *box {
	if at, ok := slices.BinarySearchFunc(d.boxes, id, compareBox); ok {
		return d.boxes[at]
	}
	return nil
}

func compareBox(b *box, id notice.EndpointID) int { return bytes.Compare(b.ID[:], id[:]) }

// Enqueue takes in news and moves the reader's checkpoint, together. What is there already
// stays as it is. At an endpoint that is disabled, news are dead.
func (s Notices) Enqueue(ctx context.Context, reader string, from, to event.Position, news []notice.News) error {
	return s.applied(ctx, reader, from, to, func() {
		now := micro(s.now())
		for _, n := range news {
			s.post(n, now).move(s.policy, now)
		}
	})
}

func (d *data) post(n notice.News, now time.Time) *box {
	at, known := slices.BinarySearchFunc(d.boxes, n.Endpoint, compareBox)
	if !known {
		d.boxes = slices.Insert(d.boxes, at, &box{Endpoint: notice.Endpoint{ID: n.Endpoint, Client: n.Client, URL: n.URL}})
	}
	b := d.boxes[at]
	b.Client = n.Client
	if n.Seq == 0 {
		b.asked = now
		return b
	}
	at, known = slices.BinarySearchFunc(b.letters, n.Key, compareLetters)
	if known {
		return b
	}
	d.lastLetter++
	l := &letter{no: d.lastLetter, Notice: notice.Notice{Key: n.Key, Body: bytes.Clone(n.Body), Stage: notice.Queued, NextAt: now}}
	if b.Disabled != notice.Enabled {
		l.Stage, l.Last.Cause, l.settled = notice.Dead, notice.Off, now
	}
	b.letters = slices.Insert(b.letters, at, l)
	b.queue(l)
	return b
}

// Done ends the holder's leases with what came of the attempts. It returns the endpoints
// that are disabled by it: what was queued for them is dead. Reports of notices that the
// holder does not hold any more change nothing.
func (s Notices) Done(ctx context.Context, holder string, reports []notice.Report) (disabled []notice.Endpoint, err error) {
	err = s.enter(ctx, func() {
		now := micro(s.now())
		for _, r := range reports {
			b := s.box(r.Key.Endpoint)
			if b == nil {
				continue
			}
			l := b.find(r.Key)
			if l == nil || l.holder != holder {
				continue
			}
			before := b.Disabled
			l.Notice, b.Endpoint = s.policy.After(l.Notice, b.Endpoint, r.Outcome, now)
			l.NextAt, l.holder = micro(l.NextAt), ""
			b.PausedUntil = micro(b.PausedUntil)
			if l.Stage != notice.Queued {
				l.settled = now
				b.queue(l)
			}
			if b.Disabled != before {
				disabled = append(disabled, b.Endpoint)
			}
			b.move(s.policy, now)
		}
		for _, e := range disabled {
			s.box(e.ID).giveUp(now)
		}
	})
	return disabled, err
}

// Redeliver queues an endpoint's notices anew that were delivered or given up, and says how
// many those were. It is refused while the endpoint is disabled: notice.ErrDisabled.
func (s Notices) Redeliver(ctx context.Context, endpoint notice.EndpointID, keys []notice.Key) (n int, err error) {
	refused := false
	err = s.enter(ctx, func() {
		b, now := s.box(endpoint), micro(s.now())
		if b == nil {
			return
		}
		if refused = b.Disabled != notice.Enabled; refused {
			return
		}
		for _, k := range keys {
			if l := b.find(k); l != nil && l.Stage != notice.Queued {
				l.Stage, l.Attempts, l.NextAt, l.settled = notice.Queued, 0, now, time.Time{}
				b.queue(l)
				n++
			}
		}
		b.move(s.policy, now)
	})
	if refused {
		return 0, notice.ErrDisabled
	}
	return n, err
}

// Enable lets an endpoint be sent to again, with a clean record.
func (s Notices) Enable(ctx context.Context, id notice.EndpointID) error {
	return s.change(ctx, id, func(b *box, _ time.Time) { b.Endpoint = b.Enable() })
}

// Disable ends sending to an endpoint. What is queued for it is dead.
func (s Notices) Disable(ctx context.Context, id notice.EndpointID, reason notice.Reason) error {
	return s.change(ctx, id, func(b *box, now time.Time) {
		b.Endpoint = b.Disable(reason, now)
		b.giveUp(now)
	})
}

func (s Notices) change(ctx context.Context, id notice.EndpointID, to func(*box, time.Time)) error {
	return s.enter(ctx, func() {
		if b, now := s.box(id), micro(s.now()); b != nil {
			to(b, now)
			b.move(s.policy, now)
		}
	})
}
