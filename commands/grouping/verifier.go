package grouping

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"time"

	"github.com/tempo-watchtower/watchtower/commands"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/event"
	"github.com/tempo-watchtower/watchtower/domain/payload"
	"github.com/tempo-watchtower/watchtower/domain/tx"
)

// Claims lists a chain's transactions whose sender is only claimed, in the order of
// their acceptance and after a position, at most limit. It may lag, and show what
// is no longer pending.
type Claims interface {
	Claims(ctx context.Context, id chain.ID, after event.Position, limit int) ([]tx.Claim, error)
}

// Keychain reads what a chain says of access keys. An error says nothing about them.
type Keychain interface {
	Head(ctx context.Context) (chain.Block, error)
	// Grants answers for each key, as of a block.
	Grants(ctx context.Context, at chain.Block, keys []chain.AccessKey) ([]chain.Grant, error)
}

const (
	claimsMax = 500             // claims looked at in one step
	pauseMax  = 5 * time.Minute // between two questions about one claim
)

// Verifier asks the chain about the access keys of claims. The authorization may be
// in a transaction still to come, so it asks again, with growing pauses, and
// records each new answer. One replica at a time runs it for a chain.
type Verifier struct {
	Chain        chain.ID
	Claims       Claims
	Keychain     Keychain
	Transactions commands.Transactions
	// Vault and Decode tell what kind of signature the access key made.
	Vault  commands.Vault
	Decode func(raw []byte) (chain.Signed, error)
	Poll   time.Duration // between two steps, and the first pause of a claim
	Now    func() time.Time
	Random io.Reader
	Log    *slog.Logger
}

// round is a verifier's memory while it holds its lease.
type round struct {
	*Verifier
	after  event.Position // the last claim looked at
	pauses map[chain.Hash]pause
	seen   map[chain.Hash]bool // since the round began
}

// pause is when a claim is asked about again, and how long the pause before was.
type pause struct {
	until  time.Time
	length time.Duration
}

// Run asks until ctx ends. Trouble with nodes or the store is logged, and the step
// tried again.
func (v *Verifier) Run(ctx context.Context) error {
	r := &round{Verifier: v, pauses: map[chain.Hash]pause{}, seen: map[chain.Hash]bool{}}
	tick := time.NewTicker(v.Poll)
	defer tick.Stop()
	for {
		if err := r.step(ctx); err != nil && ctx.Err() == nil {
			v.Log.Warn("access keys not asked about", "chain", v.Chain, "err", err)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
	}
}

// step looks at the next claims, and asks about those that are due at one block.
func (r *round) step(ctx context.Context) error {
	claims, err := r.Claims.Claims(ctx, r.Chain, r.after, claimsMax)
	if err != nil {
		return err
	}
	now := r.Now()
	var due []tx.Claim
	for _, c := range claims {
		r.seen[c.Hash] = true
		if !now.Before(r.pauses[c.Hash].until) {
			due = append(due, c)
		}
	}
	if err := r.ask(ctx, due); err != nil {
		return err
	}
	if len(claims) == claimsMax {
		r.after = claims[claimsMax-1].Position
		return nil
	}
	// All have been seen: begin anew, without those that are claims no more.
	for hash := range r.pauses {
		if !r.seen[hash] {
			delete(r.pauses, hash)
		}
	}
	r.after, r.seen = 0, map[chain.Hash]bool{}
	return nil
}

func (r *round) ask(ctx context.Context, due []tx.Claim) error {
	if len(due) == 0 {
		return nil
	}
	head, err := r.Keychain.Head(ctx)
	if err != nil {
		return fmt.Errorf("head: %w", err)
	}
	place := map[chain.AccessKey]int{}
	var keys []chain.AccessKey
	for _, c := range due {
		if _, asked := place[c.Key]; !asked {
			place[c.Key] = len(keys)
			keys = append(keys, c.Key)
		}
	}
	grants, err := r.Keychain.Grants(ctx, head, keys)
	if err != nil {
		return fmt.Errorf("access keys: %w", err)
	}
	var trouble []error // one claim's does not hold up the others
	for _, c := range due {
		if err := r.settle(ctx, c, grants[place[c.Key]], head); err != nil {
			trouble = append(trouble, fmt.Errorf("%s: %w", c.Hash, err))
		}
		p := r.pauses[c.Hash]
		p.length = min(max(2*p.length, r.Poll), pauseMax)
		p.until = r.Now().Add(p.length)
		r.pauses[c.Hash] = p
	}
	return errors.Join(trouble...)
}

// settle records what the answer means to a claim that is still worth it.
func (r *round) settle(ctx context.Context, claim tx.Claim, grant chain.Grant, head chain.Block) error {
	stream := tx.Stream(claim.Chain, claim.Hash)
	loaded, err := r.Transactions.Load(ctx, stream)
	if err != nil {
		return err
	}
	s := loaded.State
	var c tx.Command
	switch executed := s.Verdict == tx.StatusExecuted; {
	case !s.Claimed(), !executed && (s.Canceled || s.Settled()):
		return nil
	case executed: // which the chain would not have done without the key's grant
		c = tx.ConfirmGroup{Block: s.Block, At: r.Now()}
	default:
		doubt, err := r.doubt(ctx, claim, grant, head)
		if errors.Is(err, payload.ErrGone) {
			return nil // it was canceled or refused meanwhile
		}
		if err != nil {
			return err
		}
		c = tx.DoubtGroup{Reason: doubt, Block: head, At: r.Now()}
		if doubt == "" {
			c = tx.ConfirmGroup{Block: head, At: r.Now()}
		}
	}
	origin, err := commands.Begin(r.Random, event.Meta{Actor: "grouping"})
	if err != nil {
		return err
	}
	_, err = r.Transactions.HandleFrom(ctx, stream, loaded, c, origin)
	return err
}

// doubt is why the key's grant does not cover the claim's signature; empty when it does.
func (r *round) doubt(ctx context.Context, claim tx.Claim, grant chain.Grant, head chain.Block) (string, error) {
	if doubt := grant.Doubt(grant.Kind, head.Time); doubt != "" {
		return doubt, nil
	}
	raw, err := r.Vault.Bytes(ctx, payload.Ref{Chain: claim.Chain, Hash: claim.Hash})
	if err != nil {
		return "", err
	}
	signed, err := r.Decode(raw)
	if err != nil {
		return "", err
	}
	return grant.Doubt(signed.AccessKind, head.Time), nil
}
