package safeguard

import (
	"reflect"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/eventlog"
)

// Command is an operator's request. It carries its own time: nothing in this package reads a
// clock.
//
//sumtype:decl
type Command interface{ wish() }

// Throw turns on the kill switch of a deployment, a chain or a client.
type Throw struct {
	Scope         Scope
	Actor, Reason string
	At            time.Time
}

// Resume turns a kill switch off.
type Resume struct {
	Scope         Scope
	Actor, Reason string
	At            time.Time
}

// SetTargets sets the allowed calls on a chain, of all clients or of one client; an empty list
// allows everything.
type SetTargets struct {
	Scope         Scope
	Targets       chain.Targets
	Actor, Reason string
	At            time.Time
}

// SetRate sets the request rate limit of the deployment, of a client, of each client or of each
// subject; nil removes it.
type SetRate struct {
	Scope         Scope
	Rate          *Rate
	Actor, Reason string
	At            time.Time
}

func (Throw) wish()      {}
func (Resume) wish()     {}
func (SetTargets) wish() {}
func (SetRate) wish()    {}

const (
	ErrHalted  = eventlog.Refusal("halted")
	ErrTarget  = eventlog.Refusal("target-not-allowed")
	ErrInvalid = eventlog.Refusal("invalid-safeguard")
	ErrTooMany = eventlog.Refusal("too-many-safeguards")
)

// Bounds of the settings.
const (
	HaltsMax     = 1000 // at the same time, like the next two
	ListsMax     = 100
	RatesMax     = 1000
	TargetsMax   = 256 // of one list
	SelectorsMax = 32  // of one target
	NameMax      = 64  // bytes of a client's name
	TextMax      = 256 // bytes of an actor and of a reason
	RateMax      = 1_000_000
	BurstMax     = 10_000_000
)

func (s State) halt(c Throw) ([]Event, error) {
	_, thrown := s.Halts[c.Scope]
	switch err := check(c.Actor, c.Reason, c.Scope, Deployment, OnChain, OfClient); {
	case err != nil || thrown:
		return nil, err
	case len(s.Halts) >= HaltsMax && c.Scope.Kind != Deployment: // the deployment's switch works in any case
		return nil, ErrTooMany.Because("%d halts are active", len(s.Halts))
	}
	return []Event{Halted(c)}, nil
}

func (s State) resume(c Resume) ([]Event, error) {
	_, thrown := s.Halts[c.Scope]
	if err := check(c.Actor, c.Reason, c.Scope, Deployment, OnChain, OfClient); err != nil || !thrown {
		return nil, err
	}
	return []Event{Resumed(c)}, nil
}

func (s State) setTargets(c SetTargets) ([]Event, error) {
	if err := check(c.Actor, c.Reason, c.Scope, OnChain, OfClient); err != nil {
		return nil, err
	}
	if c.Scope.Chain == 0 {
		return nil, ErrInvalid.Because("a list of targets must name its chain")
	}
	if len(c.Targets) > TargetsMax {
		return nil, ErrInvalid.Because("%d targets are listed; at most %d are allowed", len(c.Targets), TargetsMax)
	}
	for _, t := range c.Targets {
		if len(t.Selectors) > SelectorsMax || t.To == nil && len(t.Selectors) > 0 {
			return nil, ErrInvalid.Because("a target may have at most %d selectors, and the creation of a contract none", SelectorsMax)
		}
	}
	was, listed := s.Lists[c.Scope]
	switch {
	case slices.EqualFunc(was, c.Targets, sameTarget):
		return nil, nil
	case !listed && len(s.Lists) >= ListsMax:
		return nil, ErrTooMany.Because("there are %d lists", len(s.Lists))
	}
	return []Event{TargetsSet(c)}, nil
}

func sameTarget(a, b chain.Target) bool {
	return reflect.DeepEqual(a.To, b.To) && slices.Equal(a.Selectors, b.Selectors)
}

func (s State) setRate(c SetRate) ([]Event, error) {
	if err := check(c.Actor, c.Reason, c.Scope, Deployment, OfClient, EachClient, EachSubject); err != nil {
		return nil, err
	}
	was, limited := s.Rates[c.Scope]
	switch {
	case c.Scope.Chain != 0:
		return nil, ErrInvalid.Because("a rate limit cannot name a chain")
	case c.Rate == nil && !limited, c.Rate != nil && limited && *c.Rate == was:
		return nil, nil
	case c.Rate != nil && (c.Rate.PerSecond < 1 || c.Rate.PerSecond > RateMax || c.Rate.Burst < 1 || c.Rate.Burst > BurstMax):
		return nil, ErrInvalid.Because("a rate is 1 to %d per second with a burst of 1 to %d", RateMax, BurstMax)
	case c.Rate != nil && !limited && len(s.Rates) >= RatesMax:
		return nil, ErrTooMany.Because("there are %d rates", len(s.Rates))
	}
	return []Event{RateSet(c)}, nil
}

// check refuses a command without actor or reason, or with an invalid scope.
func check(actor, reason string, of Scope, kinds ...ScopeKind) error {
	client := of.Kind == OfClient
	switch {
	case actor == "" || !isText(actor):
		return ErrInvalid.Because("an actor has 1 to %d bytes of printable text", TextMax)
	case reason == "" || !isText(reason):
		return ErrInvalid.Because("a reason has 1 to %d bytes of printable text", TextMax)
	case !slices.Contains(kinds, of.Kind):
		return ErrInvalid.Because("the scope must be one of %q, not %q", kinds, of.Kind)
	case (of.Kind == OnChain) != (of.Chain != 0) && !client:
		return ErrInvalid.Because("only a chain's scope must name a chain")
	case of.Client != "" && (!client || !isName(of.Client)):
		return ErrInvalid.Because("only a client's scope may name a client, with up to %d of A-Z, a-z, 0-9 and ._:-", NameMax)
	}
	return nil
}

// isName reports whether s has at most NameMax characters, each safe in keys, URLs and logs.
func isName(s string) bool {
	const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._:-"
	return len(s) <= NameMax && strings.Trim(s, letters) == ""
}

// isText reports whether s is short enough, valid UTF-8 and printable.
func isText(s string) bool {
	return len(s) <= TextMax && utf8.ValidString(s) && strings.IndexFunc(s, func(r rune) bool { return !unicode.IsPrint(r) }) < 0
}
