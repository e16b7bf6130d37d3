package intake

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/relay/intent"
	"github.com/tempo-watchtower/watchtower/eventlog"
)

// Repeats accepts the requests of wallets. A wallet repeats a request whose answer was lost, and
// most cannot give it an idempotency key. So a request without a key that has the same effect as
// the client's newest one is that request, as long as [intent.State.TakesRepeats] says so.
//
// The keys of such requests count the requests of the same effect: rpc:, the effect's digest, and a
// number from 1. Nothing but the intents' streams remembers them, so every replica finds the same
// newest intent, also after a restart. Replicas that are asked at once find the same next
// number, and meet in its stream, where one of them creates the intent. No clock divides the
// requests into periods, so there is no border at which two replicas could create one each.
type Repeats struct {
	Desk *Desk
	// Window is how long a request is remembered: see [intent.State.TakesRepeats].
	Window time.Duration

	mu     sync.Mutex
	newest map[chain.Hash]uint64 // numbers that are known to be taken, by effect: where to begin to look
}

// newestMax is the most entries of newest. Without an entry, looking takes a few reads more.
const newestMax = 1 << 14

// keyPrefix begins the idempotency keys of requests that have no key of their own.
const keyPrefix = "rpc:"

// Create accepts a request. If its key is empty, it may repeat an earlier request. A request under
// a key that is in use is known if it has the same effect, also with other gas and fees; otherwise
// the error is [intent.ErrDiffers].
func (p *Repeats) Create(ctx context.Context, r intent.Request, meta eventlog.Meta) Answer {
	if r.Key != "" {
		return p.create(ctx, r, meta)
	}
	read := 0
	a := p.repeat(ctx, r, meta, &read)
	a.Read += read
	return a
}

func (p *Repeats) repeat(ctx context.Context, r intent.Request, meta eventlog.Meta, read *int) Answer {
	effect := r.Effect().Digest()
	key := func(n uint64) string { return fmt.Sprintf("%s%x:%d", keyPrefix, effect[:], n) }
	taken := func(n uint64) (bool, error) { return p.exists(ctx, intent.ID(r.Client, r.From, key(n)), read) }
	newest, err := last(p.known(effect), taken)
	if err != nil {
		return Answer{Err: err}
	}
	if newest > 0 {
		known, err := p.Desk.load(ctx, &r.Client, intent.ID(r.Client, r.From, key(newest)), read)
		if err != nil {
			return Answer{Err: err}
		}
		p.learn(effect, newest)
		same := known.State.Requested.Request.Effect().Digest() == effect // a client may use such a key for something else
		if same && known.State.TakesRepeats(p.Desk.Now(), p.Window) {
			a := Answer{State: known.State, Version: known.Version, Known: true}
			if p.Desk.Told != nil {
				p.Desk.Told(a)
			}
			return a
		}
	}
	r.Key = key(newest + 1)
	a := p.create(ctx, r, meta)
	if a.Err == nil {
		p.learn(effect, newest+1)
	}
	return a
}

// create creates an intent under its key, or returns the intent of the same effect that has the key.
func (p *Repeats) create(ctx context.Context, r intent.Request, meta eventlog.Meta) Answer {
	a := p.Desk.Create(ctx, []intent.Request{r}, meta)[0]
	if !errors.Is(a.Err, intent.ErrDiffers) {
		return a
	}
	known, err := p.Desk.load(ctx, &r.Client, r.ID(), &a.Read)
	switch {
	case err != nil:
		return Answer{Read: a.Read, Err: err}
	case known.State.Requested.Request.Effect().Digest() != r.Effect().Digest():
		return a
	}
	return Answer{State: known.State, Version: known.Version, Known: true, Read: a.Read}
}

// exists reports whether there is an intent. It reads its first event at most.
func (p *Repeats) exists(ctx context.Context, id chain.IntentID, read *int) (bool, error) {
	for recorded, err := range p.Desk.Intents.Store.ReadStream(ctx, intent.Stream(id), 0) {
		if err != nil {
			return false, fmt.Errorf("read %s: %w", intent.Stream(id), err)
		}
		*read += len(recorded.Data)
		return true, nil
	}
	return false, nil
}

// last returns the highest number that is taken, if all below it are; 0 if none is. known is taken, or
// 0. It looks at about twice as many numbers as the distance to known has binary digits.
func last(known uint64, taken func(n uint64) (bool, error)) (uint64, error) {
	low, step := known, uint64(1)
	for { // low is taken; find a number above it that is not
		is, err := taken(low + step)
		if err != nil {
			return 0, err
		}
		if !is {
			break
		}
		low, step = low+step, 2*step
	}
	for high := low + step; high-low > 1; {
		middle := low + (high-low)/2
		is, err := taken(middle)
		switch {
		case err != nil:
			return 0, err
		case is:
			low = middle
		default:
			high = middle
		}
	}
	return low, nil
}

// known returns a number that is taken, or 0.
func (p *Repeats) known(effect chain.Hash) uint64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.newest[effect]
}

func (p *Repeats) learn(effect chain.Hash, n uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.newest == nil || len(p.newest) >= newestMax {
		p.newest = map[chain.Hash]uint64{}
	}
	p.newest[effect] = max(p.newest[effect], n)
}
