package grouping_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tempo-watchtower/watchtower/commands"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/delivery/group"
	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
	"github.com/tempo-watchtower/watchtower/eventlog"
	"github.com/tempo-watchtower/watchtower/eventlog/handler"
	"github.com/tempo-watchtower/watchtower/eventlog/port"
)

func withKey(key chain.NonceKey) func(*chain.Signed) {
	return func(s *chain.Signed) { s.NonceKey = key }
}

// Explicit grouping covers NKG1 keys only; the other setting covers every key, including
// the account's own and the expiring key.
func TestWhoIsGrouped(t *testing.T) {
	for grouping, keys := range map[commands.Grouping][]chain.NonceKey{
		commands.GroupExplicit: {explicit},
		commands.GroupAll:      {explicit, plain, {}, chain.ExpiringKey},
	} {
		t.Run(string(grouping), func(t *testing.T) {
			w := newWorld(t)
			w.submit.Grouping = grouping
			for _, key := range []chain.NonceKey{explicit, plain, {}, chain.ExpiringKey} {
				hash := w.accept(withKey(key))
				w.group(w.grouper())
				want := slices.Contains(keys, key)
				if got := w.members(key); (len(got) == 1 && got[0] == hash) != want || len(got) > 1 {
					t.Errorf("key %s: members %v, want %v", key, got, want)
				}
				if got := w.state(hash).Group(); (got != nil) != want || got != nil && *got != key.Group() {
					t.Errorf("key %s: group %v", key, got)
				}
			}
		})
	}
}

