package guard

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/tempo-watchtower/watchtower/domain/fair"
	"github.com/tempo-watchtower/watchtower/eventlog"
	"github.com/tempo-watchtower/watchtower/eventlog/handler"
)

// Bounds of one round. A purpose of a budget's command has at most 900 bytes in the log: so an append
// stays below the 1 MiB that EventStoreDB takes.
const (
	roundCommands = eventlog.MaxAppend
	roundWeight   = 500
)

// ask is a call that waits: for the state, or for the answer to its command.
type ask[S, C any] struct {
	command *handler.Asked[C]
	since   time.Time // without a command: the oldest state that will do; zero: a state read after the call
	now     time.Time // of the call

	head chan struct{} // closed once the caller is at the head of the line
	done chan struct{} // closed once state and err are set

	state S
	err   error
	left  bool // the caller has returned
	taken bool // it is in the round under way
}

func (a *ask[S, C]) answer(state S, err error) {
	a.state, a.err = state, err
	close(a.done)
}

func (a *ask[S, C]) answered() bool {
	select {
	case <-a.done:
		return true
	default:
		return false
	}
}

// line is a line of calls. The call at its head carries out rounds until it has its own answer, and
// then leaves its place to another call. So the line needs no goroutine of its own.
type line[S, C any] struct {
	// of returns who a command takes turns with others for; nil: all are one.
	of func(C) string
	// weight is a command's share of a round, see roundWeight; nil: all have none.
	weight func(C) int

	mu      sync.Mutex
	waiting []*ask[S, C]
	working bool   // a call is at the head
	turn    string // of the last command that was taken
}

// join waits in the line for an answer, at most until ctx ends. round answers at least the first of
// the calls that it is given, unless it fails. Only the call at the head calls it.
func (l *line[S, C]) join(ctx context.Context, a *ask[S, C], round func(context.Context, []*ask[S, C]) error) (S, error) {
	a.head, a.done = make(chan struct{}), make(chan struct{})
	l.mu.Lock()
	l.waiting = append(l.waiting, a)
	if !l.working {
		l.working = true
		close(a.head)
	}
	l.mu.Unlock()
	select {
	case <-a.done:
	case <-a.head:
	case <-ctx.Done():
	}
	// Several may be so at once, and select chooses by chance: a simulation is to run the same again.
	switch {
	case a.answered():
	case ctx.Err() != nil:
		l.leave(a)
		var none S
		return none, ctx.Err()
	default:
		l.work(ctx, a, round)
	}
	return a.state, a.err
}

// work carries out rounds until a is answered or ctx ends.
func (l *line[S, C]) work(ctx context.Context, a *ask[S, C], round func(context.Context, []*ask[S, C]) error) {
	var some []*ask[S, C]
	defer func() { l.pass(a, some) }() // after a panic too: the others go on
	for !a.answered() {
		some = l.take()
		err := round(ctx, some)
		if ctx.Err() != nil && !a.answered() {
			a.err = ctx.Err() // only its own: the others' time is not over
			return
		}
		if err != nil && ctx.Err() == nil {
			for _, a := range unanswered(some) {
				var none S
				a.answer(none, err)
			}
		}
		l.back(some)
		some = nil
	}
}

func unanswered[S, C any](all []*ask[S, C]) (some []*ask[S, C]) {
	for _, a := range all {
		if !a.answered() {
			some = append(some, a)
		}
	}
	return some
}

// take removes the calls of the next round from the line: all that only read, and commands by turns.
// Only the call at the head uses it.
func (l *line[S, C]) take() (some []*ask[S, C]) {
	l.mu.Lock()
	defer l.mu.Unlock()
	commands := map[string][]*ask[S, C]{}
	for _, a := range l.waiting {
		switch {
		case a.command == nil:
			some = append(some, a)
		case l.of == nil:
			commands[""] = append(commands[""], a)
		default:
			by := l.of(a.command.Command)
			commands[by] = append(commands[by], a)
		}
	}
	weight := 0
	for i, a := range fair.Deal(l.turn, roundCommands, commands) {
		if l.weight != nil {
			weight += l.weight(a.command.Command)
		}
		if i > 0 && weight > roundWeight {
			break
		}
		some = append(some, a)
		if l.of != nil {
			l.turn = l.of(a.command.Command)
		}
	}
	for _, a := range some {
		a.taken = true
	}
	l.waiting = slices.DeleteFunc(l.waiting, func(a *ask[S, C]) bool { return a.taken })
	return some
}

// back puts those without an answer back at their places in the line.
func (l *line[S, C]) back(some []*ask[S, C]) {
	l.mu.Lock()
	defer l.mu.Unlock()
	some = slices.DeleteFunc(unanswered(some), func(a *ask[S, C]) bool { return a.left })
	for _, a := range some {
		a.taken = false
	}
	l.waiting = append(some, l.waiting...)
}

// pass leaves the head to another call.
func (l *line[S, C]) pass(a *ask[S, C], some []*ask[S, C]) {
	l.back(some)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.waiting = slices.DeleteFunc(l.waiting, func(b *ask[S, C]) bool { return b == a })
	l.next()
}

// next gives the head to the first call that waits.
func (l *line[S, C]) next() {
	if l.working = len(l.waiting) > 0; l.working {
		close(l.waiting[0].head)
	}
}

// leave removes a call whose time is over. A command that is under way may have its effect.
func (l *line[S, C]) leave(a *ask[S, C]) {
	l.mu.Lock()
	defer l.mu.Unlock()
	a.left = true
	l.waiting = slices.DeleteFunc(l.waiting, func(b *ask[S, C]) bool { return a == b })
	select {
	case <-a.head:
		l.next()
	default:
	}
}
