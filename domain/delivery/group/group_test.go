package group

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/eventlog"
)

var (
	epoch = time.Unix(1_800_000_000, 0).UTC()
	key   = chain.NonceKey{31: 5}
)

func hashOf(n int) chain.Hash { return chain.Keccak(fmt.Append(nil, "transaction ", n)) }

func joined(n int) Joined {
	return Joined{
		Chain: 1, Sender: chain.Address{1}, Group: key.Group(), Hash: hashOf(n), NonceKey: key,
		Nonce: uint64(n), EligibleAt: uint64(epoch.Unix()) + uint64(n), At: epoch,
	}
}

func join(numbers ...int) Join {
	var j Join
	for _, n := range numbers {
		j.Members = append(j.Members, joined(n))
	}
	return j
}

func byGroupID(at time.Time) Cancel {
	return Cancel{By: Authority{Form: FormGroupID, Signature: chain.Secp256k1, Digest: hashOf(-1)}, At: at}
}

// typed is a cancel by the n-th typed authority, which expires a minute after the epoch.
func typed(n int, at time.Time) Cancel {
	return Cancel{At: at, By: Authority{
		Form: FormTyped, Signature: chain.P256, Digest: chain.Keccak(fmt.Append(nil, "typed ", n)), Expires: uint64(epoch.Unix()) + 60,
	}}
}

func run(t *testing.T, s State, commands ...Command) State {
	t.Helper()
	for _, c := range commands {
		events, err := s.Decide(c)
		if err != nil {
			t.Fatalf("%T: %v", c, err)
		}
		for _, e := range events {
			s = s.Evolve(e)
		}
	}
	return s
}

func TestLife(t *testing.T) {
	for _, c := range []struct {
		name     string
		given    []Command
		members  int
		canceled []int // the canceled transactions
	}{
		{"one joins", []Command{join(1)}, 1, nil},
		{"one joins twice", []Command{join(1, 1), join(1)}, 1, nil},
		{"canceled", []Command{join(1, 2), byGroupID(epoch)}, 2, []int{1, 2}},
		{"one joins after a cancel", []Command{join(1), byGroupID(epoch), join(2)}, 2, []int{1}},
		{"the canceled come again", []Command{join(1), byGroupID(epoch), join(1)}, 1, []int{1}},
		{"the id's signature again does not reach members that joined since", []Command{join(1), byGroupID(epoch), join(2), byGroupID(epoch)}, 2, []int{1}},
		{"nor after a typed one", []Command{join(1), typed(1, epoch), byGroupID(epoch), join(2), byGroupID(epoch)}, 2, []int{1}},
		{"nor long after", []Command{join(1), byGroupID(epoch), join(2), byGroupID(epoch.Add(1e6 * time.Hour))}, 2, []int{1}},
		{"after the id's signature, a typed one does", []Command{join(1), byGroupID(epoch), join(2), typed(1, epoch), byGroupID(epoch)}, 2, []int{1, 2}},
		{"a typed authority again does not", []Command{join(1), typed(1, epoch), join(2), typed(1, epoch)}, 2, []int{1}},
		{"nor one that found nobody new", []Command{join(1), byGroupID(epoch), typed(1, epoch), join(2), typed(1, epoch)}, 2, []int{1}},
		{"another typed authority does", []Command{join(1), typed(1, epoch), join(2), typed(2, epoch)}, 2, []int{1, 2}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := run(t, State{}, c.given...)
			if s.Members != c.members || len(s.List()) != c.members {
				t.Errorf("%d members, %d listed; want %d", s.Members, len(s.List()), c.members)
			}
			var canceled []int
			for n := range 3 {
				if m, ok := s.Member(hashOf(n)); ok && s.IsCanceled(m) {
					canceled = append(canceled, n)
				}
			}
			if d := cmp.Diff(c.canceled, canceled); d != "" {
				t.Errorf("canceled (-want +got):\n%s", d)
			}
		})
	}
}

func TestRefusals(t *testing.T) {
	other := joined(2)
	other.NonceKey = chain.NonceKey{31: 6}
	other.Group = other.NonceKey.Group()
	one := run(t, State{}, join(1))
	late := epoch.Add(time.Minute)
	many := one
	for n := range authoritiesMax {
		many = run(t, many, typed(n, epoch))
	}
	for _, c := range []struct {
		name  string
		state State
		give  Command
		want  eventlog.Refusal
	}{
		{"nobody's group", State{}, byGroupID(epoch), ErrUnknown},
		{"another nonce key", one, Join{Members: []Joined{other}}, ErrNonceKey},
		{"two nonce keys at once", State{}, Join{Members: []Joined{joined(1), other}}, ErrNonceKey},
		{"signed too long ago", one, typed(1, late), ErrExpired},
		{"shown too often", many, typed(authoritiesMax, epoch), ErrShownOften},
	} {
		t.Run(c.name, func(t *testing.T) {
			events, err := c.state.Decide(c.give)
			if !errors.Is(err, c.want) || len(events) != 0 {
				t.Errorf("got %v, %v; want %s", events, err, c.want)
			}
		})
	}
}

