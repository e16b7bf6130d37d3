package grouping_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"strings"
	"sync"
	"testing"

	"github.com/tempo-watchtower/watchtower/commands/delivery/grouping"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/delivery/group"
	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
	"github.com/tempo-watchtower/watchtower/eventlog"
	"github.com/tempo-watchtower/watchtower/eventlog/handler"
	"github.com/tempo-watchtower/watchtower/eventlog/port"
)

// folded counts how often each stream is read from its beginning.
type folded struct {
	port.Store
	mu    sync.Mutex
	reads map[eventlog.Stream]int
}

func (f *folded) ReadStream(ctx context.Context, s eventlog.Stream, after eventlog.Version) iter.Seq2[eventlog.Recorded, error] {
	if after == 0 {
		f.mu.Lock()
		f.reads[s]++
		f.mu.Unlock()
	}
	return f.Store.ReadStream(ctx, s, after)
}

// readsOf returns how often a group of alice's was read.
func (f *folded) readsOf(key chain.NonceKey) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.reads[streamOf(key)]
}

func streamOf(key chain.NonceKey) eventlog.Stream {
	return group.ID{Chain: id, Sender: alice, Group: key.Group()}.Stream()
}

// counted counts the reads of groups from now on.
func (w *world) counted() *folded {
	f := &folded{Store: w.db.Log(), reads: map[eventlog.Stream]int{}}
	w.groups.Store = f
	return f
}

// numbered returns a nonce key that makes a group of its own.
func numbered(n int) chain.NonceKey {
	return chain.NonceKey{0x4e, 0x4b, 0x47, 0x31, 1, 2, 30: byte(n + 1)}
}

// follow runs a grouper until the test ends. joined waits until it has handled all events.
func (w *world) follow(g *grouping.Grouper) (joined func()) {
	w.t.Helper()
	ctx, stop := context.WithCancel(w.t.Context())
	moved := make(chan eventlog.Position)
	g.Moved = func(at eventlog.Position) {
		select {
		case moved <- at:
		case <-ctx.Done():
		}
	}
	ended := make(chan error, 1)
	go func() {
		defer close(moved)
		ended <- g.Run(ctx)
	}()
	w.t.Cleanup(func() {
		stop()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			w.t.Error(err)
		}
	})
	return func() {
		head, err := w.db.Log().Head(w.t.Context())
		check(w.t, err)
		for at := range moved {
			if at >= head {
				return
			}
		}
	}
}

// Several full groups, in each batch, make no batch load a group, although the grouper's memory
// has no room for them. They take no further member, and groups with room take theirs.
func TestFullGroups(t *testing.T) {
	const most, full, rounds = 10, 4, 8
	w := newWorld(t)
	for n := range full * most {
		w.accept(withKey(numbered(n % full)))
	}
	counted := w.counted()
	var logged bytes.Buffer
	left := 0
	g := w.grouper()
	g.MemberMax, g.GroupMax = 3*most, most
	g.Log = slog.New(slog.NewTextHandler(&logged, nil))
	var mu sync.Mutex // guards left
	g.LeftOut = func(on chain.ID, transactions int) {
		mu.Lock()
		defer mu.Unlock()
		left += transactions
	}
	joined := w.follow(g)
	joined()
	open := numbered(full)
	for range rounds {
		for n := range full {
			w.accept(withKey(numbered(n)))
		}
		w.accept(withKey(open))
		joined()
	}
	for n := range full {
		// A read when the group filled up, and a read when the first transaction was left out.
		if reads := counted.readsOf(numbered(n)); reads > 2 {
			t.Errorf("full group %d was read %d times in %d batches", n, reads, rounds)
		}
		if members := w.members(numbered(n)); len(members) != most {
			t.Errorf("group %d has %d members, of at most %d", n, len(members), most)
		}
	}
	if members := w.members(open); len(members) != rounds {
		t.Errorf("%d members joined the group with room, of %d", len(members), rounds)
	}
	mu.Lock()
	defer mu.Unlock()
	if lines := strings.Count(logged.String(), "a group is full"); lines != full || left != full*rounds {
		t.Errorf("%d lines, %d transactions left out; want %d and %d:\n%s", lines, left, full, full*rounds, &logged)
	}
}

