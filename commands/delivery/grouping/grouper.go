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
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/tempo-watchtower/watchtower/commands"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/delivery/group"
	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
	"github.com/tempo-watchtower/watchtower/eventlog"
	"github.com/tempo-watchtower/watchtower/eventlog/follower"
	"github.com/tempo-watchtower/watchtower/eventlog/handler"
	"github.com/tempo-watchtower/watchtower/eventlog/port"
)

// Reader is the name of the grouper's checkpoint and lease.
const Reader = "grouping"

const (
	followMax = 1000 // events per batch
	groupsMax = 128  // groups joined concurrently
	// memberMax is the default of [Grouper.MemberMax], about 64 MB.
	memberMax = 1_000_000
)

// Grouper reads accepted and confirmed transactions, and appends Joined to their groups.
// One replica at a time should run it; a second one would add nothing.
type Grouper struct {
	Store        port.Store
	Checkpoints  port.Checkpoints
	Transactions commands.Transactions
	Groups       commands.Groups
	Now          func() time.Time
	// MemberMax bounds the memory for remembered groups, in members of all of them together;
	// 0 means 1,000,000.
	MemberMax int
	// GroupMax lowers the bound of one group's members, for tests; 0 means [group.MembersMax].
	GroupMax int
	// LeftOut is called with the number of transactions of a chain that joined no group because
	// their group is full, after all others of their batch have joined; may be nil.
	LeftOut func(on chain.ID, transactions int)
	// Moved is called with each new checkpoint; may be nil.
	Moved func(at eventlog.Position)
	Log   *slog.Logger

	// known are recent groups. mu guards it.
	mu    sync.Mutex
	known *memory
}

// joining is a transaction that is to join, and the event that causes it.
type joining struct {
	member group.Joined
	client string // the client that submitted the transaction first
	cause  eventlog.Recorded
}

// id returns the group that the transaction is to join.
func (j joining) id() group.ID {
	return group.ID{Chain: j.member.Chain, Sender: j.member.Sender, Group: j.member.Group}
}

// Run groups transactions until ctx ends or the store fails.
func (g *Grouper) Run(ctx context.Context) error {
	g.forget() // another replica may have changed the groups meanwhile
	f := follower.Follower{
		Store: g.Store, Checkpoints: g.Checkpoints, Reader: Reader, Max: followMax, Moved: g.Moved,
		Filter: readFilter(),
	}
	return f.Run(ctx, g.handle)
}

// readFilter selects the events that the grouper reads.
func readFilter() eventlog.Filter {
	return eventlog.Filter{Names: []string{"tx.accepted.", "tx.group_confirmed."}}
}

func (g *Grouper) handle(ctx context.Context, events []eventlog.Recorded) error {
	joinings := map[group.ID][]joining{}
	for _, e := range events {
		j, ok, err := g.joining(ctx, e, nil)
		if err != nil {
			// Skipping an event would silently leave a transaction out of its group.
			return &eventlog.Stuck{At: e.Position, Err: err}
		}
		if ok {
			joinings[j.id()] = append(joinings[j.id()], j)
		}
	}
	ids := group.InOrder(joinings)
	g.begin(ids)
	left := make([]int, len(ids))
	err := commands.Each(len(ids), groupsMax, func(i int) (err error) {
		left[i], err = g.join(ctx, ids[i], joinings[ids[i]])
		return err
	})
	if err != nil {
		return err // the batch is repeated
	}
	for i, id := range ids { // one after the other, because a large group's snapshot takes megabytes
		g.leaveOut(id, left[i])
		g.save(ctx, id)
	}
	return nil
}

// joining returns the transaction that joins because of an event; ok is false if there is
// none, or if it is of a group that is not wanted.
func (g *Grouper) joining(ctx context.Context, recorded eventlog.Recorded, of wanted) (j joining, ok bool, err error) {
	if of.excludes(recorded) {
		return j, false, nil
	}
	e, err := g.Transactions.Codec.Decode(recorded.Name, recorded.Data)
	if err != nil {
		return j, false, err
	}
	var t tx.Accepted
	switch e := e.(type) {
	case tx.Accepted:
		if e.Group == nil || e.Claims() {
			return j, false, nil
		}
		t = e
	case tx.GroupConfirmed:
		if t, err = g.accepted(ctx, recorded.Stream, of); err != nil {
			return j, false, err
		}
		if t.Group == nil { // its sender was claimed, and it is in no group, or in none that is wanted
			return j, false, nil
		}
		j.member.AccessKey, j.member.Confirmed = t.AccessKey, &e.Block
	default:
		return j, false, nil
	}
	j.cause, j.client = recorded, t.Client
	j.member.Chain, j.member.Sender, j.member.Group, j.member.Hash = t.Chain, t.Sender, *t.Group, t.Hash
	j.member.NonceKey, j.member.Nonce = t.NonceKey, t.Nonce
	j.member.EligibleAt, j.member.ExpiresAt = t.EligibleAt, t.Window.Before
	j.member.At = g.Now()
	return j, true, nil
}

