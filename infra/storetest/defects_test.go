package storetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/tempo-watchtower/watchtower/domain/request"
	"github.com/tempo-watchtower/watchtower/eventlog"
	"github.com/tempo-watchtower/watchtower/infra/storetest/linear"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// defect is an adapter's deliberate fault.
type defect string

const (
	sound           defect = "sound"
	checkThenAct    defect = "checks the version, then appends"
	staleRead       defect = "reads what stood a moment ago"
	appliedTwice    defect = "applies a retried append again"
	lostAppend      defect = "forgets an append that it said stands"
	falseFailure    defect = "calls an append failed that stands"
	ownPositions    defect = "numbers each stream's events by itself"
	checkThenLease  defect = "checks who holds a lease, then gives it away"
	earlyLapse      defect = "lets a lease lapse before its time"
	anyoneReleases  defect = "gives up a lease that somebody else holds"
	localCache      defect = "remembers requests in each replica alone"
	answerForgotten defect = "forgets what it was told to keep"
)

// interleave lets other goroutines run between a check and an act.
func interleave() { <-time.After(200 * time.Microsecond) }

// looseLog is a log in memory with a defect. An append whose context has ended when it finishes
// has an unknown outcome.
type looseLog struct {
	Log
	defect  defect
	mu      sync.Mutex
	streams map[eventlog.Stream][]eventlog.Recorded
	before  map[eventlog.Stream][]eventlog.Recorded // events of each stream before its last append
	appends int
	last    eventlog.Position
}

func (l *looseLog) Append(ctx context.Context, name eventlog.Stream, expected eventlog.Version, events ...eventlog.Event) (eventlog.Appended, error) {
	if l.defect == checkThenAct {
		l.mu.Lock()
		at := eventlog.Version(len(l.streams[name]))
		l.mu.Unlock()
		if at != expected {
			return eventlog.Appended{}, &eventlog.ConflictError{Stream: name, Expected: expected, Actual: at}
		}
		interleave()
		expected = l.version(name)
	}
	a, err := l.append(name, expected, events)
	if err == nil && ctx.Err() != nil {
		return eventlog.Appended{}, fmt.Errorf("%w: %w", eventlog.ErrUnknown, ctx.Err())
	}
	return a, err
}

func (l *looseLog) version(name eventlog.Stream) eventlog.Version {
	l.mu.Lock()
	defer l.mu.Unlock()
	return eventlog.Version(len(l.streams[name]))
}

func (l *looseLog) append(name eventlog.Stream, expected eventlog.Version, events []eventlog.Event) (eventlog.Appended, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	stands := l.streams[name]
	repeated := l.standsAt(stands, expected, events)
	a := eventlog.Appended{Version: expected + eventlog.Version(len(events)), Repeated: repeated}
	switch {
	case repeated && l.defect != appliedTwice:
		a.Position = stands[a.Version-1].Position
		return a, nil
	case !repeated && expected != eventlog.Version(len(stands)):
		return eventlog.Appended{}, &eventlog.ConflictError{Stream: name, Expected: expected, Actual: eventlog.Version(len(stands))}
	}
	if l.appends++; l.appends%9 == 0 && l.defect == lostAppend {
		a.Position = l.last + 1
		return a, nil
	}
	l.before[name] = stands
	for _, e := range events {
		l.last++
		r := eventlog.Recorded{Event: e, Stream: name, Version: eventlog.Version(len(stands) + 1), Position: l.last}
		stands = append(slices.Clip(stands), r)
		a.Position = l.last
	}
	l.streams[name] = stands
	switch {
	case l.defect == ownPositions:
		a.Position = eventlog.Position(a.Version)
	case l.defect == falseFailure && l.appends%9 == 0:
		return eventlog.Appended{}, errors.New("it did not work")
	}
	return a, nil
}

func (l *looseLog) standsAt(stands []eventlog.Recorded, expected eventlog.Version, events []eventlog.Event) bool {
	if int(expected)+len(events) > len(stands) {
		return false
	}
	for i, e := range events {
		if stands[int(expected)+i].ID != e.ID {
			return false
		}
	}
	return true
}

func (l *looseLog) ReadStream(_ context.Context, name eventlog.Stream, _ eventlog.Version) iter.Seq2[eventlog.Recorded, error] {
	l.mu.Lock()
	defer l.mu.Unlock()
	seen := l.streams[name]
	if l.defect == staleRead {
		seen = l.before[name]
	}
	return func(yield func(eventlog.Recorded, error) bool) {
		for _, r := range seen {
			if !yield(r, nil) {
				return
			}
		}
	}
}

// looseLeases are leases in memory with a defect.
type looseLeases struct {
	defect defect
	mu     sync.Mutex
	leases map[string]looseLease
}

type looseLease struct {
	holder string
	until  time.Time
}

