package app

import (
	"slices"
	"time"

	"github.com/tempo-watchtower/watchtower/cmd/relayer/settings"
	"github.com/tempo-watchtower/watchtower/commands/relay/intake"
	"github.com/tempo-watchtower/watchtower/commands/relay/worker"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/relay/fee"
	"github.com/tempo-watchtower/watchtower/domain/relay/intent"
	"github.com/tempo-watchtower/watchtower/infra/chain/ethereum"
	"github.com/tempo-watchtower/watchtower/infra/chain/tempo"
)

// batchAtOnce is the number of intents of one batch accepted concurrently.
const batchAtOnce = 64

// Desk accepts intents into the log, to be carried out by the processes with the keys. It
// refuses intents that no process with these settings could carry out.
func Desk(s settings.Settings, intents worker.Intents, now func() time.Time) *intake.Desk {
	d := &intake.Desk{
		Intents: intents, Chains: map[chain.ID]func(intent.Request) error{},
		Most:   func(of chain.ID) intent.Amount { return intent.Amount(s.On(of).Fee.Most().MaxFee) },
		AtOnce: batchAtOnce, Ahead: s.Delivery.MaxValidAfter, Now: now,
	}
	for _, c := range s.Delivery.Chains {
		d.Chains[c.ID] = func(r intent.Request) error { return serves(s, r) }
	}
	return d
}

// serves refuses intents that no process with these settings could carry out.
func serves(s settings.Settings, r intent.Request) error {
	key, chosen := r.LaneKey()
	switch onTempo := s.Formats.Of(r.Chain) == settings.Tempo; {
	case r.Signer != nil && !slices.Contains(s.Signers.Allowed, *r.Signer):
		return intake.ErrNotServed.Because("signer %s is not served here", r.Signer)
	case r.Signer == nil && len(s.Pools.Named(r.Pool)) == 0:
		return intake.ErrNotServed.Because("pool %q is not served here", r.Pool)
	case !onTempo && chosen && key != protocolKey:
		return intake.ErrNotServed.Because("chain %s has no nonce keys", r.Chain)
	case !onTempo && (len(r.Calls) > 1 || r.Gas.FeeToken != nil || r.Gas.Sponsored):
		return intake.ErrNotServed.Because("chain %s has no batches of calls, fee tokens and sponsored intents", r.Chain)
	case onTempo && slices.ContainsFunc(r.Calls, func(c intent.Call) bool { return !c.Value.IsZero() }):
		// Tempo's nodes neither accept nor estimate such a transaction: the intent would wait
		// for ever. Source: tempoxyz/tempo, crates/revm,
		// TempoInvalidTransaction::ValueTransferNotAllowed.
		return intake.ErrNotServed.Because("chain %s has no native value: value must be 0; transfer tokens by calls to their contracts", r.Chain)
	case r.Gas.Limit != 0 && r.Gas.Limit < fee.GasMin:
		return intake.ErrNotServed.Because("a gas limit of %d is too low: a transaction needs at least %d", r.Gas.Limit, fee.GasMin)
	case r.Gas.Limit != 0 && r.Gas.Limit < leastGas(onTempo, r):
		return intent.ErrInvalid.Because("gas.limit %d is too low: no block can hold a transaction with this data and less than %d", r.Gas.Limit, leastGas(onTempo, r))
	case r.Gas.Limit > s.On(r.Chain).Fee.GasCeiling:
		return intake.ErrNotServed.Because("the highest gas limit on chain %s is %d, not %d", r.Chain, s.On(r.Chain).Fee.GasCeiling, r.Gas.Limit)
	case r.Gas.FeeToken != nil && !slices.Contains(s.On(r.Chain).Fee.Tokens, *r.Gas.FeeToken):
		return intake.ErrNotServed.Because("fee token %s is not accepted here", r.Gas.FeeToken)
	case r.Gas.Sponsored && s.Signers.FeePayer == nil:
		return intake.ErrNotServed.Because("sponsored intents are not accepted here, because there is no fee payer")
	}
	return nil
}

// leastGas returns at most the gas of a transaction with a request's calls, before any code runs.
// A node may take one with less that no block can hold, and later nonces would wait for it.
func leastGas(onTempo bool, r intent.Request) uint64 {
	calls := make([]chain.Call, len(r.Calls))
	for i, c := range r.Calls {
		calls[i] = chain.Call{To: c.To, Value: c.Value.Int(), Input: c.Data}
	}
	if onTempo {
		return tempo.LeastGas(calls)
	}
	return ethereum.LeastGas(calls[0])
}
