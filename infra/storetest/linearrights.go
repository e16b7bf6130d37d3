package storetest

import (
	"context"
	"crypto/rand"
	"fmt"
	mathrand "math/rand/v2"
	"testing"
	"time"

	"github.com/tempo-watchtower/watchtower/domain/request"
	"github.com/tempo-watchtower/watchtower/infra/storetest/linear"
)

// LinearLeases runs holders that take, renew, release and let lapse a few leases. Their results
// must be linearizable: no holder has a lease while another's runs.
func LinearLeases(t *testing.T, p LeaseRows, clock Clock, c Crowd) {
	t.Helper()
	h := AskLeases(soon(t), p, clock, c)
	all, open := h.Len()
	held, denied := h.Told(true), h.Told(false)
	t.Logf("%d calls, %d of unknown outcome; %d held, %d denied", all, open, held, denied)
	if held < all/20 || denied < all/20 {
		t.Error("too little happened for a verdict")
	}
	judged(t, h.Judge())
}

// leaseSlack is the error of a store's lease times: it truncates to microseconds, and its
// machine's clock is adjusted between our readings of ours.
const leaseSlack = time.Millisecond

// AskLeases makes the history of [LinearLeases]; the caller judges it.
func AskLeases(ctx context.Context, p LeaseRows, clock Clock, c Crowd) linear.Leases {
	clock = clock.orReal()
	h := linear.NewLeases(clock.Now)
	h.Slack, h.Again = leaseSlack+clock.Grain, c.Again
	c.together(ctx, func(n int, draw *mathrand.Rand, more func() bool) {
		me := fmt.Sprint("holder-", n)
		for more() {
			a := linear.Right{Name: fmt.Sprintf("lane-%d-%d", c.Seed, draw.IntN(3)), Holder: me}
			switch dice := draw.IntN(10); {
			case dice < 6:
				a.TTL = time.Duration(10+draw.IntN(40)) * time.Millisecond
			case dice > 7:
				clock.Elapse(time.Duration(draw.IntN(15)) * time.Millisecond)
				continue
			}
			askLease(ctx, p, h, n, a)
		}
	})
	return h
}

func askLease(ctx context.Context, p LeaseRows, h linear.Leases, client int, a linear.Right) {
	h.Do(client, a, func() (linear.Granted, bool) {
		if a.TTL == 0 {
			err := p.Release(ctx, a.Name, a.Holder)
			return linear.Granted{Err: err}, err == nil
		}
		held, err := p.Acquire(ctx, a.Name, a.Holder, a.TTL)
		return linear.Granted{Held: held, Err: err}, err == nil
	})
}

// LinearRequests runs clients that claim, answer and release requests. Their results must be
// linearizable: each request is carried out by one client, and all get its answer.
func LinearRequests(t *testing.T, p RequestRows, c Crowd) {
	t.Helper()
	h := AskRequests(soon(t), p, c)
	all, open := h.Len()
	claimed, running, answered, differ := h.Stage(request.Claimed), h.Stage(request.Running), h.Stage(request.Answered), h.Stage(request.Differs)
	t.Logf("%d calls, %d of unknown outcome; claims: %d claimed, %d running, %d answered, %d differ", all, open, claimed, running, answered, differ)
	if min(claimed, running, answered, differ) == 0 {
		t.Error("too little happened for a verdict")
	}
	judged(t, h.Judge())
}

// requestsEach is about the number of calls per request.
const requestsEach = 8

// AskRequests makes the history of [LinearRequests]; the caller judges it.
func AskRequests(ctx context.Context, p RequestRows, c Crowd) linear.Claims {
	h := linear.NewClaims()
	c.together(ctx, func(n int, draw *mathrand.Rand, more func() bool) {
		for asked := 0; more(); asked++ {
			name := request.Name{byte(c.Seed), byte(c.Seed >> 8)}
			first := asked * c.Clients / requestsEach
			copy(name[8:], fmt.Sprint(first+draw.IntN(3)))
			carryOut(ctx, p, h, n, draw, name)
		}
	})
	return h
}

// carryOut claims a request and, if it gets the claim, carries it out.
func carryOut(ctx context.Context, p RequestRows, h linear.Claims, client int, draw *mathrand.Rand, name request.Name) {
	a := linear.Ask{Kind: linear.ToClaim, Name: name, Print: request.Print{byte(1 + draw.IntN(4)/3)}}
	rand.Read(a.Claim[:]) //nolint:errcheck // never fails
	told := h.Do(client, a, func() (linear.Told, bool) {
		c := request.Claim{ID: a.Claim, Name: name, Print: a.Print, Hold: time.Hour, Keep: time.Hour}
		stage, answer, err := p.Claim(ctx, c)
		return linear.Told{Stage: stage, Answer: string(answer.Body), Err: err}, err == nil
	})
	if told.Err != nil || told.Stage != request.Claimed {
		return
	}
	if a.Kind = linear.ToAnswer; draw.IntN(3) == 0 {
		a.Kind = linear.ToRelease
	} else {
		a.Answer = fmt.Sprintf("answer %x", a.Claim[:4])
	}
	h.Do(client, a, func() (linear.Told, bool) {
		var err error
		if a.Kind == linear.ToRelease {
			err = p.Release(ctx, name, a.Claim)
		} else {
			err = p.Answer(ctx, name, a.Claim, request.Answer{Status: 200, Media: "text/plain", Body: []byte(a.Answer)})
		}
		return linear.Told{Err: err}, err == nil
	})
}
