package api

import (
	"context"
	"errors"
	"net/http"

	"github.com/tempo-watchtower/watchtower/commands"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/eventlog"
	"github.com/tempo-watchtower/watchtower/projections"
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
	// stepUnits is the charge for each step after the first, which the request itself pays for.
	// A step reads a thousand index entries; streams pay one unit for a hundred events.
	stepUnits = 10
)

// Places bound how many reads of one kind run at once, of all clients and of each.
type Places = commands.Places[holder]

// NewLists returns the places of lists. The APIs of a process share them: they read one database.
func NewLists() *Places { return commands.NewPlaces[holder](listPlaces, listShare, listQueue) }

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
		if rest == 0 || steps == stepsMax || !r.on.affords(r.w, stepUnits) {
			return rows, rest, nil
		}
		before = rest
	}
}

// countedMax is the most rows of a client that are counted to charge for a request.
const countedMax = 20_000

// ChargeCounted counts the rows that a request concerns, in a list place, and charges one unit
// for each, up to the client's burst. count counts up to most.
func (r Request) ChargeCounted(ctx context.Context, count func(ctx context.Context, most int) (int, error)) (n int, err error) {
	leave, err := r.on.enterList(ctx, r.w)
	if err != nil {
		return 0, err
	}
	defer leave()
	most := countedMax
	if !r.on.unlimited() {
		most = min(most, r.on.payer.rate.Burst)
	}
	if n, err = count(ctx, most); err != nil {
		return 0, err
	}
	return n, r.ChargeUpToBurst(n)
}

// enterGroups waits for a list place, and charges for an answer about a sender's groups, or
// about one of them. It charges one unit for each hundred of the client's own transactions that
// the answer sums up, and never more than the client's burst.
func (a *api) enterGroups(ctx context.Context, w http.ResponseWriter, on *exchange, v viewer, sender chain.Address, groupID *chain.GroupID) (leave func(), err error) {
	if leave, err = on.enterList(ctx, w); err != nil || !v.sums(sender) {
		return leave, err
	}
	n, err := a.Groups.Query.Owned(ctx, sender, groupID, v.members(), countedMax)
	if err == nil {
		err = a.chargeUpTo(w, on, min(max(1, n*stepUnits/projections.StepRows), on.payer.rate.Burst))
	}
	if err != nil {
		leave()
		return nil, err
	}
	return leave, nil
}
