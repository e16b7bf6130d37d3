package app

import (
	"context"
	"io"
	"slices"
	"time"

	"github.com/tempo-watchtower/watchtower/cmd/relayer/settings"
	"github.com/tempo-watchtower/watchtower/cmd/watchtower/config"
	"github.com/tempo-watchtower/watchtower/commands"
	"github.com/tempo-watchtower/watchtower/commands/relayer"
	"github.com/tempo-watchtower/watchtower/domain/event"
	"github.com/tempo-watchtower/watchtower/domain/intent"
)

// Front takes intents on, into the log: whoever has the keys carries them out.
type Front struct {
	Settings settings.Settings
	Intents  relayer.Intents
	Now      func() time.Time
	Random   io.Reader
}

// ErrNotServed refuses what nobody with these settings would ever carry out.
const ErrNotServed = event.Refusal("intent-not-served")

// Ask takes an intent on, if anybody with these settings can carry it out. The same
// request again is the same intent, with what has become of it. Errors are
// [commands.ErrUnsupportedChain], [ErrNotServed], those of [intent.Create], or bad luck.
func (f Front) Ask(ctx context.Context, r intent.Request, meta event.Meta) (intent.State, error) {
	if err := f.serves(r); err != nil {
		return intent.State{}, err
	}
	origin, err := commands.Begin(f.Random, meta)
	if err != nil {
		return intent.State{}, err
	}
	taken, err := f.Intents.HandleFrom(ctx, intent.Stream(r.ID()), commands.Result[intent.State]{}, intent.Create{Request: r, At: f.Now()}, origin)
	return taken.State, err
}

func (f Front) serves(r intent.Request) error {
	s := f.Settings
	if !slices.ContainsFunc(s.Delivery.Chains, func(c config.Chain) bool { return c.ID == r.Chain }) {
		return commands.ErrUnsupportedChain.Because("chain %s is not served here", r.Chain)
	}
	key, chosen := protocolKey, false
	if err := r.Check(); err == nil { // else the intent itself refuses it
		key, chosen = r.LaneKey()
	}
	switch onTempo := s.Formats.Of(r.Chain) == settings.Tempo; {
	case r.Signer != nil && !slices.Contains(s.Signers.Allowed, *r.Signer):
		return ErrNotServed.Because("nobody signs for %s here", r.Signer)
	case r.Signer == nil && len(s.Pools.Named(r.Pool)) == 0:
		return ErrNotServed.Because("there is no pool %q here", r.Pool)
	case !onTempo && chosen && key != protocolKey:
		return ErrNotServed.Because("chain %s has no nonce keys", r.Chain)
	case !onTempo && (len(r.Calls) > 1 || r.Gas.FeeToken != nil || r.Gas.Sponsored):
		return ErrNotServed.Because("chain %s has no batches of calls, fee tokens and sponsors", r.Chain)
	case r.Gas.Sponsored && s.Signers.FeePayer == nil:
		return ErrNotServed.Because("nobody pays for others here")
	}
	return nil
}