// A member's event has the accepted transaction's fields.
func TestJoined(t *testing.T) {
	w := newWorld(t)
	hash := w.accept(func(s *chain.Signed) { s.Window.Before = epoch + 500 })
	w.group(w.grouper())
	stream := group.ID{Chain: id, Sender: alice, Group: explicit.Group()}.Stream()
	var events []eventlog.Recorded
	for r, err := range w.db.Log().ReadStream(t.Context(), stream, 0) {
		check(t, err)
		events = append(events, r)
	}
	if len(events) != 1 {
		t.Fatalf("%d events", len(events))
	}
	got, err := group.Codec().Decode(events[0].Name, events[0].Data)
	check(t, err)
	want := group.Joined{
		Chain: id, Sender: alice, Group: explicit.Group(), Hash: hash, NonceKey: explicit,
		EligibleAt: epoch, ExpiresAt: epoch + 500, At: now(),
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	for r, err := range w.db.Log().ReadStream(t.Context(), tx.Stream(id, hash), 0) {
		check(t, err)
		if events[0].Meta.Causation != r.ID || events[0].Meta.Actor != "grouping" {
			t.Errorf("caused by %+v, not by %s", events[0].Meta, r.ID)
		}
	}
}

// Transactions that join together each name their own acceptance and its request as the cause.
func TestJoinsNameTheirOwnRequests(t *testing.T) {
	w := newWorld(t)
	for nonce := range uint64(5) {
		w.accept(func(s *chain.Signed) { s.Nonce = nonce })
	}
	w.group(w.grouper())
	accepted, joined := map[chain.Hash]eventlog.Recorded{}, 0
	for batch, err := range w.db.Log().ReadAll(t.Context(), 0, eventlog.Filter{}, 1000) {
		check(t, err)
		for _, r := range batch.Events {
			if _, hash, err := tx.ParseStream(r.Stream); err == nil {
				accepted[hash] = r
			} else if e, err := group.Codec().Decode(r.Name, r.Data); err == nil {
				joined++
				cause := accepted[e.(group.Joined).Hash]
				want := eventlog.Meta{Correlation: cause.Meta.Correlation, Causation: cause.ID, Actor: "grouping", Trace: cause.Meta.Trace, Link: r.Meta.Link}
				if r.Meta != want || want.Correlation.IsZero() {
					t.Errorf("caused by %+v, want %+v", r.Meta, want)
				}
			}
		}
	}
	if joined != 5 {
		t.Errorf("%d joined", joined)
	}
}

// lossy is a real log that loses answers: some appends never reach it, and some answers are
// lost.
type lossy struct {
	port.Store
	appends atomic.Int64
}

func (l *lossy) Append(ctx context.Context, s eventlog.Stream, v eventlog.Version, events ...eventlog.Event) (eventlog.Appended, error) {
	n := l.appends.Add(1)
	if n%3 == 0 {
		return eventlog.Appended{}, fmt.Errorf("and not persisted: %w", eventlog.ErrUnknown)
	}
	appended, err := l.Store.Append(ctx, s, v, events...)
	if err == nil && n%3 == 1 {
		return eventlog.Appended{}, fmt.Errorf("but persisted: %w", eventlog.ErrUnknown)
	}
	return appended, err
}

// Each transaction joins once, in the order of acceptance. That holds although the grouper
// is stopped, restarted without its checkpoint, runs twice, or loses answers.
func TestEachJoinsOnce(t *testing.T) {
	w := newWorld(t)
	lost := &lossy{Store: w.db.Log()}
	w.groups.Store = lost
	veteran := w.grouper()
	var want []chain.Hash
	for n := range 150 {
		want = append(want, w.accept())
		switch {
		case n%20 == 7:
			w.group(veteran)
		case n%20 == 13: // a grouper that took over
			w.group(w.grouper())
		case n%50 == 49: // the work schema was lost
			at, err := w.db.Work().Checkpoint(t.Context(), "grouping")
			check(t, err)
			check(t, w.db.Work().MoveCheckpoint(t.Context(), "grouping", at, 0))
			w.group(w.grouper())
		}
	}
	w.group(veteran)
	if d := cmp.Diff(want, w.members(explicit)); d != "" {
		t.Errorf("members (-accepted +joined):\n%s", d)
	}
	if lost.appends.Load() > 100 {
		t.Errorf("%d appends for 150 members", lost.appends.Load())
	}
}

// A transaction that joins after a cancel is not canceled; a transaction that is accepted
// again does not join again.
func TestAfterACancel(t *testing.T) {
	w := newWorld(t)
	g := w.grouper()
	first := w.accept()
	w.group(g)
	groupID := group.ID{Chain: id, Sender: alice, Group: explicit.Group()}
	o, err := handler.Begin(zeroes{}, eventlog.Meta{})
	check(t, err)
	r, err := w.groups.Handle(t.Context(), groupID.Stream(), group.Cancel{By: group.Authority{Form: group.FormGroupID}, At: now()}, o)
	if err != nil || r.State.Canceled != 1 {
		t.Fatalf("%+v, %v", r.State, err)
	}
	w.nonce = 0
	if again := w.accept(); again != first {
		t.Fatal("not the same transaction")
	}
	second := w.accept()
	w.group(g) // its memory of the group is older than the cancel
	r, err = w.groups.Load(t.Context(), groupID.Stream())
	check(t, err)
	for hash, canceled := range map[chain.Hash]bool{first: true, second: false} {
		if m, ok := r.State.Member(hash); !ok || r.State.IsCanceled(m) != canceled {
			t.Errorf("%s: %+v, %v, canceled should be %v", hash, m, ok, canceled)
		}
	}
	if r.State.Members != 2 {
		t.Errorf("%d members", r.State.Members)
	}
}

type zeroes struct{}

func (zeroes) Read(b []byte) (int, error) { return len(b), nil }

// An unreadable event stops the grouper: skipping it would lose a member.
func TestUnreadableFactStops(t *testing.T) {
	w := newWorld(t)
	_, err := w.db.Log().Append(t.Context(), tx.Stream(id, chain.Hash{1}), 0,
		eventlog.Event{ID: eventlog.ID{1}, Name: "tx.accepted.v99", Data: []byte(`{}`)})
	check(t, err)
	if err := w.grouper().Run(t.Context()); err == nil || errors.Is(err, context.Canceled) {
		t.Errorf("ended with %v", err)
	}
}
