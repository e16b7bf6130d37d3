package relayer

import (
	"context"
	"errors"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/signer"
)

// signerError is a failure of who signs, whatever was to be signed.
type signerError struct{ error }

func (e *signerError) Unwrap() error { return e.error }

// signed asks the lane's signer for a signature. Whom its refusal is about shows in whether
// it would sign a no-op in the intent's place: a signature that goes nowhere and is
// recorded nowhere.
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

// failed tells the guard if the lane's signer has failed: once, of all that it was to sign.
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