func (l *looseLeases) Acquire(_ context.Context, name, holder string, ttl time.Duration) (bool, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now, at := time.Now(), l.leases[name]
	until := at.until
	if l.defect == earlyLapse {
		until = until.Add(-8 * time.Millisecond)
	}
	lapsed := !until.After(now)
	if l.defect == checkThenLease {
		l.mu.Unlock()
		interleave()
		l.mu.Lock()
	}
	if !lapsed && at.holder != holder {
		return false, nil
	}
	l.leases[name] = looseLease{holder, now.Add(ttl)}
	return true, nil
}

func (l *looseLeases) Release(_ context.Context, name, holder string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if at := l.leases[name]; at.holder == holder || l.defect == anyoneReleases {
		at.until = time.Time{}
		l.leases[name] = at
	}
	return nil
}

// looseRequests are requests in memory with a defect. Each claim belongs to one of two
// replicas.
type looseRequests struct {
	RequestRows
	defect   defect
	mu       sync.Mutex
	replicas [2]map[request.Name]looseRequest
	answers  int
}

type looseRequest struct {
	claim  request.Claim
	answer request.Answer
}

func (l *looseRequests) at(claim eventlog.ID) map[request.Name]looseRequest {
	if l.defect == localCache {
		return l.replicas[claim[0]%2]
	}
	return l.replicas[0]
}

func (l *looseRequests) Claim(_ context.Context, c request.Claim) (request.Stage, request.Answer, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch r, ok := l.at(c.ID)[c.Name]; {
	case !ok:
		l.at(c.ID)[c.Name] = looseRequest{claim: c}
		return request.Claimed, request.Answer{}, nil
	case r.claim.Print != c.Print:
		return request.Differs, request.Answer{}, nil
	case r.answer.Status == 0:
		return request.Running, request.Answer{}, nil
	default:
		return request.Answered, r.answer, nil
	}
}

func (l *looseRequests) Answer(_ context.Context, name request.Name, claim eventlog.ID, a request.Answer) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.answers++; l.answers%5 == 0 && l.defect == answerForgotten {
		a.Body = nil
	}
	if r, ok := l.at(claim)[name]; ok && r.claim.ID == claim {
		r.answer = a
		l.at(claim)[name] = r
	}
	return nil
}

func (l *looseRequests) Release(_ context.Context, name request.Name, claim eventlog.ID) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if r, ok := l.at(claim)[name]; ok && r.claim.ID == claim {
		delete(l.at(claim), name)
	}
	return nil
}

// TestDefectsAreJudgedWrong runs the contract's clients against deliberately broken adapters.
// Each must be judged wrong, and the sound adapters must not be.
func TestDefectsAreJudgedWrong(t *testing.T) {
	streams := func(ctx context.Context, d defect, c Crowd) linear.Verdict {
		l := &looseLog{defect: d, streams: map[eventlog.Stream][]eventlog.Recorded{}, before: map[eventlog.Stream][]eventlog.Recorded{}}
		return AskStreams(ctx, l, c).Judge()
	}
	leases := func(ctx context.Context, d defect, c Crowd) linear.Verdict {
		return AskLeases(ctx, &looseLeases{defect: d, leases: map[string]looseLease{}}, Clock{}, c).Judge()
	}
	requests := func(ctx context.Context, d defect, c Crowd) linear.Verdict {
		l := &looseRequests{defect: d, replicas: [2]map[request.Name]looseRequest{{}, {}}}
		return AskRequests(ctx, l, c).Judge()
	}
	for _, c := range []struct {
		of      string
		ask     func(context.Context, defect, Crowd) linear.Verdict
		defects []defect
	}{
		{"streams", streams, []defect{sound, checkThenAct, staleRead, appliedTwice, lostAppend, falseFailure, ownPositions}},
		{"leases", leases, []defect{sound, checkThenLease, earlyLapse, anyoneReleases}},
		{"requests", requests, []defect{sound, localCache, answerForgotten}},
	} {
		for _, d := range c.defects {
			t.Run(fmt.Sprintf("%s: %s", c.of, d), func(t *testing.T) {
				t.Parallel()
				caught(t, d, func(seed uint64) linear.Verdict { return c.ask(soon(t), d, SmallCrowd(seed)) })
			})
		}
	}
}

// caught requires that one of a few seeds finds a defect, and that its picture can be drawn. A
// sound adapter must never be judged wrong.
func caught(t *testing.T, d defect, judge func(seed uint64) linear.Verdict) {
	t.Helper()
	const seeds = 5
	for seed := range uint64(seeds) {
		v := judge(seed)
		switch {
		case v.Undecided:
			t.Fatal(v.Wrong)
		case d == sound && v.Wrong != "":
			t.Fatalf("seed %d: judged wrong: %s", seed, v.Wrong)
		case d != sound && v.Wrong != "":
			var picture bytes.Buffer
			check(t, v.Draw(&picture))
			if drawn := picture.String(); !strings.Contains(drawn, "<html") && !strings.Contains(drawn, v.Wrong) {
				t.Errorf("the picture is %.100q", drawn)
			}
			t.Logf("seed %d: %s", seed, v.Wrong)
			return
		}
	}
	if d != sound {
		t.Errorf("not found wanting with %d seeds", seeds)
	}
}
