package worker

import (
	"context"
	"slices"
	"sync"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/fair"
	"github.com/tempo-watchtower/watchtower/domain/relay/intent"
	"github.com/tempo-watchtower/watchtower/eventlog"
)

// Line is a [Queue] whose changes take turns in this process, before they take a connection to the
// database. A store makes these changes one after the other, and a client may ask for hundreds of
// lanes: their claims would hold all connections while they wait for each other.
//
// The feeder's changes and returned intents go first. Claims of lanes that all clients share go
// second. Claims of OnlyAsked lanes go last, but at least every [askedEvery]th turn is theirs while
// they wait; the lanes' clients take turns.
type Line struct {
	Queue

	mu      sync.Mutex
	running int // calls under way
	asked   int // claims of OnlyAsked lanes among them
	waiting [rankAsked][]*waiting
	asking  fair.Queue[*waiting] // claims of OnlyAsked lanes
	passed  int                  // turns of others while OnlyAsked lanes waited
}

const (
	// lineMost bounds the calls under way: one call waits at the store while another is made.
	lineMost = 2
	// askedMost bounds the claims of OnlyAsked lanes among them.
	askedMost  = 1
	askedEvery = 4
)

// rank orders the calls that wait; the lowest goes first.
type rank int

const (
	rankChange rank = iota
	rankShared
	rankAsked
)

// waiting is a call that waits for its turn.
type waiting struct {
	rank  rank
	turn  chan struct{} // closed when the turn begins
	begun bool
}

// InLine makes the changes of a queue take turns.
func InLine(q Queue) *Line { return &Line{Queue: q} }

// Apply is Apply of the queue, in its turn.
func (l *Line) Apply(ctx context.Context, reader string, from, to eventlog.Position, changes []intent.Change) error {
	return l.inTurn(ctx, rankChange, "", func() error { return l.Queue.Apply(ctx, reader, from, to, changes) })
}

// Claim is Claim of the queue, in its turn.
func (l *Line) Claim(ctx context.Context, c intent.Claim) (claimed []intent.Claimed, err error) {
	at := rankShared
	if c.OnlyAsked {
		at = rankAsked
	}
	err = l.inTurn(ctx, at, c.Client, func() (err error) {
		claimed, err = l.Queue.Claim(ctx, c)
		return err
	})
	return claimed, err
}

// Return is Return of the queue, in its turn.
func (l *Line) Return(ctx context.Context, holder string, ids []chain.IntentID) error {
	return l.inTurn(ctx, rankChange, "", func() error { return l.Queue.Return(ctx, holder, ids) })
}

// inTurn waits for a turn, and makes a call. client is that of an OnlyAsked lane.
func (l *Line) inTurn(ctx context.Context, at rank, client string, call func() error) error {
	w := &waiting{rank: at, turn: make(chan struct{})}
	l.mu.Lock()
	if at == rankAsked {
		l.asking.Add(client, w)
	} else {
		l.waiting[at] = append(l.waiting[at], w)
	}
	l.admit()
	l.mu.Unlock()
	defer l.end(w)
	select {
	case <-w.turn:
		return call()
	case <-ctx.Done():
		return ctx.Err()
	}
}

// end ends the turn of a call, or its wait.
func (l *Line) end(w *waiting) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case w.begun:
		l.running--
		if w.rank == rankAsked {
			l.asked--
		}
		l.admit()
	case w.rank == rankAsked:
		l.asking.Keep(func(other *waiting) bool { return other != w })
	default:
		l.waiting[w.rank] = slices.DeleteFunc(l.waiting[w.rank], func(other *waiting) bool { return other == w })
	}
}

// admit begins the turns that may begin now.
func (l *Line) admit() {
	for l.running < lineMost {
		w := l.next()
		if w == nil {
			return
		}
		l.running++
		if w.rank == rankAsked {
			l.asked++
		}
		w.begun = true
		close(w.turn)
	}
}

// next removes the call whose turn it is; nil if there is none.
func (l *Line) next() *waiting {
	mayAsk := !l.asking.Empty() && l.asked < askedMost
	if mayAsk && l.passed >= askedEvery-1 {
		return l.nextAsked()
	}
	for at, all := range l.waiting {
		if len(all) > 0 {
			l.waiting[at] = all[1:]
			if !l.asking.Empty() {
				l.passed++
			}
			return all[0]
		}
	}
	if mayAsk {
		return l.nextAsked()
	}
	return nil
}

// nextAsked removes the next claim of an OnlyAsked lane.
func (l *Line) nextAsked() *waiting {
	l.passed = 0
	w, _ := l.asking.Next()
	return w
}
