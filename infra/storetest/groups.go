package storetest

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/tempo-watchtower/watchtower/domain/consumer"
	"github.com/tempo-watchtower/watchtower/eventlog"
)

// GroupRows stores the state of consumer groups of the log's external feed.
type GroupRows interface {
	Claim(ctx context.Context, group, holder string, ttl time.Duration) (c consumer.Claim, held bool, err error)
	Yield(ctx context.Context, group string, token uint64) error
	Save(ctx context.Context, group string, token uint64, to eventlog.Position) error
	Park(ctx context.Context, group string, token uint64, p consumer.Parked) error
	Unpark(ctx context.Context, group string, token uint64, stream eventlog.Stream) error
	Parked(ctx context.Context, group string) ([]consumer.Parked, error)
	Wish(ctx context.Context, group string, stream eventlog.Stream, at eventlog.Version, w consumer.Wish) error
	Groups(ctx context.Context) ([]consumer.Group, error)
}

// Groups is the contract of consumer groups.
func Groups(t *testing.T, open func(t *testing.T) Opened[GroupRows]) {
	t.Run("one holder at a time", func(t *testing.T) { groupsOneHolder(t, open(t)) })
	t.Run("a claim lapses", func(t *testing.T) { groupsLapse(t, open(t)) })
	t.Run("race", func(t *testing.T) { groupsRace(t, open(t).Port) })
	t.Run("save", func(t *testing.T) { groupsSave(t, open(t)) })
	t.Run("park", func(t *testing.T) { groupsPark(t, open(t)) })
	t.Run("a superseded holder writes nothing", func(t *testing.T) { groupsFence(t, open(t).Port) })
	t.Run("wish", func(t *testing.T) { groupsWish(t, open(t).Port) })
	t.Run("limits", func(t *testing.T) { groupsLimits(t, open(t).Port) })
}

// claimed claims a group for a minute.
func claimed(t *testing.T, p GroupRows, group, holder string, want bool) consumer.Claim {
	t.Helper()
	return claimedFor(t, p, group, holder, time.Minute, want)
}

func claimedFor(t *testing.T, p GroupRows, group, holder string, ttl time.Duration, want bool) consumer.Claim {
	t.Helper()
	c, held, err := p.Claim(soon(t), group, holder, ttl)
	if err != nil || held != want {
		t.Fatalf("%s claims %s: %v, %v; want %v", holder, group, held, err, want)
	}
	if held && c.Token == 0 {
		t.Fatalf("%s holds %s by token 0", holder, group)
	}
	return c
}

func groupsOneHolder(t *testing.T, o Opened[GroupRows]) {
	ctx, p := soon(t), o.Port
	first := claimed(t, p, "g", "a", true)
	claimed(t, p, "g", "b", false)
	claimed(t, p, "another", "b", true)
	if again := claimed(t, p, "g", "a", true); again != first {
		t.Errorf("renewed, the claim went from %v to %v", first, again)
	}
	check(t, p.Yield(ctx, "g", first.Token+1)) // a token that no holder has
	check(t, p.Yield(ctx, "unheard", 1))
	claimed(t, p, "g", "b", false)
	check(t, p.Yield(ctx, "g", first.Token))
	check(t, p.Yield(ctx, "g", first.Token))
	second := claimed(t, p, "g", "b", true)
	if second.Token <= first.Token {
		t.Errorf("a new holder's token is %d, the one before had %d", second.Token, first.Token)
	}
	check(t, p.Yield(ctx, "g", first.Token)) // it no longer holds the claim
	claimed(t, p, "g", "a", false)
	check(t, p.Yield(ctx, "g", second.Token))
	if third := claimed(t, p, "g", "b", true); third.Token <= second.Token {
		t.Errorf("the returning holder has token %d, before %d", third.Token, second.Token)
	}
	if again := claimed(t, o.Reopen(), "g", "b", true); again.Token <= second.Token {
		t.Errorf("token %d after %d", again.Token, second.Token)
	}
}

