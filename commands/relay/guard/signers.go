package guard

import (
	"context"
	"fmt"
	"time"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/relay/signer"
	"github.com/tempo-watchtower/watchtower/eventlog"
	"github.com/tempo-watchtower/watchtower/eventlog/handler"
)

// tell handles a command about a signer. It reads nothing if the known state shows that the
// command adds nothing.
func (g *Guard) tell(ctx context.Context, k *key, c signer.Command) error {
	now := g.Now()
	state, err := k.at(ctx, now.Add(-g.Settings.Watched), now)
	if err != nil {
		return err
	}
	if events, err := state.Decide(c); err != nil || len(events) == 0 { // or it was never registered
		return nil
	}
	before := state.Status()
	after, err := k.handle(ctx, c, byItself(), now)
	if err == nil && after.Status() != before {
		g.Log.Warn("signer changes", "signer", k.stream, "was", before, "is", after.Status())
	}
	return err
}

// Failed counts a failure of a lane's signer. A wrong signature always counts; of other
// failures one per Settings.Apart.
func (g *Guard) Failed(ctx context.Context, id chain.Sequence, kind signer.FailureKind, detail string) error {
	k, now := g.signer(id.Chain, id.Sender), g.Now()
	if kind != signer.WrongSignature && !k.counts(now, g.Settings.Apart) {
		return nil
	}
	origin, err := handler.Begin(g.Signers.Random, byItself()) // the id names the report
	if err != nil {
		return err
	}
	return g.tell(ctx, k, signer.Fail{Report: origin.ID, Kind: kind, Detail: detail, Limit: g.Settings.Failures, At: now})
}

// counts reports whether a failure counts separately from the last one.
func (k *key) counts(now time.Time, apart time.Duration) bool {
	k.seen.Lock()
	defer k.seen.Unlock()
	if !k.failed.IsZero() && now.Sub(k.failed) < apart {
		return false
	}
	k.failed = now
	return true
}

// Succeeded ends a sequence of failures.
func (g *Guard) Succeeded(ctx context.Context, id chain.Sequence) error {
	return g.tell(ctx, g.signer(id.Chain, id.Sender), signer.Succeed{At: g.Now()})
}

// Lacks reports that a node refused a transaction for lack of funds, with the signer's last
// seen balance. It does nothing if none was seen.
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

// Seen records a signer's balance of the currency that it usually pays fees in.
func (g *Guard) Seen(ctx context.Context, on chain.ID, address chain.Address, balance chain.Amount) error {
	k := g.signer(on, address)
	k.seen.Lock()
	now := g.Now()
	k.balance, k.looked = &balance, now
	k.seen.Unlock()
	return g.tell(ctx, k, signer.SeeBalance{Balance: balance, At: now})
}

// Looked returns when this process last read the signer's balance; zero if it never did.
func (g *Guard) Looked(on chain.ID, address chain.Address) time.Time {
	k := g.signer(on, address)
	k.seen.Lock()
	defer k.seen.Unlock()
	return k.looked
}

// Balance returns the signer's balance last seen by this process.
func (g *Guard) Balance(on chain.ID, address chain.Address) (balance chain.Amount, seen bool) {
	k := g.signer(on, address)
	k.seen.Lock()
	defer k.seen.Unlock()
	if k.balance == nil {
		return chain.Amount{}, false
	}
	return *k.balance, true
}

// Register records that the relay has a signer's key, and its pools. Targets set by
// operators stay.
func (g *Guard) Register(ctx context.Context, on chain.ID, address chain.Address, pools []string) error {
	k, now := g.signer(on, address), g.Now()
	state, err := k.now(ctx, now)
	if err != nil {
		return err
	}
	if _, err := k.handle(ctx, signer.Register{Pools: pools, Targets: state.Targets, Actor: "configuration", At: now}, eventlog.Meta{Actor: "configuration"}, now); err != nil {
		return fmt.Errorf("register signer %s on chain %s: %w", address, on, err)
	}
	return nil
}
