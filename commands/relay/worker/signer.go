package worker

import (
	"context"
	"errors"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/relay/signer"
)

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