func groupsLapse(t *testing.T, o Opened[GroupRows]) {
	p, clock := o.Port, o.Clock.orReal()
	const ttl = 400 * time.Millisecond
	first := claimedFor(t, p, "g", "a", ttl, true)
	clock.Elapse(ttl / 2)
	claimedFor(t, p, "g", "a", ttl, true) // renewed for a whole term
	clock.Elapse(ttl * 3 / 4)
	claimed(t, p, "g", "b", false)
	clock.Elapse(ttl / 2)
	second := claimedFor(t, p, "g", "b", ttl, true)
	if second.Token <= first.Token {
		t.Errorf("after a lapse the token is %d, was %d", second.Token, first.Token)
	}
	clock.Elapse(ttl * 5 / 4)
	if third := claimed(t, p, "g", "b", true); third.Token <= second.Token {
		t.Errorf("the holder returning after a lapse has token %d, before %d", third.Token, second.Token)
	}
}

func groupsRace(t *testing.T, p GroupRows) {
	ctx := soon(t)
	var last uint64
	for round := range 10 {
		var holders atomic.Int32
		var token atomic.Uint64
		var all sync.WaitGroup
		for holder := range 6 {
			all.Go(func() {
				c, held, err := p.Claim(ctx, "g", string(rune('a'+holder)), time.Minute)
				if err != nil {
					t.Error(err)
				}
				if held {
					holders.Add(1)
					token.Store(c.Token)
				}
			})
		}
		all.Wait()
		if holders.Load() != 1 || token.Load() <= last {
			t.Fatalf("round %d: %d holders, token %d after %d", round, holders.Load(), token.Load(), last)
		}
		last = token.Load()
		check(t, p.Yield(ctx, "g", last))
	}
}

func groupsSave(t *testing.T, o Opened[GroupRows]) {
	ctx, p := soon(t), o.Port
	c := claimed(t, p, "g", "a", true)
	if c.Position != 0 {
		t.Errorf("a new group is at %d", c.Position)
	}
	for _, to := range []eventlog.Position{7, 7, 1 << 62} {
		check(t, p.Save(ctx, "g", c.Token, to))
		if at := claimed(t, p, "g", "a", true).Position; at != to {
			t.Errorf("saved %d, it is at %d", to, at)
		}
	}
	if err := p.Save(ctx, "g", c.Token, 8); !errors.Is(err, consumer.ErrSuperseded) {
		t.Errorf("moved back: %v", err)
	}
	check(t, p.Yield(ctx, "g", c.Token))
	p = o.Reopen()
	if at := claimed(t, p, "g", "b", true).Position; at != 1<<62 {
		t.Errorf("opened again, it is at %d", at)
	}
	if at := claimed(t, p, "h", "b", true).Position; at != 0 {
		t.Errorf("another group is at %d", at)
	}
}

// wantParked compares the parked streams, without their times.
func wantParked(t *testing.T, p GroupRows, group string, want ...consumer.Parked) {
	t.Helper()
	all, err := p.Parked(soon(t), group)
	check(t, err)
	if diff := cmp.Diff(want, all, cmpopts.EquateEmpty(), cmpopts.IgnoreFields(consumer.Parked{}, "Since")); diff != "" {
		t.Error(diff)
	}
}

func groupsPark(t *testing.T, o Opened[GroupRows]) {
	ctx, p, clock := soon(t), o.Port, o.Clock.orReal()
	c := claimed(t, p, "g", "a", true)
	b := consumer.Parked{Stream: "tx-b", Version: 2, Position: 9, Error: "no \U0001F4A5", Attempts: 5}
	a := consumer.Parked{Stream: "tx-a", Version: 1, Position: 12, Error: "no", Attempts: 1}
	check(t, p.Park(ctx, "g", c.Token, b))
	check(t, p.Park(ctx, "g", c.Token, b))
	check(t, p.Park(ctx, "g", c.Token, a))
	wantParked(t, p, "g", a, b)
	wantParked(t, p, "h")
	p = o.Reopen()
	wantParked(t, p, "g", a, b)
	all, err := p.Parked(ctx, "g")
	check(t, err)
	if since := all[0].Since; since.Sub(clock.Now()).Abs() > patience || since.Location() != time.UTC {
		t.Errorf("parked since %v, now is %v", since, clock.Now())
	}
	b = consumer.Parked{Stream: "tx-b", Version: 3, Position: 15, Error: "again", Attempts: 6}
	check(t, p.Park(ctx, "g", c.Token, b)) // it resumed, and stopped again
	check(t, p.Unpark(ctx, "g", c.Token, "tx-a"))
	check(t, p.Unpark(ctx, "g", c.Token, "tx-a"))
	wantParked(t, p, "g", b)
	groups, err := p.Groups(ctx)
	check(t, err)
	if diff := cmp.Diff([]consumer.Group{{Name: "g", Holder: "a", Parked: 1}}, groups); diff != "" {
		t.Error(diff)
	}
}

