package handler_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"reflect"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/delivery/group"
	"github.com/tempo-watchtower/watchtower/eventlog"
	"github.com/tempo-watchtower/watchtower/eventlog/handler"
	"github.com/tempo-watchtower/watchtower/eventlog/port"
	"github.com/tempo-watchtower/watchtower/infra/embedded/embeddedtest"
)

// rows is a store of snapshots in memory that can lose or damage them.
type rows struct {
	kept    map[eventlog.Stream]eventlog.Snapshot
	mishap  func(s *eventlog.Snapshot) (ok bool, err error)
	answers int // snapshots returned unchanged
}

var errAway = errors.New("away")

func (r *rows) Snapshot(_ context.Context, stream eventlog.Stream) (eventlog.Snapshot, bool, error) {
	s, ok := r.kept[stream]
	if !ok {
		return s, false, nil
	}
	s.Data = bytes.Clone(s.Data)
	ok, err := r.mishap(&s)
	if ok && err == nil && reflect.DeepEqual(s, r.kept[stream]) {
		r.answers++
	}
	return s, ok, err
}

func (r *rows) KeepSnapshot(_ context.Context, s eventlog.Snapshot) error {
	r.kept[s.Stream] = s
	return nil
}

// mishaps are the ways in which a snapshot may be lost or damaged between being kept and
// being read.
func mishaps(dice *rand.Rand, other *rows) map[string]func(*eventlog.Snapshot) (bool, error) {
	return map[string]func(*eventlog.Snapshot) (bool, error){
		"none":           func(*eventlog.Snapshot) (bool, error) { return true, nil },
		"deleted":        func(*eventlog.Snapshot) (bool, error) { return dice.IntN(2) == 0, nil },
		"away":           func(*eventlog.Snapshot) (bool, error) { return true, errAway },
		"foreign schema": func(s *eventlog.Snapshot) (bool, error) { s.Schema++; return true, nil },
		"flipped": func(s *eventlog.Snapshot) (bool, error) {
			s.Data[dice.IntN(len(s.Data))] ^= 1 << dice.IntN(8)
			return true, nil
		},
		"cut": func(s *eventlog.Snapshot) (bool, error) { s.Data = s.Data[:dice.IntN(len(s.Data))]; return true, nil },
		"of another": func(s *eventlog.Snapshot) (bool, error) {
			for _, o := range other.kept {
				o.Stream, *s = s.Stream, o
				break
			}
			s.Stream = eventlog.Stream("group-of-another")
			return true, nil
		},
		"moved": func(s *eventlog.Snapshot) (bool, error) {
			switch dice.IntN(4) {
			case 0:
				s.Version += eventlog.Version(1 + dice.IntN(3))
			case 1:
				s.Version -= min(s.Version-1, eventlog.Version(1+dice.IntN(3)))
			case 2:
				s.Position++
			case 3:
				s.Link[dice.IntN(32)]++
			}
			return dice.IntN(2) == 0, nil
		},
	}
}

var groupKey = chain.NonceKey{31: 5}

func member(n int) group.Joined {
	return group.Joined{
		Chain: 1, Sender: chain.Address{1}, Group: groupKey.Group(), Hash: chain.Keccak(fmt.Append(nil, n)), NonceKey: groupKey,
		Nonce: uint64(n), EligibleAt: uint64(n) * 3, ExpiresAt: uint64(n) * 5, At: time.Unix(1_800_000_000, 0).UTC(),
	}
}

// anyCommand draws a command: Join with new or known members, or Cancel in either form.
func anyCommand(t *rapid.T, now time.Time) group.Command {
	if rapid.IntRange(0, 4).Draw(t, "what") == 0 {
		by := group.Authority{Form: group.FormGroupID, Signature: chain.Secp256k1, Digest: chain.Hash{1}}
		if n := rapid.IntRange(0, 5).Draw(t, "authority"); n > 0 {
			by = group.Authority{Form: group.FormTyped, Signature: chain.P256, Digest: chain.Hash{2, byte(n)}, Expires: uint64(now.Unix()) + uint64(n)}
		}
		return group.Cancel{By: by, At: now}
	}
	var j group.Join
	for range rapid.IntRange(1, 8).Draw(t, "members") {
		j.Members = append(j.Members, member(rapid.IntRange(0, 200).Draw(t, "member")))
	}
	return j
}

// groups decides on groups: an aggregate with long streams.
type groups = handler.Handler[group.State, group.Command, group.Event]

