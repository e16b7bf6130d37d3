package rpc

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/tempo-watchtower/watchtower/domain/chain"
)

// say is one endpoint's vote on another endpoint's claim.
type say int

const (
	saysYes say = iota
	saysNo
	saysNothing // it declines the question for good
	saysLater   // it has not reached the block, or cannot be reached: ask again
	saysHeld    // it has the block with the transaction, but no receipt (yet): ask again
)

// subject is the kind of a claim. An endpoint may answer one kind and never another.
type subject string

// patience is how long to wait for endpoints that are out of rotation. It is short if none of
// them has been reachable since the start.
func (s subject) patience(seen bool) time.Duration {
	if !seen || s == ofReceipts || s == ofKeys || s == ofPrices || s == ofTrials {
		return missedBrief
	}
	return missedFor
}

const (
	ofReceipts subject = "receipts"
	ofSealed   subject = "receipts to be sealed"
	ofNonces   subject = "nonces"
	ofKeys     subject = "access keys"
	ofBlocks   subject = "blocks"
	ofFinality subject = "finality"
	ofPrices   subject = "prices"
	ofTrials   subject = "trials"
)

const (
	// agreeWithin bounds the wait for the other endpoints.
	agreeWithin = 3 * time.Second
	// agreePause is the pause before a lagging endpoint is asked again. A block that one node
	// shows reaches the other nodes moments later. The pause doubles.
	agreePause   = 75 * time.Millisecond
	agreeDoubles = 3 // times
	// missedFor is how long to wait for endpoints that are out of rotation: a lying endpoint
	// must not be believed during the moments in which the others fail. missedBrief is the wait
	// for claims that a caller waits for, or that a reorg may revoke.
	missedFor   = time.Minute
	missedBrief = 5 * time.Second
	// bareFor is how long an endpoint is not waited for if it had a block but not its receipts:
	// it does not store receipts.
	bareFor = time.Minute
)

// claim is one endpoint's statement about the chain. It counts once other endpoints agree.
type claim struct {
	about subject
	what  string // shown in errors and logs
	// content identifies the claim if it can never change: an endpoint that has confirmed equal
	// content has confirmed this claim. Empty: confirmations are not remembered.
	content string
	check   func(ctx context.Context, other *endpoint) say // asks another endpoint
}

// borneOut returns nil once enough other healthy endpoints confirm e's claim: Agree-1 of them.
// If no other endpoint has confirmed a claim of this kind for a while, or all of them decline,
// e's claim alone is enough.
//
// Endpoints that differ from the majority are blamed. If the claim is not confirmed, reads move
// away from e, and the error means that nothing is known yet.
func (p *Pool) borneOut(ctx context.Context, e *endpoint, c claim) error {
	_, _, err := p.borneOutBy(ctx, e, c)
	return err
}

// borneOutBy is borneOut that also returns the endpoints that agreed with e. sure is false if
// other endpoints might differ and did not answer in time.
func (p *Pool) borneOutBy(ctx context.Context, e *endpoint, c claim) (by []*endpoint, sure bool, err error) {
	others := p.witnesses(e)
	need := min(p.config.Agree-1, len(others))
	missed, seen := p.missed(e)
	wanted := min(p.config.Agree-1, len(others)+missed)
	alone := need < wanted
	if isOwn(ctx) && !alone {
		p.accompanied()
	}
	away := 0 // endpoints that might vote but are not asked
	if alone && p.aloneFor(ctx, c.about) < c.about.patience(seen) {
		stumbling := p.stumbling(e)
		alone, need, away = false, wanted, missed-len(stumbling)
		if others = append(others, stumbling...); len(others) < need {
			return nil, false, &Unreachable{Endpoint: e.name, Err: fmt.Errorf("%s: %w (%d were not called)", c.what, errAlone, away)}
		}
	}
	if need <= 0 {
		return nil, !alone, nil
	}
	h := p.hearing(ctx, others, c)
	defer h.over.Store(true)
	h.hold(need)
	switch {
	case h.carried(need):
		p.outvote(ctx, h.differed, c)
		return h.agreed, true, nil
	case h.lost():
		p.outvote(ctx, []*endpoint{e}, c)
		p.leave(ctx, e)
		return nil, false, &outvoted{e.name, c.what}
	}
	mute := away + len(others) - len(h.agreed) - len(h.differed) - h.declined
	if mute == 0 && len(h.differed) == 0 {
		return h.agreed, len(h.agreed) > 0 || missed == 0, nil // all endpoints with a vote agree, however few they are
	}
	if isOwn(ctx) {
		p.differ(append(h.differed, e), c.what)
	}
	p.leave(ctx, e)
	return nil, false, &Unreachable{Endpoint: e.name, Err: fmt.Errorf("%s: %w (%d agree, %d differ, %d decline, %d did not respond)",
		c.what, errAlone, len(h.agreed), len(h.differed), h.declined, mute)}
}

