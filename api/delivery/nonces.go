package delivery

import (
	"context"
	"errors"

	"github.com/tempo-watchtower/watchtower/api/rest"
	"github.com/tempo-watchtower/watchtower/commands"
)

const (
	// noncePlaces is the number of queries for the next free nonce, or for how far the due queue and
	// the grouper have read the log, of all clients, at once. They use the due queue's connections,
	// which leases need too: the embedded queue has four for readers.
	noncePlaces = 2
	// nonceShare is the number of them of one client.
	nonceShare = 1
	// nonceQueue is the number of one client's calls that wait for a place.
	nonceQueue = 256
	// nonceUnit is the number of nonces passed by such a read that count as one request.
	nonceUnit = 100
)

// newNonces returns the places of queries that clients cause on the due queue's connections.
func newNonces() *rest.Places { return rest.NewPlaces(noncePlaces, nonceShare, nonceQueue) }

// noncePlace waits for a place for one query of a read of the next free nonce. A read gives its
// place back between its queries: it may wait long until the queue has caught up with the log. If
// too many calls of the request's client wait for a place, it refuses ([rest.ErrRateLimited]).
func (a *api) noncePlace(ctx context.Context, r rest.Request) (leave func(), err error) {
	leave, err = r.Enter(ctx, a.nonces)
	if errors.Is(err, commands.ErrTooManyWait) {
		return nil, rest.ErrRateLimited.Because("at most %d queries of the due queue of one client may wait", nonceQueue)
	}
	return leave, err
}

// queuePlace is noncePlace for a request that can be told when to retry.
func (a *api) queuePlace(ctx context.Context, r rest.Request) (leave func(), err error) {
	leave, err = a.noncePlace(ctx, r)
	if err == nil {
		return leave, nil
	}
	if errors.Is(err, rest.ErrRateLimited) {
		r.RetrySoon()
	}
	return nil, err
}

// nonceUnits returns the charge for a read that passed the nonces from from to next: at most the
// client's burst.
func nonceUnits(r rest.Request, from, next uint64) int {
	if next <= from {
		return 0
	}
	units := (next-from-1)/nonceUnit + 1
	return int(min(units, uint64(max(r.Burst(), 0))))
}
