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

// agenda is the schedule of a world's events, in order of time. Only its goroutine changes the
// world.
type agenda struct {
	began  time.Time
	rand   *rand.Rand
	trace  *trace
	coming comings
	count  uint64
	steps  int
	bell   chan struct{} // signals that a call was parked

	mu      sync.Mutex
	arrived []*call
}

// trace is a hash of the world's whole history.
type trace struct {
	sum uint64
	out io.Writer // writes the history as text; nil: none
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
	t.sum = (t.sum ^ h.Sum64()) * 0x100000001b3 // as FNV-1a hashes a byte
}

// coming is an event scheduled for a time.
type coming struct {
	at    time.Duration // since the world's start
	order uint64        // order among events of the same time
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

// now is the time since the world's start.
func (a *agenda) now() time.Duration { return time.Since(a.began) }

// after schedules do after d plus some random nanoseconds, so that two events rarely have the
// same time.
func (a *agenda) after(d time.Duration, what string, do func()) {
	a.count++
	at := a.now() + max(d, 0) + time.Duration(a.rand.IntN(int(spread)))
	heap.Push(&a.coming, &coming{at, a.count, what, do})
}

// spread is the maximum random addition to an event's time.
const spread = 10 * time.Microsecond

// chance is true with probability p.
func (a *agenda) chance(p float64) bool { return p > 0 && a.rand.Float64() < p }

// between draws a duration.
func (a *agenda) between(low, high time.Duration) time.Duration {
	if high <= low {
		return low
	}
	return low + time.Duration(a.rand.Int64N(int64(high-low)))
}

// run executes the events up to a time. When all goroutines wait it calls settle, which admits
// the calls parked meanwhile.
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

// park hands a call over to the world. It is safe for concurrent use.
func (a *agenda) park(c *call) {
	a.mu.Lock()
	a.arrived = append(a.arrived, c)
	a.mu.Unlock()
	select {
	case a.bell <- struct{}{}:
	default:
	}
}

// take returns the parked calls in an order that does not depend on the goroutines' timing,
// except for identical calls.
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
