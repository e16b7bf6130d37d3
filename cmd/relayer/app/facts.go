package app

import (
	"context"
	"log/slog"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/relay/intent"
	"github.com/tempo-watchtower/watchtower/domain/relay/lane"
	"github.com/tempo-watchtower/watchtower/eventlog/handler"
)

// level returns the level at which a fact is logged: the given one, but facts of the ordinary course
// are logged at info with the setting log.facts.
func (r *relay) level(importance slog.Level) slog.Level {
	if r.in.Settings.LogFacts {
		return max(importance, slog.LevelInfo)
	}
	return importance
}

// logIntent logs the facts that one append has added to an intent, one line for each.
func (r *relay) logIntent(t handler.Told[intent.State, intent.Event]) {
	for _, fact := range t.Facts {
		level := r.level(importanceOf(fact))
		if !r.log.Enabled(context.Background(), level) {
			continue
		}
		name, _, err := r.intents.Codec.Encode(fact)
		if err != nil {
			continue // cannot fail: it was encoded a moment ago
		}
		asked := t.After.Requested
		attrs := []slog.Attr{
			slog.String("event", name), slog.String("intent", asked.ID.String()), slog.String("chain", asked.Request.Chain.String()),
			slog.String("status", string(t.After.Status())), slog.String("actor", t.Meta.Actor),
		}
		attrs = append(attrs, causedBy(asked.Origin)...)
		if p := t.After.Place; p != nil {
			attrs = append(attrs, slog.String("signer", p.Signer.String()), slog.String("nonceKey", p.NonceKey.String()), slog.Uint64("nonce", p.Nonce))
		}
		r.log.LogAttrs(context.Background(), level, "recorded", append(attrs, attrsOf(fact)...)...)
	}
}

// causedBy names the request that caused an intent, and its trace.
func causedBy(o intent.Origin) (attrs []slog.Attr) {
	if !o.Correlation.IsZero() {
		attrs = append(attrs, slog.String("request", o.Correlation.String()))
	}
	if o.Trace != "" {
		attrs = append(attrs, slog.String("trace", o.Trace))
	}
	return attrs
}

// attrsOf are the attributes of one kind of fact about an intent.
func attrsOf(fact intent.Event) []slog.Attr {
	switch e := fact.(type) {
	case intent.Assigned:
		return []slog.Attr{slog.Uint64("token", e.Token), slog.Int("assignment", e.Assignment)}
	case intent.TakenOver:
		return []slog.Attr{slog.Uint64("token", e.Token), slog.Int("assignment", e.Assignment)}
	case intent.Requeued:
		return []slog.Attr{slog.String("evidence", string(e.Evidence.Kind)), slog.Int("assignment", e.Assignment)}
	case intent.Attempted:
		return []slog.Attr{slog.String("tx", e.Hash.String()), slog.String("kind", string(e.Kind)), slog.Int("attempt", e.Attempt)}
	case intent.Announced:
		return []slog.Attr{slog.String("tx", e.Hash.String()), slog.String("kind", string(e.Kind)), slog.Bool("newFork", e.NewFork)}
	case intent.Completed:
		return []slog.Attr{slog.String("tx", e.Hash.String()), slog.Uint64("block", e.Block.Number)}
	case intent.Failed:
		return []slog.Attr{slog.String("reason", string(e.Reason)), slog.String("detail", e.Detail)}
	}
	return nil
}

// importanceOf is the level at which a fact about an intent is logged without log.facts.
func importanceOf(fact intent.Event) slog.Level {
	switch fact.(type) {
	case intent.Reorged:
		return slog.LevelWarn
	case intent.Failed, intent.Canceled:
		return slog.LevelInfo
	}
	return slog.LevelDebug
}