// A group fills up in the middle of a batch: the first transactions join, the others are counted.
// A second run counts the others again, and not the members.
func TestGroupFillsUp(t *testing.T) {
	const most, accepted = 130, 250 // more than one command's transactions
	w := newWorld(t)
	var want []chain.Hash
	for range accepted {
		want = append(want, w.accept())
	}
	for range 2 {
		left := 0
		g := w.grouper()
		g.GroupMax = most
		g.LeftOut = func(on chain.ID, transactions int) { left += transactions }
		w.group(g)
		if got := w.members(explicit); len(got) != most || got[0] != want[0] || got[most-1] != want[most-1] || left != accepted-most {
			t.Errorf("%d members, %d left out", len(got), left)
		}
		at, err := w.db.Work().Checkpoint(t.Context(), grouping.Reader)
		check(t, err)
		check(t, w.db.Work().MoveCheckpoint(t.Context(), grouping.Reader, at, 0))
	}
}

// failing is a store whose appends to one stream fail.
type failing struct {
	port.Store
	at eventlog.Stream
}

var errFailing = errors.New("no append")

func (f failing) Append(ctx context.Context, s eventlog.Stream, at eventlog.Version, events ...eventlog.Event) (eventlog.Appended, error) {
	if s == f.at {
		return eventlog.Appended{}, errFailing
	}
	return f.Store.Append(ctx, s, at, events...)
}

// A batch in which another group fails is repeated. The transactions that a full group leaves out
// are counted once.
func TestLeftOutIsCountedOnce(t *testing.T) {
	const most, accepted = 2, 5
	w := newWorld(t)
	for range accepted {
		w.accept()
	}
	w.accept(withKey(numbered(1)))
	left := 0
	g := w.grouper()
	g.GroupMax = most
	g.LeftOut = func(on chain.ID, transactions int) { left += transactions }
	g.Groups.Store = failing{w.db.Log(), streamOf(numbered(1))}
	for range 3 {
		if err := g.Run(t.Context()); !errors.Is(err, errFailing) || left != 0 {
			t.Errorf("%v, %d left out", err, left)
		}
	}
	g.Groups = w.groups
	w.group(g)
	if n := len(w.members(explicit)); n != most || left != accepted-most {
		t.Errorf("%d members, %d left out", n, left)
	}
}

// A client whose transactions join many groups makes the grouper forget its own groups, and not
// the only group of another client.
func TestClientsForgetTheirOwnGroups(t *testing.T) {
	const rounds, each = 6, 20
	w := newWorld(t)
	counted := w.counted()
	g := w.grouper()
	g.MemberMax = 100
	joined := w.follow(g)
	w.acceptFrom("few")
	joined()
	for n := range rounds {
		for i := range each {
			w.acceptFrom("many", withKey(numbered(n*each+i)))
		}
		joined()
		w.acceptFrom("few")
		joined()
	}
	if reads := counted.readsOf(explicit); reads > 0 {
		t.Errorf("the other client's group was read %d times in %d rounds", reads, rounds)
	}
	if n := len(w.members(explicit)); n != rounds+1 {
		t.Errorf("%d members", n)
	}
}

// If one client's groups have no room together, a batch that uses all of them loads the few groups
// for which there was no room, and not each group.
func TestBatchEvictsNoneOfItsGroups(t *testing.T) {
	const groups, room, members, rounds = 40, 30, 10, 10
	m := grouping.NewMemory(room * grouping.SizeOf(members))
	ids := make([]group.ID, groups)
	for n := range ids {
		ids[n] = group.ID{Chain: id, Sender: alice, Group: numbered(n).Group()}
	}
	for round := range rounds {
		m.Begin(ids)
		loads := 0
		for _, id := range ids {
			if m.Use(id, "client", members) {
				loads++
			}
		}
		if round > 0 && loads > groups-room+1 {
			t.Errorf("batch %d loads %d groups", round, loads)
		}
		if held := m.Size(); held > room*grouping.SizeOf(members) {
			t.Errorf("batch %d holds %d", round, held)
		}
	}
	m.Begin(nil)
	for n := range room { // another client's groups, as many as there is room for: they get half of it
		m.Use(group.ID{Chain: id, Sender: mallory, Group: numbered(n).Group()}, "other", members)
	}
	if a, b := m.Groups("client"), m.Groups("other"); a != room/2 || b != room/2 {
		t.Errorf("%d and %d groups are remembered", a, b)
	}
}

