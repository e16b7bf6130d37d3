package feed

import (
	"context"
	"sync"
	"time"

	"github.com/tempo-watchtower/watchtower/eventlog"
)

// item is an event in a lane.
type item struct {
	eventlog.Recorded

	done bool // owned by the tally
}

// tally tracks the events in progress, in log order, and the position up to which all are done.
// Its size is bounded: a single unfinished event blocks the reader in the end, however many
// events after it are done.
type tally struct {
	mu      sync.Mutex
	under   []*item // from first on: not done, or behind an event that is not
	first   int
	most    int
	read    eventlog.Position // the log has been read up to here
	at      eventlog.Position // every event up to here is done
	settled int               // events done since the last checkpoint
	enough  int               // this many ask for a save
	room    chan struct{}     // signalled when there is room again
	save    chan struct{}     // signalled when enough are done
}

func newTally(at eventlog.Position, most, enough int) *tally {
	return &tally{under: make([]*item, 0, 2*most), at: at, read: at, most: most, enough: enough, room: make(chan struct{}, 1), save: make(chan struct{}, 1)}
}

// add adds an event once there is room for it.
func (t *tally) add(ctx context.Context, r eventlog.Recorded) (*item, error) {
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
	if len(t.under) == cap(t.under) && t.first > 0 { // reuse the places of removed items
		n := copy(t.under, t.under[t.first:])
		clear(t.under[n:])
		t.under, t.first = t.under[:n], 0
	}
	t.under = append(t.under, i)
	return true
}

// upto records that all events up to a position were added.
func (t *tally) upto(p eventlog.Position) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.read = p
	if t.first == len(t.under) {
		t.at = p
	}
}

// settle records that an event is done.
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

// tell wakes the waiting receiver, or the next one.
func tell(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// checkpoint is the position up to which every event is done.
func (t *tally) checkpoint() eventlog.Position {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.settled = 0
	return t.at
}

// underWay returns the number of events held, and when the oldest of them was recorded.
func (t *tally) underWay() (n int, oldest time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.first < len(t.under) {
		oldest = t.under[t.first].At
	}
	return len(t.under) - t.first, oldest
}
