package grouping

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/tempo-watchtower/watchtower/commands"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
	"github.com/tempo-watchtower/watchtower/domain/payload"
	"github.com/tempo-watchtower/watchtower/eventlog"
	"github.com/tempo-watchtower/watchtower/eventlog/handler"
)

// Claims lists a chain's transactions whose sender is only claimed, in the order of their
// acceptance and after a position, at most limit. It may lag and return claims that are no
// longer pending. No claim appears before one already returned.
type Claims interface {
	Claims(ctx context.Context, id chain.ID, after eventlog.Position, limit int) ([]tx.Claim, error)
}

// Keychain reads the chain's state of access keys for one client: its calls use the client's
// share of the nodes' calls. An error means nothing about the keys.
type Keychain interface {
	Head(ctx context.Context) (chain.Block, error)
	// Grants answers for each key, as of a block.
	Grants(ctx context.Context, at chain.Block, keys []chain.AccessKey) ([]chain.Grant, error)
}

const (
	claimsMax  = 500             // claims asked about in one step
	findMax    = 4000            // claims found in one step: a key submits no faster
	loadsAtMax = 16              // found claims loaded concurrently
	pauseMax   = 5 * time.Minute // longest pause between two questions about one claim

	// keysMax is how many access keys of one client are asked about in one step. They are one
	// batch of calls, which with reservedForTrials of infra/chain/rpc fits in a budget of 18
	// calls per second. A larger batch waits until the whole budget is free.
	keysMax = 10
	// clientsMax is how many clients' claims are asked about at once.
	clientsMax = 16
	// restMax is the longest pause after a client's question that no node answered.
	restMax = time.Minute
)

// Verifier asks the chain about the access keys of claims. The authorization may be in a
// later transaction, so it asks again, with growing pauses, and records each new answer.
// One replica at a time should run it for a chain.
//
// Claims are asked about in the name of the client that submitted them, at most keysMax access
// keys of a client in each Poll. Questions of different clients run side by side and share no
// call. A failed question delays its own client's claims alone.
type Verifier struct {
	Chain        chain.ID
	Claims       Claims
	Keychain     func(client string) Keychain
	Transactions commands.Transactions
	// Vault and Decode provide the kind of the access key's signature.
	Vault  commands.Vault
	Decode func(raw []byte) (chain.Signed, error)
	Poll   time.Duration // between two steps, and the first pause of a claim
	Now    func() time.Time
	Log    *slog.Logger
}

// round is a verifier's memory while it holds its lease.
type round struct {
	*Verifier
	after   eventlog.Position // the last claim found
	waiting waiting
	asking  sync.WaitGroup // questions in progress
	trouble trouble
}

func newRound(v *Verifier) *round { return &round{Verifier: v, waiting: newWaiting(v.Poll)} }

// Run asks until ctx ends. Errors of nodes or the store are logged, and the step is
// retried.
func (v *Verifier) Run(ctx context.Context) error {
	r := newRound(v)
	defer r.asking.Wait()
	tick := time.NewTicker(v.Poll)
	defer tick.Stop()
	for {
		if err := r.step(ctx); err != nil && ctx.Err() == nil {
			v.Log.Warn("the chain could not be queried for access keys", "chain", v.Chain, "err", err)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
	}
}

// step finds new claims and begins the questions about the due claims, one question for each
// client. It does not wait for the answers. The error includes the errors of earlier questions.
func (r *round) step(ctx context.Context) error {
	found := r.find(ctx)
	for _, q := range r.waiting.take(r.Now(), claimsMax) {
		r.asking.Go(func() {
			left, answered, err := r.ask(ctx, r.Keychain(q.client), q.claims)
			r.waiting.finish(q.client, left, answered, r.Now())
			r.trouble.add(err)
		})
	}
	return errors.Join(found, r.trouble.take())
}

// trouble collects the errors of questions: their number and the first one.
type trouble struct {
	mu    sync.Mutex
	n     int
	first error
}

func (t *trouble) add(err error) {
	if err == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.n++; t.n == 1 {
		t.first = err
	}
}

// take returns the errors since the last call as one.
func (t *trouble) take() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	n, first := t.n, t.first
	t.n, t.first = 0, nil
	if n > 1 {
		return fmt.Errorf("%d clients' questions, the first one: %w", n, first)
	}
	return first
}

