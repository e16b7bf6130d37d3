// Package history explains the relay's streams to the audit: intents, lanes, signers, budgets and
// safeguards, with the state after each event and its reason in a sentence. It imports the relay's
// domain and cmd/program/auditor, whose commands know delivery's streams alone.
package history

import (
	"strings"

	"github.com/tempo-watchtower/watchtower/cmd/program/auditor"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/relay/budget"
	"github.com/tempo-watchtower/watchtower/domain/relay/intent"
	"github.com/tempo-watchtower/watchtower/domain/relay/lane"
	"github.com/tempo-watchtower/watchtower/domain/relay/safeguard"
	"github.com/tempo-watchtower/watchtower/domain/relay/signer"
	"github.com/tempo-watchtower/watchtower/eventlog"
)

// Kinds are the kinds of the relay's streams.
func Kinds() []auditor.Kind {
	return []auditor.Kind{
		{Prefix: intent.StreamPrefix, New: func() auditor.Folder {
			return &folder[intent.State, intent.Event]{codec: intent.Codec(), why: whyIntent, shown: func(s intent.State) any { return s }}
		}},
		{Prefix: lane.StreamPrefix, New: func() auditor.Folder {
			return &folder[lane.State, lane.Event]{codec: lane.Codec(), why: whyLane, shown: laneShown}
		}},
		{Prefix: signer.StreamPrefix, Named: namedSigner, New: func() auditor.Folder {
			return &folder[signer.State, signer.Event]{codec: signer.Codec(), why: whySigner, shown: func(s signer.State) any { return s }}
		}},
		{Prefix: budget.StreamPrefix, Named: namedBudget, New: func() auditor.Folder {
			return &budgets{codec: budget.Codec()}
		}},
		{Prefix: string(safeguard.Stream), Named: namedSafeguards, New: func() auditor.Folder {
			return &folder[safeguard.State, safeguard.Event]{codec: safeguard.Codec(), why: whySafeguard, shown: safeguardsShown}
		}},
	}
}

// evolving is an aggregate's state.
type evolving[S, E any] interface{ Evolve(E) S }

// folder folds one stream of an aggregate.
type folder[S evolving[S, E], E any] struct {
	codec eventlog.Codec[E]
	is    S
	why   func(before, after S, e E) string
	shown func(S) any
}

// Add applies an event, and explains it.
func (f *folder[S, E]) Add(r eventlog.Recorded) (string, error) {
	e, err := f.codec.Decode(r.Name, r.Data)
	if err != nil {
		return "", err
	}
	before := f.is
	f.is = f.is.Evolve(e)
	return f.why(before, f.is, e), nil
}

// State returns the state, for JSON.
func (f *folder[S, E]) State() any { return f.shown(f.is) }

// Lane is a lane's state as shown.
type Lane struct {
	Holder    string
	Token     lane.Token
	NextNonce *uint64 `json:",omitempty"` // nil: the chain was not asked yet
	InFlight  int
	Open      []lane.Slot // nonces that no final block has closed
	Holes     []lane.Hole `json:",omitempty"`
}

func laneShown(s lane.State) any {
	l := Lane{Holder: s.Holder, Token: s.Token, InFlight: s.InFlight(), Open: []lane.Slot{}, Holes: s.Holes()}
	if s.Known {
		l.NextNonce = &s.Next
	}
	for slot := range s.Slots() {
		l.Open = append(l.Open, slot)
	}
	return l
}

func namedSigner(text string, chains []chain.ID) (names []eventlog.Stream, what string) {
	address, is := strings.CutPrefix(text, "signer/")
	a, err := chain.ParseAddress(address)
	if !is || err != nil {
		return nil, ""
	}
	for _, id := range chains {
		names = append(names, signer.Stream(id, a))
	}
	return names, "signer " + address
}

func namedBudget(text string, chains []chain.ID) (names []eventlog.Stream, what string) {
	if text != "budget" {
		return nil, ""
	}
	for _, id := range chains {
		names = append(names, budget.Stream(id))
	}
	return names, "budget"
}

func namedSafeguards(text string, _ []chain.ID) (names []eventlog.Stream, what string) {
	if text != string(safeguard.Stream) {
		return nil, ""
	}
	return []eventlog.Stream{safeguard.Stream}, "the safeguards"
}
