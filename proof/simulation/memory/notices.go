package memory

import (
	"bytes"
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/tempo-watchtower/watchtower/domain/notice"
	"github.com/tempo-watchtower/watchtower/eventlog"
)

// Notices is the queue of webhook deliveries; see commands/notifier for its contract.
type Notices struct {
	*Store
	policy notice.Policy
}

// Notices is the queue of webhook deliveries, under a policy.
func (s *Store) Notices(p notice.Policy) Notices { return Notices{s, p} }

// letter is a webhook delivery in the queue. Its stage is Queued also while it is leased.
type letter struct {
	notice.Notice
	no      int       // arrival order, for deliveries due at the same time
	holder  string    // of the lease; empty: not leased
	until   time.Time // end of the lease
	settled time.Time // when it was delivered or given up
}

// told converts a letter to a notice.
func (l *letter) told(now time.Time) notice.Notice {
	n := l.Notice
	n.Body = bytes.Clone(n.Body)
	if l.holder != "" && l.until.After(now) {
		n.Stage = notice.Delivering
	}
	return n
}

// box is an endpoint and its deliveries, by intent and sequence.
type box struct {
	notice.Endpoint
	letters []*letter
	open    []*letter // the queued letters
	due     time.Time // when a letter may be leased; zero: none at present
	asked   time.Time // when an intent with this endpoint was last requested
	sweep   notice.Sweep
	swept   notice.Key // progress of Sweep
	sweptAt time.Time
}

func compareLetters(l *letter, k notice.Key) int { return l.Key.Compare(k) }

// find returns the letter with a key; nil if there is none.
func (b *box) find(k notice.Key) *letter {
	if at, ok := slices.BinarySearchFunc(b.letters, k, compareLetters); ok {
		return b.letters[at]
	}
	return nil
}

// queue adds a letter to the queued ones or removes it, according to its stage.
func (b *box) queue(l *letter) {
	at, is := slices.BinarySearchFunc(b.open, l.Key, compareLetters)
	switch to := l.Stage == notice.Queued; {
	case to && !is:
		b.open = slices.Insert(b.open, at, l)
	case !to && is:
		b.open = slices.Delete(b.open, at, at+1)
	}
}

// heads yields the first queued letter of each intent.
func (b *box) heads(yield func(*letter) bool) {
	for i, l := range b.open {
		if (i == 0 || b.open[i-1].Intent != l.Intent) && !yield(l) {
			return
		}
	}
}

// offered returns the input of the policy, and the expiry of the first lease.
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

// sooner is the earlier of two times; zero means none.
func sooner(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// move computes when the endpoint is due.
func (b *box) move(p notice.Policy, now time.Time) {
	o, lapse := b.offered(p, now)
	b.due = p.DueAt(o, lapse, now)
}

// box returns an endpoint's box; nil if it never had a delivery.
func (d *data) box(id notice.EndpointID) *box {
	if at, ok := slices.BinarySearchFunc(d.boxes, id, compareBox); ok {
		return d.boxes[at]
	}
	return nil
}

func compareBox(b *box, id notice.EndpointID) int { return bytes.Compare(b.ID[:], id[:]) }

// Enqueue adds deliveries and moves the reader's checkpoint, atomically. Existing deliveries
// stay unchanged. At a disabled endpoint, new deliveries are dead.
func (s Notices) Enqueue(ctx context.Context, reader string, from, to eventlog.Position, news []notice.News) error {
	return s.applied(ctx, reader, from, to, func() {
		now := micro(s.now())
		for _, n := range news {
			s.know(n, now)
			s.post(n, now).move(s.policy, now)
		}
	})
}

// know records the endpoint of news, and its use.
func (d *data) know(n notice.News, now time.Time) {
	at, known := slices.BinarySearchFunc(d.boxes, n.Endpoint, compareBox)
	if !known {
		d.boxes = slices.Insert(d.boxes, at, &box{Endpoint: notice.Endpoint{ID: n.Endpoint, Client: n.Client, URL: n.URL}})
	}
	b := d.boxes[at]
	b.Client = n.Client
	if n.Seq == 0 {
		b.asked = now
	}
}

// post adds a delivery to the box of an endpoint that is known.
func (d *data) post(n notice.News, now time.Time) *box {
	b := d.box(n.Endpoint)
	at, known := slices.BinarySearchFunc(b.letters, n.Key, compareLetters)
	if n.Seq == 0 || known {
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

// Done ends the holder's leases with the outcomes of the attempts. It returns the endpoints that
// it disabled: Sweep gives up their queued deliveries. Reports of deliveries that the holder no
// longer has leased change nothing.
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
			var after notice.Endpoint
			l.Notice, after = s.policy.After(l.Notice, b.Endpoint, r.Outcome, now)
			b.put(after)
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
	})
	return disabled, err
}
