package worker

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/tempo-watchtower/watchtower/commands"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/payload"
	"github.com/tempo-watchtower/watchtower/domain/relay/intent"
)

// Nodes estimate the gas of an intent that sets no limit, and simulate an intent on
// request. The client chooses the calls, so an estimate can take any time. A turn of a lane
// waits briefly and then defers the slow intents: they keep their claims and continue once
// the estimate arrives. Intents of other clients go on.

const (
	// measureWait is the longest time that a turn waits for estimates.
	measureWait = 250 * time.Millisecond
	// measuresAtOnce bounds the concurrent estimates of one client in a lane, and
	// measuresMax its pending ones. The estimates of all lanes of a chain are bounded in
	// infra/chain/rpc.
	measuresAtOnce = 8
	measuresMax    = claimMax
)

var (
	// errMeasuring: no node has returned the estimate yet.
	errMeasuring = errors.New("no node has estimated its gas yet")
	// errCrowded: the client has measuresMax estimates pending.
	errCrowded = errors.New("its client has too many estimates pending")
)

// measures holds the estimates of a lane. It is safe for concurrent use.
type measures struct {
	running sync.WaitGroup
	mu      sync.Mutex
	all     map[chain.IntentID]*measure
	clients map[string]chan struct{} // semaphores of clients with estimates
}

type measure struct {
	client  string
	since   time.Time // when the estimate was started
	done    chan struct{}
	gas     uint64
	err     error
	claimed intent.Claimed // to continue with, if parked
	parked  bool
	waited  bool // a turn has waited for it
}

func newMeasures() *measures {
	return &measures{all: map[chain.IntentID]*measure{}, clients: map[string]chan struct{}{}}
}

// isTried reports whether a node has to estimate or simulate a request.
func isTried(r intent.Request) bool { return r.Gas.Limit == 0 || r.Simulate }

// measure starts the estimate of an intent, unless it needs none or has one. It returns
// errCrowded if the client has measuresMax pending.
func (a *actor) measure(ctx context.Context, id chain.IntentID, r intent.Request) error {
	m := a.measures
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case !isTried(r) || m.all[id] != nil:
		return nil
	case m.of(r.Client) >= measuresMax:
		return errCrowded
	}
	one := &measure{client: r.Client, since: a.Now(), done: make(chan struct{})}
	places := m.clients[r.Client]
	if places == nil {
		places = make(chan struct{}, measuresAtOnce)
	}
	m.all[id], m.clients[r.Client] = one, places
	m.running.Go(func() {
		select {
		case places <- struct{}{}:
			one.gas, one.err = a.Node.Gas(ctx, a.ID, r)
			<-places
		case <-ctx.Done():
			one.err = ctx.Err()
		}
		m.mu.Lock()
		defer m.mu.Unlock()
		close(one.done)
		if one.parked {
			a.box.resume() // its turn is over
		}
	})
	return nil
}

// isPending reports whether an intent's estimate has not arrived yet.
func (m *measures) isPending(id chain.IntentID) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	one := m.all[id]
	return one != nil && !one.isDone()
}

// gas returns the gas limit of an intent, or errMeasuring if the estimate is pending. It
// returns an estimate once and forgets it.
func (a *actor) gas(ctx context.Context, id chain.IntentID, r intent.Request) (uint64, error) {
	if !isTried(r) {
		return a.Node.Gas(ctx, a.ID, r)
	}
	a.measures.mu.Lock()
	defer a.measures.mu.Unlock()
	one := a.measures.all[id]
	if one == nil || !one.isDone() {
		return 0, errMeasuring
	}
	delete(a.measures.all, id)
	return one.gas, one.err
}

// of counts the estimates of a client.
func (m *measures) of(client string) (n int) {
	for _, one := range m.all {
		if one.client == client {
			n++
		}
	}
	return n
}