// A grouper that remembers its groups, and so never loads them, stores snapshots. A load after the
// group was forgotten reads the few events since.
func TestGrouperStoresSnapshots(t *testing.T) {
	const rounds, every = 12, 5
	w := newWorld(t)
	w.groups.Snapshots = &handler.Snapshots[group.State]{
		Rows: w.db.Snapshots(), Every: every, Schema: group.SnapshotSchema, Encode: group.State.Snapshot, Decode: group.Restore,
		Failed: func(stream eventlog.Stream, err error) { t.Errorf("%s: %v", stream, err) },
	}
	joined := w.follow(w.grouper())
	for n := range rounds {
		w.accept()
		w.accept()
		joined()
		s, ok, err := w.db.Snapshots().Snapshot(t.Context(), streamOf(explicit))
		check(t, err)
		if members := 2 * (n + 1); members-int(s.Version) > every {
			t.Fatalf("%d members, and a snapshot at version %d, %v", members, s.Version, ok)
		}
	}
	counted := w.counted()
	if n := len(w.members(explicit)); n != 2*rounds || counted.readsOf(explicit) > 0 {
		t.Errorf("%d members, read %d times from the beginning", n, counted.readsOf(explicit))
	}
}

// firsts counts the events that are read of each stream.
type firsts struct {
	port.Store
	events map[eventlog.Stream]int
}

func (f firsts) ReadStream(ctx context.Context, s eventlog.Stream, after eventlog.Version) iter.Seq2[eventlog.Recorded, error] {
	return func(yield func(eventlog.Recorded, error) bool) {
		for r, err := range f.Store.ReadStream(ctx, s, after) {
			if f.events[s]++; !yield(r, err) {
				return
			}
		}
	}
}

// Catching up for one group decodes no transaction of another, and reads one event of a
// transaction whose key was confirmed.
func TestCatchUpPassesOthersBy(t *testing.T) {
	w := newWorld(t)
	confirmed := chain.Block{Number: 1, Hash: chain.Hash{1}}
	others := make([]chain.Hash, 5)
	for n := range others {
		others[n] = w.accept(withKey(numbered(n)), by(mallory, chain.P256))
		w.command(others[n], tx.DoubtGroup{Reason: "not yet", Block: confirmed, At: now()})
		w.command(others[n], tx.ConfirmGroup{Block: confirmed, At: now()})
	}
	own := []chain.Hash{w.accept(), w.accept(by(mallory, chain.P256))}
	w.command(own[1], tx.ConfirmGroup{Block: confirmed, At: now()})
	// These are unreadable, which shows if they are decoded.
	for n, other := range []group.ID{{Sender: alice, Group: plain.Group()}, {Sender: mallory, Group: explicit.Group()}} {
		data := fmt.Sprintf(`{"chain":42431,"sender":%q,"group":%q,"unknown":1}`, other.Sender, other.Group)
		_, err := w.db.Log().Append(t.Context(), "tx-42431-"+eventlog.Stream(chain.Hash{byte(n + 1)}.String()), 0,
			eventlog.Event{ID: eventlog.ID{byte(n + 1)}, Name: "tx.accepted.v1", Data: []byte(data)})
		check(t, err)
	}
	reads := firsts{w.db.Log(), map[eventlog.Stream]int{}}
	w.transactions.Store = reads
	g := w.grouper()
	check(t, g.CatchUp(t.Context(), []group.ID{{Chain: id, Sender: alice, Group: explicit.Group()}}))
	if got := w.members(explicit); len(got) != 2 || got[0] != own[0] || got[1] != own[1] {
		t.Errorf("members %v, want %v", got, own)
	}
	for stream, n := range reads.events {
		if n > 1 {
			t.Errorf("%d events of %s were read", n, stream)
		}
	}
	clear(reads.events)
	check(t, g.CatchUp(t.Context(), []group.ID{{Chain: id + 1, Sender: alice, Group: explicit.Group()}}))
	if len(reads.events) > 0 {
		t.Errorf("transactions of another chain were read: %v", reads.events)
	}
}
