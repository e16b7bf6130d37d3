package app

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	relayapi "github.com/tempo-watchtower/watchtower/api/relay"
	"github.com/tempo-watchtower/watchtower/commands/relay/guard"
	"github.com/tempo-watchtower/watchtower/commands/relay/worker"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/relay/fee"
	"github.com/tempo-watchtower/watchtower/domain/relay/intent"
	"github.com/tempo-watchtower/watchtower/eventlog"
	"github.com/tempo-watchtower/watchtower/projections/relay/intents"
)

// pricingTime is the maximum wait for the gas price, which is usually cached.
const pricingTime = 250 * time.Millisecond

// waitsFor returns the reason that keeps an intent from being signed, as far as this process
// knows. It is nil if it knows none, or the intent no longer waits. Other reasons may exist as
// well. The state of a lane is known only to the process that holds it.
func (r *relay) waitsFor(ctx context.Context, row intents.Row) (*relayapi.WaitsFor, error) {
	it := row.State
	if status := it.Status(); status != intent.StatusWaiting && status != intent.StatusAssigned {
		return nil, nil
	}
	if at := it.Requested.Request.NotBefore; it.Place == nil && at > uint64(max(r.in.Ports.Now().Unix(), 0)) {
		early := relayapi.ErrEarly.Because("it gets no nonce before %d, in Unix seconds", at)
		return waits(it, &guard.Hold{Why: early, Since: it.Requested.At}), nil
	}
	var c *served
	for _, one := range r.chains {
		if one.Chain == it.Requested.Request.Chain {
			c = one
		}
	}
	if c == nil {
		return nil, nil
	}
	lanes := c.carriers(it)
	if len(lanes) == 0 {
		return nil, nil
	}
	bounded, cancel := context.WithTimeout(ctx, pricingTime)
	defer cancel()
	least, market := (&worker.Lane{Relayer: c.Relayer, ID: lanes[0]}).Least(bounded, it)
	if least.Fee.IsZero() { // the fee is not known yet, but is not zero
		least.Fee = chain.NewAmount(1)
	}
	var free []chain.Sequence
	var holds []*guard.Hold
	for _, id := range lanes {
		hold, err := r.guard.Holds(ctx, id, it, least)
		switch {
		case err != nil:
			return nil, err
		case hold == nil:
			free = append(free, id)
		default:
			holds = append(holds, hold)
		}
	}
	switch {
	case len(free) == 0:
		return waits(it, together(holds)), nil
	case it.Place == nil:
		if hold, err := r.behind(ctx, row); err != nil || hold != nil {
			return waits(it, hold), err
		}
		if hold := r.crowds.hold(free); hold != nil {
			return waits(it, hold), nil
		}
	}
	if errors.Is(market, fee.ErrMarket) {
		return waits(it, &guard.Hold{Why: market}), nil
	}
	return nil, nil
}

// carriers are the lanes that may carry out an intent: if it has a nonce, the nonce's lane.
func (c *served) carriers(it intent.State) (lanes []chain.Sequence) {
	r := it.Requested.Request
	if p := it.Place; p != nil {
		return []chain.Sequence{{Chain: c.Chain, Sender: p.Signer, Key: p.NonceKey}}
	}
	key, chosen := r.LaneKey()
	signers := c.relay.settings.Pools.Named(r.Pool)
	switch {
	case r.Signer != nil:
		signers = []chain.Address{*r.Signer}
	case chosen && key != protocolKey:
		a, here := c.chosen(r.From, key)
		if !here {
			return nil
		}
		signers = []chain.Address{a}
	}
	for _, a := range signers {
		lanes = append(lanes, chain.Sequence{Chain: c.Chain, Sender: a, Key: key})
	}
	return lanes
}

// behind returns a hold if an earlier intent of the ordering group has no nonce yet. It asks the
// queue, by its index of groups: to search the client's waiting intents in the read model would
// read all of them.
func (r *relay) behind(ctx context.Context, row intents.Row) (*guard.Hold, error) {
	group := row.Request().Waiting(row.Position).Row
	if group.Order == "" {
		return nil, nil
	}
	ahead, err := r.queue.Ahead(ctx, group, row.Position)
	if err != nil || ahead.IsZero() {
		return nil, err
	}
	return &guard.Hold{Why: relayapi.ErrBehind.Because("intent %s, before it in its ordering group, has no nonce yet", ahead), Since: row.State.Requested.At}, nil
}

// together merges the holds of an intent that several lanes could carry out. The merged hold
// begins with the latest of them.
func together(holds []*guard.Hold) *guard.Hold {
	var code eventlog.Refusal
	errors.As(holds[0].Why, &code)
	var details []string
	all := *holds[0]
	for _, h := range holds {
		if text := detailOf(code, h.Why); !slices.Contains(details, text) {
			details = append(details, text)
		}
		switch {
		case h.Since.IsZero() || all.Since.IsZero():
			all.Since = time.Time{}
		case h.Since.After(all.Since):
			all.Since = h.Since
		}
	}
	all.Why = code.Because("%s", strings.Join(details, "; "))
	return &all
}

func detailOf(code eventlog.Refusal, why error) string {
	return strings.TrimPrefix(strings.TrimPrefix(why.Error(), string(code)), ": ")
}

// waits formats a hold for a client.
func waits(it intent.State, h *guard.Hold) *relayapi.WaitsFor {
	if h == nil {
		return nil
	}
	w := &relayapi.WaitsFor{Since: h.Since}
	errors.As(h.Why, &w.Code)
	w.Detail = detailOf(w.Code, h.Why)
	if asked := it.Requested.At; !w.Since.IsZero() && w.Since.Before(asked) {
		w.Since = asked
	}
	return w
}

// crowds are the lanes held by this process, with the reason if a lane accepts no more intents.
// It is safe for concurrent use.
type crowds struct {
	mu  sync.Mutex
	all map[chain.Sequence]guard.Hold // without Why: the lane accepts more
}

// turned records the state of a lane at a time.
func (c *crowds) turned(t worker.Turn, now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if t.Over {
		delete(c.all, t.Lane)
		return
	}
	if c.all == nil {
		c.all = map[chain.Sequence]guard.Hold{}
	}
	next := guard.Hold{Since: now}
	switch inFlight := t.State.InFlight(); {
	case t.Stalled:
		next.Why = relayapi.ErrStalled.Because("the lowest open nonce of %s makes no progress", t.Lane.Sender)
	case inFlight >= t.Budget:
		next.Why = relayapi.ErrFull.Because("%s has %d nonces in flight, the maximum", t.Lane.Sender, inFlight)
	}
	if was := c.all[t.Lane]; next.Why != nil && was.Why != nil {
		next.Since = was.Since
	}
	c.all[t.Lane] = next
}

// hold returns the reason why none of these lanes accepts an intent; nil if one accepts, or the
// state of one is not known here.
func (c *crowds) hold(lanes []chain.Sequence) *guard.Hold {
	c.mu.Lock()
	defer c.mu.Unlock()
	var all []*guard.Hold
	for _, id := range lanes {
		h := c.all[id]
		if h.Why == nil {
			return nil
		}
		all = append(all, &h)
	}
	return together(all)
}