// Commands that no correct caller sends panic.
func TestBrokenCallers(t *testing.T) {
	strange := joined(1)
	strange.Group = chain.GroupID{1}
	claim := joined(1)
	claim.AccessKey = &chain.Address{2}
	for name, c := range map[string]Command{
		"nobody joins": Join{}, "another key's group": Join{Members: []Joined{strange}}, "an access key unconfirmed": Join{Members: []Joined{claim}},
		"too many at once": Join{Members: make([]Joined, JoinMax+1)},
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: no panic", name)
				}
			}()
			events, err := State{}.Decide(c)
			t.Errorf("%s: %v, %v", name, events, err)
		}()
	}
}

// Exactly the authorities that could be used again are remembered.
func TestExpiredAuthoritiesAreForgotten(t *testing.T) {
	s := run(t, State{}, join(1), typed(1, epoch))
	later := typed(2, epoch.Add(2*time.Minute))
	later.By.Expires += 300
	if s = run(t, s, later); len(s.Shown) != 1 {
		t.Errorf("%d authorities are remembered", len(s.Shown))
	}
	if _, err := s.Decide(typed(1, epoch.Add(2*time.Minute))); !errors.Is(err, ErrExpired) {
		t.Errorf("a forgotten authority is answered by %v", err)
	}
}

func drawCommand(t *rapid.T) Command {
	at := epoch.Add(time.Duration(rapid.IntRange(0, 90).Draw(t, "at")) * time.Second)
	switch rapid.IntRange(0, 4).Draw(t, "command") {
	case 0:
		return byGroupID(at)
	case 1:
		return typed(rapid.IntRange(1, 4).Draw(t, "authority"), at)
	case 2:
		other := joined(rapid.IntRange(1, 30).Draw(t, "other"))
		other.NonceKey = chain.NonceKey{31: 6}
		other.Group = other.NonceKey.Group()
		return Join{Members: []Joined{other}, Max: drawnMax}
	}
	j := join(rapid.SliceOfN(rapid.IntRange(1, 30), 1, 5).Draw(t, "who")...)
	j.Max = drawnMax
	return j
}

// drawnMax is the bound of the members in drawn commands.
const drawnMax = 20

// Every sequence of commands keeps the numbered invariants of the package comment, and no state
// changes when later states are derived from it.
func TestInvariants(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var s State
		codec := Codec()
		authorities := map[chain.Hash]int{}
		for range rapid.IntRange(1, 60).Draw(t, "commands") {
			c := drawCommand(t)
			events, err := s.Decide(c)
			if err != nil {
				if !errors.As(err, new(eventlog.Refusal)) || len(events) > 0 {
					t.Fatalf("%T: %v with %v", c, err, events)
				}
				continue
			}
			before, listed := s, s.List()
			for _, e := range events {
				name, data, err := codec.Encode(e)
				if err != nil {
					t.Fatal(err)
				}
				back, err := codec.Decode(name, data)
				if err != nil || !cmp.Equal(e, back) {
					t.Fatalf("%s does not survive the log: %v", name, err)
				}
				if e, ok := e.(Canceled); ok {
					authorities[e.By.Digest]++
				}
				before.Evolve(joined(99)) // another state derived from the same state
				s = s.Evolve(back)
			}
			keeps(t, before, s, listed)
			if again, err := s.Decide(c); err != nil || len(again) > 0 {
				t.Fatalf("deciding %T twice added %v, %v", c, again, err)
			}
		}
		for digest, n := range authorities {
			if n > 1 {
				t.Fatalf("invariant 4: authority %s recorded %d times", digest, n)
			}
		}
	})
}

