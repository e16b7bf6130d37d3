package rpc

import (
	"context"
	"errors"
	"slices"
	"time"
)

// hearing is the asking of witnesses: the best first, another when one takes longer
// than usual or has nothing to say. When there is nobody left to ask, those who have not
// said yet are asked once more meanwhile: what hangs is often one call, not the endpoint.
type hearing struct {
	pool  *Pool
	ctx   context.Context
	check func(ctx context.Context, other *endpoint) say

	queue []*witness // to be asked, again those at its end
	late  []*witness // who are being asked, the one asked least lately first
	asked int        // calls that have not been answered yet
	said  chan said
	pause time.Duration // until the next is asked

	agreed, differed []*endpoint
	held             map[*endpoint]bool // whose last word was saysHeld
	declined         int
}

// witness is an endpoint that is asked in a hearing.
type witness struct {
	*endpoint
	stumbles bool // it is out of rotation
	asked    int  // calls
	waiting  int  // calls that have not been answered yet
	later    int  // times that it could not say yet
	spoken   bool // it has said all that it has to say
}

const (
	// askedMax is how often at most a witness is asked that has not answered, or is out of
	// rotation.
	askedMax = 8
	// stumblePause is after how long another is asked, or the same again, if it is out of
	// rotation. Its usual latency says nothing. No deadline is a multiple of it: two things
	// that are due at the same instant happen in any order, and here they depend on it.
	stumblePause = 211 * time.Millisecond
)

// errSilent means that a witness has not answered while it could be waited for.
var errSilent = errors.New("no answer in " + agreeWithin.String())

type said struct {
	by  *witness
	say say
}

func (p *Pool) hearing(ctx context.Context, of []*endpoint, check func(ctx context.Context, other *endpoint) say) *hearing {
	h := &hearing{pool: p, ctx: ctx, check: check, said: make(chan said, askedMax*len(of)), held: map[*endpoint]bool{}}
	for _, e := range of {
		h.queue = append(h.queue, &witness{endpoint: e, stumbles: p.state(e) != Healthy})
	}
	return h
}

// What a hearing waits for.
type happening int

const (
	hearingSaid happening = iota
	hearingAbandoned
	hearingLate
	hearingPaused // long enough
)

// await waits for the next thing that happens. Of several that have happened it takes
// them in this order, and not by chance: so that the same world has the same history.
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

// open reports whether somebody may still say something.
func (h *hearing) open() bool { return h.asked > 0 || len(h.queue) > 0 }

// callNext asks the next witness, who may answer when the hearing is over.
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
	if h.pause = h.pool.hedge(w.endpoint); w.stumbles {
		h.pause = stumblePause
	}
	own, end := h.pool.outlive(h.ctx)
	h.pool.running.Go(func() {
		defer end()
		h.said <- said{w, h.check(own, w.endpoint)}
	})
}

// next is whom to ask: who is in the queue, or else who has not answered yet.
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

// again puts a witness back that could not say yet, if it may be asked once more.
func (h *hearing) again(w *witness) {
	h.late = slices.DeleteFunc(h.late, func(other *witness) bool { return other == w })
	if !w.stumbles || w.asked < askedMax {
		h.queue = append(h.queue, w)
	}
}

// dismiss ends the waiting. It takes it that those keep no receipts who have had the block
// with the transaction and no receipt all the time: they bear the block out, and are not
// waited for again for a while. Those that have not answered at all are blamed, so that
// nobody waits for them for ever.
func (h *hearing) dismiss() {
	for _, w := range h.late {
		if w.later == 0 && w.waiting == w.asked && !w.stumbles {
			h.pool.blame(w.endpoint, &Unreachable{Endpoint: w.name, Err: errSilent})
		}
	}
	for other := range h.held {
		h.declined++
		other.bare.Store(h.pool.config.Now().Add(bareFor).UnixNano())
	}
}