// allBearOut is borneOut for a claim that may not come from the endpoint that reads use now.
// That endpoint is asked too, because reads may have moved since.
func (p *Pool) allBearOut(ctx context.Context, c claim) error {
	e := p.reader()
	if len(p.witnesses(e)) > 0 && p.config.Agree > 1 && c.check(ctx, e) != saysYes {
		return &Unreachable{Endpoint: e.name, Err: fmt.Errorf("%s: %w", c.what, errAlone)}
	}
	return p.borneOut(ctx, e, c)
}

// errAlone means that no other endpoint confirms the claim yet.
var errAlone = errors.New("not confirmed by other endpoints")

// outvoted means that most endpoints contradict the claim.
type outvoted struct{ endpoint, what string }

func (e *outvoted) Error() string {
	return fmt.Sprintf("%s: %s: most endpoints disagree", e.endpoint, e.what)
}

// differ counts a disagreement without a majority: at least one of these endpoints is wrong,
// and nothing shows which. A single endpoint just waits for the others.
func (p *Pool) differ(among []*endpoint, what string) {
	if len(among) < 2 {
		return
	}
	now, names, news := p.config.Now(), make([]string, len(among)), false
	for i, e := range among {
		names[i] = e.name
		e.mu.Lock()
		news = news || now.Sub(e.health.differedAt) >= differAgain
		e.health.differences, e.health.differedAt = e.health.differences+1, now
		e.mu.Unlock()
	}
	if news {
		p.config.Log.Warn("endpoints disagree, and none has a majority", "chain", p.config.Chain, "endpoints", names, "what", what)
	}
}

// differAgain is how long endpoints must agree before a new disagreement is logged.
const differAgain = 10 * time.Minute

// outvote blames the endpoints that differ from the majority, except on trials: a call chosen
// by a client may read values in which honest nodes differ, such as the remaining gas. Nor does
// it on a client's reads: repeated during a reorg, they would take honest nodes out of rotation.
func (p *Pool) outvote(ctx context.Context, liars []*endpoint, c claim) {
	if !isOwn(ctx) {
		return
	}
	p.accuse(liars, c.what)
}

func (p *Pool) accuse(liars []*endpoint, what string) {
	for _, e := range liars {
		p.blame(e, contradiction("%s: most endpoints disagree", what))
	}
}

// missed returns how many endpoints other than e are out of rotation, and whether any of them
// has been reachable since the start. Distrusted and foreign endpoints do not count.
func (p *Pool) missed(e *endpoint) (n int, seen bool) {
	for _, other := range p.endpoints {
		switch state := p.state(other); {
		case other == e, state == Healthy, state == Distrusted, state == Foreign:
			continue
		}
		n++
		other.mu.Lock()
		seen = seen || other.identity.known
		other.mu.Unlock()
	}
	return n, seen
}

// lonely is a subject on which a confirmation is wanted, by the service itself or by clients.
type lonely struct {
	about subject
	own   bool
}

// aloneFor is the time since a confirmation on this subject was first wanted and not given.
func (p *Pool) aloneFor(ctx context.Context, about subject) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.config.Now()
	of := lonely{about, isOwn(ctx)}
	since, known := p.alone[of]
	if !known {
		since = now
		p.alone[of] = now
	}
	return now.Sub(since)
}

// heardOf records that an endpoint has confirmed a claim on a subject. A confirmation of an own
// claim counts for clients too.
func (p *Pool) heardOf(ctx context.Context, about subject) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.alone, lonely{about, false})
	if isOwn(ctx) {
		delete(p.alone, lonely{about, true})
	}
}

