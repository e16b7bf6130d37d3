package worker

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/holiman/uint256"

	"github.com/tempo-watchtower/watchtower/commands"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/payload"
	"github.com/tempo-watchtower/watchtower/domain/relay/fee"
	"github.com/tempo-watchtower/watchtower/domain/relay/intent"
	"github.com/tempo-watchtower/watchtower/domain/relay/lane"
)

// signature is a signed order.
type signature struct {
	order
	raw  []byte
	hash chain.Hash
}

// sign signs the allowed orders of all nonces, stores the bytes, and then records the
// attempts in the lane.
func (a *actor) sign(ctx context.Context) error {
	wanted, trouble := a.orders(ctx)
	orders, err := a.allowed(ctx, wanted)
	trouble = errors.Join(trouble, err)
	if over := (overError{}); len(orders) == 0 || errors.As(err, &over) {
		return trouble
	}
	signed := make([]signature, len(orders))
	err = commands.Each(len(orders), a.Settings.AtOnce, func(i int) (err error) {
		signed[i], err = a.signOne(ctx, orders[i])
		return err
	})
	trouble = errors.Join(trouble, err, a.failed(ctx, err))
	signed = slices.DeleteFunc(signed, func(s signature) bool { return s.raw == nil })
	if len(signed) == 0 {
		return trouble
	}
	a.crash("attempts.signed")
	return errors.Join(trouble, a.keep(ctx, signed))
}

// keep stores the signed bytes and records them as attempts.
func (a *actor) keep(ctx context.Context, signed []signature) error {
	payloads := make([]commands.Payload, len(signed))
	var again []chain.Hash // same bytes as before, whose stored copy cannot be read
	for i, s := range signed {
		if s.gone[s.hash] {
			again = append(again, s.hash)
		}
		payloads[i] = commands.Payload{Ref: payload.Ref{Chain: a.Chain, Hash: s.hash}, Raw: s.raw}
	}
	if len(again) > 0 {
		if err := a.Vault.Rows.Erase(ctx, a.Chain, again); err != nil {
			return err
		}
	}
	if err := a.Vault.Keep(ctx, payloads); err != nil {
		return err
	}
	a.crash("attempts.kept")
	for some := range slices.Chunk(signed, lane.BatchMax) {
		attempts := make([]lane.Signed, len(some))
		for i, s := range some {
			attempts[i] = lane.Signed{Nonce: s.Nonce, Intent: s.intent, Hash: s.hash, Fee: s.offer.Fee, Unsent: s.unsent}
		}
		if err := a.command(ctx, lane.Attempt{Token: a.token, Signed: attempts, At: a.Now()}); err != nil {
			return err
		}
		for _, s := range some {
			a.box.follow(s.Nonce, s.id, s.hash)
			a.fresh[s.hash] = s.raw
			delete(s.gone, s.hash)
		}
	}
	a.crash("lane.attempted")
	return nil
}

// sponsorsNoOp reports whether the sponsor pays for the next no-op at the nonce of a
// sponsored intent. The sponsor and the signer pay in turn while nodes refuse attempts for
// lack of funds.
func (a *actor) sponsorsNoOp(s standing) bool {
	refused := 0
	for _, made := range s.Attempts {
		if s.txs[made.Hash].lacks {
			refused++
		}
	}
	return a.Payer != nil && refused%2 == 0
}

// termsOf returns the terms of an intent's first attempt at this gas limit; 0 is unknown.
// The no-op that replaces the attempt offers a tenth more, and has to stay within the same
// limits.
func (l *Lane) termsOf(it intent.State, limit uint64) fee.Terms {
	gas := it.Requested.Request.Gas
	if limit != 0 {
		limit = max(limit, outbidding(l.noOpGas(0)))
	}
	return fee.Terms{
		Gas:    limit,
		Legacy: l.Format.Type == 0, Urgency: fee.Urgency(gas.Urgency), Floor: chain.Price(it.Floor),
		MaxFee: chain.Price(gas.MaxFee), MaxPriorityFee: chain.Price(gas.MaxPriorityFee),
		Sender: l.ID.Sender, Token: gas.FeeToken, Sponsored: gas.Sponsored, GaveWay: len(it.GaveWay),
	}
}

// outbidding returns gas plus a tenth: a no-op with that much gas costs as much as one at a
// fee that replaces the intent's.
func outbidding(gas uint64) uint64 { return gas + gas/10 + 1 }

