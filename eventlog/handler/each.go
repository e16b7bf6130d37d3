package handler

import (
	"context"

	"github.com/tempo-watchtower/watchtower/eventlog"
)

// Asked is a command of one of several callers, and the metadata of its events.
type Asked[C any] struct {
	Command C
	Meta    eventlog.Meta
}

// Answer is the state after a command, or its refusal and the state that refused.
type Answer[S any] struct {
	State   S
	Refused error
}

// DoEachOnce is DoOnce for commands of several callers. Each is decided on the state after the
// commands before it. The events of all are appended together: after an error no command has
// an answer. If their events do not fit in one append, only the first commands have an answer.
// Told is called once, with the events of all commands and no metadata.
func (h Handler[S, C, E]) DoEachOnce(ctx context.Context, stream eventlog.Stream, r Result[S], commands []Asked[C]) (Result[S], []Answer[S], error) {
	var decided []E
	var metas []eventlog.Meta // of decided
	var answers []Answer[S]
	state := r.State
	for i, c := range commands {
		some, err := state.Decide(c.Command)
		if i > 0 && len(decided)+len(some) > eventlog.MaxAppend {
			break
		}
		for _, e := range some {
			state = state.Evolve(e)
			decided, metas = append(decided, e), append(metas, c.Meta)
		}
		answers = append(answers, Answer[S]{state, err})
	}
	o, err := Begin(h.Random, eventlog.Meta{})
	if err != nil {
		return r, nil, err
	}
	o.Each = func(i int, _ any) eventlog.Meta { return metas[i] }
	// The id is new, so the store can only report a repetition of this append itself.
	next, _, err := h.record(ctx, stream, r, decided, o)
	if err != nil {
		return next, nil, err
	}
	return next, answers, nil
}
