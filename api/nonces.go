package api

import (
	"context"
	"errors"

	"github.com/tempo-watchtower/watchtower/commands"
)

const (
	// noncePlaces is the number of reads of the next free nonce, of all clients, at once. They use
	// the due queue's connections, which leases need too: the embedded queue has four for readers.
	noncePlaces = 2
	// nonceShare is the number of them of one client.
	nonceShare = 1
	// nonceQueue is the number of one client's calls that wait for a place.
	nonceQueue = 64
	// nonceUnit is the number of nonces passed by such a read that count as one request.
	nonceUnit = 100
)

// newNonces returns the places of reads of the next free nonce.
func newNonces() *Places { return commands.NewPlaces[holder](noncePlaces, nonceShare, nonceQueue) }

// nextFree has read find the next free nonce of a sequence, in a place for that. If too many calls of the request's client wait for a place, it refuses ([ErrRateLimited]).
func (on *exchange) nextFree(ctx context.Context, read func(ctx context.Context) (uint64, error)) (uint64, error) {
	leave, err := on.api.nonces.Enter(ctx, on.holder())
	if errors.Is(err, commands.ErrTooManyWait) {
		return 0, ErrRateLimited.Because("at most %d calls of one client may wait for the next free nonce", nonceQueue)
	}
	if err != nil {
		return 0, err
	}
	defer leave()
	return read(ctx)
}

// nonceUnits returns the charge for a read that passed the nonces from from to next: at most the
// client's burst.
func (on *exchange) nonceUnits(from, next uint64) int {
	if next <= from {
		return 0
	}
	units := (next-from-1)/nonceUnit + 1
	return int(min(units, uint64(max(on.payer.rate.Burst, 0))))
}
