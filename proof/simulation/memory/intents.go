package memory

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/relay/intent"
	"github.com/tempo-watchtower/watchtower/eventlog"
)

// Intents is the work queue of intents; see commands/relay/worker.Queue for its contract.
type Intents struct{ *Store }

// Intents is the work queue of intents.
func (s *Store) Intents() Intents { return Intents{s} }

// Apply applies changes in order and moves the reader's checkpoint, atomically.
func (s Intents) Apply(ctx context.Context, reader string, from, to eventlog.Position, changes []intent.Change) error {
	return s.applied(ctx, reader, from, to, func() {
		changed := map[chain.IntentID]bool{}
		for _, c := range changes {
			changed[c.ID] = true
		}
		var stored []intent.Entry
		s.intents = slices.DeleteFunc(s.intents, func(e intent.Entry) bool {
			if changed[e.ID] {
				stored = append(stored, e)
			}
			return changed[e.ID]
		})
		f := intent.NewFold(stored)
		for _, c := range changes {
			f.Apply(c)
		}
		for _, r := range f.Rows() {
			if r.Is != nil {
				if r.Opened {
					r.Is.Asleep = r.Is.NotBefore > unix(s.now())
				}
				at, _ := slices.BinarySearchFunc(s.intents, r.Is.Position, func(e intent.Entry, p eventlog.Position) int { return cmp.Compare(e.Position, p) })
				s.intents = slices.Insert(s.intents, at, *r.Is)
			}
		}
	})
}

// Claim assigns rows to a holder, chosen by [intent.Claim.Choose].
func (s Intents) Claim(ctx context.Context, c intent.Claim) (claimed []intent.Claimed, err error) {
	err = s.enter(ctx, func() {
		now := micro(s.now())
		for i, e := range s.intents {
			if e.Holder != "" && !e.Until.After(now) {
				s.intents[i].Release()
			}
			if e.NotBefore <= unix(now) {
				s.intents[i].Asleep = false
			}
		}
		claimed = c.Choose(s.intents)
		given := map[chain.IntentID]bool{}
		for _, g := range claimed {
			given[g.ID] = true
		}
		for i, e := range s.intents {
			if given[e.ID] {
				s.intents[i].Lane, s.intents[i].Holder, s.intents[i].Until = &c.Lane, c.Holder, micro(now.Add(c.TTL))
			}
		}
	})
	return claimed, err
}

// Return ends a holder's claims of these intents.
func (s Intents) Return(ctx context.Context, holder string, ids []chain.IntentID) error {
	return s.enter(ctx, func() {
		for i, e := range s.intents {
			if e.Holder != "" && e.Holder == holder && slices.Contains(ids, e.ID) {
				s.intents[i].Release()
			}
		}
	})
}

// Demand counts a chain's rows by client: waiting rows by requested signer and nonce key, rows
// with a nonce by lane.
func (s Intents) Demand(ctx context.Context, id chain.ID) (all []intent.Demand, err error) {
	err = s.enter(ctx, func() {
		for _, w := range s.intents {
			switch {
			case w.Chain != id, w.Asleep && w.NotBefore > unix(s.now()):
			case w.Lane != nil && w.Holder == "":
				all = append(all, intent.Demand{From: intent.From{Signer: &w.Lane.Sender}, Key: &w.Lane.Key, Client: w.Client, First: w.Position, Assigned: 1})
			default:
				all = append(all, intent.Demand{From: w.From, Key: w.Key, Client: w.Client, First: w.Position, Waiting: 1})
			}
		}
	})
	return intent.Sum(all), err
}

// Open counts a client's rows, up to most.
func (s Intents) Open(ctx context.Context, client string, most int) (n int, err error) {
	err = s.enter(ctx, func() {
		for _, e := range s.intents {
			if e.Client == client && n < most {
				n++
			}
		}
	})
	return n, err
}

// Ahead returns the nearest earlier row of an ordering group that has no nonce, among the
// [intent.AheadMost] right before a position; zero if there is none.
func (s Intents) Ahead(ctx context.Context, row intent.Row, before eventlog.Position) (id chain.IntentID, err error) {
	err = s.enter(ctx, func() {
		read := 0
		for _, e := range slices.Backward(s.intents) {
			if row.Order == "" || e.Row != row || e.Position >= before {
				continue
			}
			if read++; read > intent.AheadMost {
				return
			}
			if e.Lane == nil || e.Holder != "" {
				id = e.ID
				return
			}
		}
	})
	return id, err
}

func unix(t time.Time) uint64 { return uint64(max(t.Unix(), 0)) }
