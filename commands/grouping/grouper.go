// Package grouping makes accepted transactions members of their groups.
//
// A transaction signed by its sender joins at once. A transaction signed by an access key
// only claims its sender. The [Verifier] asks the chain about the key, and the [Grouper]
// lets the transaction join only after the confirmation is recorded.
package grouping

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/tempo-watchtower/watchtower/commands"
	"github.com/tempo-watchtower/watchtower/domain/event"
	"github.com/tempo-watchtower/watchtower/domain/group"
	"github.com/tempo-watchtower/watchtower/domain/tx"
)

// Reader is the name of the grouper's checkpoint and lease.
const Reader = "grouping"

const (
	followMax = 1000 // events per batch
	groupsMax = 128  // groups joined concurrently
	// memberMax is the default of [Grouper.MemberMax].
	memberMax = 250_000
)

// Grouper reads accepted and confirmed transactions, and appends Joined to their groups.
// One replica at a time should run it; a second one would add nothing.
type Grouper struct {
	Store        commands.Store
	Checkpoints  commands.Checkpoints
	Transactions commands.Transactions
	Groups       commands.Groups
	Now          func() time.Time
	// MemberMax bounds the members of the remembered groups together, except the largest group;
	// 0 means 250,000.
	MemberMax int
	// Moved is called with each new checkpoint; may be nil.
	Moved func(at event.Position)
	Log   *slog.Logger

	// known are recent groups. mu guards it.
	mu    sync.Mutex
	known *memory
}

// joining is a transaction that is to join, and the event that causes it.
type joining struct {
	member group.Joined
	cause  event.Recorded
}

// Run groups transactions until ctx ends or the store fails.
func (g *Grouper) Run(ctx context.Context) error {
	g.forget() // another replica may have changed the groups meanwhile
	f := commands.Follower{
		Store: g.Store, Checkpoints: g.Checkpoints, Reader: Reader, Max: followMax, Moved: g.Moved,
		Filter: readFilter(),
	}
	return f.Run(ctx, g.handle)
}

// readFilter selects the events that the grouper reads.
func readFilter() event.Filter {
	return event.Filter{Names: []string{"tx.accepted.", "tx.group_confirmed."}}
}

func (g *Grouper) handle(ctx context.Context, events []event.Recorded) error {
	joinings := map[group.ID][]joining{}
	for _, e := range events {
		j, ok, err := g.joining(ctx, e)
		if err != nil {
			// Skipping an event would silently leave a transaction out of its group.
			return &event.Stuck{At: e.Position, Err: err}
		}
		if ok {
			id := group.ID{Chain: j.member.Chain, Sender: j.member.Sender, Group: j.member.Group}
			joinings[id] = append(joinings[id], j)
		}
	}
	ids := group.InOrder(joinings)
	return commands.Each(len(ids), groupsMax, func(i int) error { return g.join(ctx, ids[i], joinings[ids[i]]) })
}

// joining returns the transaction that joins because of an event; ok is false if there is
// none.
func (g *Grouper) joining(ctx context.Context, recorded event.Recorded) (j joining, ok bool, err error) {
	e, err := g.Transactions.Codec.Decode(recorded.Name, recorded.Data)
	if err != nil {
		return j, false, err
	}
	var t tx.Accepted
	j.cause = recorded
	switch e := e.(type) {
	case tx.Accepted:
		if e.Group == nil || e.Claims() {
			return j, false, nil
		}
		t = e
	case tx.GroupConfirmed:
		r, err := g.Transactions.Load(ctx, recorded.Stream)
		if err != nil {
			return j, false, err
		}
		t = r.State.Accepted
		if t.Group == nil { // its sender was claimed, and it is in no group
			return j, false, nil
		}
		j.member.AccessKey, j.member.Confirmed = t.AccessKey, &e.Block
	default:
		return j, false, nil
	}
	j.member.Chain, j.member.Sender, j.member.Group, j.member.Hash = t.Chain, t.Sender, *t.Group, t.Hash
	j.member.NonceKey, j.member.Nonce = t.NonceKey, t.Nonce
	j.member.EligibleAt, j.member.ExpiresAt = t.EligibleAt, t.Window.Before
	j.member.At = g.Now()
	return j, true, nil
}

func (g *Grouper) join(ctx context.Context, id group.ID, js []joining) error {
	for chunk := range slices.Chunk(js, group.JoinMax) {
		c := group.Join{}
		for _, j := range chunk {
			c.Members = append(c.Members, j.member)
		}
		r, err := g.Groups.HandleFrom(ctx, id.Stream(), g.recall(id), c, origin(chunk))
		switch {
		case errors.Is(err, group.ErrNonceKey):
			// Two nonce keys whose hashes begin with the same 16 bytes. Transactions of the
			// second stay without a group.
			g.Log.Error("another nonce key has this group id", "chain", id.Chain, "sender", id.Sender, "group", id.Group, "err", err)
			continue
		case err != nil:
			return err
		}
		g.keep(id, r)
	}
	return nil
}

// origin derives the command's id from all events that cause it: another selection of
// events must not produce the same ids.
func origin(chunk []joining) commands.Origin {
	h := sha256.New()
	for _, j := range chunk {
		h.Write(j.cause.ID[:])
	}
	first := chunk[0].cause
	return commands.Origin{
		ID:   event.ID(h.Sum(nil)[:16]),
		Meta: event.Meta{Correlation: first.Meta.Correlation, Causation: first.ID, Actor: "grouping", Trace: first.Meta.Trace},
	}
}

// recall returns the remembered state of a group. If it is out of date or missing, the
// append fails with a conflict.
func (g *Grouper) recall(id group.ID) commands.Result[group.State] {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.known == nil {
		return commands.Result[group.State]{}
	}
	return g.known.recall(id)
}

func (g *Grouper) keep(id group.ID, r commands.Result[group.State]) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.known != nil { // a grouper that only catches up for a cancel remembers nothing
		g.known.keep(id, r)
	}
}

func (g *Grouper) forget() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.known = newMemory(cmp.Or(g.MemberMax, memberMax))
}
