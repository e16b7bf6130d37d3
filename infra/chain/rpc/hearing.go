package rpc

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// hearing asks other endpoints to vote on a claim: the best first, another if one takes longer
// than usual or cannot vote. If none is left to ask, endpoints without an answer are asked once
// more meanwhile: often one call hangs, not the endpoint.
type hearing struct {
	pool  *Pool
	ctx   context.Context
	claim claim

	queue []*witness // still to ask; endpoints to ask again are at the end
	late  []*witness // asked and not answered, least recently asked first
	asked int        // calls without an answer yet
	said  chan said
	over  atomic.Bool
	pause time.Duration // until the next call

	agreed, differed []*endpoint
	held             map[*endpoint]bool // endpoints whose last vote was saysHeld
	declined         int
}

// witness is an endpoint that a hearing asks.
type witness struct {
	*endpoint
	stumbles bool // it is out of rotation
	asked    int  // calls so far
	waiting  int  // calls without an answer yet
	later    int  // times that it could not vote yet
	spoken   bool // its vote is final
}

const (
	// askedMax is the most calls to a witness that does not answer or is out of rotation.
	askedMax = 8
	// againPause is the wait before the next call after a repeated call. stumblePause is the
	// wait after a call to an endpoint that is out of rotation, whose usual latency says
	// nothing. The odd numbers keep both from falling together with a deadline: events of the
	// same instant happen in any order, and the result would depend on that order.
	againPause   = 317 * time.Millisecond
	stumblePause = 211 * time.Millisecond
)

type said struct {
	by  *witness
	say say
}

func (p *Pool) hearing(ctx context.Context, of []*endpoint, c claim) *hearing {
	h := &hearing{pool: p, ctx: ctx, claim: c, said: make(chan said, askedMax*len(of)), held: map[*endpoint]bool{}}
	for _, e := range of {
		if p.words.take(borne{c.content, e}, p.config.Now()) {
			h.agreed = append(h.agreed, e)
			continue
		}
		h.queue = append(h.queue, &witness{endpoint: e, stumbles: p.state(e) != Healthy})
	}
	return h
}

// happening is an event that a hearing waits for.
type happening int

const (
	hearingSaid happening = iota
	hearingAbandoned
	hearingLate
	hearingPaused // the pause is over
)

// await waits for the next event. Of several pending events it takes the first in this order,
// not a random one, so that a simulation is reproducible.
func (h *hearing) await(late, next <-chan time.Time) (happening, said) {
	select {
	case heard := <-h.said:
		return hearingSaid, heard
	default:
	}
	select {
	case <-h.ctx.Done():
		return hearingAbandoned, said{}
	default:
	}
	select {
	case <-late:
		return hearingLate, said{}
	default:
	}
	select {
	case heard := <-h.said:
		return hearingSaid, heard
	case <-h.ctx.Done():
		return hearingAbandoned, said{}
	case <-late:
		return hearingLate, said{}
	case <-next:
		return hearingPaused, said{}
	}
}

// hold asks until the claim is decided, nobody is left to vote, or agreeWithin is over.
func (h *hearing) hold(need int) {
	late := time.NewTimer(agreeWithin)
	defer late.Stop()
	next := time.NewTimer(0)
	defer next.Stop()
	for range need - len(h.agreed) {
		h.callNext()
	}
	for h.open() && !h.carried(need) && !h.lost() {
		next.Reset(h.pause)
		switch happened, heard := h.await(late.C, next.C); happened {
		case hearingAbandoned:
			return
		case hearingLate:
			h.dismiss()
			return
		case hearingPaused:
			h.callNext()
		case hearingSaid:
			if h.hear(heard); heard.say == saysYes {
				h.pool.heardOf(h.ctx, h.claim.about)
			}
		}
	}
}

// carried reports whether at least need endpoints agree, and with the claimant more agree than
// differ.
func (h *hearing) carried(need int) bool {
	return len(h.agreed) >= need && len(h.agreed)+1 > len(h.differed)
}

// lost reports whether more differ than agree.
func (h *hearing) lost() bool { return len(h.differed) > len(h.agreed)+1 }

