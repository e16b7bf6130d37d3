package rest

import (
	"context"
	"errors"
	"net/http"

	"github.com/tempo-watchtower/watchtower/commands"
	"github.com/tempo-watchtower/watchtower/eventlog"
)

const (
	// listPlaces is the number of lists, of all clients, that read the database at once. A read
	// model has eight connections, so two or more stay free for reads of single rows.
	listPlaces = 6
	// listShare is the most places that one client can hold.
	listShare = 3
	// listQueue is the number of one client's lists that wait for a place: each holds a
	// connection.
	listQueue = 32
	// stepsMax is the number of steps that a page reads before it ends short.
	stepsMax = 20
	// StepUnits is the charge for each step after the first, which the request itself pays for.
	// A step reads a thousand index entries; streams pay one unit for a hundred events.
	StepUnits = 10
)

// Place waits for one of the places of some kind of work. leave gives it back.
type Place func(ctx context.Context) (leave func(), err error)

// Placed runs a query in a place.
func Placed[T any](ctx context.Context, place Place, query func(context.Context) (T, error)) (result T, err error) {
	leave, err := place(ctx)
	if err != nil {
		return result, err
	}
	defer leave()
	return query(ctx)
}

// Places bound how many reads of one kind run at once, of all clients and of each.
type Places = commands.Places[Holder]

// NewPlaces returns places for reads of one kind: how many of all clients run at once, how many of
// one client, and how many of one client may wait; 0 lets any number wait.
func NewPlaces(all, share, queue int) *Places { return commands.NewPlaces[Holder](all, share, queue) }

// NewLists returns the places of lists. The APIs of a process share them: they read one database.
func NewLists() *Places { return NewPlaces(listPlaces, listShare, listQueue) }

// Enter waits for one of the places, in the name of the request's client. [commands.ErrTooManyWait]
// means that too many reads of the client wait.
func (r Request) Enter(ctx context.Context, of *Places) (leave func(), err error) {
	return of.Enter(ctx, r.on.holder())
}

// EnterList waits for a list place of the request's client. If too many of the client's lists wait, it
// refuses ([ErrRateLimited]).
func (r Request) EnterList(ctx context.Context) (leave func(), err error) {
	return r.on.enterList(ctx, r.w)
}

// enterList waits for a list place of the request's client. If too many of the client's lists
// wait, it refuses ([ErrRateLimited]).
func (on *exchange) enterList(ctx context.Context, w http.ResponseWriter) (leave func(), err error) {
	if leave, err = on.api.Lists.Enter(ctx, on.holder()); errors.Is(err, commands.ErrTooManyWait) {
		retrySoon(w)
		return nil, ErrRateLimited.Because("at most %d list requests of one client may wait", listQueue)
	}
	return leave, err
}

// ReadPage reads a page of at most limit rows, step by step. Each step after the first is
// charged before it is read; a client that cannot pay gets the rows found so far. more is the
// position before which the next page begins; 0 means that there is none. step reads at most
// limit rows before a position, and returns where the next step begins. at returns a row's
// position.
func ReadPage[R any](ctx context.Context, r Request, before eventlog.Position, limit int,
	step func(ctx context.Context, before eventlog.Position, limit int) ([]R, eventlog.Position, error), at func(R) eventlog.Position,
) (rows []R, more eventlog.Position, err error) {
	leave, err := r.on.enterList(ctx, r.w)
	if err != nil {
		return nil, 0, err
	}
	defer leave()
	for steps := 1; ; steps++ {
		found, rest, err := step(ctx, before, limit+1-len(rows))
		if err != nil {
			return nil, 0, err
		}
		if rows = append(rows, found...); len(rows) > limit {
			return rows[:limit], at(rows[limit-1]), nil
		}
		if rest == 0 || steps == stepsMax || !r.on.affords(r.w, StepUnits) {
			return rows, rest, nil
		}
		before = rest
	}
}

// CountedMax is the most rows of a client that are counted to charge for a request.
const CountedMax = 20_000

// ChargeCounted counts the rows that a request concerns, in a list place, and charges one unit
// for each, up to the client's burst. count counts up to most.
func (r Request) ChargeCounted(ctx context.Context, count func(ctx context.Context, most int) (int, error)) (n int, err error) {
	leave, err := r.on.enterList(ctx, r.w)
	if err != nil {
		return 0, err
	}
	defer leave()
	most := CountedMax
	if !r.on.unlimited() {
		most = min(most, r.on.payer.rate.Burst)
	}
	if n, err = count(ctx, most); err != nil {
		return 0, err
	}
	return n, r.ChargeUpToBurst(n)
}
