package simulation

import (
	"cmp"
	"container/heap"
	"fmt"
	"hash/fnv"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing/synctest"
	"time"
)

// agenda is what happens in a world, in order of time. Its goroutine is the only one
// that changes the world.
type agenda struct {
	began  time.Time
	rand   *rand.Rand
	trace  *trace
	coming comings
	count  uint64
	steps  int
	bell   chan struct{} // somebody has parked a call

	mu      sync.Mutex
	arrived []*call
}

// trace is the hash of everything that has happened.
type trace struct {
	sum uint64
	out io.Writer // nil: it is not written down
}

func (t *trace) add(parts ...string) {
	h := fnv.New64a()
	for _, p := range parts {
		h.Write([]byte(p)) //nolint:errcheck // a hash never fails
		h.Write([]byte{0}) //nolint:errcheck // likewise
	}
	if t.out != nil {
		fmt.Fprintln(t.out, strings.Join(parts, " | ")) //nolint:errcheck // for people
	}
	t.sum = (t.sum ^ h.Sum64()) * 0x100000001b3 // as FNV-1a takes in a byte
}

// coming is something that happens at a time.
type coming struct {
	at    time.Duration // since the world began
	order uint64        // tells apart what happens at one time
	what  string
	do    func()
}

type comings []*coming

func (c comings) Len() int { return len(c) }
func (c comings) Less(i, j int) bool {
	return cmp.Or(cmp.Compare(c[i].at, c[j].at), cmp.Compare(c[i].order, c[j].order)) < 0
}
func (c comings) Swap(i, j int) { c[i], c[j] = c[j], c[i] }
func (c *comings) Push(x any)   { *c = append(*c, x.(*coming)) }
func (c *comings) Pop() any {
	last := len(*c) - 1
	x := (*c)[last]
	*c = slices.Delete(*c, last, last+1)
	return x
}

func newAgenda(seed uint64) *agenda {
	return &agenda{
		began: time.Now(), rand: rand.New(rand.NewPCG(seed, 0x5eed)), trace: &trace{sum: seed},
		bell: make(chan struct{}, 1),
	}
}

// now is how long the world has been there.
func (a *agenda) now() time.Duration { return time.Since(a.began) }

// after has something happen when a time has passed, and some nanoseconds, so that
// hardly ever two things happen at once.
func (a *agenda) after(d time.Duration, what string, do func()) {
	a.count++
	at := a.now() + max(d, 0) + time.Duration(a.rand.IntN(int(spread)))
	heap.Push(&a.coming, &coming{at, a.count, what, do})
}

// spread is by how much at most the time of what happens is blurred.
const spread = 10 * time.Microsecond

// chance is true with a probability.
func (a *agenda) chance(p float64) bool { return p > 0 && a.rand.Float64() < p }

// between draws a duration.
func (a *agenda) between(low, high time.Duration) time.Duration {
	if high <= low {
		return low
	}
	return low + time.Duration(a.rand.Int64N(int64(high-low)))
}

// run lets everything happen up to a time. settle is called whenever all wait, and
// admits what has been parked meanwhile.
func (a *agenda) run(until time.Duration, settle func(arrived []*call), over func() bool) {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		synctest.Wait()
		settle(a.take())
		if over() {
			return
		}
		now := a.now()
		wait := until - now
		if len(a.coming) > 0 {
			next := a.coming[0]
			if next.at <= now {
				heap.Pop(&a.coming)
				a.steps++
				if next.what != "" {
					a.trace.add(next.what, next.at.String())
				}
				next.do()
				continue
			}
			wait = min(wait, next.at-now)
		}
		if wait <= 0 {
			return
		}
		timer.Reset(wait)
		select {
		case <-a.bell:
		case <-timer.C:
		}
	}
}

// park leaves a call to the world. It may be called from anywhere.
func (a *agenda) park(c *call) {
	a.mu.Lock()
	a.arrived = append(a.arrived, c)
	a.mu.Unlock()
	select {
	case a.bell <- struct{}{}:
	default:
	}
}

// take hands over what has been parked, in an order that does not depend on which
// goroutine came first, unless two ask the very same.
func (a *agenda) take() []*call {
	a.mu.Lock()
	defer a.mu.Unlock()
	arrived := a.arrived
	a.arrived = nil
	slices.SortStableFunc(arrived, func(x, y *call) int {
		return cmp.Or(cmp.Compare(x.by, y.by), cmp.Compare(x.name, y.name))
	})
	if a.trace.out != nil {
		for _, c := range arrived {
			fmt.Fprintln(a.trace.out, "  asked:", c.by, c.name, a.now()) //nolint:errcheck // for people
		}
	}
	return arrived
}
