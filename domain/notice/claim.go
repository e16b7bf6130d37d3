package notice

import (
	"maps"
	"slices"
	"time"

	"github.com/tempo-watchtower/watchtower/domain/fair"
)

// Claim is a worker's request for notices to send.
type Claim struct {
	Holder string
	TTL    time.Duration // the leases lapse after so long
	Limit  int
	// Turn is the client of the last notice that the worker was given: the claim begins with
	// the next client in the order of names.
	Turn string
	// Slots is how many attempts the worker makes at once, and Busy how many of them each
	// client's take now. Without slots no client's part of them is bounded.
	Slots int
	Busy  map[string]int
}

// Offer is an endpoint at which something may be due, as a store has found it.
type Offer struct {
	Endpoint
	Leased int // notices, to anybody
	// Heads are the first queued notices of their intents that nobody has leased, by NextAt:
	// at least as many as the policy's concurrency.
	Heads []Notice
}

// Slots is how many attempts can be made at an endpoint at the same time.
func (p Policy) Slots(e Endpoint) int {
	if e.Failures > 0 {
		return 1
	}
	return p.Concurrency
}

// due are the notices of an offer that can be sent now.
func (p Policy) due(o Offer, now time.Time) (due []Sending) {
	if o.Disabled != Enabled || o.PausedUntil.After(now) {
		return nil
	}
	for _, n := range o.Heads {
		if len(due) < p.Slots(o.Endpoint)-o.Leased && !n.NextAt.After(now) {
			n.Stage = Delivering
			due = append(due, Sending{Notice: n, URL: o.URL, Client: o.Client})
		}
	}
	return due
}

// DueAt is when something of an offer may be leased, if its first lease lapses at a time
// (zero: it has none); zero when nothing may ever. One that has as many leases as it can have
// is due when one of them lapses. One that is due goes behind those that were before.
func (p Policy) DueAt(o Offer, lapse, now time.Time) time.Time {
	due := lapse
	if len(o.Heads) > 0 && o.Leased < p.Slots(o.Endpoint) && (due.IsZero() || o.Heads[0].NextAt.Before(due)) {
		due = o.Heads[0].NextAt
	}
	if o.Disabled != Enabled || due.IsZero() {
		return time.Time{}
	}
	return slices.MaxFunc([]time.Time{due, o.PausedUntil, now}, time.Time.Compare)
}

// Choose picks the notices that a claim is given, of the offers that a store has found, the
// one that has been due for longest first.
//
// Clients take turns: each gets one notice before any gets a second, and of a client each
// endpoint one before any gets a second. No client gets more of the worker's slots than
// [Claim.Full] leaves it. Full lists the clients for which something is left that waits for
// their own slots alone.
func (p Policy) Choose(c Claim, offers []Offer, now time.Time) ([]Sending, []string) {
	byEndpoint := map[string][][]Sending{}
	for _, o := range offers {
		if due := p.due(o, now); len(due) > 0 {
			byEndpoint[o.Client] = append(byEndpoint[o.Client], due)
		}
	}
	byClient, most := map[string][]Sending{}, 0
	for client, endpoints := range byEndpoint {
		for place := range p.Concurrency {
			for _, due := range endpoints {
				if place < len(due) {
					byClient[client] = append(byClient[client], due[place])
				}
			}
		}
		most += len(byClient[client])
	}
	var chosen []Sending
	after, busy := c, map[string]int{}
	maps.Copy(busy, c.Busy)
	after.Busy = busy
	left, full := map[string]int{}, []string{}
	for _, n := range fair.Deal(c.Turn, most, byClient) {
		if len(chosen) == c.Limit || after.isFull(n.Client) {
			left[n.Client]++
			continue
		}
		busy[n.Client]++
		chosen = append(chosen, n)
	}
	for client := range left {
		if after.isFull(client) {
			full = append(full, client)
		}
	}
	slices.Sort(full)
	return chosen, full
}

// slotsShare is how many times as many slots a client can take as it leaves to all others: one
// alone takes three quarters, and however many have more to send than they get, some stay
// free for a client that has nothing under way.
const slotsShare = 3

// isFull reports whether a client's attempts take as many slots as they may. Without API keys
// everybody is the client without a name, which has nobody to share with.
func (c Claim) isFull(client string) bool {
	if c.Slots == 0 || client == "" {
		return false
	}
	free := c.Slots
	for _, n := range c.Busy {
		free -= n
	}
	return free <= 0 || c.Busy[client] > 0 && c.Busy[client] >= slotsShare*(free-1)
}

// Full lists the clients that can have no more notices before an attempt ends.
func (c Claim) Full() []string {
	full := []string{}
	for client := range c.Busy {
		if c.isFull(client) {
			full = append(full, client)
		}
	}
	slices.Sort(full)
	return full
}
