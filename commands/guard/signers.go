package guard

import (
	"context"
	"fmt"
	"time"

	"github.com/tempo-watchtower/watchtower/commands"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/event"
	"github.com/tempo-watchtower/watchtower/domain/signer"
)

// tell carries out news of a signer. Nothing is read if what is known of it says that the
// news adds nothing.
func (g *Guard) tell(ctx context.Context, k *key, c signer.Command) error {
	now := g.Now()
	state, err := k.at(ctx, now.Add(-g.Settings.Watched), now)
	if err != nil {
		return err
	}
	if events, err := state.Decide(c); err != nil || len(events) == 0 { // or it was never registered
		return nil
	}
	origin, err := g.origin()
	if err != nil {
		return err
	}
	before := state.Status()
	after, err := k.handle(ctx, c, origin, now)
	if err == nil && after.Status() != before {
		g.Log.Warn("signer changes", "signer", k.stream, "was", before, "is", after.Status())
	}
	return err
}

// Failed counts a failure of a lane's signer. A wrong signature always counts; of others
// one in a while.
func (g *Guard) Failed(ctx context.Context, id chain.Sequence, kind signer.FailureKind, detail string) error {
	k, now := g.signer(id.Chain, id.Sender), g.Now()
	if kind != signer.WrongSignature && !k.counts(now, g.Settings.Apart) {
		return nil
	}
	origin, err := g.origin() // which names the news
	if err != nil {
		return err
	}
	return g.tell(ctx, k, signer.Fail{Report: origin.ID, Kind: kind, Detail: detail, Limit: g.Settings.Failures, At: now})
}

// counts reports whether a failure is not part of one that was counted.
func (k *key) counts(now time.Time, apart time.Duration) bool {
	k.seen.Lock()
	defer k.seen.Unlock()
	if !k.failed.IsZero() && now.Sub(k.failed) < apart {
		return false
	}
	k.failed = now
	return true
}

// Succeeded ends a row of failures.
func (g *Guard) Succeeded(ctx context.Context, id chain.Sequence) error {
	return g.tell(ctx, g.signer(id.Chain, id.Sender), signer.Succeed{At: g.Now()})
}

// Lacks tells that a node would not take what the signer cannot pay, by its balance as it
// was seen last; if none was seen nothing is told.
func (g *Guard) Lacks(ctx context.Context, id chain.Sequence, needed chain.Amount) error {
	k := g.signer(id.Chain, id.Sender)
	k.seen.Lock()
	balance := k.balance
	k.seen.Unlock()
	if balance == nil {
		return nil
	}
	return g.tell(ctx, k, signer.LackFunds{Balance: *balance, Needed: needed, At: g.Now()})
}

// Seen tells a signer's balance, of the money that it usually pays fees in.
func (g *Guard) Seen(ctx context.Context, on chain.ID, address chain.Address, balance chain.Amount) error {
	k := g.signer(on, address)
	k.seen.Lock()
	k.balance = &balance
	k.seen.Unlock()
	return g.tell(ctx, k, signer.SeeBalance{Balance: balance, At: g.Now()})
}

// Balance is what a signer had when that was seen last, in this process.
func (g *Guard) Balance(on chain.ID, address chain.Address) (balance chain.Amount, seen bool) {
	k := g.signer(on, address)
	k.seen.Lock()
	defer k.seen.Unlock()
	if k.balance == nil {
		return chain.Amount{}, false
	}
	return *k.balance, true
}

// Register says that the relay has a signer's key, and which pools it belongs to. What
// operators have said of its targets stays.
func (g *Guard) Register(ctx context.Context, on chain.ID, address chain.Address, pools []string) error {
	k, now := g.signer(on, address), g.Now()
	state, err := k.now(ctx, now)
	if err != nil {
		return err
	}
	origin, err := commands.Begin(g.Random, event.Meta{Actor: "configuration"})
	if err != nil {
		return err
	}
	if _, err := k.handle(ctx, signer.Register{Pools: pools, Targets: state.Targets, Actor: "configuration", At: now}, origin, now); err != nil {
		return fmt.Errorf("register signer %s on chain %s: %w", address, on, err)
	}
	return nil
}
