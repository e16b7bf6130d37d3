package worker

import (
	"context"
	"errors"
	"fmt"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/relay/fee"
	"github.com/tempo-watchtower/watchtower/domain/relay/intent"
	"github.com/tempo-watchtower/watchtower/eventlog"
)

// Market returns the price of gas on a chain.
type Market interface {
	Market(ctx context.Context) (chain.Market, error)
}

// Trials estimate and simulate a transaction that this sender signs for a client. The error
// is a *chain.Reverted if the transaction would fail; any other error means that the result
// is unknown.
type Trials interface {
	EstimateGas(ctx context.Context, client string, sender chain.Address, tx chain.Unsigned) (uint64, error)
	Simulate(ctx context.Context, client string, sender chain.Address, tx chain.Unsigned) error
}

// Estimator implements [Fees] and the gas part of [Chain] for one chain: it applies the
// operator's policy to the answers of nodes.
type Estimator struct {
	Chain  chain.ID
	Type   uint8 // of the transactions, see [Format]
	Policy fee.Policy
	Market Market
	Trials Trials
}

// ErrReverts is the refusal of calls that would revert, with the reason.
const ErrReverts = eventlog.Refusal("would-revert")

// Offer returns the offer of an attempt that is made now.
func (e Estimator) Offer(ctx context.Context, t fee.Terms) (fee.Offer, error) {
	m, err := e.Market.Market(ctx)
	if err != nil {
		return fee.Offer{}, fmt.Errorf("read the gas price of chain %d: %w", e.Chain, err)
	}
	return e.Policy.Offer(m, t)
}

// Bounds reports whether the policy's limit for one transaction bounds the fee at this much
// gas.
func (e Estimator) Bounds(gas uint64) bool { return e.Policy.Bounds(gas) }

// Gas returns the gas limit of a transaction in a lane: the request's own limit, or the
// nodes' estimate plus a margin. It asks nodes only for an estimate, or if the request asks
// for a simulation.
func (e Estimator) Gas(ctx context.Context, s chain.Sequence, r intent.Request) (uint64, error) {
	limit, err := e.Policy.GasLimit(r.Gas.Limit, 0)
	if err != nil {
		return 0, err
	}
	tx := chain.Unsigned{Type: e.Type, Chain: s.Chain, NonceKey: s.Key, Gas: limit, Calls: callsOf(r)}
	switch {
	case r.Gas.Limit == 0:
		var estimate uint64
		if estimate, err = e.Trials.EstimateGas(ctx, r.Client, s.Sender, tx); err == nil {
			limit, err = e.Policy.GasLimit(0, estimate)
		}
	case r.Simulate:
		err = e.Trials.Simulate(ctx, r.Client, s.Sender, tx)
	}
	if reverted := (*chain.Reverted)(nil); errors.As(err, &reverted) {
		return 0, ErrReverts.Because("%v", reverted)
	}
	if err != nil {
		return 0, err
	}
	return limit, nil
}

// callsOf converts a request's calls to a transaction's calls.
func callsOf(r intent.Request) []chain.Call {
	calls := make([]chain.Call, len(r.Calls))
	for i, c := range r.Calls {
		calls[i] = chain.Call{To: c.To, Value: c.Value.Int(), Input: c.Data}
	}
	return calls
}
