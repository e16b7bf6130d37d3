package storetest

import (
	"context"
	"crypto/rand"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tempo-watchtower/watchtower/domain/request"
	"github.com/tempo-watchtower/watchtower/eventlog"
)

// RequestRows is the port of requests that clients may repeat.
type RequestRows interface {
	Claim(ctx context.Context, c request.Claim) (request.Stage, request.Answer, error)
	Answer(ctx context.Context, name request.Name, claim eventlog.ID, a request.Answer) error
	Release(ctx context.Context, name request.Name, claim eventlog.ID) error
	Usage(ctx context.Context, share int) (request.Usage, error)
	Forget(ctx context.Context, o request.Oldest) (int, error)
}

// claimOf makes a claim of a request's name, with a fresh id.
func claimOf(name, print byte) request.Claim {
	c := request.Claim{Name: request.Name{name}, Print: request.Print{print}, Hold: time.Minute, Keep: time.Hour}
	rand.Read(c.ID[:]) //nolint:errcheck // never fails
	return c
}

func claim(t *testing.T, p RequestRows, c request.Claim, want request.Stage) request.Answer {
	t.Helper()
	stage, a, err := p.Claim(soon(t), c)
	if err != nil || stage != want {
		t.Fatalf("claim: stage %d, %v; want stage %d", stage, err, want)
	}
	return a
}

// Requests is the contract of requests that clients may repeat.
func Requests(t *testing.T, open func(t *testing.T) Opened[RequestRows]) {
	answer := request.Answer{Status: 200, Media: "application/json", Body: []byte(`{"a":1}`)}
	t.Run("once", func(t *testing.T) {
		o := open(t)
		p, ctx := o.Port, soon(t)
		first := claimOf(1, 1)
		claim(t, p, first, request.Claimed)
		claim(t, p, first, request.Claimed) // retried after its answer was lost
		claim(t, p, claimOf(1, 1), request.Running)
		claim(t, p, claimOf(1, 2), request.Differs)
		claim(t, p, claimOf(2, 1), request.Claimed)
		check(t, p.Answer(ctx, request.Name{1}, claimOf(1, 1).ID, request.Answer{Status: 500})) // it is not the holder
		check(t, p.Answer(ctx, first.Name, first.ID, answer))
		p = o.Reopen()
		if diff := cmp.Diff(answer, claim(t, p, claimOf(1, 1), request.Answered)); diff != "" {
			t.Error(diff)
		}
		claim(t, p, claimOf(1, 2), request.Differs)
	})
	t.Run("release", func(t *testing.T) {
		p, ctx := open(t).Port, soon(t)
		first := claimOf(1, 1)
		claim(t, p, first, request.Claimed)
		check(t, p.Release(ctx, first.Name, claimOf(1, 1).ID)) // it is not the holder
		claim(t, p, claimOf(1, 1), request.Running)
		check(t, p.Release(ctx, first.Name, first.ID))
		claim(t, p, claimOf(1, 2), request.Claimed) // also for a request with another print
	})
	t.Run("a dead holder is replaced", func(t *testing.T) {
		o := open(t)
		p, ctx, clock := o.Port, soon(t), o.Clock.orReal()
		dead := claimOf(1, 1)
		dead.Hold = 300 * time.Millisecond
		claim(t, p, dead, request.Claimed)
		claim(t, p, claimOf(1, 1), request.Running)
		clock.Elapse(400 * time.Millisecond)
		claim(t, p, claimOf(1, 2), request.Differs)
		next := claimOf(1, 1)
		claim(t, p, next, request.Claimed)
		check(t, p.Answer(ctx, dead.Name, dead.ID, request.Answer{Status: 500})) // it was not dead, only late
		claim(t, p, claimOf(1, 1), request.Running)
		check(t, p.Answer(ctx, next.Name, next.ID, answer))
		claim(t, p, claimOf(1, 1), request.Answered)
	})
	t.Run("many at once", func(t *testing.T) {
		p, ctx := open(t).Port, soon(t)
		var claimed, running atomic.Int32
		var asking sync.WaitGroup
		for range 32 {
			asking.Go(func() {
				switch stage, _, err := p.Claim(ctx, claimOf(1, 1)); {
				case err != nil:
					t.Error(err)
				case stage == request.Claimed:
					claimed.Add(1)
				case stage == request.Running:
					running.Add(1)
				}
			})
		}
		asking.Wait()
		if claimed.Load() != 1 || running.Load() != 31 {
			t.Errorf("%d claimed it, %d found it running", claimed.Load(), running.Load())
		}
	})
	t.Run("histories are linearizable", func(t *testing.T) { LinearRequests(t, open(t).Port, SmallCrowd(1)) })
	t.Run("forget", func(t *testing.T) {
		o := open(t)
		p, ctx, clock := o.Port, soon(t), o.Clock.orReal()
		forget := func(o request.Oldest, want int) {
			t.Helper()
			if n, err := p.Forget(ctx, o); err != nil || n != want {
				t.Fatalf("forgot %d, %v; want %d", n, err, want)
			}
		}
		forget(request.Oldest{Limit: 10}, 0)
		short := claimOf(1, 1)
		short.Keep = 300 * time.Millisecond
		claim(t, p, short, request.Claimed)
		check(t, p.Answer(ctx, short.Name, short.ID, answer))
		for i := range byte(5) {
			c := claimOf(2+i, 1)
			c.Keep += time.Duration(i) * time.Minute
			claim(t, p, c, request.Claimed)
			if i == 0 { // the others are running
				check(t, p.Answer(ctx, c.Name, c.ID, answer))
			}
		}
		forget(request.Oldest{Expired: true, Limit: 10}, 0)
		clock.Elapse(400 * time.Millisecond)
		again := claimOf(1, 2)
		claim(t, p, again, request.Claimed) // forgotten, whether removed or not
		check(t, p.Answer(ctx, again.Name, again.ID, answer))
		short = claimOf(9, 1)
		short.Keep = 300 * time.Millisecond
		claim(t, p, short, request.Claimed)
		check(t, p.Answer(ctx, short.Name, short.ID, answer))
		clock.Elapse(400 * time.Millisecond)
		forget(request.Oldest{Expired: true, Limit: 10}, 1)
		forget(request.Oldest{Limit: 1}, 1)
		if u, err := p.Usage(ctx, 100); err != nil || u.All != 5 {
			t.Fatalf("%+v, %v", u, err)
		}
		forget(request.Oldest{Limit: 1}, 1)
		claim(t, p, claimOf(2, 1), request.Claimed)
		claim(t, p, claimOf(3, 1), request.Running)
		claim(t, p, claimOf(6, 1), request.Running)
		claim(t, p, claimOf(5, 1), request.Running)
	})
	t.Run("a running request is not forgotten", func(t *testing.T) { keepsRunning(t, open(t), answer) })
	// Attack 15: one client repeats no request and sends very many.
	t.Run("one client has no other's request forgotten", func(t *testing.T) {
		p, ctx := open(t).Port, soon(t)
		of := func(client string, name byte) request.Claim {
			c := claimOf(name, 1)
			c.Client, c.Keep = client, time.Hour+time.Duration(name)*time.Minute
			return c
		}
		victim := of("victim", 1) // the oldest of all
		claim(t, p, victim, request.Claimed)
		check(t, p.Answer(ctx, victim.Name, victim.ID, answer))
		for i := range byte(9) {
			c := of("flood", 10+i)
			claim(t, p, c, request.Claimed)
			if i < 6 { // the others are running
				check(t, p.Answer(ctx, c.Name, c.ID, answer))
			}
		}
		claim(t, p, of("", 30), request.Claimed)
		usage := func(share int, want request.Usage) {
			t.Helper()
			got, err := p.Usage(ctx, share)
			if diff := cmp.Diff(want, got); err != nil || diff != "" {
				t.Fatalf("%v\n%s", err, diff)
			}
		}
		usage(3, request.Usage{All: 11, Largest: 9, Beyond: []request.Count{{Client: "flood", Records: 9}}})
		usage(9, request.Usage{All: 11, Largest: 9})
		usage(0, request.Usage{All: 11, Largest: 9})
		flood := "flood"
		for _, step := range []struct {
			oldest request.Oldest
			want   int
		}{
			{request.Oldest{Client: &flood, Expired: true, Limit: 10}, 0},
			{request.Oldest{Client: &flood, Limit: 4}, 4},
			{request.Oldest{Client: &flood, Limit: 2}, 2},
		} {
			if n, err := p.Forget(ctx, step.oldest); err != nil || n != step.want {
				t.Fatalf("forgot %d, %v; want %d", n, err, step.want)
			}
		}
		usage(3, request.Usage{All: 5, Largest: 3})
		claim(t, p, victimAgain(victim), request.Answered)
		for i := range byte(9) { // its own oldest are forgotten
			want := request.Claimed
			if i >= 6 {
				want = request.Running
			}
			again := of("flood", 10+i)
			claim(t, p, again, want)
			check(t, p.Release(ctx, again.Name, again.ID))
		}
	})
}