// accepted reads a transaction's first event alone. It returns the zero Accepted if that is of a
// group that is not wanted.
func (g *Grouper) accepted(ctx context.Context, stream eventlog.Stream, of wanted) (tx.Accepted, error) {
	for first, err := range g.Transactions.Store.ReadStream(ctx, stream, 0) {
		if err != nil {
			return tx.Accepted{}, fmt.Errorf("read %s: %w", stream, err)
		}
		if of.excludes(first) {
			return tx.Accepted{}, nil
		}
		e, err := g.Transactions.Codec.Decode(first.Name, first.Data)
		if err != nil {
			return tx.Accepted{}, fmt.Errorf("%s version %d: %w", stream, first.Version, err)
		}
		if a, is := e.(tx.Accepted); is {
			return a, nil
		}
		break
	}
	return tx.Accepted{}, fmt.Errorf("%s does not begin with an accepted transaction", stream)
}

// join makes transactions members of their group, and returns the number of those that it left
// out because the group is full.
func (g *Grouper) join(ctx context.Context, id group.ID, js []joining) (left int, err error) {
	if g.isFull(id) {
		return len(js), nil
	}
	r, joined := g.recall(id).result, 0
	for chunk := range slices.Chunk(js, group.JoinMax) {
		c := group.Join{Max: g.GroupMax}
		for _, j := range chunk {
			c.Members = append(c.Members, j.member)
		}
		next, err := g.Groups.HandleFrom(ctx, id.Stream(), r, c, origin(chunk))
		switch {
		case errors.Is(err, group.ErrNonceKey):
			// Two nonce keys whose hashes begin with the same 16 bytes. Transactions of the
			// second stay without a group.
			g.Log.Error("another nonce key has this group id", "chain", id.Chain, "sender", id.Sender, "group", id.Group, "err", err)
			joined += len(chunk)
			continue
		case err != nil:
			return 0, err
		}
		r = next
		g.keep(id, chunk[0].client, r)
		for _, m := range c.Members {
			if _, member := r.State.Member(m.Hash); !member {
				// Transactions join in the order of their events: all that follow are left out too.
				return len(js) - joined, nil
			}
			joined++
		}
	}
	return 0, nil
}

// origin derives the command's id from all events that cause it: another selection of
// events must not produce the same ids. Each member joins with the request id, cause and trace of
// its own event: the owners of a member must not see those of another.
func origin(chunk []joining) handler.Origin {
	h, causes := sha256.New(), make(map[chain.Hash]eventlog.Meta, len(chunk))
	for _, j := range chunk {
		h.Write(j.cause.ID[:])
		if _, repeated := causes[j.member.Hash]; !repeated {
			m := j.cause.Meta
			causes[j.member.Hash] = eventlog.Meta{Correlation: m.Correlation, Causation: j.cause.ID, Actor: "grouping", Trace: m.Trace}
		}
	}
	return handler.Origin{
		ID:   eventlog.ID(h.Sum(nil)[:16]),
		Meta: causes[chunk[0].member.Hash],
		Each: func(_ int, fact any) eventlog.Meta {
			joined := fact.(group.Joined) //nolint:forcetypeassert // a Join has no other facts
			return causes[joined.Hash]
		},
	}
}

// begin starts a batch that uses these groups.
func (g *Grouper) begin(ids []group.ID) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.known.begin(ids)
}

// recall returns the remembered state of a group. If it is out of date or missing, the
// append fails with a conflict.
func (g *Grouper) recall(id group.ID) kept {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.known == nil {
		return kept{}
	}
	return g.known.recall(id)
}

func (g *Grouper) keep(id group.ID, client string, r handler.Result[group.State]) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.known != nil { // a grouper that only catches up for a cancel remembers nothing
		g.known.keep(id, client, r)
	}
}

// save stores a snapshot of a remembered group if enough transactions have joined since the last
// snapshot. A load after the group was forgotten then reads few events.
func (g *Grouper) save(ctx context.Context, id group.ID) {
	k := g.recall(id)
	if k.since == 0 || !g.Groups.Keep(ctx, id.Stream(), k.result, k.since) {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.known.saved(id)
}

func (g *Grouper) isFull(id group.ID) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.known != nil && g.known.full[id]
}

// leaveOut reports transactions that join no group because theirs is full. A batch that fails
// reports none: it is repeated.
func (g *Grouper) leaveOut(id group.ID, transactions int) {
	if transactions == 0 {
		return
	}
	g.mu.Lock()
	first := g.known.fill(id)
	g.mu.Unlock()
	if first {
		g.Log.Warn("a group is full, later transactions are members of no group", "chain", id.Chain, "sender", id.Sender, "group", id.Group, "max", group.MembersMax)
	}
	if g.LeftOut != nil {
		g.LeftOut(id.Chain, transactions)
	}
}

func (g *Grouper) forget() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.known = newMemory(cmp.Or(g.MemberMax, memberMax))
}
