package relayer

import (
	"context"
	"errors"
	"fmt"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/event"
	"github.com/tempo-watchtower/watchtower/domain/fee"
	"github.com/tempo-watchtower/watchtower/domain/intent"
)

// Market tells what gas costs on a chain.
type Market interface {
	Market(ctx context.Context) (chain.Market, error)
}

// Trials tell how a transaction would end that this sender signs, as a client wants it. The error is a
// *chain.Reverted when it would fail; any other one says nothing about it.
type Trials interface {
	EstimateGas(ctx context.Context, client string, sender chain.Address, tx chain.Unsigned) (uint64, error)
	Simulate(ctx context.Context, client string, sender chain.Address, tx chain.Unsigned) error
}

// Estimator is one chain's [Fees], and the gas of its [Chain]: an operator's policy,
// applied to what nodes say.
type Estimator struct {
	Chain  chain.ID
	Type   uint8 // of the transactions, see [Format]
	Policy fee.Policy
	Market Market
	Trials Trials
}

// ErrReverts says that calls would revert, and why.
const ErrReverts = event.Refusal("would-revert")

// Offer is what an attempt offers that is made now.
func (e Estimator) Offer(ctx context.Context, t fee.Terms) (fee.Offer, error) {
	m, err := e.Market.Market(ctx)
	if err != nil {
		return fee.Offer{}, fmt.Errorf("what gas costs on chain %d: %w", e.Chain, err)
	}
	return e.Policy.Offer(m, t)
}

// Bounds reports whether the policy's limit for one transaction bounds the fee at so much gas.
func (e Estimator) Bounds(gas uint64) bool { return e.Policy.Bounds(gas) }

// Gas is the gas limit of a transaction in a lane: what its request says, or what nodes
// estimate and a margin. They are asked only if they have to be: for an estimate, or
// because the request wants it to be tried.
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

// callsOf are a request's calls as a transaction has them.
func callsOf(r intent.Request) []chain.Call {
	calls := make([]chain.Call, len(r.Calls))
	for i, c := range r.Calls {
		calls[i] = chain.Call{To: c.To, Value: c.Value.Int(), Input: c.Data}
	}
	return calls
}