// accompanied records that an own read has found enough healthy endpoints to confirm it. Clients
// read rarely: without this, two short outages with hours between them would look like a single
// long one, and a single endpoint would be believed at once.
func (p *Pool) accompanied() {
	p.mu.Lock()
	defer p.mu.Unlock()
	maps.DeleteFunc(p.alone, func(of lonely, _ time.Time) bool { return !of.own })
}

// witnesses are the healthy endpoints other than e, best score first.
func (p *Pool) witnesses(e *endpoint) []*endpoint {
	return p.ranked(func(other *endpoint) bool { return other != e && p.state(other) == Healthy })
}

// stumbling are the endpoints other than e that are out of rotation because they fail too often
// or lag, best score first. They may still vote.
func (p *Pool) stumbling(e *endpoint) []*endpoint {
	return p.ranked(func(other *endpoint) bool {
		state := p.state(other)
		return other != e && (state == Tripped || state == Lagging) && other.wasOurs()
	})
}

// ranked are the endpoints that among selects, best score first.
func (p *Pool) ranked(among func(*endpoint) bool) (found []*endpoint) {
	scores := map[*endpoint]float64{}
	for _, e := range p.endpoints {
		if !among(e) {
			continue
		}
		e.mu.Lock()
		scores[e] = e.health.score()
		e.mu.Unlock()
		found = append(found, e)
	}
	slices.SortStableFunc(found, func(a, b *endpoint) int { return cmp.Compare(scores[b], scores[a]) })
	return found
}

// sayOf turns another endpoint's error about a block into a vote: saysNothing if it has the
// block and declines, saysNo if it has another block at that height.
func (r *Reader) sayOf(ctx context.Context, other *endpoint, block chain.Block, err error) say {
	_, answered := nodeCode(err)
	declined := answered && !isUnable(err)
	if !declined && !errors.Is(err, errNotFound) {
		return saysLater
	}
	switch at, _, err := r.block(ctx, other, quantity(block.Number)); {
	case err != nil:
		return saysLater
	case at.Hash != block.Hash:
		return saysNo
	case declined:
		return saysNothing
	}
	return saysLater
}

// sameReceipts asks another endpoint for receipts of a block.
func (r *Reader) sameReceipts(block chain.Block, want map[chain.Hash]chain.Receipt) func(context.Context, *endpoint) say {
	hashes := slices.SortedFunc(maps.Keys(want), compareHashes)
	return func(ctx context.Context, other *endpoint) say {
		found, err := r.receiptsAt(ctx, other, block, hashes)
		if elsewhere := (*inAnotherBlock)(nil); errors.As(err, &elsewhere) {
			return saysNo
		}
		if errors.Is(err, errNotFound) { // of the whole block
			return r.lacksIn(ctx, other, block, hashes[0])
		}
		if err != nil {
			return r.sayOf(ctx, other, block, err)
		}
		for _, hash := range hashes {
			receipt := want[hash]
			switch got, ok := found[hash]; {
			case !ok:
				return r.lacksIn(ctx, other, block, hash)
			case got.Status != receipt.Status || got.Index != receipt.Index:
				return saysNo
			}
		}
		return saysYes
	}
}

func compareHashes(a, b chain.Hash) int { return bytes.Compare(a[:], b[:]) }

// lacksIn is the vote of an endpoint that has no receipt of a transaction claimed to be in a
// block. saysNo: its block at this height is another, or lacks the transaction. saysLater: it
// has not reached the block. saysNothing: it is known to store no receipts. Otherwise saysHeld.
func (r *Reader) lacksIn(ctx context.Context, other *endpoint, block chain.Block, hash chain.Hash) say {
	at, hashes, err := r.block(ctx, other, quantity(block.Number))
	switch {
	case err != nil:
		return saysLater
	case at.Hash != block.Hash || !slices.Contains(hashes, hash):
		return saysNo
	case r.pool.config.Now().UnixNano() < other.bare.Load():
		return saysNothing
	}
	return saysHeld
}

// sameNonces asks another endpoint for nonces at a block.
func (r *Reader) sameNonces(at chain.Block, sequences []chain.Sequence, want []uint64) func(context.Context, *endpoint) say {
	return func(ctx context.Context, other *endpoint) say {
		found, err := r.noncesAt(ctx, other, at, sequences)
		switch {
		case err != nil:
			return r.sayOf(ctx, other, at, err)
		case slices.Equal(found, want):
			return saysYes
		}
		return saysNo
	}
}
