package app

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/tempo-watchtower/watchtower/commands"
	"github.com/tempo-watchtower/watchtower/commands/relay/guard"
	"github.com/tempo-watchtower/watchtower/commands/relay/intake"
	"github.com/tempo-watchtower/watchtower/commands/relay/worker"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/notice"
	"github.com/tempo-watchtower/watchtower/domain/relay/budget"
	"github.com/tempo-watchtower/watchtower/domain/relay/fee"
	"github.com/tempo-watchtower/watchtower/domain/relay/intent"
	"github.com/tempo-watchtower/watchtower/domain/relay/lane"
	"github.com/tempo-watchtower/watchtower/eventlog"
	"github.com/tempo-watchtower/watchtower/eventlog/lease"
	"github.com/tempo-watchtower/watchtower/eventlog/pause"
	"github.com/tempo-watchtower/watchtower/infra/keys"
	figures "github.com/tempo-watchtower/watchtower/infra/metrics/relay"
)

// observe installs the hooks that count every recorded event, in the replica that records it.
func (r *relay) observe() {
	r.intents.Told, r.lanes.Told = r.observedIntent, r.observedLane
	r.owner.Told = func(_ string, what lease.News) { r.metrics.Lease(string(what)) }
}

// turned records the state of a lane.
func (r *relay) turned(t worker.Turn) {
	now := r.in.Ports.Now()
	r.crowds.turned(t, now)
	r.working.turned(t, now)
	if t.Over {
		r.metrics.NoLane(t.Lane)
		return
	}
	r.metrics.Turn(t.Lane, t.State, figures.Turn{Budget: t.Budget, Drift: t.Drift, Stalled: t.Stalled, Troubled: t.Troubled, Took: t.Took})
}

// fenced counts lanes whose work ended because another process has taken them over.
func (r *relay) fenced(on chain.ID, err error) {
	if errors.Is(err, lane.ErrFenced) || errors.Is(err, budget.ErrFenced) {
		r.metrics.Fenced(on.String())
	}
}

// answered counts a request for an intent.
func (r *relay) answered(a intake.Answer) { r.metrics.Request(a.Known, a.Err) }

// accept asks the guard about an intent, and counts refusals.
func (r *relay) accept(ctx context.Context, wish intent.Request) error {
	err := r.guard.Accept(ctx, wish)
	r.metrics.Refusal(figures.AtAccept, err)
	return err
}

// counted is a signer whose requests are counted.
type counted struct {
	*keys.Signer
	metrics *figures.Metrics
}

// Sign signs.
func (s counted) Sign(ctx context.Context, payload []byte) ([]byte, error) {
	began := time.Now()
	signature, err := s.Signer.Sign(ctx, payload)
	s.metrics.Signature(s.Address(), outcomeOf(ctx, err), time.Since(began))
	return signature, err
}

// outcomeOf classifies the outcome of a signature request, from a closed list.
func outcomeOf(ctx context.Context, err error) string {
	var busy *keys.Busy
	switch {
	case err == nil:
		return figures.Signed
	case ctx.Err() != nil:
		return figures.Abandoned
	case errors.Is(err, keys.ErrWrongKey):
		return figures.WrongKey
	case errors.Is(err, keys.ErrUnknownKey):
		return figures.UnknownKey
	case commands.IsRefusal(err):
		return figures.Refused
	case errors.As(err, &busy):
		return figures.Busy
	case errors.Is(err, eventlog.ErrUnknown), errors.Is(err, context.DeadlineExceeded):
		return figures.Unanswered
	}
	return figures.Failed
}

// pricing counts failures to make an offer for gas.
type pricing struct {
	worker.Fees
	chain   chain.ID
	most    chain.Price // the operator's maximum offer for an intent
	metrics *figures.Metrics
}

// Offer makes an offer and counts its failures.
func (p pricing) Offer(ctx context.Context, t fee.Terms) (fee.Offer, error) {
	offer, err := p.Fees.Offer(ctx, t)
	own := !t.MaxFee.Int().IsZero() && t.MaxFee.Int().Lt(p.most.Int()) || p.Bounds(t.Gas)
	p.metrics.NoOffer(p.chain, own, err)
	return offer, err
}

// guarding counts the guard's refusals to sign.
type guarding struct {
	*guard.Guard
	metrics *figures.Metrics
}

// Allow returns one answer per request.
func (g guarding) Allow(ctx context.Context, id chain.Sequence, token lane.Token, requests []*intent.Request, charges []budget.Charge) ([]error, error) {
	answers, err := g.Guard.Allow(ctx, id, token, requests, charges)
	for _, why := range answers {
		g.metrics.Refusal(figures.AtSign, why)
	}
	return answers, err
}

const (
	figuresEvery = 5 * time.Second // the pause between two reads of the operators' settings
	// A read costs a little of the log for each signer: the pause is long enough that reading
	// takes at most 1/figuresShare of the time.
	figuresShare = 20
)

// watchGuard updates the metrics of signers, safeguards and budgets. Every replica does so for
// the signers whose keys it has.
func (r *relay) watchGuard(ctx context.Context) {
	for next := time.Duration(0); pause.For(ctx, next) == nil; {
		began := r.in.Ports.Now()
		if err := r.lookAtGuard(ctx); err != nil && ctx.Err() == nil {
			r.log.Debug("metrics of signers and safeguards not read", "err", err)
		}
		next = max(figuresEvery, figuresShare*r.in.Ports.Now().Sub(began))
	}
}

func (r *relay) lookAtGuard(ctx context.Context) error {
	switches, err := r.guard.Switches(ctx)
	if err != nil {
		return err
	}
	r.metrics.Switches(switches)
	for _, c := range r.chains {
		state, err := r.guard.Budget(ctx, c.Chain)
		if err != nil {
			return err
		}
		r.metrics.Budget(c.Chain, state, budget.DayOf(r.in.Ports.Now()))
		for _, a := range c.signers {
			state, err := r.guard.Signer(ctx, c.Chain, a)
			if err != nil {
				return err
			}
			var seen *chain.Amount
			if balance, known := r.guard.Balance(c.Chain, a); known {
				seen = &balance
			}
			if state.Known {
				r.metrics.Signer(c.Chain, a, state, seen, r.guard.Looked(c.Chain, a))
			}
		}
	}
	return nil
}

const (
	// Counting the queue of webhook deliveries reads all of it: the pause is at least
	// depthEvery, and long enough that counting takes at most 1/depthShare of the time.
	depthEvery = 10 * time.Second
	depthShare = 200
	depthLease = "notice-depth"
)

// watchDepth updates the metrics of the webhook queue. One replica does so at a time.
func (n *notices) watchDepth(ctx context.Context) error {
	defer n.metrics.NoNotices()
	for next := time.Duration(0); pause.For(ctx, next) == nil; {
		began := n.in.Ports.Now()
		depth, err := n.rows.Depth(ctx)
		if err != nil {
			n.in.Ports.Log.Debug("depth of the queue of webhook deliveries not read", "err", err)
		} else {
			n.metrics.Notices(depth)
		}
		next = max(depthEvery, depthShare*n.in.Ports.Now().Sub(began))
	}
	return ctx.Err()
}

// noted counts an attempt at a webhook delivery that started at began.
func (n *notices) noted(s notice.Sending, o notice.Outcome, began time.Time) {
	var told intent.Notice
	if err := json.Unmarshal(s.Body, &told); err != nil {
		told.At = time.Time{} // without a time it is still counted
	}
	n.metrics.Notice(o, s.Attempts == 0, told.At, n.in.Ports.Now(), time.Since(began))
}
