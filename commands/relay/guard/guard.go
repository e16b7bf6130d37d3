// Package guard limits the harm that the relay can do. It checks operators' safeguards and
// budgets before an intent is accepted, and again before anything is signed for it. It also
// tracks the health of signers.
//
// Its state is in the log: one stream for safeguards, one for each signer on a chain, one
// for each chain's budget. Before a signature these are read up to date, so an operator's
// command on one replica holds on all of them from the next signature on. When intents are
// accepted the state may be as old as [Settings.Fresh]: an intent wrongly accepted is not
// signed.
//
// Budgets are reserved before a lane hands out a nonce, and settled before the lane records
// a landing as final. All calls may be repeated: after a crash the lane's next holder
// continues from the recorded state.
package guard

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/relay/budget"
	"github.com/tempo-watchtower/watchtower/domain/relay/intent"
	"github.com/tempo-watchtower/watchtower/domain/relay/lane"
	"github.com/tempo-watchtower/watchtower/domain/relay/safeguard"
	"github.com/tempo-watchtower/watchtower/domain/relay/signer"
	"github.com/tempo-watchtower/watchtower/eventlog"
	"github.com/tempo-watchtower/watchtower/eventlog/handler"
)

// Safeguards, Signers and Budgets handle the commands of domain/relay/safeguard, domain/relay/signer
// and domain/relay/budget.
type (
	Safeguards = handler.Handler[safeguard.State, safeguard.Command, safeguard.Event]
	Signers    = handler.Handler[signer.State, signer.Command, signer.Event]
	Budgets    = handler.Handler[budget.State, budget.Command, budget.Event]
)

// ErrStopped refuses to sign with a key that is paused, drained, disabled, or not
// registered.
const ErrStopped = eventlog.Refusal("signer-stopped")

// Config configures a guard.
type Config struct {
	Safeguards Safeguards
	Signers    Signers
	Budgets    Budgets
	// Members returns the signers of a pool; nil: no pool is known.
	Members func(pool string) []chain.Address
	// Buckets count the rates of all replicas together; nil: each replica counts alone.
	Buckets  Buckets
	Settings Settings
	Now      func() time.Time
	Log      *slog.Logger
}

// Settings are the guard's tunable limits and intervals.
type Settings struct {
	// Fresh is the maximum age of the state used to accept an intent.
	Fresh time.Duration
	// Watched is the maximum age of a signer's state used for news of it, which mostly adds
	// nothing.
	Watched time.Duration
	// Every is the shortest interval between reads of the signers' balances. Refusals for
	// lack of funds are reported separately.
	Every time.Duration
	// Failures is the number of consecutive failures that disables a signer, at most
	// signer.FailuresMax. Failures within Apart of each other count once: all payloads
	// signed in that time fail alike.
	Failures int
	Apart    time.Duration
}

// DefaultSettings disable a signer that has failed for about a minute.
func DefaultSettings() Settings {
	return Settings{Fresh: 250 * time.Millisecond, Watched: 5 * time.Second, Every: 3 * time.Second, Failures: 12, Apart: 5 * time.Second}
}

// Guard serves all chains and lanes of a process. It is safe for concurrent use.
type Guard struct {
	Config
	switches *view[safeguard.State, safeguard.Command, safeguard.Event]
	rates    rates

	mu      sync.Mutex
	signers map[account]*key
	budgets map[chain.ID]*purse
}

type (
	account struct {
		chain   chain.ID
		address chain.Address
	}
	purse = view[budget.State, budget.Command, budget.Event]
)

// key is one signer on one chain.
type key struct {
	view[signer.State, signer.Command, signer.Event]

	seen    sync.Mutex
	failed  time.Time     // time of the last counted failure
	balance *chain.Amount // last seen balance
	looked  time.Time     // time of its reading
	lanes   followed
}

// New makes a guard.
func New(c Config) *Guard {
	if c.Settings.Failures < 1 || c.Settings.Failures > signer.FailuresMax {
		panic(fmt.Sprintf("guard: a signer is disabled after %d failures", c.Settings.Failures))
	}
	g := &Guard{Config: c, signers: map[account]*key{}, budgets: map[chain.ID]*purse{}}
	g.switches = &view[safeguard.State, safeguard.Command, safeguard.Event]{handler: c.Safeguards, stream: safeguard.Stream}
	return g
}

func (g *Guard) signer(on chain.ID, a chain.Address) *key {
	g.mu.Lock()
	defer g.mu.Unlock()
	k := g.signers[account{on, a}]
	if k == nil {
		k = new(key)
		k.handler, k.stream = g.Signers, signer.Stream(on, a)
		g.signers[account{on, a}] = k
	}
	return k
}

func (g *Guard) budget(on chain.ID) *purse {
	g.mu.Lock()
	defer g.mu.Unlock()
	p := g.budgets[on]
	if p == nil {
		p = &purse{handler: g.Budgets, stream: budget.Stream(on)}
		p.line.weight = purposes
		p.line.of = func(c budget.Command) string { return spender(p.held.State, c) }
		g.budgets[on] = p
	}
	return p
}

// byItself is the origin of a command without a client or operator.
func byItself() eventlog.Meta { return eventlog.Meta{Actor: "relayer"} }