func groupsFence(t *testing.T, p GroupRows) {
	ctx := soon(t)
	old := claimed(t, p, "g", "a", true)
	stays := consumer.Parked{Stream: "tx-a", Version: 1, Position: 1, Error: "no", Attempts: 1}
	check(t, p.Save(ctx, "g", old.Token, 3))
	check(t, p.Park(ctx, "g", old.Token, stays))
	check(t, p.Yield(ctx, "g", old.Token))
	now := claimed(t, p, "g", "b", true)
	for what, err := range map[string]error{
		"save":         p.Save(ctx, "g", old.Token, 9),
		"park":         p.Park(ctx, "g", old.Token, consumer.Parked{Stream: "tx-b", Version: 1, Position: 2, Error: "no"}),
		"park again":   p.Park(ctx, "g", old.Token, consumer.Parked{Stream: "tx-a", Version: 7, Position: 8, Error: "no"}),
		"unpark":       p.Unpark(ctx, "g", old.Token, "tx-a"),
		"save, nobody": p.Save(ctx, "unheard", 1, 1),
		"park, nobody": p.Park(ctx, "unheard", 1, stays),
	} {
		if !errors.Is(err, consumer.ErrSuperseded) {
			t.Errorf("%s: %v", what, err)
		}
	}
	wantParked(t, p, "g", stays)
	if at := claimed(t, p, "g", "b", true); at.Position != 3 || at != (consumer.Claim{Token: now.Token, Position: 3}) {
		t.Errorf("it is at %v", at)
	}
}

func groupsWish(t *testing.T, p GroupRows) {
	ctx := soon(t)
	if err := p.Wish(ctx, "g", "tx-a", 1, consumer.Retry); !errors.Is(err, consumer.ErrNotParked) {
		t.Errorf("of no group: %v", err)
	}
	c := claimed(t, p, "g", "a", true)
	a := consumer.Parked{Stream: "tx-a", Version: 1, Position: 12, Error: "no", Attempts: 1}
	check(t, p.Park(ctx, "g", c.Token, a))
	if err := p.Wish(ctx, "g", "tx-b", 1, consumer.Skip); !errors.Is(err, consumer.ErrNotParked) {
		t.Errorf("of another stream: %v", err)
	}
	for _, w := range []consumer.Wish{consumer.Retry, consumer.Skip, consumer.Wait, consumer.Retry} {
		check(t, p.Wish(ctx, "g", "tx-a", 1, w))
		wished := a
		wished.Wish = w
		wantParked(t, p, "g", wished)
	}
	check(t, p.Park(ctx, "g", c.Token, a)) // the retry failed: the command is done
	wantParked(t, p, "g", a)

	a.Version, a.Position = 2, 13 // it has processed that event, and not the next
	check(t, p.Park(ctx, "g", c.Token, a))
	if err := p.Wish(ctx, "g", "tx-a", 1, consumer.Skip); !errors.Is(err, consumer.ErrNotParked) {
		t.Errorf("of an event that it was parked at before: %v", err)
	}
	wantParked(t, p, "g", a)
}

func groupsLimits(t *testing.T, p GroupRows) {
	ctx := soon(t)
	group, holder := strings.Repeat("g", consumer.MaxGroupBytes), strings.Repeat("h", consumer.MaxHolderBytes)
	c := claimed(t, p, group, holder, true)
	long := consumer.Parked{
		Stream: eventlog.Stream(strings.Repeat("s", eventlog.MaxStreamBytes)), Version: 1 << 62, Position: 1 << 62,
		Error: consumer.Text(errors.New("\x00\xff" + strings.Repeat("ä", consumer.MaxErrorBytes))), Attempts: 1 << 30,
	}
	check(t, p.Park(ctx, group, c.Token, long))
	wantParked(t, p, group, long)
}
