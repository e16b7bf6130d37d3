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
	TTL    time.Duration // duration of the leases
	Limit  int
	// Turn is the client of the last notice that the worker got: the claim begins with the next
	// client by name.
	Turn string
	// Slots is the number of the worker's concurrent attempts, and Busy each client's attempts
	// among them. With Slots 0 no client's share is bounded.
	Slots int
	Busy  map[string]int
}

// Offer is an endpoint that may have due notices, as found by a store.
type Offer struct {
	Endpoint
	Leased int // notices leased by any worker
	// Heads are the first queued notices of their intents that are not leased, by NextAt: at
	// least as many as the policy's concurrency.
	Heads []Notice
}

// Slots returns the number of concurrent attempts allowed at an endpoint.
func (p Policy) Slots(e Endpoint) int {
	if e.Failures > 0 {
		return 1
	}
	return p.Concurrency
}

// due returns the notices of an offer that can be sent now.
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

// DueAt returns when a notice of an offer can be leased; zero if never. lapse is the end of the
// first lease, zero if there is none. An endpoint with all its leases taken is due when the first
// one ends. An endpoint that is due now gets the time now, behind those due earlier.
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

// Choose picks the notices for a claim from the offers that a store found, ordered by how long
// they have been due.
//
// Clients take turns: each gets one notice before any gets a second, and each endpoint of a
// client gets one before any gets a second. No client gets more of the worker's slots than
// [Claim.Full] allows. The returned list contains the clients that have more due notices but no
// free share of slots.
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

// slotsShare is the ratio of a client's slots to the slots it leaves free. One client alone gets
// three quarters. For any number of busy clients, a slot stays free for a client without
// attempts.
const slotsShare = 3

// isFull reports whether a client's attempts use its whole share of slots. Without API keys all
// callers are the client with the empty name, which has the slots to itself.
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

// Full returns the clients that get no more notices before an attempt ends.
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
