package grouping

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/tempo-watchtower/watchtower/domain/event"
	"github.com/tempo-watchtower/watchtower/domain/tx"
)

// Steps returns a function that runs single steps of a verifier, with a memory of their
// own.
func (v *Verifier) Steps() func(context.Context) error {
	return (&round{Verifier: v, waiting: newWaiting()}).step
}

const ClaimsMax = claimsMax

// TakeInTurn takes claims, due at these offsets from a time, until none is left, and names
// them by client and place.
func TakeInTurn(at time.Time, limit int, clients map[string][]time.Duration) string {
	w := newWaiting()
	for client, all := range clients {
		for i, d := range all {
			w.add(&claim{Claim: tx.Claim{Position: event.Position(i)}, client: client, until: at.Add(d)})
		}
	}
	var order []string
	for {
		var names []string
		for _, c := range w.take(at, limit) {
			names = append(names, fmt.Sprint(c.client, c.Position))
		}
		order = append(order, strings.Join(names, " "))
		if len(names) == 0 {
			return strings.Join(order, "|")
		}
	}
}
