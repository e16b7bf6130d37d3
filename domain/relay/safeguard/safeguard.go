// Package safeguard implements operators' restrictions of the relay: kill switches, allow-lists
// of calls, and request rates. Package budget limits spending, and package signer restricts keys.
//
// A halt is a thrown kill switch, of the whole deployment, of a chain, or of a client. While it
// is thrown, nothing new is accepted and nothing is signed: no first attempt, no bump and, except
// for a client's halt, no no-op. Attempts signed before are sent and watched as usual: nodes may
// have them already, so that withholding them would stop nothing and leave nonces blocked. The
// nonces of a halted client are given up by no-ops, which belong to no client.
//
// Lists are the allowed calls: one list per chain, and one per client on a chain. A call must be
// allowed by all existing lists. Accepted requests are checked again before they are signed.
//
// All safeguards are in one stream: operators change them rarely, and the permissions are decided
// together. Each event contains its actor and reason.
//
// Invariants of a [State] under every sequence of commands:
//
//  1. Every event has an actor and a reason.
//  2. Halted and Resumed of one scope alternate.
//  3. A request that is halted in any scope is neither accepted nor signed.
//  4. A state has at most [HaltsMax] halts plus the deployment's, [ListsMax] lists and [RatesMax]
//     rates.
//  5. Deciding the same command twice adds no event the second time.
package safeguard

import (
	"fmt"
	"maps"
	"time"

	"github.com/tempo-watchtower/watchtower/domain/chain"
)

// State is the operators' present settings. The zero State restricts nothing.
type State struct {
	Halts map[Scope]Halt
	Lists map[Scope]chain.Targets
	Rates map[Scope]Rate
}

// Halt is a thrown kill switch.
type Halt struct {
	Actor  string
	Reason string
	Since  time.Time
}

// Scope is the range of a safeguard.
type Scope struct {
	Kind   ScopeKind `json:"kind"`
	Chain  chain.ID  `json:"chain,omitempty"` // of OnChain; of OfClient, where 0 is every chain
	Client string    `json:"client,omitempty"`
}

// ScopeKind is the kind of a scope.
type ScopeKind string

const (
	Deployment  ScopeKind = "deployment"   // all clients on all chains
	OnChain     ScopeKind = "chain"        // all clients on one chain
	OfClient    ScopeKind = "client"       // one client; empty: all callers without an API key
	EachClient  ScopeKind = "each-client"  // each client without a setting of its own
	EachSubject ScopeKind = "each-subject" // each subject of a client
)

func (s Scope) String() string {
	switch {
	case s.Kind == OnChain:
		return "chain " + s.Chain.String()
	case s.Kind == OfClient && s.Chain == 0:
		return fmt.Sprintf("client %q", s.Client)
	case s.Kind == OfClient:
		return fmt.Sprintf("client %q on chain %s", s.Client, s.Chain)
	}
	return string(s.Kind)
}

// Rate is a rate limit: sustained requests per second, and a burst.
type Rate struct {
	PerSecond int `json:"perSecond"`
	Burst     int `json:"burst"`
}

// Interval returns the time in which one request is refilled.
func (r Rate) Interval() time.Duration { return time.Second / time.Duration(r.PerSecond) }

// Window returns the time in which an exhausted burst is refilled.
func (r Rate) Window() time.Duration { return r.Interval() * time.Duration(r.Burst) }

// Request is a request to check.
type Request struct {
	Client string
	Chain  chain.ID
	Calls  []chain.Call
}

// switches returns the scopes whose halts stop the request.
func (r Request) switches() []Scope {
	return []Scope{
		{Kind: Deployment}, {Kind: OnChain, Chain: r.Chain}, {Kind: OfClient, Client: r.Client}, {Kind: OfClient, Client: r.Client, Chain: r.Chain},
	}
}

// HaltedSince returns when the first of the switches that stop a request was thrown; zero if none
// is.
func (s State) HaltedSince(r Request) (since time.Time) {
	for _, scope := range r.switches() {
		if h, thrown := s.Halts[scope]; thrown && (since.IsZero() || h.Since.Before(since)) {
			since = h.Since
		}
	}
	return since
}

// Check refuses a request that may not be accepted or signed now.
func (s State) Check(r Request) error {
	if err := s.halted(r.switches()...); err != nil {
		return err
	}
	for _, scope := range []Scope{{Kind: OnChain, Chain: r.Chain}, {Kind: OfClient, Client: r.Client, Chain: r.Chain}} {
		for i, c := range r.Calls {
			if !s.Lists[scope].Allows(c.To, c.Input) {
				return ErrTarget.Because("call %d is not allowed for the %s", i, scope)
			}
		}
	}
	return nil
}

// CheckNoOp refuses a no-op that may not be signed now.
func (s State) CheckNoOp(on chain.ID) error {
	return s.halted(Scope{Kind: Deployment}, Scope{Kind: OnChain, Chain: on})
}

func (s State) halted(scopes ...Scope) error {
	for _, scope := range scopes {
		if h, thrown := s.Halts[scope]; thrown {
			return ErrHalted.Because("the %s is halted by %s since %s: %s", scope, h.Actor, h.Since.UTC().Format(time.RFC3339), h.Reason)
		}
	}
	return nil
}

// ClientRate returns a client's rate limit; false: no limit.
func (s State) ClientRate(client string) (Rate, bool) {
	if r, own := s.Rates[Scope{Kind: OfClient, Client: client}]; own {
		return r, true
	}
	r, any := s.Rates[Scope{Kind: EachClient}]
	return r, any
}

// SubjectRate returns the rate limit for each subject of a client; false: no limit.
func (s State) SubjectRate() (Rate, bool) {
	r, any := s.Rates[Scope{Kind: EachSubject}]
	return r, any
}

// Rate returns the rate limit of all clients together; false: no limit.
func (s State) Rate() (Rate, bool) {
	r, any := s.Rates[Scope{Kind: Deployment}]
	return r, any
}

// Decide returns the events that a command adds: none if it changes nothing, an [eventlog.Refusal]
// if it is not allowed.
func (s State) Decide(c Command) ([]Event, error) {
	switch c := c.(type) {
	case Throw:
		return s.halt(c)
	case Resume:
		return s.resume(c)
	case SetTargets:
		return s.setTargets(c)
	case SetRate:
		return s.setRate(c)
	}
	panic(fmt.Sprintf("safeguard: unknown command %T", c))
}

// Evolve applies one event. It cannot fail, because a recorded event has happened. It does not
// change s.
func (s State) Evolve(e Event) State {
	switch e := e.(type) {
	case Halted:
		s.Halts = with(s.Halts, e.Scope, Halt{e.Actor, e.Reason, e.At}, true)
	case Resumed:
		s.Halts = with(s.Halts, e.Scope, Halt{}, false)
	case TargetsSet:
		s.Lists = with(s.Lists, e.Scope, e.Targets, len(e.Targets) > 0)
	case RateSet:
		if e.Rate == nil {
			s.Rates = with(s.Rates, e.Scope, Rate{}, false)
		} else {
			s.Rates = with(s.Rates, e.Scope, *e.Rate, true)
		}
	default:
		panic(fmt.Sprintf("safeguard: unknown event %T", e))
	}
	return s
}

// with returns a copy of a map with an entry set or deleted.
func with[V any](was map[Scope]V, scope Scope, v V, there bool) map[Scope]V {
	now := maps.Clone(was)
	if now == nil {
		now = map[Scope]V{}
	}
	if there {
		now[scope] = v
	} else {
		delete(now, scope)
	}
	return now
}