// find adds the next claims to the waiting ones. It skips claims that are over.
func (r *round) find(ctx context.Context) error {
	var trouble []error
	for range findMax / claimsMax {
		claims, err := r.Claims.Claims(ctx, r.Chain, r.after, claimsMax)
		if err != nil {
			return errors.Join(append(trouble, err)...)
		}
		found := make([]handler.Result[tx.State], len(claims))
		failed := make([]error, len(claims))
		var loading sync.WaitGroup
		slots := make(chan struct{}, loadsAtMax)
		for i, c := range claims {
			slots <- struct{}{}
			loading.Go(func() {
				defer func() { <-slots }()
				found[i], failed[i] = r.Transactions.Load(ctx, tx.Stream(c.Chain, c.Hash))
			})
		}
		loading.Wait()
		for i, c := range claims {
			r.after = c.Position
			if failed[i] != nil { // settle loads it again and learns its client
				trouble = append(trouble, fmt.Errorf("%s: %w", c.Hash, failed[i]))
			}
			if failed[i] != nil || !over(found[i].State) {
				r.waiting.add(&claim{Claim: c, client: found[i].State.Accepted.Client, until: r.Now()})
			}
		}
		if len(claims) < claimsMax {
			break
		}
	}
	return errors.Join(trouble...)
}

// over reports whether the transaction's sender need not be asked about again.
func over(s tx.State) bool {
	return !s.Claimed() || s.Retired || s.Verdict != tx.StatusExecuted && (s.Canceled || s.Sealed)
}

// ask asks about claims of one client and returns the claims to ask about again. answered is
// false if no node answered.
func (r *round) ask(ctx context.Context, keychain Keychain, due []*claim) (left []*claim, answered bool, err error) {
	head, err := keychain.Head(ctx)
	if err != nil {
		return due, false, fmt.Errorf("head: %w", err)
	}
	place := map[chain.AccessKey]int{}
	var keys []chain.AccessKey
	for _, c := range due {
		if _, asked := place[c.Key]; !asked {
			place[c.Key] = len(keys)
			keys = append(keys, c.Key)
		}
	}
	grants, err := keychain.Grants(ctx, head, keys)
	if err != nil {
		return due, false, fmt.Errorf("access keys: %w", err)
	}
	var trouble []error // an error with one claim does not stop the others
	for _, c := range due {
		done, err := r.settle(ctx, c, grants[place[c.Key]], head)
		if err != nil {
			trouble = append(trouble, fmt.Errorf("%s: %w", c.Hash, err))
		}
		if done {
			continue
		}
		c.length = min(max(2*c.length, r.Poll), pauseMax)
		c.until = r.Now().Add(c.length)
		left = append(left, c)
	}
	return left, true, errors.Join(trouble...)
}

// settle records the answer for a claim that is still relevant, and reports whether it need
// not be asked about again.
func (r *round) settle(ctx context.Context, claim *claim, grant chain.Grant, head chain.Block) (done bool, err error) {
	stream := tx.Stream(claim.Chain, claim.Hash)
	loaded, err := r.Transactions.Load(ctx, stream)
	if err != nil {
		return false, err
	}
	s := loaded.State
	claim.client = s.Accepted.Client
	if executed := s.Verdict == tx.StatusExecuted; over(s) || !executed && s.Settled() {
		return over(s), nil
	}
	var c tx.Command
	if s.Verdict == tx.StatusExecuted { // the chain would not have executed it without the key's grant
		c, done = tx.ConfirmGroup{Block: s.Block, At: r.Now()}, true
	} else {
		doubt, err := r.doubt(ctx, claim.Claim, grant, head)
		if errors.Is(err, payload.ErrGone) {
			return false, nil // it was canceled or refused meanwhile
		}
		if err != nil {
			return false, err
		}
		c = tx.DoubtGroup{Reason: doubt, Block: head, At: r.Now()}
		if doubt == "" {
			c, done = tx.ConfirmGroup{Block: head, At: r.Now()}, true
		}
	}
	_, err = r.Transactions.DoFrom(ctx, stream, loaded, c, eventlog.Meta{Actor: "grouping"})
	return done && err == nil, err
}

// doubt returns the reason why the key's grant does not cover the claim's signature; empty
// if it does.
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
