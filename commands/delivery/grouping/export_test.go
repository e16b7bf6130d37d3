package grouping

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/tempo-watchtower/watchtower/domain/delivery/group"
	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
	"github.com/tempo-watchtower/watchtower/eventlog"
	"github.com/tempo-watchtower/watchtower/eventlog/handler"
)

// Steps returns a function that runs single steps of a verifier, with a memory of their
// own, and waits for their questions.
func (v *Verifier) Steps() func(context.Context) error {
	r := newRound(v)
	return func(ctx context.Context) error {
		err := r.step(ctx)
		r.asking.Wait()
		return errors.Join(err, r.trouble.take())
	}
}

const (
	ClaimsMax  = claimsMax
	KeysMax    = keysMax
	ClientsMax = clientsMax
)

// TakeInTurn takes claims, due at these offsets from a time, until none is left, and names
// them by client and place.
func TakeInTurn(at time.Time, limit int, clients map[string][]time.Duration) string {
	w := newWaiting(time.Second)
	for client, all := range clients {
		for i, d := range all {
			w.add(&claim{Claim: tx.Claim{Position: eventlog.Position(i)}, client: client, until: at.Add(d)})
		}
	}
	var order []string
	for {
		var names []string
		for _, q := range w.take(at, limit) {
			for _, c := range q.claims {
				names = append(names, fmt.Sprint(q.client, c.Position))
			}
			w.finish(q.client, nil, true, at)
		}
		order = append(order, strings.Join(names, " "))
		if len(names) == 0 {
			return strings.Join(order, "|")
		}
	}
}

// Memory is the grouper's memory, with groups of given sizes.
type Memory struct{ of *memory }

func NewMemory(most int) Memory { return Memory{newMemory(most)} }

// SizeOf returns the size of a remembered group.
func SizeOf(members int) int { return members + entrySize }

func (m Memory) Begin(ids []group.ID) { m.of.begin(ids) }

func (m Memory) Size() int { return m.of.size }

// Use recalls a group, and keeps it with as many members. It reports whether the group had to be loaded.
func (m Memory) Use(id group.ID, client string, members int) (load bool) {
	load = m.of.recall(id).result.State.Members == 0
	m.of.keep(id, client, handler.Result[group.State]{State: group.State{Members: members}})
	return load
}

// Groups returns the number of a client's remembered groups.
func (m Memory) Groups(client string) int {
	if of := m.of.clients[client]; of != nil {
		return of.recent.Len()
	}
	return 0
}