func keeps(t *rapid.T, before, after State, listed []Member) {
	if before.Members > 0 && before.NonceKey != after.NonceKey {
		t.Fatalf("invariant 1: nonce key %s became %s", before.NonceKey, after.NonceKey)
	}
	if !slices.Equal(before.List(), listed) {
		t.Fatal("a state was changed by one that grew out of it")
	}
	seen := map[chain.Hash]bool{}
	for i, m := range after.List() {
		found, ok := after.Member(m.Hash)
		if seen[m.Hash] || m.Ordinal != i || !ok || found != m {
			t.Fatalf("invariant 2: member %d is %+v, found as %+v", i, m, found)
		}
		seen[m.Hash] = true
		if i < len(listed) && listed[i] != m {
			t.Fatalf("invariant 2: member %d was %+v", i, listed[i])
		}
		if i < before.Canceled && !after.IsCanceled(m) {
			t.Fatalf("invariant 3: member %d is no longer canceled", i)
		}
	}
	if after.Members > drawnMax {
		t.Fatalf("invariant 6: %d members", after.Members)
	}
	if len(seen) != after.Members || after.Canceled > before.Members && after.Canceled != after.Members {
		t.Fatalf("invariant 3: %d of %d members canceled, %d are listed", after.Canceled, after.Members, len(seen))
	}
}

// large returns a group of the first transactions.
func large(members int) (s State) {
	for n := range members {
		s = s.Evolve(joined(n))
	}
	return s
}

// A full group takes no further transaction and refuses none. A group that was larger before there
// was a bound keeps its members.
func TestFullGroup(t *testing.T) {
	s := large(MembersMax - 1)
	last, next := MembersMax-1, MembersMax
	c := join(0, last, next, 1)
	events, err := s.Decide(c)
	if d := cmp.Diff([]Event{joined(last)}, events); err != nil || d != "" {
		t.Fatalf("%v (-want +got):\n%s", err, d)
	}
	s = s.Evolve(events[0])
	c.Max = 2 * MembersMax // raises nothing
	if again, err := s.Decide(c); err != nil || len(again) > 0 {
		t.Errorf("deciding twice added %v, %v", again, err)
	}
	older := s.Evolve(joined(next))
	if events, err := older.Decide(join(next, next+1)); err != nil || len(events) > 0 || older.Members != MembersMax+1 {
		t.Errorf("%d members, then %v, %v", older.Members, events, err)
	}
}

// A group of a hundred thousand members is folded in less than the time of a few requests: the
// cost of a member does not grow with the group.
func TestLargeGroup(t *testing.T) {
	const members = MembersMax
	s := large(members)
	if s.Members != members {
		t.Fatal(s.Members)
	}
	if len(s.roll) > 17 {
		t.Errorf("%d runs", len(s.roll))
	}
	for n := 0; n < members; n += 997 {
		if m, ok := s.Member(hashOf(n)); !ok || m.Ordinal != n {
			t.Fatalf("member %d is found as %+v, %v", n, m, ok)
		}
	}
}

func TestPlanCancel(t *testing.T) {
	at := func(n uint64) *uint64 { return &n }
	for _, c := range []struct {
		name    string
		key     chain.NonceKey
		nonces  []uint64
		current *uint64
		want    Plan
	}{
		{"nothing used", key, []uint64{101, 100}, at(100), Plan{key, []uint64{100, 101}, true, 100, false}},
		{"below all", key, []uint64{5}, at(0), Plan{key, []uint64{5}, true, 0, false}},
		{"half used", key, []uint64{100, 101, 101}, at(101), Plan{key, []uint64{100, 101}, true, 101, false}},
		{"past the highest", key, []uint64{100, 101}, at(102), Plan{key, []uint64{100, 101}, true, 102, true}},
		{"the chain says nothing", key, []uint64{101, 100}, nil, Plan{NonceKey: key, Nonces: []uint64{100, 101}}},
		{"expiring", chain.ExpiringKey, []uint64{0, 0}, at(0), Plan{NonceKey: chain.ExpiringKey}},
	} {
		t.Run(c.name, func(t *testing.T) {
			given := slices.Clone(c.nonces)
			if d := cmp.Diff(c.want, PlanCancel(c.key, c.nonces, c.current)); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
			if !slices.Equal(given, c.nonces) {
				t.Error("the caller's nonces were changed")
			}
		})
	}
}

func TestStream(t *testing.T) {
	id := ID{42431, chain.Address{1}, key.Group()}
	if back, err := ParseStream(id.Stream()); err != nil || back != id {
		t.Errorf("%v, %v", back, err)
	}
	if n := len(ID{1<<64 - 1, id.Sender, id.Group}.Stream()); n > eventlog.MaxStreamBytes {
		t.Errorf("a name of %d bytes", n)
	}
	for _, bad := range []eventlog.Stream{"", "group-", "group-1", "tx-1-0xab", "group-1-0xab-0xab", id.Stream() + "-1", "group-0" + id.Stream()[11:]} {
		if got, err := ParseStream(bad); err == nil {
			t.Errorf("%q was read as %v", bad, got)
		}
	}
}
