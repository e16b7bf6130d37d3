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
	"github.com/tempo-watchtower/watchtower/domain/relay/budget"
	"github.com/tempo-watchtower/watchtower/domain/relay/intent"
	"github.com/tempo-watchtower/watchtower/domain/relay/lane"
	"github.com/tempo-watchtower/watchtower/domain/relay/signer"
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

// allowed returns the orders that the guard allows. An unsigned intent that is not allowed
// now returns its nonce, so that no other intent waits for it.
func (a *actor) allowed(ctx context.Context, orders []order) (allowed []order, trouble error) {
	if a.Guard == nil || len(orders) == 0 {
		return orders, trouble
	}
	requests, charges := make([]*intent.Request, len(orders)), make([]budget.Charge, len(orders))
	for i, o := range orders {
		requests[i], charges[i] = a.asked(o)
	}
	answers, err := a.ask(ctx, requests, charges)
	if err != nil {
		return nil, errors.Join(trouble, err)
	}
	var back []standing
	given := map[uint64]bool{}
	for i, o := range orders {
		if answers[i] == nil {
			continue
		}
		trouble = errors.Join(trouble, fmt.Errorf("nonce %d: %w", o.Nonce, answers[i]))
		for _, s := range a.unsignedFrom(o) {
			if !given[s.Nonce] {
				given[s.Nonce], back = true, append(back, s)
			}
		}
	}
	for i, o := range orders {
		if answers[i] == nil && !given[o.Nonce] {
			allowed = append(allowed, o)
		}
	}
	return allowed, errors.Join(trouble, a.release(ctx, reasonGuard, back))
}

// asked returns the guard's view of an order: its request, nil for a no-op, and its charge.
func (a *actor) asked(o order) (*intent.Request, budget.Charge) {
	r := o.job.intent.State.Requested.Request
	if !o.intent.IsZero() {
		return &r, chargeOf(o.job.intent.State.Requested, o.job.gas, o.offer.Fee)
	}
	fee := chain.Amount(o.offer.Fee.MaxFee).Times(a.noOpGas(o.Nonce))
	c := budget.Charge{Purpose: purposeOf(o.standing), Sum: budget.Sum{Fee: fee}}
	if !o.id.IsZero() {
		c.Client, c.Subject = r.Client, r.Subject
	}
	return nil, c
}

// unsignedFrom returns the nonces to give back if an order may not be signed: its own, if
// unsigned, and the nonces of later intents of its ordering group. It returns none if one
// of these is signed, because the group would be mined in another order.
func (a *actor) unsignedFrom(o order) (back []standing) {
	if o.intent.IsZero() || len(o.Attempts) > 0 {
		return nil
	}
	row := o.job.intent.State.Requested.Request.Waiting(0).Row
	if row.Order == "" {
		return []standing{o.standing}
	}
	for _, s := range a.slots() {
		switch {
		case s.Nonce < o.Nonce || s.id.IsZero():
		case s.stale:
			return nil
		case s.job.intent.State.Requested.Request.Waiting(0).Row != row:
		case len(s.Attempts) > 0:
			return nil
		default:
			back = append(back, s)
		}
	}
	return back
}

// signerError is a failure of the signer, independent of the payload.
type signerError struct{ error }

func (e *signerError) Unwrap() error { return e.error }

// signed asks the lane's signer for a signature. If the signer rejects an intent, signed
// asks it to sign a no-op instead. If it signs that, the rejection concerns the intent;
// otherwise the signer has failed. The no-op's signature is neither sent nor recorded.
func (a *actor) signed(ctx context.Context, o order, payload []byte) ([]byte, error) {
	mark, err := a.Signer.Sign(ctx, payload)
	if err == nil || errors.Is(err, ErrBadPayload) {
		return mark, err
	}
	if errors.Is(err, ErrRejected) && !o.intent.IsZero() {
		o.intent = chain.IntentID{}
		u, failed := a.unsigned(o)
		if failed == nil {
			payload, failed = a.Format.Payload(u)
		}
		if failed == nil {
			_, failed = a.Signer.Sign(ctx, payload)
		}
		if failed == nil {
			return nil, err
		}
	}
	return nil, &signerError{err}
}

// failed reports to the guard that the lane's signer has failed: once per turn.
func (a *actor) failed(ctx context.Context, trouble error) error {
	var failure *signerError
	if a.Guard == nil || ctx.Err() != nil || !errors.As(trouble, &failure) {
		return nil
	}
	a.failing = a.Now()
	kind := signer.NoSignature
	switch {
	case errors.Is(trouble, ErrWrongKey):
		kind = signer.WrongSignature
	case errors.Is(failure, ErrRejected):
		kind = signer.Rejected
	}
	return a.Guard.Failed(ctx, a.ID, kind, failure.Error())
}