func groupHandler(store port.Store, r port.SnapshotRows) groups {
	h := groups{Store: store, Codec: group.Codec()}
	if r != nil {
		h.Snapshots = &handler.Snapshots[group.State]{
			Rows: r, Every: 3, Schema: group.SnapshotSchema, Encode: group.State.Snapshot, Decode: group.Restore,
		}
	}
	return h
}

// With and without snapshots, lost and damaged ones included, the loaded state is the same,
// and every command is decided the same.
func TestSnapshotsDecideNothing(t *testing.T) {
	log := embeddedtest.Open(t).Log()
	var streams, answers atomic.Int64
	rapid.Check(t, func(t *rapid.T) {
		ctx := context.Background()
		stream := eventlog.Stream(fmt.Sprint("group-", streams.Add(1)))
		dice := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1)) //nolint:gosec // a test's dice
		other := &rows{kept: map[eventlog.Stream]eventlog.Snapshot{}}
		plain := groupHandler(log, nil)
		with := map[string]groups{}
		var sound *rows
		for name, mishap := range mishaps(dice, other) {
			r := &rows{kept: map[eventlog.Stream]eventlog.Snapshot{}, mishap: mishap}
			if name == "none" {
				sound = r
			}
			with[name] = groupHandler(log, r)
		}
		now := time.Unix(1_800_000_000, 0).UTC()
		for range rapid.IntRange(1, 25).Draw(t, "commands") {
			now = now.Add(time.Second)
			c := anyCommand(t, now)
			want, err := plain.Load(ctx, stream)
			if err != nil {
				t.Fatal(err)
			}
			wantFacts, wantErr := want.State.Decide(c)
			for name, h := range with {
				got, err := h.Load(ctx, stream)
				if err != nil || got.Version != want.Version || !bytes.Equal(got.State.Snapshot(), want.State.Snapshot()) {
					t.Fatalf("%s: %v, version %d, not %d", name, err, got.Version, want.Version)
				}
				facts, err := got.State.Decide(c)
				if !reflect.DeepEqual(wantFacts, facts) || fmt.Sprint(err) != fmt.Sprint(wantErr) {
					t.Fatalf("%s: %T decides (%v, not %v): %s", name, c, err, wantErr, cmp.Diff(wantFacts, facts))
				}
			}
			o := handler.Origin{ID: eventlog.ID{byte(now.Unix()), byte(now.Unix() >> 8)}}
			if _, err := with["none"].Handle(ctx, stream, c, o); err != nil && !refused(err) {
				t.Fatal(err)
			}
		}
		answers.Add(int64(sound.answers))
	})
	if answers.Load() == 0 {
		t.Error("no snapshot was ever of use")
	}
}

// counted counts the events that are read from streams.
type counted struct {
	port.Store
	read int
}

func (c *counted) ReadStream(ctx context.Context, s eventlog.Stream, after eventlog.Version) iter.Seq2[eventlog.Recorded, error] {
	return func(yield func(eventlog.Recorded, error) bool) {
		for r, err := range c.Store.ReadStream(ctx, s, after) {
			c.read++
			if !yield(r, err) {
				return
			}
		}
	}
}

// A snapshot shortens the reading. A snapshot of a log that was replaced, as by a restored
// backup, is ignored, even if the new log has events at its version.
func TestSnapshotSparesReading(t *testing.T) {
	ctx, r := t.Context(), &rows{kept: map[eventlog.Stream]eventlog.Snapshot{}, mishap: func(*eventlog.Snapshot) (bool, error) { return true, nil }}
	fill := func(from, n int) *counted {
		log := &counted{Store: embeddedtest.Open(t).Log()}
		for i := range n {
			if _, err := groupHandler(log, nil).Handle(ctx, "group-1", group.Join{Members: []group.Joined{member(from + i)}}, begin(t)); err != nil {
				t.Fatal(err)
			}
		}
		log.read = 0
		return log
	}
	load := func(log *counted) group.State {
		log.read = 0
		got, err := groupHandler(log, r).Load(ctx, "group-1")
		if err != nil {
			t.Fatal(err)
		}
		return got.State
	}
	const n = 40
	log := fill(0, n)
	if s := load(log); s.Members != n || log.read != n {
		t.Errorf("at first: %d members, %d events read", s.Members, log.read)
	}
	if s := load(log); s.Members != n || log.read != 1 {
		t.Errorf("with a snapshot: %d members, %d events read", s.Members, log.read)
	}
	for name, other := range map[string]*counted{"longer": fill(n, 2*n), "shorter": fill(n, n/2)} {
		s := load(other)
		if _, foreign := s.Member(member(0).Hash); foreign || s.Members != other.read && s.Members != other.read-1 {
			t.Errorf("%s: a member of another log, or %d members of %d events read", name, s.Members, other.read)
		}
	}
}