// logLane logs the facts that one append of a holder has added to a lane, one line for each nonce and
// step.
func (r *relay) logLane(id chain.Sequence, t handler.Told[lane.State, lane.Event]) {
	for _, fact := range t.Facts {
		level := slog.LevelDebug
		switch fact.(type) {
		case lane.Lost, lane.Unlanded:
			level = slog.LevelWarn
		}
		if level = r.level(level); !r.log.Enabled(context.Background(), level) {
			continue
		}
		name, _, err := r.lanes.Codec.Encode(fact)
		if err != nil {
			continue // cannot fail, as above
		}
		common := []slog.Attr{
			slog.String("event", name), slog.String("chain", id.Chain.String()), slog.String("signer", id.Sender.String()),
			slog.String("nonceKey", id.Key.String()), slog.Uint64("token", uint64(t.After.Token)),
		}
		for _, step := range stepsOf(fact, t.Before) {
			r.log.LogAttrs(context.Background(), level, "recorded", append(common[:len(common):len(common)], step...)...)
		}
	}
}

// stepsOf are the attributes of each step of a fact about a lane. before is the lane before the append
// with the fact: it tells from where nonces were assigned.
func stepsOf(fact lane.Event, before lane.State) [][]slog.Attr {
	one := func(nonce uint64, of chain.IntentID, more ...slog.Attr) []slog.Attr {
		attrs := []slog.Attr{slog.Uint64("nonce", nonce)}
		if !of.IsZero() {
			attrs = append(attrs, slog.String("intent", of.String()))
		}
		return append(attrs, more...)
	}
	nodes := func(w lane.Witness) slog.Attr { return slog.Any("node", w.Endpoints) }
	switch e := fact.(type) {
	case lane.Opened:
		return [][]slog.Attr{{slog.String("holder", e.Holder), slog.String("was", before.Holder)}}
	case lane.Advanced:
		return [][]slog.Attr{one(e.Witness.Nonce, chain.IntentID{}, nodes(e.Witness))}
	case lane.Reserved:
		return reservedSteps(e, one)
	case lane.Released:
		return [][]slog.Attr{one(e.Nonce, e.Intent, slog.String("reason", e.Reason))}
	case lane.Filled:
		return [][]slog.Attr{one(e.Nonce, chain.IntentID{})}
	case lane.Attempted:
		return [][]slog.Attr{one(e.Nonce, e.Intent, slog.String("tx", e.Hash.String()), slog.Int("attempt", e.Number))}
	case lane.Landed:
		return [][]slog.Attr{one(e.Nonce, e.Intent, slog.String("tx", e.Hash.String()), slog.Uint64("block", e.Block.Number), slog.Bool("final", e.Final))}
	case lane.Unlanded:
		var all [][]slog.Attr
		for _, nonce := range e.Nonces {
			all = append(all, one(nonce, chain.IntentID{}, slog.Uint64("block", e.Was.Number)))
		}
		return all
	case lane.Lost:
		return [][]slog.Attr{one(e.Nonce, e.Intent, slog.String("tx", e.Rival.String()), nodes(e.Witness))}
	case lane.Reclaimed:
		return [][]slog.Attr{one(e.Witness.Nonce, chain.IntentID{}, slog.Uint64("count", e.Count), nodes(e.Witness))}
	}
	return nil
}

// reservedSteps has a step for each nonce that was assigned.
func reservedSteps(e lane.Reserved, one func(uint64, chain.IntentID, ...slog.Attr) []slog.Attr) (all [][]slog.Attr) {
	for _, again := range e.Reissued {
		all = append(all, one(again.Nonce, again.Intent))
	}
	for i, id := range e.Intents {
		all = append(all, one(e.First+uint64(i), id)) //nolint:gosec // small
	}
	return all
}

// observedIntent counts and logs the facts of an intent.
func (r *relay) observedIntent(t handler.Told[intent.State, intent.Event]) {
	r.metrics.Intent(t.Before, t.After, t.Facts)
	r.logIntent(t)
}

// observedLane counts and logs the facts of a lane.
func (r *relay) observedLane(t handler.Told[lane.State, lane.Event]) {
	id, err := lane.ParseStream(t.Stream)
	if err != nil {
		return // every stream that is written here has a lane's name
	}
	r.metrics.Lane(id, r.in.Settings.Holder, t.Before, t.Facts)
	r.logLane(id, t)
}
