package linear

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/anishathalye/porcupine"
)

// Right asks for a lease for TTL, or releases it if TTL is 0.
type Right struct {
	Name   string
	Holder string
	TTL    time.Duration
}

// Granted is a call's result.
type Granted struct {
	Held bool
	Err  error
}

// Leases is a history of leases. Its clock must run as fast as the store's.
type Leases struct {
	*History[Right, Granted]
	// Slack is the store clock's possible error within a lease's term, including truncation.
	Slack time.Duration
	// Again is set for an adapter that retries by itself when a reply is lost: a call that took
	// at least this long may have had its effect earlier, too. 0 means never.
	Again time.Duration
}

// NewLeases makes an empty history, timed by a clock.
func NewLeases(now func() time.Time) Leases { return Leases{History: NewHistory[Right, Granted](now)} }

// Told counts the calls for a lease that returned held, or not held.
func (l Leases) Told(held bool) int {
	return l.told(func(r Right, g Granted) bool { return r.TTL > 0 && g.Err == nil && g.Held == held })
}

// Judge checks the history against leases granted one after the other.
func (l Leases) Judge() Verdict {
	return search(l.model(), operations(l.clear()), "the leases")
}

// clear drops calls that cannot be judged if adapters retry by themselves: a holder knows only
// the result of its last try, and an earlier try may have denied the lease to others. All other
// effects of an earlier try are also effects of the last one.
func (l Leases) clear() (kept []call[Right, Granted]) {
	calls := l.sorted()
	slow := func(c call[Right, Granted]) bool {
		return l.Again > 0 && c.in.TTL > 0 && c.ended-c.began >= l.Again
	}
	for _, c := range calls {
		denied := c.in.TTL > 0 && !c.open && !c.out.Held
		if denied && slices.ContainsFunc(calls, func(o call[Right, Granted]) bool {
			return slow(o) && o.in.Name == c.in.Name && o.in.Holder != c.in.Holder && o.began <= c.ended && c.began <= o.ended
		}) {
			continue
		}
		kept = append(kept, c)
	}
	return kept
}

func (l Leases) model() porcupine.Model {
	m := porcupine.NondeterministicModel{
		Partition: func(all []porcupine.Operation) [][]porcupine.Operation {
			return partition(all, func(o porcupine.Operation) string { return o.Input.(call[Right, Granted]).in.Name })
		},
		Init: func() []any { return []any{lease{}} },
		Step: func(state, input, output any) []any {
			c := input.(call[Right, Granted])
			began, ended := int64(c.began), int64(c.ended)
			if c.open {
				ended = math.MaxInt64 / 2
			}
			var all []any
			for _, next := range state.(lease).step(c.in, output.(Granted), began, ended, int64(l.Slack)) {
				all = append(all, next)
			}
			return all
		},
		DescribeOperation: func(input, output any) string {
			return describeRight(input.(call[Right, Granted]).in, output.(Granted))
		},
		DescribeState: func(state any) string { return fmt.Sprintf("%+v", state) },
	}
	return m.ToModel()
}

// lease is a possible state of a lease after some calls. The moment at which a call took effect
// is unknown, except for two bounds. So the moment at which the lease lapses has bounds too.
type lease struct {
	holder  string
	low, up int64 // it lapses between these
	now     int64 // the earliest time by which all calls so far can have taken effect
}

// step returns the possible states after a call that took effect between two moments with this
// result; none if the result is impossible.
func (s lease) step(in Right, out Granted, began, ended, slack int64) []lease {
	s.now = max(s.now, began)
	if s.now > ended {
		return nil
	}
	if in.TTL == 0 {
		after := s
		if s.holder == in.Holder {
			after.holder = ""
		}
		if out.Err != nil {
			return []lease{s, after}
		}
		return []lease{after}
	}
	free := s.holder == ""
	lapses := !free && s.low-slack <= ended // it may have lapsed by then
	runs := !free && s.now < s.up+slack     // it may still run
	var all []lease
	if out.Err != nil || !out.Held {
		if out.Err != nil || runs && s.holder != in.Holder {
			denied := s
			if out.Err == nil {
				denied.low = max(s.low, s.now)
			}
			all = append(all, denied)
		}
		if out.Err == nil {
			return all
		}
	}
	switch {
	case free || s.holder == in.Holder:
		all = append(all, given(in, s.now, ended))
	case lapses:
		all = append(all, given(in, max(s.now, s.low-slack), ended))
	}
	return all
}

// given is the lease of a holder, granted between two moments.
func given(in Right, from, to int64) lease {
	ttl := int64(in.TTL)
	return lease{holder: in.Holder, low: from + ttl, up: to + ttl, now: from}
}

func describeRight(in Right, out Granted) string {
	text := fmt.Sprintf("%s asks for %s for %s", in.Holder, in.Name, in.TTL)
	if in.TTL == 0 {
		text = fmt.Sprintf("%s gives up %s", in.Holder, in.Name)
	}
	switch {
	case out.Err != nil:
		return text + ": " + out.Err.Error()
	case in.TTL == 0:
		return text
	case out.Held:
		return text + ": held"
	}
	return text + ": denied"
}
