// Package safeguard is what operators set so that the relay does no harm: kill switches,
// what may be called, how often may be asked. What may be spent is package budget's, and
// whether a key may be used is package signer's.
//
// A halt is the kill switch: of the whole deployment, of a chain, or of a client. While
// it is thrown nothing new is accepted, and nothing is signed: no first attempt, no bump,
// and, but for a client's, no no-op either. What was signed before may be with nodes
// already, so it is sent again and watched as ever: not to do so would stop nothing, and
// leave nonces blocked. Of a client that is halted the nonces are given up by no-ops,
// which are nobody's.
//
// Lists say what may be called: one for a chain, and one for a client on a chain. A call
// is allowed if all that there are allow it. What has been accepted is looked at again
// before it is signed.
//
// All is one stream: operators act seldom, and who may do what is one question. Each
// fact says who wished it, and why.
//
// Invariants of a [State], which every sequence of commands keeps:
//
//  1. Every fact bears an actor and a reason.
//  2. Halted and Resumed of one scope take turns.
//  3. Who is halted in any scope is neither accepted nor signed for.
//  4. A state has at most [HaltsMax] halts and that of the deployment, [ListsMax] lists
//     and [RatesMax] rates.
//  5. Deciding the same command twice adds nothing the second time.
package safeguard

import (
	"fmt"
	"maps"
	"time"

	"github.com/tempo-watchtower/watchtower/domain/chain"
)

// State is what operators have set. The zero State stops nothing.
type State struct {
	Halts map[Scope]Halt
	Lists map[Scope]chain.Targets
	Rates map[Scope]Rate
}

// Halt is a kill switch that is thrown.
type Halt struct {
	Actor  string
	Reason string
	Since  time.Time
}

// Scope is whom a safeguard is about.
type Scope struct {
	Kind   ScopeKind `json:"kind"`
	Chain  chain.ID  `json:"chain,omitempty"` // of OnChain; of OfClient, zero is every chain
	Client string    `json:"client,omitempty"`
}

// ScopeKind is what kind of thing a scope is.
type ScopeKind string

const (
	Deployment  ScopeKind = "deployment"   // everybody, on every chain
	OnChain     ScopeKind = "chain"        // everybody, on one
	OfClient    ScopeKind = "client"       // one client; all who need no key to ask are one, which is empty
	EachClient  ScopeKind = "each-client"  // each client of which nothing else is said
	EachSubject ScopeKind = "each-subject" // each whom a client asks for
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

// Rate is how often may be asked: so often in a second for long, and so many at once.
type Rate struct {
	PerSecond int `json:"perSecond"`
	Burst     int `json:"burst"`
}

// Interval is the time that one request is worth.
func (r Rate) Interval() time.Duration { return time.Second / time.Duration(r.PerSecond) }

// Window is how long an exhausted burst takes to come back.
func (r Rate) Window() time.Duration { return r.Interval() * time.Duration(r.Burst) }

// Request is what is asked for.
type Request struct {
	Client string
	Chain  chain.ID
	Calls  []chain.Call
}

// switches are the scopes whose halts keep the request.
func (r Request) switches() []Scope {
	return []Scope{
		{Kind: Deployment}, {Kind: OnChain, Chain: r.Chain}, {Kind: OfClient, Client: r.Client}, {Kind: OfClient, Client: r.Client, Chain: r.Chain},
	}
}

// HaltedSince is when the first was thrown of the switches that keep a request; zero when
// none does.
func (s State) HaltedSince(r Request) (since time.Time) {
	for _, scope := range r.switches() {
		if h, thrown := s.Halts[scope]; thrown && (since.IsZero() || h.Since.Before(since)) {
			since = h.Since
		}
	}
	return since
}

// Check refuses what may not be accepted now, or not be signed.
func (s State) Check(r Request) error {
	if err := s.halted(r.switches()...); err != nil {
		return err
	}
	for _, scope := range []Scope{{Kind: OnChain, Chain: r.Chain}, {Kind: OfClient, Client: r.Client, Chain: r.Chain}} {
		for i, c := range r.Calls {
			if !s.Lists[scope].Allows(c.To, c.Input) {
				return ErrTarget.Because("call %d is none that is allowed to the %s", i, scope)
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

// ClientRate is how often a client may ask; false is as often as it likes.
func (s State) ClientRate(client string) (Rate, bool) {
	if r, own := s.Rates[Scope{Kind: OfClient, Client: client}]; own {
		return r, true
	}
	r, any := s.Rates[Scope{Kind: EachClient}]
	return r, any
}

// SubjectRate is how often anything may be asked for one subject of a client.
func (s State) SubjectRate() (Rate, bool) {
	r, any := s.Rates[Scope{Kind: EachSubject}]
	return r, any
}

// Rate is how often all of them together may ask.
func (s State) Rate() (Rate, bool) {
	r, any := s.Rates[Scope{Kind: Deployment}]
	return r, any
}

// Decide answers a command with the facts it adds: none if it adds nothing, an
// [event.Refusal] if it may not be granted.
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

// Evolve adds one fact. It cannot fail: what is recorded has happened. The state it
// came from stays as it was.
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

// with is a map with an entry, or without it.
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
