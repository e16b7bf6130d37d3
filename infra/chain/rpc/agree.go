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

// say is what one endpoint says of what another has said.
type say int

const (
	saysYes say = iota
	saysNo
	saysNothing // it declines the question, and will go on doing so
	saysLater   // it has not come so far, or cannot be reached: ask again
	saysHeld    // it has the block that holds the transaction, and no receipt of it (yet): ask again
)

// subject is what a word is about. An endpoint may know all of one and nothing of
// another.
type subject string

// patience is for how long those are waited for who might have a word on it: not long,
// if none of them has ever shown that it is there.
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
	// agreeWithin bounds how long others are waited for.
	agreeWithin = 3 * time.Second
	// agreePause is the pause before an endpoint is asked again that has not come so
	// far: what one node shows, its neighbours show some moments later. It doubles.
	agreePause   = 75 * time.Millisecond
	agreeDoubles = 3 // times
	// missedFor is how long endpoints that are out of rotation are waited for: a liar who
	// is alone for a moment, because the others stumble, must not be believed in it.
	// What somebody waits for, and what the chain may take back, waits less.
	missedFor   = time.Minute
	missedBrief = 5 * time.Second
	// bareFor is for how long an endpoint is not waited for that had a block all the
	// time and never the receipts: it keeps none.
	bareFor = time.Minute
)

// claim is what an endpoint has said, and another may bear out.
type claim struct {
	about subject
	what  string // for whoever reads of it
	// content is all of it, if that is so for ever: who has borne out the same content has
	// borne out the same. Empty: it is not remembered who has.
	content string
	check   func(ctx context.Context, other *endpoint) say // asks another
}

// borneOut makes sure that what an endpoint said is not its word alone: of the other
// healthy ones, as many have to agree as configured. Where
// nobody else has borne out such a thing for a while, or all others decline, its word is
// all there is.
//
// Those who differ from the majority are blamed. When e is not borne out, reads leave
// it, and the error says that nothing is known yet.
func (p *Pool) borneOut(ctx context.Context, e *endpoint, c claim) error {
	_, _, err := p.borneOutBy(ctx, e, c)
	return err
}

// borneOutBy is borneOut that says who has agreed, beside e, and whether the word is as
// sure as it will be: it is not when there are others who may differ, and have been waited
// for in vain.
func (p *Pool) borneOutBy(ctx context.Context, e *endpoint, c claim) (by []*endpoint, sure bool, err error) {
	others := p.witnesses(e)
	need := min(p.config.Agree-1, len(others))
	missed, seen := p.missed(e)
	wanted := min(p.config.Agree-1, len(others)+missed)
	alone := need < wanted
	away := 0 // who might have a word, and are not asked
	if alone && p.aloneFor(c.about) < c.about.patience(seen) {
		stumbling := p.stumbling(e)
		alone, need, away = false, wanted, missed-len(stumbling)
		if others = append(others, stumbling...); len(others) < need {
			return nil, false, &Unreachable{Endpoint: e.name, Err: fmt.Errorf("%s: %w (%d have not been asked)", c.what, errAlone, away)}
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
		p.outvote(h.differed, c)
		return h.agreed, true, nil
	case h.lost():
		p.outvote([]*endpoint{e}, c)
		p.leave(e)
		return nil, false, &outvoted{e.name, c.what}
	}
	mute := away + len(others) - len(h.agreed) - len(h.differed) - h.declined
	if mute == 0 && len(h.differed) == 0 {
		return h.agreed, len(h.agreed) > 0 || missed == 0, nil // all who have a say agree, however few they are
	}
	if c.about != ofTrials {
		p.differ(append(h.differed, e), c.what)
	}
	p.leave(e)
	return nil, false, &Unreachable{Endpoint: e.name, Err: fmt.Errorf("%s: %w (%d agree, %d differ, %d decline, %d have not said)",
		c.what, errAlone, len(h.agreed), len(h.differed), h.declined, mute)}
}

// allBearOut is borneOut for what another has told than the endpoint that is read from,
// which is asked too: reads may have left the other since.
func (p *Pool) allBearOut(ctx context.Context, c claim) error {
	e := p.reader()
	if len(p.witnesses(e)) > 0 && p.config.Agree > 1 && c.check(ctx, e) != saysYes {
		return &Unreachable{Endpoint: e.name, Err: fmt.Errorf("%s: %w", c.what, errAlone)}
	}
	return p.borneOut(ctx, e, c)
}

// errAlone means that nobody bears out yet what one endpoint says.
var errAlone = errors.New("not borne out by other endpoints")

// outvoted means that most endpoints say otherwise.
type outvoted struct{ endpoint, what string }

func (e *outvoted) Error() string {
	return fmt.Sprintf("%s: %s: most endpoints say otherwise", e.endpoint, e.what)
}

// differ counts that these could not be told from each other: somebody of them is
// wrong, and there is no majority to say who. One alone only waits for the others.
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
		p.config.Log.Warn("endpoints differ, and none is believed", "chain", p.config.Chain, "endpoints", names, "what", what)
	}
}

// differAgain is how long endpoints have to be of one mind before it is logged anew that
// they are not.
const differAgain = 10 * time.Minute

// outvote accuses those who differ from the majority, save on trials: what a client has
// called may look at what honest nodes have differently, such as the gas that is left.
func (p *Pool) outvote(liars []*endpoint, c claim) {
	if c.about != ofTrials {
		p.accuse(liars, c.what)
	}
}

func (p *Pool) accuse(liars []*endpoint, what string) {
	for _, e := range liars {
		p.blame(e, contradiction("%s: most endpoints say otherwise", what))
	}
}

// missed is how many endpoints beside e are out of rotation, and whether any of them
// has been seen since we began. Who is distrusted, or serves another chain, is not missed.
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

// aloneFor is for how long nobody has borne a word on a subject out, counted from when
// that was wanted.
func (p *Pool) aloneFor(about subject) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.config.Now()
	since, known := p.alone[about]
	if !known {
		since = now
		p.alone[about] = now
	}
	return now.Sub(since)
}

// heardOf notes that somebody has borne out a word on a subject.
func (p *Pool) heardOf(about subject) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.alone, about)
}

// witnesses are the healthy endpoints beside e, those that have come furthest first.
func (p *Pool) witnesses(e *endpoint) []*endpoint {
	return p.ranked(func(other *endpoint) bool { return other != e && p.state(other) == Healthy })
}

// stumbling are those beside e that are out of rotation for failing too often or being
// behind, the best first. They may have a word all the same.
func (p *Pool) stumbling(e *endpoint) []*endpoint {
	return p.ranked(func(other *endpoint) bool {
		state := p.state(other)
		return other != e && (state == Tripped || state == Lagging) && other.wasOurs()
	})
}

// ranked are some of the endpoints, the one with the best score first.
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

// sayOf is what an error of an endpoint says that was asked about a block: nothing, if
// it declines though it has the block, or that it has another at its height.
func (r *Reader) sayOf(ctx context.Context, other *endpoint, block chain.Block, err error) say {
	code, answered := nodeCode(err)
	declined := answered && code != codeInternal && code != codeLimitExceeded
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

// lacksIn says what it means that an endpoint has no receipt of a transaction that is
// said to be in a block: it has the block without the transaction, or another block
// at its height, or it has not come so far, or it keeps no receipts.
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