// keepsRunning: while a request runs, nothing removes its claim, so that a retry of the request is
// not carried out at the same time.
func keepsRunning(t *testing.T, o Opened[RequestRows], answer request.Answer) {
	p, ctx, clock := o.Port, soon(t), o.Clock.orReal()
	const share = 1
	claimed := make([]request.Claim, share+100) // more than a claim displaces at once
	for i := range claimed {
		c := claimOf(byte(i), 1)
		c.Client, c.Share, c.Keep = "one", share, time.Hour+time.Duration(i)*time.Minute
		claimed[i] = c
	}
	expired, lost := &claimed[0], &claimed[len(claimed)-1]
	expired.Keep, lost.Hold = 300*time.Millisecond, 300*time.Millisecond
	for _, c := range claimed {
		claim(t, p, c, request.Claimed)
	}
	clock.Elapse(400 * time.Millisecond)
	forget := func(o request.Oldest, want int) {
		t.Helper()
		if n, err := p.Forget(ctx, o); err != nil || n != want {
			t.Errorf("forgot %d, %v; want %d", n, err, want)
		}
	}
	forget(request.Oldest{Client: &expired.Client, Limit: 100}, 1) // the holder of lost counts as dead
	forget(request.Oldest{Limit: 100}, 0)
	forget(request.Oldest{Expired: true, Limit: 100}, 0)
	for _, c := range claimed {
		if c.Name != lost.Name {
			claim(t, p, victimAgain(c), request.Running)
		}
	}
	for _, c := range claimed {
		check(t, p.Answer(ctx, c.Name, c.ID, answer))
	}
	forget(request.Oldest{Expired: true, Limit: 100}, 1)
	forget(request.Oldest{Limit: 100}, len(claimed)-2)
}

// victimAgain is the same request under a fresh claim.
func victimAgain(c request.Claim) request.Claim {
	rand.Read(c.ID[:]) //nolint:errcheck // never fails
	return c
}
