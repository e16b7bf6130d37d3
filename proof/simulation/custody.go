package simulation

import (
	"context"
	"fmt"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/eventlog"
	"github.com/tempo-watchtower/watchtower/infra/keys"
	"github.com/tempo-watchtower/watchtower/infra/keys/keystest"
)

// ring is a replica's access to the custodians of the keys. They never sign the same digest with
// the same signature twice, so a repeated signature makes another transaction.
func (r *replica) ring() (*keys.Ring, error) {
	var signers []*keys.Signer
	for _, a := range r.world.signers {
		one, err := keys.InCustody(a.custody.SPKI(), func(ctx context.Context, digest chain.Hash) ([]byte, error) {
			var signature []byte
			name := fmt.Sprintf("sign %s %s", a.address, digest)
			if err := r.call(ctx, signing, name, func() { signature = a.custody.Sign(digest, keystest.Trouble{}) }); err != nil {
				return nil, err // signature may yet be written to
			}
			return signature, nil
		})
		if err != nil {
			return nil, err
		}
		signers = append(signers, one)
	}
	return keys.NewRing(r.world.settings.Signers.Allowed, signers...)
}

// drawSigning draws the fate of a signature request.
func (w *world) drawSigning() fate {
	s, a := w.plan.Relay.Sign, w.agenda
	f := fate{wait: w.delay(w.plan.NodeDelay / 2), reply: w.delay(w.plan.NodeDelay / 2)}
	switch {
	case w.healed:
	case w.signersDown > a.now():
		f.name, f.lost, f.err = "signer: unreachable", true, errLink
	case a.chance(s.Refuse):
		f.name, f.lost, f.err = "signer: busy", true, &keys.Busy{}
	case a.chance(s.Cut):
		f.name, f.cut, f.err = "signer: answer lost", true, fmt.Errorf("%w: %w", eventlog.ErrUnknown, errLink)
	case a.chance(s.Slow):
		f.name, f.wait, f.reply = "signer: slow", a.between(0, slowMost), a.between(0, slowMost)
	}
	return f
}