// await waits up to measureWait for the estimates of intents. It skips clients with an
// estimate that an earlier call already waited for.
func (m *measures) await(ctx context.Context, ids []chain.IntentID) {
	m.mu.Lock()
	slow := map[string]bool{}
	for _, one := range m.all {
		slow[one.client] = slow[one.client] || one.waited && !one.isDone()
	}
	var waits []*measure
	for _, id := range ids {
		if one := m.all[id]; one != nil && !slow[one.client] {
			waits = append(waits, one)
		}
	}
	m.mu.Unlock()
	if len(waits) == 0 {
		return
	}
	moment := time.NewTimer(measureWait)
	defer moment.Stop()
	for _, one := range waits {
		select {
		case <-one.done:
			continue
		case <-moment.C:
		case <-ctx.Done():
		}
		break
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, one := range waits {
		one.waited = true
	}
}

func (m *measure) isDone() bool {
	select {
	case <-m.done:
		return true
	default:
		return false
	}
}

// park keeps a claim until its estimate arrives.
func (a *actor) park(c intent.Claimed) {
	a.measures.mu.Lock()
	defer a.measures.mu.Unlock()
	one := a.measures.all[c.ID]
	if one == nil {
		return
	}
	if one.claimed, one.parked = c, true; one.isDone() {
		a.box.resume()
	}
}

// parked returns the kept claims whose estimates have arrived. It drops lapsed claims: the
// queue gives them out again, and this lane reuses the estimate if it claims the intent. It
// forgets estimates after four times [Settings.Claim].
func (a *actor) parked() (back []intent.Claimed) {
	m, now := a.measures, a.Now()
	m.mu.Lock()
	defer m.mu.Unlock()
	for id, one := range m.all {
		age := now.Sub(one.since)
		switch {
		case !one.isDone():
		case one.parked && age < a.Settings.Claim:
			back = append(back, one.claimed)
			one.parked = false
		case age > 4*a.Settings.Claim:
			delete(m.all, id)
		}
	}
	for client := range m.clients {
		if m.of(client) == 0 {
			delete(m.clients, client)
		}
	}
	slices.SortFunc(back, func(x, y intent.Claimed) int { return cmp.Compare(x.Position, y.Position) })
	return back
}

// measured returns the orders with a known gas limit. An intent that can never be executed
// ends. An unsigned intent without an estimate returns its nonce after a while, with the
// later intents of its ordering group, because all later nonces wait.
func (a *actor) measured(ctx context.Context, orders []order) (known []order, trouble error) {
	var asked []*job
	for _, o := range orders {
		if o.intent.IsZero() || o.gas != 0 {
			continue
		}
		gas, err := a.gasBefore(ctx, o.standing)
		trouble = errors.Join(trouble, err)
		if o.job.gas = gas; gas != 0 {
			continue
		}
		if o.asked.IsZero() {
			o.job.asked = a.Now()
		}
		if err := a.measure(ctx, o.id, o.job.intent.State.Requested.Request); err == nil {
			asked = append(asked, o.job)
		}
	}
	a.measures.await(ctx, idsOf(asked))
	var back []standing
	given := map[uint64]bool{}
	for _, o := range orders {
		if !o.intent.IsZero() && o.gas == 0 && !given[o.Nonce] {
			err := a.measuredOne(ctx, o)
			trouble = errors.Join(trouble, err)
			if err != nil && a.Now().Sub(o.job.asked) >= a.Settings.Stall/patience {
				for _, s := range a.unsignedFrom(o) {
					given[s.Nonce], back = true, append(back, s)
				}
			}
		}
	}
	for _, o := range orders {
		if !given[o.Nonce] && (o.intent.IsZero() || o.job.gas != 0) {
			known = append(known, o)
		}
	}
	return known, errors.Join(trouble, a.release(ctx, reasonGas, back))
}

// gasBefore returns the gas limit of the intent's last attempt, which a replacement keeps:
// a new holder of the lane need not ask for an estimate. It returns 0 if there is no attempt
// or its bytes are gone.
func (a *actor) gasBefore(ctx context.Context, s standing) (uint64, error) {
	for _, made := range slices.Backward(s.Attempts) {
		if made.Intent.IsZero() {
			continue
		}
		raw, err := a.Vault.Bytes(ctx, payload.Ref{Chain: a.Chain, Hash: made.Hash})
		if errors.Is(err, payload.ErrGone) || errors.Is(err, payload.ErrSealed) {
			continue
		}
		if err != nil {
			return 0, fmt.Errorf("the gas limit at nonce %d: %w", s.Nonce, err)
		}
		signed, err := a.Format.Decode(raw)
		if err != nil {
			return 0, fmt.Errorf("the gas limit at nonce %d: %w", s.Nonce, err)
		}
		return signed.Gas, nil
	}
	return 0, nil
}

// measuredOne sets the gas limit of an order. It returns an error while the limit is
// unknown.
func (a *actor) measuredOne(ctx context.Context, o order) error {
	gas, err := a.gas(ctx, o.id, o.job.intent.State.Requested.Request)
	if commands.IsRefusal(err) {
		return a.fail(ctx, o.job, err)
	}
	if err != nil {
		return fmt.Errorf("nonce %d: %w", o.Nonce, err)
	}
	o.job.gas = gas
	return nil
}