// signOne signs an order. If its transaction can never be signed, the intent fails.
func (a *actor) signOne(ctx context.Context, o order) (signature, error) {
	raw, signed, err := a.make(ctx, o)
	if failure := (&signerError{}); !errors.As(err, &failure) && commands.IsRefusal(err) && !o.intent.IsZero() {
		return signature{}, a.fail(ctx, o.job, err)
	}
	if err != nil {
		return signature{}, fmt.Errorf("nonce %d: %w", o.Nonce, err)
	}
	return signature{o, raw, signed.Hash}, nil
}

// make encodes and signs a transaction, and decodes it again: the recorded values are those
// in the bytes.
func (a *actor) make(ctx context.Context, o order) ([]byte, chain.Signed, error) {
	var none chain.Signed
	unsigned, err := a.unsigned(o)
	if err != nil {
		return nil, none, err
	}
	toSign, err := a.Format.Payload(unsigned)
	if err != nil {
		return nil, none, err
	}
	mark, err := a.signed(ctx, o, toSign)
	if err != nil {
		return nil, none, err
	}
	var payer []byte
	if unsigned.Sponsored {
		if toSign, err = a.Format.PayerPayload(unsigned, a.ID.Sender); err != nil {
			return nil, none, err
		}
		if payer, err = a.Payer.Sign(ctx, toSign); err != nil {
			return nil, none, fmt.Errorf("sign as the fee payer: %v", err) //nolint:errorlint // it is neither the signer's failure nor about the intent
		}
	}
	raw, err := a.Format.Encode(unsigned, mark, payer)
	if err != nil {
		return nil, none, err
	}
	signed, err := a.Format.Decode(raw)
	if err != nil {
		return nil, none, fmt.Errorf("decode the signed transaction: %w", err)
	}
	if !a.agrees(unsigned, signed) {
		return nil, none, fmt.Errorf("the signed transaction differs: want %+v, got %+v", unsigned, signed)
	}
	return raw, signed, nil
}

// unsigned returns the transaction of an order.
func (a *actor) unsigned(o order) (chain.Unsigned, error) {
	u := chain.Unsigned{
		Type: a.Format.Type, Chain: a.Chain, NonceKey: a.ID.Key, Nonce: o.Nonce, Gas: a.noOpGas(o.Nonce),
		Calls: []chain.Call{{To: &a.ID.Sender, Value: new(uint256.Int)}},
	}
	o.offer.Put(&u)
	if u.Sponsored && (a.Payer == nil || a.Payer.Address() != *o.offer.Payer || a.Format.PayerPayload == nil) {
		return u, fmt.Errorf("there is no key of the fee payer %s", o.offer.Payer)
	}
	if o.intent.IsZero() {
		return u, nil
	}
	u.Gas, u.Calls = o.gas, callsOf(o.job.intent.State.Requested.Request)
	return u, nil
}

// noOpGas returns the gas limit of a no-op at a nonce.
func (r *Relayer) noOpGas(nonce uint64) uint64 {
	if nonce == 0 {
		return r.Settings.NoOpGas + r.Format.First
	}
	return r.Settings.NoOpGas
}

// agrees reports whether signed bytes decode to the unsigned transaction.
func (a *actor) agrees(u chain.Unsigned, s chain.Signed) bool {
	same := s.Type == u.Type && s.Chain == u.Chain && s.Sender == a.ID.Sender && s.NonceKey == u.NonceKey &&
		s.Nonce == u.Nonce && s.Gas == u.Gas && s.Window == u.Window && (s.FeePayer != nil) == u.Sponsored &&
		equal(s.GasPrice, u.GasPrice) && equal(s.MaxFee, u.MaxFee) && equal(s.MaxPriorityFee, u.MaxPriorityFee) &&
		(s.FeeToken == nil) == (u.FeeToken == nil) && (u.FeeToken == nil || *s.FeeToken == *u.FeeToken)
	return same && slices.EqualFunc(s.Calls, u.Calls, func(x, y chain.Call) bool {
		return (x.To == nil) == (y.To == nil) && (x.To == nil || *x.To == *y.To) &&
			equal(x.Value, y.Value) && bytes.Equal(x.Input, y.Input)
	})
}

// equal compares numbers; nil is 0.
func equal(x, y *uint256.Int) bool {
	if x == nil {
		x = new(uint256.Int)
	}
	if y == nil {
		y = new(uint256.Int)
	}
	return x.Eq(y)
}