// open reports whether a vote may still arrive.
func (h *hearing) open() bool { return h.asked > 0 || len(h.queue) > 0 }

// callNext asks the next witness. Its answer may arrive after the end of the hearing.
func (h *hearing) callNext() {
	h.pause = agreeWithin
	w := h.next()
	if w == nil {
		return
	}
	h.asked++
	w.asked++
	w.waiting++
	h.late = append(h.late, w)
	switch {
	case w.stumbles:
		h.pause = stumblePause
	case w.asked > 1:
		h.pause = againPause
	default:
		h.pause = h.pool.hedge(w.endpoint)
	}
	own, end := h.pool.outlive(h.ctx)
	h.pool.running.Go(func() {
		defer end()
		says := h.claim.check(own, w.endpoint)
		if says == saysYes && h.over.Load() {
			h.pool.words.add(borne{h.claim.content, w.endpoint}, h.pool.config.Now())
		}
		h.said <- said{w, says}
	})
}

// next is the next witness to ask: from the queue, otherwise one without an answer yet.
func (h *hearing) next() *witness {
	if len(h.queue) > 0 {
		w := h.queue[0]
		h.queue = h.queue[1:]
		return w
	}
	i := slices.IndexFunc(h.late, func(w *witness) bool { return w.asked < askedMax })
	if i < 0 {
		return nil
	}
	w := h.late[i]
	h.late = slices.Delete(h.late, i, i+1)
	return w
}

func (h *hearing) hear(heard said) {
	w := heard.by
	h.asked--
	w.waiting--
	if w.spoken {
		return
	}
	h.pause = 0
	delete(h.held, w.endpoint)
	switch heard.say {
	case saysYes:
		h.agreed = append(h.agreed, w.endpoint)
	case saysNo:
		h.differed = append(h.differed, w.endpoint)
	case saysNothing:
		h.declined++
	case saysLater, saysHeld:
		h.pause = min(agreePause<<min(w.later, agreeDoubles), agreeWithin)
		w.later++
		if heard.say == saysHeld {
			h.held[w.endpoint] = true
		}
		if w.waiting == 0 {
			h.again(w)
		}
		return
	}
	w.spoken = true
	h.late = slices.DeleteFunc(h.late, func(other *witness) bool { return other == w })
}

// again puts a witness that could not vote yet back in the queue, if it may be asked once more.
func (h *hearing) again(w *witness) {
	h.late = slices.DeleteFunc(h.late, func(other *witness) bool { return other == w })
	if !w.stumbles || w.asked < askedMax {
		h.queue = append(h.queue, w)
	}
}

// dismiss counts endpoints that had the block with the transaction, and never its receipt, as
// declined: they store no receipts. They are not waited for again for a while.
func (h *hearing) dismiss() {
	for other := range h.held {
		h.declined++
		if isOwn(h.ctx) { // a client's call may have waited for the client's budget until now
			other.bare.Store(h.pool.config.Now().Add(bareFor).UnixNano())
		}
	}
}

// borne records that an endpoint has confirmed a claim.
type borne struct {
	content string
	by      *endpoint
}

const (
	borneMax = 1024             // confirmations remembered
	borneFor = 10 * time.Second // for this long: the endpoint's branch may be abandoned
)

// words remembers confirmations that arrived after their hearing was over, so that an endpoint
// that always answers late counts the next time. The zero value is ready.
type words struct {
	mu    sync.Mutex
	at    map[borne]time.Time
	order []borne // oldest first
}

func (w *words) add(b borne, now time.Time) {
	if b.content == "" {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.at == nil {
		w.at = map[borne]time.Time{}
	}
	if _, known := w.at[b]; !known {
		w.order = append(w.order, b)
	}
	w.at[b] = now
	if len(w.order) > borneMax {
		delete(w.at, w.order[0])
		w.order = w.order[1:]
	}
}

// take reports whether a confirmation is remembered, and forgets it.
func (w *words) take(b borne, now time.Time) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	at, known := w.at[b]
	if known {
		delete(w.at, b)
		w.order = slices.DeleteFunc(w.order, func(other borne) bool { return other == b })
	}
	return known && now.Sub(at) < borneFor
}