// Room returns how many more intents a lane may be given: none while its signer does not
// serve, the chain is halted, or no budget is left for fees.
func (g *Guard) Room(ctx context.Context, id chain.Sequence, load signer.Load) (int, error) {
	now := g.Now()
	key, err := g.signer(id.Chain, id.Sender).now(ctx, now)
	if err != nil || !key.Takes() {
		return 0, err
	}
	switches, err := g.switches.now(ctx, now)
	if err != nil {
		return 0, err
	}
	purse, err := g.budget(id.Chain).now(ctx, now)
	if err != nil {
		return 0, err
	}
	load.Barred = switches.CheckNoOp(id.Chain) != nil || purse.Exhausted(budget.DayOf(now), id.Sender)
	return key.Room(load), nil
}

// Allow answers for each request (nil for a no-op) whether it may be signed in a lane, and
// reserves its highest cost where a limit applies. The answers are nil or refusals of the
// domain packages and of this package.
func (g *Guard) Allow(ctx context.Context, id chain.Sequence, token lane.Token, requests []*intent.Request, charges []budget.Charge) ([]error, error) {
	now := g.Now()
	switches, err := g.switches.now(ctx, now)
	if err != nil {
		return nil, err
	}
	key, err := g.signer(id.Chain, id.Sender).now(ctx, now)
	if err != nil {
		return nil, err
	}
	answers := make([]error, len(requests))
	var asked []int
	for i, r := range requests {
		if answers[i] = may(switches, key, id, r); answers[i] == nil {
			asked = append(asked, i)
		}
	}
	for some := range slices.Chunk(asked, budget.BatchMax) {
		if err := g.reserve(ctx, id, token, some, charges, answers); err != nil {
			return nil, err
		}
	}
	return answers, nil
}

// Check returns the answer of Allow for a request in these states, without reserving
// anything.
func Check(switches safeguard.State, key signer.State, purse budget.State, now time.Time, id chain.Sequence, r intent.Request, c budget.Charge) error {
	if err := may(switches, key, id, &r); err != nil || !purse.Limited() {
		return err
	}
	return purse.Check(budget.DayOf(now), budget.Lane{Signer: id.Sender, NonceKey: id.Key}, c)
}

// may refuses requests that may not be signed at any cost.
func may(switches safeguard.State, key signer.State, id chain.Sequence, r *intent.Request) error {
	if !key.Signs() {
		return stopped(key, id.Sender)
	}
	if r == nil {
		return switches.CheckNoOp(id.Chain)
	}
	calls := callsOf(*r)
	if err := switches.Check(safeguard.Request{Client: r.Client, Chain: id.Chain, Calls: calls}); err != nil {
		return err
	}
	return key.Serves(r.Pool, calls)
}

// stopped returns the refusal of a signer that does not serve, with its status.
func stopped(key signer.State, address chain.Address) error {
	status := string(key.Status())
	if !key.Known {
		status = "not registered"
	}
	return ErrStopped.Because("%s is %s", address, status)
}

func callsOf(r intent.Request) []chain.Call {
	calls := make([]chain.Call, len(r.Calls))
	for i, c := range r.Calls {
		calls[i] = chain.Call{To: c.To, Value: c.Value.Int(), Input: c.Data}
	}
	return calls
}

// reserve reserves some charges, and answers for those without room.
func (g *Guard) reserve(ctx context.Context, id chain.Sequence, token lane.Token, some []int, charges []budget.Charge, answers []error) error {
	now := g.Now()
	purse := g.budget(id.Chain)
	// A reservation is decided on the current state. Where there were limits when it was last read,
	// it need not be read before: without limits any more, a reservation does no harm.
	state, err := purse.at(ctx, time.Time{}, now)
	if err == nil && !state.Limited() {
		state, err = purse.now(ctx, now)
	}
	if err != nil || !state.Limited() {
		return err
	}
	of := budget.Lane{Signer: id.Sender, NonceKey: id.Key}
	c := budget.Reserve{Day: budget.DayOf(now), Lane: of, Token: uint64(token), Charges: make([]budget.Charge, len(some)), At: now}
	for n, i := range some {
		c.Charges[n] = charges[i]
	}
	if state, err = purse.handle(ctx, c, byItself(), now); err != nil {
		return fmt.Errorf("reserve budget for %d: %w", len(some), err)
	}
	for _, i := range some {
		if !state.Covers(of, charges[i]) {
			answers[i] = state.Check(c.Day, of, charges[i])
			if answers[i] == nil { // there was no room at the reservation
				answers[i] = budget.ErrSpent
			}
		}
	}
	return nil
}

// Open lists the purposes with reserved budget in a lane, as of this process's last read.
func (g *Guard) Open(ctx context.Context, id chain.Sequence) ([]budget.Purpose, error) {
	state, err := g.budget(id.Chain).at(ctx, time.Time{}, g.Now())
	if err != nil {
		return nil, err
	}
	open := state.Open(budget.Lane{Signer: id.Sender, NonceKey: id.Key})
	all := make([]budget.Purpose, len(open))
	for i, r := range open {
		all[i] = r.Purpose
	}
	return all, nil
}

// Settle records the final cost of purposes, at most budget.BatchMax. Purposes without a
// reservation are ignored. Money that was not spent is kept for the holes that have none.
func (g *Guard) Settle(ctx context.Context, id chain.Sequence, token lane.Token, spent []budget.Spent, holes []uint64) error {
	now := g.Now()
	of := budget.Lane{Signer: id.Sender, NonceKey: id.Key}
	_, err := g.budget(id.Chain).handle(ctx, budget.Settle{Day: budget.DayOf(now), Lane: of, Token: uint64(token), Spent: spent, Holes: holes, At: now}, byItself(), now)
	return err
}
