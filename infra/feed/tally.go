package feed

import (
	"context"
	"sync"
	"time"

	"github.com/tempo-watchtower/watchtower/domain/event"
)

// item is an event on its way through a lane.
type item struct {
	event.Recorded

	done bool // of the tally
}

// tally knows which events are under way, in the order of the log, and so up to where
// everything is done. It holds a bounded number: one event that is not done for long
// holds up the reader in the end, however many have been done behind it.
type tally struct {
	mu      sync.Mutex
	under   []*item // from first on: not done, or behind one that is not
	first   int
	most    int
	read    event.Position // up to where the log has been read
	at      event.Position // up to where everything is done
	settled int            // events done since the checkpoint was taken
	enough  int            // of them, to ask for a save
	room    chan struct{}  // told when there is room again
	save    chan struct{}  // told when enough are done
}

func newTally(at event.Position, most, enough int) *tally {
	return &tally{under: make([]*item, 0, 2*most), at: at, read: at, most: most, enough: enough, room: make(chan struct{}, 1), save: make(chan struct{}, 1)}
}

// add takes an event in, when there is room for it.
func (t *tally) add(ctx context.Context, r event.Recorded) (*item, error) {
	i := &item{Recorded: r}
	for !t.tryAdd(i) {
		select {
		case <-t.room:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	return i, nil
}

func (t *tally) tryAdd(i *item) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.under)-t.first >= t.most {
		return false
	}
	if len(t.under) == cap(t.under) && t.first > 0 { // use the place of those that have left
		n := copy(t.under, t.under[t.first:])
		clear(t.under[n:])
		t.under, t.first = t.under[:n], 0
	}
	t.under = append(t.under, i)
	return true
}

// upto notes that nothing up to a position is still to be added.
func (t *tally) upto(p event.Position) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.read = p
	if t.first == len(t.under) {
		t.at = p
	}
}

// settle notes that an event is done.
func (t *tally) settle(i *item) {
	t.mu.Lock()
	defer t.mu.Unlock()
	i.done = true
	t.settled++
	if t.settled >= t.enough {
		tell(t.save)
	}
	if t.under[t.first] != i {
		return
	}
	for t.first < len(t.under) && t.under[t.first].done {
		t.at = t.under[t.first].Position
		t.under[t.first] = nil
		t.first++
	}
	if t.first == len(t.under) {
		t.under, t.first = t.under[:0], 0
		t.at = max(t.at, t.read)
	}
	tell(t.room)
}

// tell wakes whoever waits, or the next who will.
func tell(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// checkpoint is the position up to which everything is done.
func (t *tally) checkpoint() event.Position {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.settled = 0
	return t.at
}

// underWay is how many events are held, and when the oldest of them was recorded.
func (t *tally) underWay() (n int, oldest time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.first < len(t.under) {
		oldest = t.under[t.first].At
	}
	return len(t.under) - t.first, oldest
}
